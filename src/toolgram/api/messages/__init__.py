"""Anthropic's messages: the request's body, the answer's."""
