"""What templates write of tools, remembered by their content: each request is rendered twice, and its tools come again.

That is JSON, and the text of macros that their arguments alone decide: a pure macro reads nothing that the template or
the request sets, and calls none that does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from sys import getsizeof
from typing import Any, Protocol, cast

from jinja2 import nodes
from jinja2.nodes import EvalContext
from jinja2.runtime import Macro

from toolgram.caching import TOGETHER, digest, remembers
from toolgram.template.reads import read_by

SHARED = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Block, nodes.Extends)  # names come from elsewhere
_SCALARS = frozenset((str, int, float, bool, type(None)))
_INDENTS = frozenset((int, str, type(None)))
_OF_A_TEXT = 512  # bytes that are kept beside its text


class Rendering(Protocol):
    """What counts the steps of a rendering, and knows what may be remembered of it."""

    eval_ctx: EvalContext
    remembered: Remembered | None

    def spend(self, steps: int = 1) -> bool:
        """Charge steps."""
        ...

    def hold(self, characters: int) -> None:
        """Charge a text that is about to be made."""
        ...

    @property
    def left(self) -> int:
        """How many steps are left."""
        ...


def pure_macros(tree: nodes.Template) -> dict[str, frozenset[str]]:
    """The macros of a template of which the arguments decide what they write, unless one of the names is a variable.

    That is so where a macro reads nothing that the template sets. The names are those that it reads for all that, and
    the macros that it calls: a name that is set in one branch alone is looked up after the other.
    """
    if next(tree.find_all(SHARED), None) is not None:
        return {}
    macros, stored = _outermost(tree)
    every = Counter(macro.name for macro in tree.find_all(nodes.Macro))
    reads = {
        macro.name: read
        for macro in macros
        if every[macro.name] == 1 and macro.name not in stored and not _is_random(macro)
        if (read := read_by(macro)) is not None
    }
    others = stored | {macro.name for macro in macros}
    while impure := [name for name, read in reads.items() if not read & others <= reads.keys()]:
        for name in impure:
            del reads[name]
    return {name: _with_called(name, reads) for name in reads}


def _outermost(tree: nodes.Template) -> tuple[list[nodes.Macro], set[str]]:
    """The macros that stand in no other, and the names that are set outside of macros."""
    macros: list[nodes.Macro] = []
    stored: set[str] = set()
    waiting: list[nodes.Node] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Macro):
            macros.append(node)
            continue
        if isinstance(node, nodes.Name) and node.ctx != "load":
            stored.add(node.name)
        waiting.extend(node.iter_child_nodes())
    return macros, stored


def _is_random(macro: nodes.Macro) -> bool:
    return any(each.name == "random" for each in macro.find_all(nodes.Filter))


def _with_called(name: str, reads: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """What a macro reads, and what the macros that it calls read."""
    found = {name}
    waiting = [name]
    while waiting:
        for read in reads.get(waiting.pop(), ()):
            if read not in found:
                found.add(read)
                waiting.append(read)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Remembered:
    """The `pure` macros of a template, and what stands in the tools of a rendering, `known` by its identity: what is in
    their `schemas` from the first macro on that is given a part of them.

    What a template makes itself is none of it: that may be of any size, as each of its parts may stand in it often.
    """

    source: str
    pure: frozenset[str]
    known: set[int]
    schemas: list[Any]

    @classmethod
    def of(cls, source: str, macros: Mapping[str, frozenset[str]], variables: Mapping[str, Any]) -> Remembered:
        """For a rendering with these variables of a template that has these pure macros."""
        pure = frozenset(name for name, read in macros.items() if read.isdisjoint(variables))
        tools = variables["tools"] or ()
        schemas = [_under(_under(tool, "function"), "parameters") for tool in tools]
        return cls(source, pure, set(map(id, _parts_of_tools(tools))), schemas)

    def of_macro(self, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> _Key | None:
        """What the text of a call is looked up by; None where it is not remembered."""
        if name not in self.pure:
            return None
        of_tools = False
        given = list[Hashable]()
        if self.schemas and any(self._is_strange(value) for value in (*arguments, *keywords.values())):
            self.known.update(_objects_in(self.schemas))
            self.schemas.clear()
        for value in (*arguments, *keywords.values()):
            if content := self._content(value):
                of_tools = True
                given.append(content)
            elif type(value) in _SCALARS:
                given.append((type(cast("object", value)), repr(value) if isinstance(value, float) else value))
            else:
                return None
        return (self.source, name, *keywords, *given) if of_tools else None

    def _is_strange(self, value: Any) -> bool:
        """Whether it may be a part of a schema: macros that call themselves are given one after the other."""
        return isinstance(value, dict) and id(cast("object", value)) not in self.known

    def of_json(self, value: Any, indent: object, separators: object, *flags: object) -> _Key | None:
        """What the text of a value as JSON is looked up by, the same for all templates."""
        if type(indent) not in _INDENTS or separators is not None:
            return None
        content = self._content(value)
        return (indent, *map(bool, flags), content) if content else None

    def of_text(self, value: Any) -> _Key | None:
        """What the text of a value as Python writes it is looked up by."""
        content = self._content(value)
        return (str, content) if content else None

    def _content(self, value: Any) -> bytes:
        """What is known of the tools, as a few bytes; none of all else."""
        return digest(value) if id(value) in self.known else b""


_Key = tuple[Hashable, ...]


def macro_text(rendering: Rendering, macro: Macro, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> str:
    """What a call of a macro writes."""
    remembered = rendering.remembered
    key = remembered and remembered.of_macro(macro.name, arguments, keywords)
    if key is not None and (known := _recalled(rendering, key)) is not None:
        return known
    before = rendering.left  # not by `written`, which would lie between the levels of a macro that calls itself
    text = macro(rendering.eval_ctx, *arguments, **keywords)
    return text if key is None else _noted(rendering, key, text, before)


def written(rendering: Rendering, key: _Key, write: Callable[[], str]) -> str:
    """The text of this key, which `write` makes where it is not known; its steps count in any case."""
    if (known := _recalled(rendering, key)) is not None:
        return known
    before = rendering.left
    return _noted(rendering, key, write(), before)


def _recalled(rendering: Rendering, key: _Key) -> str | None:
    found: tuple[str, int] | None = TOGETHER.recall(_noted, key)
    if found is None:
        return None
    rendering.spend(found[1])
    return found[0]


@remembers
def _noted(rendering: Rendering, key: _Key, text: str, before: int) -> str:
    """The text, kept with the steps that it took; so many were left `before`."""
    TOGETHER.note(_noted, key, (text, before - rendering.left), _OF_A_TEXT + getsizeof(text))
    return text


def _parts_of_tools(tools: Sequence[Any]) -> Iterator[Any]:
    """What templates give to macros and write as JSON: the list, the tools, and what is large in these."""
    yield tools
    for tool in tools:
        yield tool
        function = _under(tool, "function")
        parameters = _under(function, "parameters")
        yield from (function, parameters, _under(parameters, "properties"))


def _objects_in(value: Any) -> set[int]:
    """The identities of the objects in a value, however deep; it may hold some of them several times, or itself."""
    found, seen = set[int](), set[int]()
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict | list) and id(cast("object", part)) not in seen:
            seen.add(id(cast("object", part)))
            if isinstance(part, dict):
                found.add(id(cast("object", part)))
                waiting += cast("dict[str, Any]", part).values()
            else:
                waiting += cast("list[Any]", part)
    return found


def _under(value: Any, key: str) -> Any:
    return cast("Mapping[str, Any]", value).get(key) if isinstance(value, dict) else None
