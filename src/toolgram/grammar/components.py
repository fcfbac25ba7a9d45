"""What leads to one another: rules that recur together, states in a loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

_Node = TypeVar("_Node", str, int)


def components(onward: Mapping[_Node, Sequence[_Node]]) -> list[list[_Node]]:
    """The nodes in groups of those that lead to one another, each after those that it leads to (Tarjan, 1972)."""
    index: dict[_Node, int] = {}
    lowest: dict[_Node, int] = {}
    path: list[_Node] = []
    heights: dict[_Node, int] = {}  # of those on the path
    found: list[list[_Node]] = []
    for start in onward:
        calls: list[tuple[_Node, Iterator[_Node]]] = [(start, iter(onward[start]))] if start not in index else []
        while calls:
            node, targets = calls[-1]
            if node not in index:
                index[node] = lowest[node] = len(index)
                heights[node] = len(path)
                path.append(node)
            for target in targets:
                if target not in index:
                    if onward[target]:
                        calls.append((target, iter(onward[target])))
                        break
                    index[target] = len(index)  # it leads nowhere, as many do
                    found.append([target])
                elif target in heights:
                    lowest[node] = min(lowest[node], index[target])
            else:
                calls.pop()
                if calls:
                    lowest[calls[-1][0]] = min(lowest[calls[-1][0]], lowest[node])
                if lowest[node] == index[node]:
                    found.append(path[heights[node] :])
                    del path[heights[node] :]
                    for member in found[-1]:
                        del heights[member]
    return found
