"""Tells the template's text from the conversation's in a prompt, so that nobody's words become control tokens.

Control strings in the conversation are replaced by private-use characters before rendering, and restored after it as
untrusted text; prose is fenced by two more. A template may cut, compare or change what it is given, so the result must
equal a plain rendering. If it does not, the texts that the template inspects are passed unchanged, and a control string
that it then writes more often than without them is not trusted, wherever it occurs.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from sys import getsizeof
from typing import Any, cast

from toolgram.caching import TOGETHER, digest, remembers
from toolgram.errors import TemplateError
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.markers import control_pattern

Parts = tuple[tuple[str, bool], ...]

_PRIVATE = re.compile("([\ue000-\uf8ff\U000f0000-\U0010fffd])")
_OPEN, _CLOSE = "\ue000", "\ue001"
_FIRST, _BEYOND, _AGAIN = 0xE002, 0xF900, 0xF0000
_PROSE = frozenset({"content", "text", "reasoning_content", "reasoning", "thinking", "thought", "tool_plan"})
_MOST_DISGUISED = (_BEYOND - _FIRST) + (0x10FFFE - _AGAIN)
_MOST_TRIALS = 32


@remembers
def render_parts(
    template: ChatTemplate,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = True,
    *,
    control_tokens: Iterable[str] = (),
    now: datetime | None = None,
    **kwargs: Any,
) -> Parts:
    """The prompt as `template.render` gives it, cut into `(text, trusted)`: joined, the parts are the prompt.

    Control strings of the conversation, of tools and of variables are never in a trusted part; if the template allows
    it, no prose of the conversation is. `control_tokens` are those of the vocabulary, in addition to those that the
    template names and those that look like control tokens.
    """
    now = now or datetime.now()
    stops = (
        stop.strip() for stop in template.capabilities.stop if stop.strip()
    )  # for some templates these are plain words
    pattern = control_pattern(template, frozenset((*control_tokens, *stops)))
    job = _Job(template, add_generation_prompt, now, pattern)
    given = {"messages": messages, "tools": tools, **kwargs}
    plain = job.render(given)
    for fences in (True, False):
        if parts := job.parts(given, plain, fences):
            return parts
    return _cautious_parts(job, given, plain)


@dataclass(frozen=True, slots=True)
class _Job:
    """One conversation to render, with and without disguises."""

    template: ChatTemplate
    add_generation_prompt: bool
    now: datetime
    pattern: re.Pattern[str]

    def render(self, given: Mapping[str, Any]) -> str:
        return self.template.render(**given, add_generation_prompt=self.add_generation_prompt, now=self.now)

    def parts(
        self, given: Mapping[str, Any], plain: str, fences: bool, seen: frozenset[_Path] = frozenset()
    ) -> Parts | None:
        """The parts, if disguising all texts except `seen` does not change the rendering."""
        disguise = _Disguise(self.pattern, fences, seen)
        try:
            rendered = self.render(disguise.all(given))
        except TemplateError:
            return None
        parts = disguise.split(rendered)
        return parts if parts is not None and "".join(text for text, _ in parts) == plain else None


_Path = tuple[str | int, ...]


@dataclass(slots=True)
class _Disguise:
    """Private-use characters that stand for control strings, and for the ends of prose."""

    pattern: re.Pattern[str]
    fences: bool
    seen: frozenset[_Path] = frozenset()
    _characters: dict[str, str] = field(default_factory=dict[str, str])
    _originals: dict[str, str] = field(default_factory=dict[str, str])

    def all(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: _mapped(value, self._text, (key,)) if key == "messages" else self._disguised(value, (key,))
            for key, value in given.items()
        }

    def _disguised(self, value: Any, path: _Path) -> Any:
        """A variable with its texts disguised; of a list, such as tools, those items that have such texts."""
        if isinstance(value, list):
            return [self._disguised(item, (*path, at)) for at, item in enumerate(cast("list[Any]", value))]
        if isinstance(value, dict) and self._is_plain(cast("dict[str, Any]", value)):
            return cast("object", value)
        return _mapped(value, self._text, path)

    def _is_plain(self, value: dict[str, Any]) -> bool:
        """Whether there is nothing to disguise, found without a walk: tools are large and seldom have such strings."""
        key = self.pattern, digest(value)
        if not key[1]:  # what is no JSON, a user of the library may give to a template
            return False
        known: bool | None = TOGETHER.recall(render_parts, key)
        if known is None:
            text = json.dumps(value, ensure_ascii=False)
            known = not self.pattern.search(text) and (text.isascii() or not _PRIVATE.search(text))
            TOGETHER.note(render_parts, key, known, getsizeof(key[1]))
        return known

    def split(self, rendered: str) -> Parts | None:
        """The rendering with what was disguised restored; None if the fences do not match."""
        parts: list[tuple[str, bool]] = []
        inside = False
        for at, piece in enumerate(_PRIVATE.split(rendered)):
            if at % 2 and piece in (_OPEN, _CLOSE) and self.fences:
                if inside == (piece == _OPEN):
                    return None
                inside = not inside
            elif at % 2 and piece in self._originals:
                parts.append((self._originals[piece], False))
            else:
                parts.append((piece, not inside))
        return None if inside else _joined(parts)

    def _text(self, text: str, path: _Path) -> str:
        if path in self.seen:
            return text
        # A private-use character in the conversation is disguised as well: it must not be mistaken for one of ours.
        if not text.isascii() and _PRIVATE.search(text):
            text = re.sub(f"{_PRIVATE.pattern}|{self.pattern.pattern}", self._character, text)
        else:
            text = self.pattern.sub(self._character, text)
        if not self.fences or path[-1] not in _PROSE or path[0] != "messages":
            return text
        # Inside the surrounding white space, so that a template that trims still trims it.
        body = text.strip()
        before = len(text) - len(text.lstrip())
        return f"{text[:before]}{_OPEN}{body}{_CLOSE}{text[before + len(body) :]}" if body else text

    def _character(self, match: re.Match[str]) -> str:
        text = match[0]
        if (character := self._characters.get(text)) is None:
            if len(self._characters) >= _MOST_DISGUISED:
                raise TemplateError("more texts look like control tokens than there are characters to stand for them")
            code = _FIRST + len(self._characters)
            character = chr(code if code < _BEYOND else code - _BEYOND + _AGAIN)
            self._characters[text] = character
            self._originals[character] = text
        return character


def _cautious_parts(job: _Job, given: Mapping[str, Any], plain: str) -> Parts:
    """The parts for a template that inspects some texts: these are found, and passed to it unchanged."""
    texts = _with_control_strings(job.pattern, given)
    everything = frozenset(texts)
    seen = everything
    if len(texts) <= _MOST_TRIALS:
        seen = frozenset(
            path for path in texts if job.parts(given, plain, fences=False, seen=everything - {path}) is None
        )
    attempts = ((fences, paths) for paths in (seen, everything) for fences in (True, False))
    found = ((job.parts(given, plain, fences=fences, seen=paths), paths) for fences, paths in attempts)
    parts, seen = next(((parts, paths) for parts, paths in found if parts), (((plain, True),), everything))
    suspects = _suspects(job, given, plain, seen)
    safe_from = len(plain) - len(_own_generation_prompt(job, given, plain))
    return _without(suspects, job.pattern, parts, safe_from)


def _with_control_strings(pattern: re.Pattern[str], given: Mapping[str, Any]) -> list[_Path]:
    paths: list[_Path] = []

    def note(text: str, path: _Path) -> str:
        if pattern.search(text) or _PRIVATE.search(text):
            paths.append(path)
        return text

    _mapped(given, note, ())
    return paths


def _suspects(job: _Job, given: Mapping[str, Any], plain: str, seen: frozenset[_Path]) -> frozenset[str] | None:
    """The control strings that occur more often because of the texts `seen`; None if it may be any."""

    def harmless(text: str, path: _Path) -> str:
        return re.sub(r"[^\w\s]", "x", text) if path in seen else text

    try:
        without = Counter(job.pattern.findall(job.render(_mapped(given, harmless, ()))))
    except TemplateError:
        return None
    own: set[str] = set()

    def note(text: str, path: _Path) -> str:
        if path in seen:
            own.update(job.pattern.findall(text))
        return text

    _mapped(given, note, ())
    return frozenset(
        own | {text for text, count in Counter(job.pattern.findall(plain)).items() if count > without[text]}
    )


def _own_generation_prompt(job: _Job, given: Mapping[str, Any], plain: str) -> str:
    """The generation prompt at the end, equal to the one after other words: certainly the template's own text."""
    if not job.add_generation_prompt:
        return ""
    other = {**given, "messages": [{"role": "user", "content": "x"}]}
    try:
        with_ = job.render(other)
        without = job.template.render(**other, add_generation_prompt=False, now=job.now)
    except TemplateError:
        return ""
    added = with_[len(without) :] if with_.startswith(without) else ""
    return added if plain.endswith(added) else ""


