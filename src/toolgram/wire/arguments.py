"""Encodings: how the arguments of a call are written."""

from toolgram.schema.encoding import JSON, PYTHON, Encoding
from toolgram.wire.elements import Elements
from toolgram.wire.tagged import Tagged

AnyEncoding = Encoding | Tagged | Elements

__all__ = ["JSON", "PYTHON", "AnyEncoding", "Elements", "Encoding", "Tagged"]
