"""The Jinja environment that runs untrusted chat templates: sandboxed, and limited in time and size.

The limits are charged wherever a template can cause work: loop bodies, calls, joins, arithmetic. They need neither
signals nor threads, and hold in any thread. One slow call of a Python built-in on a value within the limits remains
possible.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, wraps
from types import BuiltinMethodType, MethodType
from typing import Any, NoReturn, cast

import jinja2
from jinja2 import nodes, pass_context
from jinja2.compiler import Frame
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from toolgram.template.as_text import to_json, to_string
from toolgram.template.bounds import MAX_ITEMS, MAX_TEXT, TooMuch, weighed
from toolgram.template.clock import Clock
from toolgram.template.macros import Remembered, macro_text
from toolgram.template.own_values import CodeWithOwnValues, DictFunction, PlainNamespace, may_change, own
from toolgram.work import give_way

MAX_SLOW = 1 << 16  # characters that filters take which look at each for long
MAX_WIDTH = 1 << 12  # the width that a filter pads to
MAX_BITS = 1 << 13  # in one integer
MAX_STEPS = 1 << 22  # loop rounds, calls, operations; each 256 characters written count as one more
_STEPS_PER_CLOCK = 16
_STEPS_OF_A_FILTER = 4
_HARMLESS = frozenset({"get", "items", "keys", "values"})  # of a dict
_OF_A_DICT = frozenset(dir(dict))
_OF_A_LOOP = frozenset({"first", "index", "index0", "last", "length"})

_WIDE_PERCENT = re.compile(r"%[^a-zA-Z%]*(?:\*|[0-9]{6})")
_WIDE_BRACES = re.compile(r":[^{}]*\{|[0-9]{6}")


class Raised(jinja2.TemplateError):
    """What a template says with `raise_exception`."""


class MeteredContext(Context):
    """The variables of one rendering, and what is left of its budget."""

    own = staticmethod(own)

    def __init__(
        self,
        environment: jinja2.Environment,
        parent: dict[str, Any],
        name: str | None,
        blocks: dict[str, Callable[[Context], Any]],
        globals: Any = None,  # noqa: A002  the base class calls it so
    ) -> None:
        super().__init__(environment, parent, name, blocks, globals)
        self.steps_left = MAX_STEPS
        self.until_clock = _STEPS_PER_CLOCK
        self.clock = Clock()
        self.remembered: Remembered | None = None

    @property
    def left(self) -> int:
        """How many steps are left."""
        return self.steps_left + self.until_clock

    def spend(self, steps: int = 1) -> bool:
        """Charges steps; returns True, so that it can be used in a condition."""
        self.until_clock -= steps
        if self.until_clock < 0:
            self.steps_left += self.until_clock - _STEPS_PER_CLOCK
            self.until_clock = _STEPS_PER_CLOCK
            give_way()
            if self.steps_left < 0 or self.clock.is_late():
                raise TooMuch("runs too long")
        return True

    def hold(self, characters: int) -> None:
        """Charges a text that is about to be made."""
        if characters > MAX_TEXT:
            raise TooMuch(f"makes a text of more than {MAX_TEXT} characters")
        self.spend(1 + (characters >> 8))

    def join(self, values: Iterable[Any]) -> str:
        """What `~` means."""
        texts = [value if type(value) is str else str(weighed(value)) for value in values]
        self.hold(sum(map(len, texts)))
        return "".join(texts)

    def derived(self, locals: dict[str, Any] | None = None) -> MeteredContext:  # noqa: A002  the base class calls it so
        """A context for a scoped block draws on what is left here."""
        context = cast("MeteredContext", super().derived(locals))
        context.steps_left, context.clock, context.remembered = self.steps_left, self.clock, self.remembered
        return context


class _MeteredCode(CodeWithOwnValues):
    """Python code for a template that charges each round of a loop and each join."""

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802  Jinja names it
        # The body covers recursive loops; the test covers rounds that a filter drops before the body.
        node.body.insert(0, nodes.ExprStmt(nodes.ContextReference(), lineno=node.lineno))
        if node.test is not None:
            node.test = nodes.And(nodes.ContextReference(), node.test, lineno=node.lineno)
        super().visit_For(node, frame)

    def visit_Filter(self, node: nodes.Filter, frame: Frame) -> None:  # noqa: N802  Jinja names it
        self.write(f"(context.spend({_STEPS_OF_A_FILTER}) and ")
        super().visit_Filter(node, frame)
        self.write(")")

    def visit_ContextReference(self, node: nodes.ContextReference, frame: Frame) -> None:  # noqa: N802, ARG002  Jinja names it
        self.write("context.spend()")

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802  Jinja names it
        self.write("context.join((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _Generation(Extension):
    """`{% generation %}…{% endgeneration %}` marks what the model wrote, for training; here it is just a scope."""

    tags = {"generation"}  # noqa: RUF012  as Jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class MeteredEnvironment(ImmutableSandboxedEnvironment):
    """Jinja as transformers sets it up, with limits."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    code_generator_class = _MeteredCode
    context_class = MeteredContext

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols], finalize=weighed)
        filters = cast("dict[str, Any]", self.filters)
        filters |= {name: _guarded(filters[name]) for name in (*_GROWING_FILTERS, *_SLOW_FILTERS)}
        filters |= {"tojson": to_json, "string": to_string, "from_json": _from_json}
        self.globals |= {"raise_exception": _raise_exception, "dict": DictFunction(), "namespace": PlainNamespace}
        del self.globals["lipsum"]  # makes text without bound

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  a slot for a function
        """Joins what a template, a macro or a block wrote."""
        written: list[str] = []
        characters = 0
        for piece in pieces:  # for a whole template they arrive as it runs, so it is stopped at once
            written.append(piece)
            characters += len(piece)
            if characters > MAX_TEXT:
                raise TooMuch(f"writes more than {MAX_TEXT} characters")
        return "".join(written)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Arithmetic whose result is within the limits."""
        if operator == "+" and type(left) is str and type(right) is str:
            cast("MeteredContext", context).hold(len(left) + len(right))
            return left + right
        _check_operands(operator, left, right)
        value = super().call_binop(context, operator, left, right)
        cast("MeteredContext", context).spend(_steps(value))
        return value

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  leaves names free
        """A call whose result is within the limits."""
        context = cast("MeteredContext", __context)
        context.spend()
        if isinstance(__obj, Macro):  # which is safe to call, and takes this for its first argument
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            value = macro_text(context, __obj, args, kwargs)
        else:
            _check_call(__obj, args, kwargs)
            value = super().call(__context, __obj, *args, **kwargs)
        context.spend(_steps(value))
        return value

    def getattr(self, obj: Any, attribute: str) -> Any:
        """An attribute; those that nearly every loop over a schema asks for need no look whether they are safe."""
        if type(obj) is dict:
            if attribute not in _OF_A_DICT:
                given = cast("dict[Any, Any]", obj)
                return given[attribute] if attribute in given else self.undefined(obj=obj, name=attribute)
            if attribute in _HARMLESS:
                return getattr(cast("object", obj), attribute)
        elif type(obj) is LoopContext and attribute in _OF_A_LOOP:
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may have an attribute."""
        return may_change(obj, attr) or super().is_safe_attribute(obj, attr, value)


