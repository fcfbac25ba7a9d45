"""Compares our verdicts on calls with BFCL's own checker: on all its ground truths, and on calls that were changed.

The checker is read from the wheel. What it imports for models and other languages is replaced by empty modules.
"""

from __future__ import annotations

import copy
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from _answers_bfcl import KINDS, Question, lines, question
from _answers_compare import Call, fault
from _common import show

Arguments = dict[str, Any]
Change = Callable[[random.Random, list[Call], Question], list[Call]]

TIMES = 20  # a change is made to each question
VALUES = ("", "text", "5", 0, 5, 2.5, True, False, None, [], [1], [1.0], ["a"], [{}], {}, {"a": 1})
_LANGUAGES = ("java", "js")


def check(wheel: Path) -> None:
    """Print how often both agree, and on what they do not."""
    theirs = _checker(wheel)
    agreed, right, seen = Counter[str](), Counter[str](), Counter[str]()
    for kind in KINDS:
        for line, truth in lines(wheel, kind):
            one = question(line, truth)
            for name, calls in _cases(one) if truth else ():
                ours = fault(one.expected, calls, one.schemas)
                other = theirs(kind, line["function"], calls, truth)
                seen[name] += 1
                right[name] += not other
                agreed[name] += bool(ours) == bool(other)
                if bool(ours) != bool(other):
                    print(f"{one.id}, {name}: {calls}\n  ours: {ours or 'right'}\n  BFCL: {other or 'right'}")
    rows = [[name, count, right[name], agreed[name]] for name, count in seen.items()]
    rows.append(["all", *(sum(counted.values()) for counted in (seen, right, agreed))])
    show("Verdicts compared with BFCL's checker", ["calls", "of them", "right", "both agree"], rows)


def _cases(question: Question) -> Sequence[tuple[str, list[Call]]]:
    rng = random.Random(question.id)
    cases = [("as expected", _expected(rng, question)) for _ in range(TIMES)]
    for name, change in CHANGES.items():
        cases += [(name, change(rng, _expected(rng, question), question)) for _ in range(TIMES)]
    return cases


def _expected(rng: random.Random, question: Question) -> list[Call]:
    """Calls that are right, by a choice among the possible values."""
    calls: list[Call] = []
    for one in question.expected:
        schema = question.schemas[one.name]["properties"]
        given = {name: _chosen(rng, values, schema.get(name, {})) for name, values in one.arguments.items()}
        calls.append(Call(one.name, {name: value for name, value in given.items() if value != ""}))
    return calls


def _chosen(rng: random.Random, values: Sequence[Any], schema: Mapping[str, Any]) -> Any:
    value = rng.choice(values)
    if schema.get("type") == "object" and isinstance(value, dict):
        return _object(rng, value)
    if schema.get("items", {}).get("type") == "object" and isinstance(value, list):
        return [_object(rng, one) for one in value]
    return copy.deepcopy(value)


def _object(rng: random.Random, possible: Mapping[str, Any]) -> Any:
    """An object is described by the possible values of each member."""
    if not isinstance(possible, dict):
        return possible
    chosen = {key: rng.choice(values) if isinstance(values, list) else values for key, values in possible.items()}
    return {key: value for key, value in chosen.items() if value != ""}


def _in_arguments(change: Callable[[random.Random, Arguments, Question], None]) -> Change:
    """A change of what one call is given."""

    def changed(rng: random.Random, calls: list[Call], question: Question) -> list[Call]:
        at = rng.randrange(len(calls))
        given = dict(calls[at].arguments or {})
        if given:
            change(rng, given, question)
        return [*calls[:at], Call(calls[at].name, given), *calls[at + 1 :]]

    return changed


def _one_value(change: Callable[[random.Random, Any], Any]) -> Change:
    def changed(rng: random.Random, given: Arguments, _question: Question) -> None:
        name = rng.choice(list(given))
        given[name] = change(rng, given[name])

    return _in_arguments(changed)