def _without(suspects: frozenset[str] | None, pattern: re.Pattern[str], parts: Parts, safe_from: int) -> Parts:
    """The parts, with suspect control strings before `safe_from` no longer trusted."""
    doubted: list[tuple[str, bool]] = []
    start = 0
    for text, trusted in parts:
        cut = 0
        for match in pattern.finditer(text) if trusted else ():
            if start + match.start() < safe_from and (suspects is None or match[0] in suspects):
                doubted += [(text[cut : match.start()], True), (match[0], False)]
                cut = match.end()
        doubted.append((text[cut:], trusted))
        start += len(text)
    return _joined(doubted)


def _joined(parts: Iterable[tuple[str, bool]]) -> Parts:
    """The parts without empty ones, with neighbours of one kind joined."""
    runs = groupby((part for part in parts if part[0]), key=itemgetter(1))
    return tuple(("".join(text for text, _ in run), trusted) for trusted, run in runs)


def _mapped(value: Any, change: Callable[[str, _Path], str], path: _Path) -> Any:
    """A copy of JSON-like data with its texts changed, keys included."""
    if isinstance(value, str):
        return change(value, path)
    if isinstance(value, (dict, Mapping)):  # checking for a dict is fast, for an abstract class it is not
        items = cast("Mapping[str, Any]", value).items()
        return {change(key, (*path, key, "")): _mapped(item, change, (*path, key)) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [_mapped(item, change, (*path, at)) for at, item in enumerate(cast("Sequence[Any]", value))]
    return value
