"""Encodings: how the arguments of a call are written."""

from toolgram.schema.encoding import JSON, PYTHON, Encoding

__all__ = ["JSON", "PYTHON", "Encoding"]