def _other(rng: random.Random, value: Any) -> Any:
    """Another value of the same type, somewhere inside as well."""
    match value:
        case bool():
            return not value
        case str():
            return rng.choice([f"{value}x", value[:-1], "", "other"])
        case int() | float():
            return value + rng.choice([1, -1, 100])
        case list() if value and rng.random() < 0.6:
            at = rng.randrange(len(value))
            return [*value[:at], _other(rng, value[at]), *value[at + 1 :]]
        case list():
            return rng.choice([[], value[::-1], value[:-1], [*value, *value[:1]]])
        case dict() if value and rng.random() < 0.6:
            key = rng.choice(list(value))
            return {**value, key: _other(rng, value[key])}
        case dict():
            return rng.choice([{}, dict(list(value.items())[:-1]), {**value, "unheard_of": 1}])
        case _:
            return "other"


def _rewritten(rng: random.Random, value: Any) -> Any:
    """What says the same, or nearly: case, punctuation, quotes; the type of a number; inside as well."""
    match value:
        case bool():
            return value
        case str():
            spelled = [value.upper(), value.lower(), value.replace(" ", ""), f" {value}.", value.replace('"', "'")]
            return rng.choice([*spelled, value.replace("-", "/"), value.replace(",", ""), f"({value})", f"{value};"])
        case int():
            return float(value)
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_rewritten(rng, one) for one in value]
        case dict():
            return {key: _rewritten(rng, one) for key, one in value.items()}
        case _:
            return value


def _other_type(rng: random.Random, value: Any) -> Any:
    if isinstance(value, list | dict) and value and rng.random() < 0.5:
        if isinstance(value, dict):
            return {**value, rng.choice(list(value)): rng.choice(VALUES)}
        return [*value[1:], rng.choice(VALUES)]
    return rng.choice([*VALUES, str(value), [value], {"value": value}])


def _drop(rng: random.Random, given: Arguments, _question: Question) -> None:
    del given[rng.choice(list(given))]


def _add(rng: random.Random, given: Arguments, question: Question) -> None:
    known = [name for schema in question.schemas.values() for name in schema["properties"]]
    given[rng.choice([*known, "unheard_of"])] = rng.choice(VALUES)


def _fewer(rng: random.Random, calls: list[Call], _question: Question) -> list[Call]:
    left = list(calls)
    left.remove(rng.choice(calls))
    return left


def _more(rng: random.Random, calls: list[Call], _question: Question) -> list[Call]:
    return [*calls, rng.choice(calls)]


def _twice(rng: random.Random, calls: list[Call], _question: Question) -> list[Call]:
    return [*calls[1:], rng.choice(calls)]


def _order(rng: random.Random, calls: list[Call], _question: Question) -> list[Call]:
    return rng.sample(calls, len(calls))


def _other_tool(rng: random.Random, calls: list[Call], question: Question) -> list[Call]:
    return [Call(rng.choice([*question.schemas, "unheard_of"]), calls[0].arguments), *calls[1:]]


CHANGES: dict[str, Change] = {
    "a value changed": _one_value(_other),
    "a value written differently": _one_value(_rewritten),
    "a type changed": _one_value(_other_type),
    "a parameter dropped": _in_arguments(_drop),
    "a parameter added": _in_arguments(_add),
    "the order changed": _order,
    "a call more": _more,
    "a call fewer": _fewer,
    "a call in place of another": _twice,
    "another tool": _other_tool,
}


def _checker(wheel: Path) -> Callable[[str, Any, Sequence[Call], Any], str]:
    """BFCL's checker: what it finds wrong."""
    stub("bfcl_eval.constants.model_config", MODEL_CONFIG_MAPPING={"any": SimpleNamespace(underscore_to_dot=True)})
    for language in _LANGUAGES:
        name = f"{language}_type_converter"
        stub(f"bfcl_eval.eval_checker.ast_eval.type_convertor.{name}", **{name: None})
    sys.path.insert(0, str(wheel))
    checker: Any = import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
    sys.path.remove(str(wheel))

    def theirs(kind: str, functions: Any, calls: Sequence[Call], truth: Any) -> str:
        made = [{call.name: call.arguments} for call in calls]
        try:
            found = checker.ast_checker(functions, made, truth, checker.Language.PYTHON, kind, "any")
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            return f"{type(error).__name__}: {error}"
        return "" if found["valid"] else str(found["error"])

    return theirs


def stub(name: str, **members: Any) -> None:
    """A module that has these members only."""
    module = ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module
