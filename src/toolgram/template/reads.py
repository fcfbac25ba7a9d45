"""What a macro reads from outside of it: names that it does not set itself before, whichever way it goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from jinja2 import nodes
from jinja2.compiler import Frame
from jinja2.meta import TrackingCodeGenerator

_Read = nodes.Name | nodes.NSRef


def read_by(macro: nodes.Macro) -> frozenset[str] | None:
    """The names that a macro takes from outside of it; None where that cannot be told of it alone."""
    environment = cast("Any", macro.environment)
    names = _Names(environment)
    try:
        names.visit(nodes.Template([macro], lineno=macro.lineno).set_environment(environment))
    except AssertionError:  # Jinja overlooks the names in filters of set blocks, unless they stand elsewhere too
        return None
    own = {each.name for each in macro.find_all(nodes.Name) if each.ctx == "store"}
    own |= {each.name for each in macro.find_all(nodes.Macro)}
    early = set[str]()
    _set_by([*macro.defaults, *macro.body], _parameters(macro), early)
    # A name that is set later is not told as looked up where the macro is alone, though it may be read before.
    return frozenset(names.undeclared_identifiers - own | own & early)


class _Names(TrackingCodeGenerator):
    """Finds the names that are looked up outside of a template, those of Jinja's own functions too.

    A name that is set in one branch alone is among them, since it is looked up in case that the other one is taken.
    """

    def enter_frame(self, frame: Frame) -> None:
        super().enter_frame(frame)
        loads = cast("Mapping[str, tuple[str, str]]", frame.symbols.loads).values()
        self.undeclared_identifiers.update(name for action, name in loads if action == "resolve")


def _set_by(body: Iterable[nodes.Node], known: frozenset[str], early: set[str]) -> frozenset[str]:
    """The names that are certainly set after these statements, and before them those `known`; what is read that may not
    be set yet is added to `early`."""

    def look(*read: nodes.Node | None) -> None:
        early.update(each.name for node in read if node for each in _reads(node) if each.name not in known)

    for node in body:
        if isinstance(node, nodes.Assign):
            look(node.target, node.node)
            known |= _targets(node.target)
        elif isinstance(node, nodes.AssignBlock):
            _set_by(node.body, known, early)
            look(node.target, node.filter)
            known |= _targets(node.target)
        elif isinstance(node, nodes.If):
            ifs = (node, *node.elif_)
            look(*(each.test for each in ifs))
            ways = [_set_by(way, known, early) for way in (*(each.body for each in ifs), node.else_)]
            known = ways[0].intersection(*ways)
        elif isinstance(node, nodes.Macro):
            _set_by([*node.defaults, *node.body], known | _parameters(node), early)
            known |= {node.name}
        elif isinstance(node, nodes.For):
            look(node.iter)
            within = known | _targets(node.target)
            _set_by([*filter(None, [node.test]), *node.body], within, early)
            _set_by(node.else_, known, early)
        else:
            look(node)
    return known


def _parameters(macro: nodes.Macro) -> frozenset[str]:
    return frozenset(each.name for each in macro.args)


def _reads(node: nodes.Node) -> Iterator[_Read]:
    """The names that are read in a node; of a namespace too where something in it is set."""
    for each in (node, *node.find_all((nodes.Name, nodes.NSRef))):
        if isinstance(each, nodes.NSRef) or (isinstance(each, nodes.Name) and each.ctx == "load"):
            yield each


def _targets(target: nodes.Node) -> frozenset[str]:
    return frozenset(each.name for each in (target, *target.find_all(nodes.Name)) if isinstance(each, nodes.Name))
