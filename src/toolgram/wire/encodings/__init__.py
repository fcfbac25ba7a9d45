"""Encodings: how the arguments of a call are written."""

from toolgram.wire.encodings.base import AnyEncoding
from toolgram.wire.encodings.elements import Elements
from toolgram.wire.encodings.entities import Entities
from toolgram.wire.encodings.notation import JSON, PYTHON, Encoding
from toolgram.wire.encodings.tagged import Tagged

__all__ = ["JSON", "PYTHON", "AnyEncoding", "Elements", "Encoding", "Entities", "Tagged"]
