"""Encodings: how the arguments of a call are written."""

from toolgram.schema.encoding import JSON, PYTHON, Encoding
from toolgram.wire.tagged import Tagged

AnyEncoding = Encoding | Tagged

__all__ = ["JSON", "PYTHON", "AnyEncoding", "Encoding", "Tagged"]
