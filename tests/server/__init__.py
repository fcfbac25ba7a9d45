"""The server, under test. A package with a name of its own, or `benchmarks/server.py` would be taken for it."""
