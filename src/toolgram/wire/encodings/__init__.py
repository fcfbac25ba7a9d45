"""Encodings: how the arguments of a call are written."""

from toolgram.schema.writing.notation import JSON, PYTHON, Encoding
from toolgram.wire.encodings.elements import Elements
from toolgram.wire.encodings.tagged import Tagged

AnyEncoding = Encoding | Tagged | Elements

__all__ = ["JSON", "PYTHON", "AnyEncoding", "Elements", "Encoding", "Tagged"]
