"""How a template writes the arguments of a call: as JSON, in another notation, or as tagged parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from toolgram.styles.probes import TAG, CallProbe, Scene, TurnProbe, call, common_suffix, tail
from toolgram.wire.encodings import JSON, AnyEncoding, Elements, Encoding, Entities, Tagged
from toolgram.wire.encodings.parameter_tags import KEY

# Keys in alphabetical order, since some templates sort them; a value of each type.
TYPED = call(
    "zqtyped",
    {
        "zqkeye": "zqtext",
        "zqkeyf": 7311,
        "zqkeyg": True,
        "zqkeyh": {"zqin": 7312},
        "zqkeyi": [7313],
        "zqkeyj": "zqlast",
    },
    3,
)
_FENCED = call("zqfenced", {"zqkeye": "zqa <zqb> & zqc\nzqd"}, 4)
_MARKS = "&<>'\""
_MARKED = call("zqmarked", {"zqkeye": "zqa&zqb<zqc>zqd'zqe\"zqf", "zqkeyf": {"zqin": "zqm&zqn"}}, 6)
_ANY = Entities(())
_NULL = call("zqnull", {"zqkeye": None, "zqkeyf": "zqtext"}, 5)
_SEPARATORS = ((", ", ": "), (",", ":"), (", ", ":"), (",", ": "))
_STRINGS = ("zqtext", "zqlast")  # of these
_QUOTED = re.compile(f'"({"|".join(_STRINGS)})"')
_TAG_ENDS = re.compile(r"""(?:["']?\s*/?>)?\s*""")  # one that has keys and values in it
_CLOSES = re.compile(rf"(?:{TAG.pattern})|[^<>]*>|\W+{re.escape(KEY)}\W+")
_TYPES = ("string", "number", "boolean", "object", "array")


Place = Callable[[str, CallProbe, int], tuple[int, int] | None]
"""Where the arguments of a call stand in a text, from a place on."""


@dataclass(frozen=True)
class Notation:
    """An encoding of arguments, how to find them in a text, and the separators of JSON on the wire."""

    encoding: AnyEncoding
    place: Place
    item_separator: str = ", "
    key_separator: str = ": "

    @property
    def separators(self) -> tuple[str, str]:
        """The separators of items, and of keys and values."""
        return self.item_separator, self.key_separator


def notation(scene: Scene, text: str, probe: CallProbe) -> Notation | None:
    """The notation of the arguments in a call's text; None if it is not a known one."""
    place = json_place(text, probe, 0)
    if place is not None:
        return _json(text[place[0] : place[1]], probe)
    typed = tail(scene, TurnProbe((TYPED,)))
    if typed is None or TYPED.name not in typed:
        return None
    typed = typed[typed.index(TYPED.name) + len(TYPED.name) :]
    plain = _ANY.read(typed)
    tagged = _tagged(plain) or _quoted(plain)
    if tagged is not None:
        tagged = replace(tagged, fence=_fence(scene, tagged), entities=_entities(scene, tagged))
        return Notation(tagged, partial(_tagged_place, tagged))
    if (elements := _elements(typed)) is not None:
        nulls = tail(scene, TurnProbe((_NULL,))) or ""
        elements = replace(elements, omits_null=_NULL.name in nulls and next(iter(_NULL.arguments)) not in nulls)
        return Notation(elements, partial(_elements_place, elements))
    encoding = _encoding(typed)
    return None if encoding is None else Notation(encoding, partial(_encoding_place, encoding))


def json_place(text: str, probe: CallProbe, start: int) -> tuple[int, int] | None:
    """Where the arguments are as a JSON object."""
    for at, end, value in json_objects(text, start):
        if value == probe.arguments:
            return at, end
    return None


def json_objects(text: str, start: int) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The JSON objects in a text, inner ones too: where each begins and ends, and its value."""
    decoder = json.JSONDecoder()
    at = text.find("{", start)
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            pass
        else:
            yield at, end, value
        at = text.find("{", at + 1)


def _json(text: str, probe: CallProbe) -> Notation:
    """JSON with the separators that it has here; JSON spread over lines counts as having the usual ones."""
    for pair in _SEPARATORS:
        if text == json.dumps(probe.arguments, separators=pair):
            return Notation(JSON, json_place, *pair)
    return Notation(JSON, json_place)


# Tagged parameters


def _tagged(text: str) -> Tagged | None:
    """The tags around keys and values; `text` begins after the name of the typed probe."""
    keys = list(TYPED.arguments)
    first, second = text.find(keys[0]), text.find(keys[1])
    value = text.find("zqtext", first)
    if not 0 <= first < value < second:
        return None
    between = text[value + len("zqtext") : second]
    open_ = common_suffix(text[:first], between)
    close = between.removesuffix(open_)
    ended = _TAG_ENDS.match(open_)
    end = ended[0] if ended else ""
    open_, close = open_.removeprefix(end), (close + end).replace(keys[0], KEY)
    after = text[text.rindex("zqlast") + len("zqlast") :]
    if not open_ or not _CLOSES.match(close.lstrip()) or not after.startswith(close.replace(KEY, keys[-1]).rstrip()):
        return None
    ways: dict[str, str] = {}
    at, printed = 0, False
    for key, kind in zip(keys, (*_TYPES, "string"), strict=True):
        at = text.find(open_ + key, at)
        end = text.find(close.replace(KEY, key).rstrip(), at)
        if at < 0 or end < 0:
            return None
        printed |= kind == "boolean" and text[at:end].endswith("True")
        after = _without_value(text[at + len(open_) + len(key) : end], TYPED.arguments[key])
        if after is None or ways.setdefault(kind, after) != after:
            return None
    return Tagged("discovered", open_, _shortest(ways), close, python_words=printed)


def _quoted(text: str) -> Tagged | None:
    """The tags where strings between them are JSON as well."""
    tagged = _tagged(_QUOTED.sub(r"\1", text)) if len(_QUOTED.findall(text)) == len(_STRINGS) else None
    return None if tagged is None else replace(tagged, quoted=True)


def _entities(scene: Scene, tags: Tagged) -> Entities | None:
    """What the template writes for characters that would end a tag, or an attribute; usually themselves."""
    text = tail(scene, TurnProbe((_MARKED,))) or ""
    written = text.partition(tags.open + next(iter(_MARKED.arguments)) + tags.after("string"))[2]
    found = re.search("zqa(.*)zqb(.*)zqc(.*)zqd(.*)zqe(.*)zqf.*zqm(.*)zqn", written, re.DOTALL)
    if found is None:
        return None
    *shown, in_json = found.groups()
    pairs = ((char, each.removeprefix("\\")) for char, each in zip(_MARKS, shown, strict=True))
    entities = tuple((char, each) for char, each in pairs if each != char and _ANY.read(each) == char)
    closing = next((char for char in tags.close if char in dict(entities)), "")
    if not closing or entities[0][0] != "&":
        return None
    return Entities(entities, in_json != "&", "".join(char for char, _ in entities if char not in ("&", closing)))


def _fence(scene: Scene, tags: Tagged) -> tuple[str, str]:
    """What the template puts around a string that contains tags and line breaks, such as CDATA; usually nothing."""
    (key, value), *_ = _FENCED.arguments.items()
    close = tags.after_value(key)
    text = tail(scene, TurnProbe((_FENCED,))) or ""
    written = text.partition(tags.open + key + tags.after("string"))[2].partition(close.strip())[0]
    before, found, after = written.partition(value)
    space = close[: len(close) - len(close.lstrip())]
    after = after.removesuffix(space)
    return (before, after) if found and before.strip() and after.strip() else ("", "")


def _without_value(text: str, value: Any) -> str | None:
    """What precedes a value that ends a text; the word for true may be capitalised."""
    words = (str(value), json.dumps(value), json.dumps(value, separators=(",", ":")))
    return next((text.removesuffix(word) for word in words if text.endswith(word)), None)


def _shortest(ways: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """What stands between key and value for each JSON type; types that are written alike are one."""
    others = {way for kind, way in ways.items() if kind != "string"}
    if len(others) > 1:
        null = next((way.replace(kind, "null") for kind, way in ways.items() if way.count(kind) == 1), ways["number"])
        return (*ways.items(), ("null", null))
    other = others.pop()
    return (("", other),) if other == ways["string"] else (("string", ways["string"]), ("", other))


def _tagged_place(tags: Tagged, text: str, probe: CallProbe, start: int) -> tuple[int, int] | None:
    keys = list(probe.arguments)
    begin = text.find(tags.open + keys[0], start)
    last = text.find(tags.open + keys[-1], start)
    closer, close = tags.closer(keys[-1]), tags.after_value(keys[-1])
    end = text.find(closer, last)
    if min(begin, last, end) < 0:
        return None
    end += len(closer)
    space = close[len(close.rstrip()) :]
    return begin, end + len(space) if text.startswith(space, end) else end


# Nested elements


def _elements(text: str) -> Elements | None:
    """Elements whose tags all begin with the same marker; `text` begins after the name of the typed probe."""
    first, item = next(iter(TYPED.arguments)), re.search(r"<([A-Za-z_]+)>7313", text)
    shown = re.search(f"<{first}>zqtext(.+?)</{first}>", text, re.DOTALL)
    return Elements("discovered", shown[1], item[1]) if shown and item else None


def _elements_place(elements: Elements, text: str, probe: CallProbe, start: int) -> tuple[int, int] | None:
    tags = elements.elements
    first, *_, last = (*probe.arguments, *probe.arguments)
    begin, end = text.find(tags.open(first), start), text.find(tags.close(last), start)
    return (begin, end + len(tags.close(last))) if 0 <= begin < end else None


# Other notations


def _encoding(text: str) -> Encoding | None:
    """Keyword arguments, or an object with bare keys; `text` begins after the name of the typed probe."""
    keys = list(TYPED.arguments)
    places = [text.find(key) for key in keys]
    string = text.find("zqtext")
    if min(places) <= 0 or places != sorted(places) or not places[0] < string < places[1]:
        return None
    opener = text[places[0] - 1]
    before, after = text[places[0] + len(keys[0]) : string], text[string + len("zqtext") : places[1]]
    quote = next((before[at:] for at in range(len(before)) if after.startswith(before[at:])), "")
    key_separator, item_separator = before.removesuffix(quote), after.removeprefix(quote)
    number, word = (
        text[places[at] + len(keys[at]) : places[at + 1]].removeprefix(key_separator).removesuffix(item_separator)
        for at in (1, 2)
    )
    keywords = opener == "(" and key_separator == "="
    # Some templates quote all values, which hides how the notation writes true, false and null.
    if number == f"{quote}7311{quote}":
        word = "True" if keywords else "true"
    elif number != "7311":
        return None
    # Others leave the quotes out; for keyword arguments it is known what they should be.
    quote = quote or ('"' if keywords and text[string - 1] == "=" else "")
    if not quote or not item_separator.startswith(",") or word not in ("true", "True"):
        return None
    if not keywords and (opener != "{" or key_separator.strip() != ":"):
        return None
    if (keywords and quote not in ("'", '"')) or any(quote.endswith(quote[:n]) for n in range(1, len(quote))):
        return None  # the end of a string would be ambiguous
    python = word == "True"
    return Encoding(
        "discovered",
        true=word,
        false="False" if python else "false",
        null="None" if python else "null",
        quote=quote,
        escapes=quote in ("'", '"'),
        bare_keys=not keywords,
        keyword_arguments=keywords,
        item_separator=item_separator,
        key_separator=None if keywords else key_separator,
        other_quote='"' if quote == "'" else "'" if keywords else None,
    )


def _encoding_place(encoding: Encoding, text: str, probe: CallProbe, start: int) -> tuple[int, int] | None:
    opener, closer = ("(", ")") if encoding.keyword_arguments else ("{", "}")
    keys = [text.find(key, start) for key in probe.arguments]
    if min(keys) <= start or text[min(keys) - 1] != opener:
        return None
    end = text.find(closer, max(keys))
    return None if end < 0 else (min(keys) - 1, end + 1)
