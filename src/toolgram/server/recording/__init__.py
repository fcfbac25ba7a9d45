"""A request as it came and all that an engine said to it: written where it failed, replayed offline, and shrunk."""
