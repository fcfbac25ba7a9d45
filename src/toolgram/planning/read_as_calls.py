"""Answers that would read as calls: what of a response schema's values, or of plain answers, a turn does not admit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolgram.schema import types
from toolgram.wire import format as wire
from toolgram.wire.json_shapes import ARGUMENTS
from toolgram.wire.program import compile_format

_NAME = "\0"  # stands for a tool's


def values_read_as_calls(format_: wire.WireFormat, tools: Iterable[str]) -> types.Type:
    """The JSON values that read as calls of these tools in a format: NEVER where its marks tell all calls."""
    names = types.union(types.Text(name) for name in tools)
    return types.union((*_of_objects(format_, names), *_of_named_marks(format_, names)))


def beginnings_of_calls(format_: wire.WireFormat) -> tuple[str, ...]:
    """The texts with which a turn that is a call begins, and an answer in plain text does not."""
    program = compile_format(format_.turn)
    return (*program.first_marks, *program.first_characters)


def _of_objects(format_: wire.WireFormat, names: types.Type) -> Iterator[types.Type]:
    """Where calls are JSON objects that no mark opens, keys come in any order, and arguments under any known key."""
    first = compile_format(format_.turn).first_characters
    if not first:
        return
    for node in wire.walk(format_.turn, written=True):
        if isinstance(node, wire.Object):
            own = [key for key, member in node.members if isinstance(member, wire.Arguments)]
            for name in (key for key, member in node.members if isinstance(member, wire.Name)):
                for key in dict.fromkeys((*own, *ARGUMENTS)):
                    call = _object({name: names, key: types.Object((), types.ANY)})
                    yield types.array((call,), types.ANY, 1, None) if "[" in first else call


def _of_named_marks(format_: wire.WireFormat, names: types.Type) -> Iterator[types.Type]:
    """Where a mark is the beginning of an object, up to its arguments, it is a call whatever these are."""
    for node in wire.walk(format_.turn, written=True):
        if isinstance(node, wire.NamedMark):
            _, brace, begun = node.text(_NAME).partition("{")
            try:
                members: Mapping[str, Any] = json.loads(f"{brace}{begun}null}}")
            except ValueError:
                continue  # no JSON begins so
            kinds = {key: types.Text(said) if isinstance(said, str) else types.ANY for key, said in members.items()}
            yield _object({key: names if kind == types.Text(_NAME) else kind for key, kind in kinds.items()})


def _object(members: Mapping[str, types.Type]) -> types.Type:
    """Objects that have these members, and any others."""
    return types.object_type([types.Property(key, kind, required=True) for key, kind in members.items()], types.ANY)