def _steps(value: object) -> int:
    """The cost of making a value, or of walking it, which filters do without being charged."""
    if isinstance(value, str):
        return 1 + (len(value) >> 8)
    return 1 + (len(cast("Sequence[Any]", value)) >> 4) if isinstance(value, (range, list, tuple)) else 1


@lru_cache(maxsize=1)
def environment() -> MeteredEnvironment:
    """The one environment of all templates; it holds no state of any rendering."""
    return MeteredEnvironment()


@pass_context
def _from_json(context: MeteredContext, text: str) -> Any:
    """What a text says in JSON; transformers has no such filter, but some templates take arguments as text alone."""
    context.spend(_steps(text))
    return json.loads(text)


def _raise_exception(message: object) -> NoReturn:
    raise Raised(str(message))


def _check_operands(operator: str, left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
        if operator != "%" and bits > MAX_BITS:
            raise TooMuch("makes too large a number")
    elif operator == "%" and isinstance(left, str):
        if _WIDE_PERCENT.search(left):
            raise TooMuch("formats a field without bound")
        weighed(right)
    elif operator == "+" and isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        _check_items(len(cast("Sequence[Any]", left)) + len(cast("Sequence[Any]", right)))
    elif operator == "*":
        for value, times in _pairs(cast("object", left), cast("object", right)):
            if isinstance(times, int) and isinstance(value, (str, bytes, list, tuple)):
                _check_items(len(cast("Sequence[Any]", value)) * times)


def _pairs(left: object, right: object) -> tuple[tuple[object, object], ...]:
    return ((left, right), (right, left))


def _check_items(count: int) -> None:
    if count > MAX_ITEMS:
        raise TooMuch(f"makes more than {MAX_ITEMS} of something at once")


def _check_call(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    name = getattr(function, "__name__", "")
    if name in ("format", "format_map"):
        # The sandbox wraps these two; the text to format belongs to the wrapped method.
        text = getattr(getattr(function, "__wrapped__", None), "__self__", "")
        if _WIDE_BRACES.search(str(text)):
            raise TooMuch("formats a field without bound")
        weighed([*args, *kwargs.values()])
    elif isinstance(function, (BuiltinMethodType, MethodType)):
        _check_method(name, function.__self__, args, kwargs)


def _check_method(name: str, owner: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    for value in (*args, *kwargs.values()):
        if isinstance(value, int):
            _check_items(value)
    if isinstance(owner, (list, dict)):
        _check_items(len(cast("Sequence[Any]", owner)))
    if isinstance(owner, str) and args:
        _check_growth(name, owner, *args)


def _check_growth(name: str, text: str, first: Any, second: Any = None, *_: Any) -> None:
    """The methods that can make a text much longer than what they are given."""
    if name == "replace" and isinstance(first, str) and isinstance(second, str):
        _check_text(len(text) + text.count(first) * len(second))
    elif name == "join" and isinstance(first, (list, tuple, dict, str)):
        items = cast("Sequence[Any]", first)
        _check_text(len(text) * len(items) + sum(len(item) for item in items if isinstance(item, str)))
    elif name == "expandtabs" and isinstance(first, int):
        _check_text(len(text) + text.count("\t") * first)
    elif name == "translate" and isinstance(first, dict):
        values = cast("dict[Any, Any]", first).values()
        _check_text(len(text) * max((len(item) for item in values if isinstance(item, str)), default=1))


def _check_text(characters: int) -> None:
    if characters > MAX_TEXT:
        raise TooMuch(f"makes a text of more than {MAX_TEXT} characters")


_SLOW_FILTERS = ("groupby", "max", "min", "sort", "unique", "urlize")  # a microsecond for each character
_GROWING_FILTERS = ("batch", "center", "format", "indent", "join", "replace", "slice", "sum", "wordwrap")


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A Jinja filter whose result can be much larger than its input, with its arguments checked first."""
    name = function.__name__.removeprefix("sync_").removeprefix("do_")

    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        first, *rest = (arg for arg in args if not isinstance(arg, (jinja2.Environment, nodes.EvalContext, Context)))
        if name == "format":  # its numbers are what it writes, not widths
            if _WIDE_PERCENT.search(str(first)):
                raise TooMuch("formats a field without bound")
            weighed([*rest, *kwargs.values()])
        elif any(isinstance(value, int) and value > MAX_WIDTH for value in (*rest, *kwargs.values())):
            raise TooMuch(f"asks {name} for more than {MAX_WIDTH}")
        if name in _SLOW_FILTERS and isinstance(first, str) and len(first) > MAX_SLOW:
            raise TooMuch(f"gives {name} more than {MAX_SLOW} characters")
        if name == "join" and isinstance(first, (list, tuple)):
            separator = str(rest[0]) if rest else str(kwargs.get("d", ""))
            weighed(cast("object", first))
            _check_growth("join", separator, cast("object", first))
        elif name == "replace" and isinstance(first, str):
            _check_growth("replace", first, *rest)
        elif name == "indent" and isinstance(first, str):
            width = rest[0] if rest else kwargs.get("width", 4)
            _check_text(len(first) + (first.count("\n") + 1) * (width if isinstance(width, int) else len(str(width))))
        elif name == "sum" and not isinstance(rest[1] if len(rest) > 1 else kwargs.get("start", 0), (int, float)):
            raise TooMuch("sums values that are not numbers")
        return function(*args, **kwargs)

    return guarded
