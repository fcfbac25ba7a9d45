"""Profiles: what is best for one model with one chat template, as measured; a request that says otherwise goes first.

A profile is a TOML file::

    model = "Smollm2 135M"
    template = "sha256:2f1c…"
    style = "compact"
    own_calls = true
    parallel_tool_calls = false
    tool_bias = 6.06
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_json

from toolgram.conversation.fields import Count, Number
from toolgram.conversation.request import Request
from toolgram.errors import ProfileError, json_pointer, nearest
from toolgram.styles.base import ToolStyle
from toolgram.styles.choose import choose_style
from toolgram.styles.own_calls import with_own_calls
from toolgram.styles.registry import find_style, no_such_style
from toolgram.template.chat_template import ChatTemplate

_ABOUT = ("model", "template", "measured")
_STRICT = ConfigDict(strict=True, extra="forbid")
Kind = Literal["with a call", "without a call", "all"]
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Measured:
    """Answers to questions that the profile was not made on: how many `of` them were right, with it and `without`.

    `bounds` and `bounds_without` are of the shares (Wilson), `gain` of their difference (paired), all with 95 %
    confidence. Of the questions "with a call" the right calls are right, of those "without" none is; "all" has both.
    """

    __pydantic_config__ = _STRICT

    questions: Kind
    of: int
    right: int
    bounds: Bounds
    without: int
    bounds_without: Bounds
    gain: Bounds


@dataclass(frozen=True)
class Profile:
    """What is best for a model where a request does not say. `model` is its name, `template` its template's hash.

    `style` says how tools are announced and calls written, `own_calls` whether calls that the model writes in its own
    way are calls too; the other fields are those of requests, by the same names.
    """

    __pydantic_config__ = _STRICT

    model: str
    template: str
    style: str | None = None
    own_calls: bool = False
    parallel_tool_calls: bool | None = None
    reasoning_max_tokens: Count | None = None
    tool_bias: Annotated[float, Number(-100, 100)] | None = None
    parallel_tool_bias: Annotated[float, Number(-100, 100)] | None = None
    measured: tuple[Measured, ...] = ()

    @classmethod
    def read(cls, text: str) -> Profile:
        """The profile that a TOML document is. Raises ProfileError for what is none, an unknown key among it."""
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ProfileError(f"is not TOML: {error}") from error
        known = [field.name for field in fields(cls)]
        if unknown := next((key for key in found if key not in known), None):
            raise ProfileError(f"has no key {unknown!r}; {nearest(unknown, known)}")
        try:
            made = _adapter().validate_json(to_json(found))
        except ValidationError as error:
            first = error.errors()[0]
            raise ProfileError(f"{json_pointer(*first['loc'])}: {first['msg']}") from None
        if made.style is not None and find_style(made.style) is None:
            raise ProfileError(f"/style: {no_such_style(made.style)}")
        return made

    def write(self) -> str:
        """The profile as a TOML document, which `read` reads back to an equal one."""
        values = asdict(self)
        tables = values.pop("measured")
        blocks = ["\n".join(_lines(values)), *("\n".join(["[[measured]]", *_lines(table)]) for table in tables)]
        return "\n\n".join(blocks) + "\n"

    def __str__(self) -> str:
        says = {name: value for name, value in asdict(self).items() if name not in _ABOUT and value is not None}
        if not self.own_calls:
            del says["own_calls"]
        said = ", ".join(f"{name} {json.dumps(value)}" for name, value in says.items())
        last = self.measured[-1:]
        return f"profile: {said}" + "".join(
            f" ({m.right} of {m.of} answers right, {m.without} without it)" for m in last
        )

    @property
    def helps(self) -> bool:
        """Whether more answers were right with it than without, by more than chance."""
        return any(each.questions == "all" and each.gain[0] > 0 for each in self.measured)

    def check(self, template: ChatTemplate, model: str | None = None) -> None:
        """Raises ProfileError for another chat template than its own, and for another model, where that has a name."""
        if model is not None and model != self.model:
            raise ProfileError(f"is of the model {self.model!r}, not of {model!r}: run `toolgram tune` for that one")
        if self.template != template_hash(template):
            raise ProfileError(
                f"was made for another chat template of {self.model!r} than this one "
                f"({template_hash(template)[:19]}…, not {self.template[:19]}…): run `toolgram tune` again"
            )

    def choose_style(self, template: ChatTemplate) -> tuple[ToolStyle, str]:
        """The style for the template, and the reason in words."""
        style, why = choose_style(template, self.style)
        return with_own_calls(style) if self.own_calls else style, "the profile says so" if self.style else why

    def filling(self, request: Request) -> Request:
        """The request with what it leaves to the profile.

        Biases were measured on the first answer to a question: where results of tools came last there are none, nor
        where there is nothing to choose between, which would be told as a bias that is left out.
        """
        first = request.messages[-1]["role"] == "user" and bool(request.callable_tools)
        chooses = first and request.tool_choice.mode == "auto"
        thinks = request.reasoning_max_tokens is None and request.reasoning_format == "auto"
        parallel = _or(request.parallel_tool_calls, self.parallel_tool_calls)
        goes_on = first and parallel is not False
        return replace(
            request,
            parallel_tool_calls=parallel,
            reasoning_max_tokens=self.reasoning_max_tokens if thinks else request.reasoning_max_tokens,
            tool_bias=_or(request.tool_bias, self.tool_bias if chooses else None),
            parallel_tool_bias=_or(request.parallel_tool_bias, self.parallel_tool_bias if goes_on else None),
        )


def template_hash(template: ChatTemplate) -> str:
    """What tells a chat template from others, and from other versions of it."""
    return f"sha256:{sha256((template.source + template.tool_use).encode()).hexdigest()}"


@cache
def _adapter() -> TypeAdapter[Profile]:
    return TypeAdapter(Profile)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _lines(values: Mapping[str, Any]) -> Iterator[str]:
    """Strings, numbers, booleans and lists of them are written alike in TOML and JSON."""
    return (f"{key} = {_toml(value)}" for key, value in values.items() if value is not None)


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
