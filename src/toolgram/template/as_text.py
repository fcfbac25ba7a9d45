"""Values as text: JSON, and as Python writes them. What is known of a request's tools is written once, and lists of it
from that."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from itertools import islice
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, NamedTuple, cast

from jinja2 import pass_context
from markupsafe import soft_str

from toolgram.json_texts import listed
from toolgram.template.bounds import MAX_ITEMS, TooMuch, weighed
from toolgram.template.macros import Rendering, written


@pass_context
def to_json(
    context: Rendering,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """`tojson` as transformers has it: no HTML escapes, and the parameters of `json.dumps`; `map` makes a list too."""
    if isinstance(value, Iterator):
        value = list(islice(cast("Iterator[Any]", value), MAX_ITEMS))
    if (isinstance(indent, int) and indent > 64) or (isinstance(indent, str) and len(indent) > 64):
        raise TooMuch("indents JSON by more than 64")
    if type(value) is str:  # what most calls of templates with macros of their own are about
        text = encode_basestring_ascii(value) if ensure_ascii else encode_basestring(value)
    else:
        text = _Encoding(context, ensure_ascii, indent, separators, sort_keys).text(value)
    context.hold(len(text))
    return text


class _Encoding(NamedTuple):
    """How values are written as JSON; what is known of a rendering, and lists of that, from what was written before."""

    context: Rendering
    ensure_ascii: bool
    indent: int | str | None
    separators: tuple[str, str] | None
    sort_keys: bool

    def text(self, value: Any) -> str:
        """The value as JSON."""
        if (key := self._key(value)) is None:
            return self._items(value) or self._encoded(weighed(value))
        return written(self.context, key, lambda: self._items(value) or self._encoded(value))

    def _key(self, value: Any) -> tuple[Hashable, ...] | None:
        remembered = self.context.remembered
        return remembered and remembered.of_json(value, self.indent, self.separators, self.ensure_ascii, self.sort_keys)

    def _encoded(self, value: Any) -> str:
        _, ascii_, indent, separators, sort_keys = self
        return json.JSONEncoder(ensure_ascii=ascii_, indent=indent, separators=separators, sort_keys=sort_keys).encode(
            value
        )

    def _items(self, value: Any) -> str:
        """A list of what is known, each of it once; nothing where it is no such list."""
        if type(value) is not list or not value or isinstance(self.indent, str):
            return ""
        items = cast("list[Any]", value)
        if len(set(map(id, items))) < len(items) or any(self._key(item) is None for item in items):
            return ""
        texts = [self.text(item) for item in items]
        further = max(self.indent or 0, 0)
        self.context.hold(sum(len(text) + text.count("\n") * further for text in texts))
        return listed(texts, self.indent)


@pass_context
def to_string(context: Rendering, value: Any) -> str:
    """The filter `string`."""
    key = context.remembered and context.remembered.of_text(value)
    return soft_str(weighed(value)) if key is None else written(context, key, lambda: soft_str(value))
