"""Loops over tools that write each of them out: what they write of one is made a macro, whose text is remembered.

Many templates announce tools as signatures or in tags, parameter by parameter. As a macro (`macros.py`) that is written
once for a tool, and not in each request, of which every one is rendered twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from jinja2 import Environment, nodes
from jinja2.visitor import NodeTransformer

from toolgram.template.macros import SHARED
from toolgram.template.reads import read_by

_OF_A_LOOP = frozenset({"first", "index", "index0", "last", "length", "revindex", "revindex0"})
_OF_A_MACRO = frozenset({"caller", "kwargs", "varargs"})  # each macro has its own
_OWN = "_round_{}"  # names of macros, which no template exports


def rounds_as_macros(tree: nodes.Template, pure: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Makes the round of a loop that writes much a macro, if its item and its place in the loop decide what it writes.

    The template writes what it wrote before. `pure` are its macros, as `pure_macros` finds them; these are those that
    are new.
    """
    if next(tree.find_all(SHARED), None) is not None:
        return {}
    macros = {macro.name for macro in tree.find_all(nodes.Macro)}
    set_by_it = {name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"}
    anywhere = {"loop", *pure, *_environment(tree).globals.keys() - macros} - set_by_it
    made: dict[str, nodes.Macro] = {}
    found: dict[str, frozenset[str]] = {}
    for loop in list(tree.find_all(nodes.For)):
        names = {name.name for name in loop.find_all(nodes.Name)}
        if not (_writes_much(loop) and names.isdisjoint(_OF_A_MACRO)) or (places := _places(loop)) is None:
            continue
        macro = _macro(_OWN.format(len(made)), loop, places)
        read = read_by(macro)
        if macro.name not in macros | set_by_it and read is not None and read <= anywhere:
            loop.body = [_call(macro, loop, places)]
            _AsParameters().all(macro.body)
            made[macro.name] = macro
            found[macro.name] = frozenset((macro.name,)).union(read - {"loop"}, *(pure.get(name, ()) for name in read))
    tree.body[:0] = made.values()
    return found


def _environment(node: nodes.Node) -> Environment:
    return cast("Environment", node.environment)


def _writes_much(loop: nodes.For) -> bool:
    """Whether it goes through all of something that has a name, and through each item of that, or says several things
    of it: what is but written as JSON is remembered anyway."""
    if not isinstance(loop.target, nodes.Name) or not isinstance(loop.iter, nodes.Name) or loop.recursive:
        return False
    body = nodes.Template(loop.body)
    said = (each for output in body.find_all(nodes.Output) for each in output.nodes)
    several = sum(not isinstance(each, (nodes.TemplateData, nodes.Const)) for each in said) > 1
    return several or next(body.find_all(nodes.For), None) is not None


def _places(loop: nodes.For) -> tuple[str, ...] | None:
    """What a round reads of where in the loop it is; None where it reads more of the loop, ends it, or has macros."""
    found = dict[str, None]()
    for node in _of_round(loop.body):
        if isinstance(node, nodes.Getattr):
            found[node.attr] = None
        elif not isinstance(node, nodes.Name) or node.name == "loop":
            return None
    return tuple(found) if found.keys() <= _OF_A_LOOP else None


def _of_round(body: Iterable[nodes.Node]) -> Iterator[nodes.Node]:
    """What a round says of its own loop, names that it reads otherwise, and what may stand in no macro."""
    for node in body:
        if isinstance(node, (nodes.Break, nodes.Continue, nodes.Macro, nodes.CallBlock, nodes.Name)) or _is_place(node):
            yield node
        elif isinstance(node, nodes.For):  # in which `loop` is that one, but for what it goes through
            yield from _of_round((node.iter, *node.else_))
            yield from node.test.find_all(nodes.Name) if node.test else ()
        else:
            yield from _of_round(node.iter_child_nodes())


def _is_place(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name) and node.node.name == "loop"


def _macro(name: str, loop: nodes.For, places: Iterable[str]) -> nodes.Macro:
    target = cast("nodes.Name", loop.target).name
    parameters = [nodes.Name(each, "param") for each in (target, *map(_parameter, places))]
    return nodes.Macro(name, parameters, [], loop.body, lineno=loop.lineno, environment=loop.environment)


def _parameter(place: str) -> str:
    return f"_loop_{place}"


def _call(macro: nodes.Macro, loop: nodes.For, places: Iterable[str]) -> nodes.Output:
    item = nodes.Name(cast("nodes.Name", loop.target).name, "load")
    where = [nodes.Getattr(nodes.Name("loop", "load"), each, "load") for each in places]
    call = nodes.Call(nodes.Name(macro.name, "load"), [item, *where], [], None, None)
    return cast("nodes.Output", nodes.Output([call]).set_lineno(loop.lineno).set_environment(_environment(loop)))


class _AsParameters(NodeTransformer):
    """Puts parameters of the macro in the place of what a round reads of its loop."""

    def all(self, body: list[nodes.Node]) -> None:
        """In these nodes."""
        body[:] = [self.visit(node) for node in body]

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802  Jinja names it
        node.iter = self.visit(node.iter)
        self.all(node.else_)
        return node

    def visit_Getattr(self, node: nodes.Getattr) -> nodes.Node:  # noqa: N802  Jinja names it
        if not _is_place(node):
            return self.generic_visit(node)
        return nodes.Name(_parameter(node.attr), "load", lineno=node.lineno, environment=node.environment)
