"""What holds the text of a message or of reasoning: its part, the events in which it grows, and its likelihoods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolgram.engines.base import TokenLogprobs

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Texts:
    """A kind of item that holds text, in one part: the part's type, and the events of the part and of its text.

    `held` is the item's field that has the part, `index` what an event calls the part's place in it, and `empty` the
    fields of an item that begins. With `likely` a part tells how likely its tokens were.
    """

    kind: str
    part: str
    text: str
    parts: str
    held: str
    index: str
    empty: tuple[str, ...]
    likely: bool = False

    def begun(self) -> Json:
        """An item of the kind that has no text yet."""
        role = {"role": "assistant"} if self.kind == "message" else {}
        return {"type": self.kind, **role, **{name: [] for name in self.empty}}

    def part_of(self, text: str, likely: Sequence[Json] = ()) -> Json:
        """The part that holds a text."""
        more: Json = {"annotations": [], **self.logprobs(likely)} if self.likely else {}
        return {"type": self.part, "text": text, **more}

    def logprobs(self, likely: Sequence[Json]) -> Json:
        """The field of an event, or of a part, that tells how likely the tokens were."""
        return {"logprobs": [*likely]} if self.likely else {}


_CONTENT = ("response.content_part", "content", "content_index")
MESSAGE = Texts("message", "output_text", "response.output_text", *_CONTENT, ("content",), likely=True)
REASONING = Texts("reasoning", "reasoning_text", "response.reasoning_text", *_CONTENT, ("summary", "content"))
# Clients that ask for a summary show nothing else: the whole of the reasoning stands where they look for it.
SUMMARY = Texts(
    "reasoning",
    "summary_text",
    "response.reasoning_summary_text",
    "response.reasoning_summary_part",
    "summary",
    "summary_index",
    ("summary",),
)


def of_text(likely: Sequence[TokenLogprobs], text: str) -> Sequence[TokenLogprobs]:
    """The tokens of a text, without those before it that have no part in it (the end of reasoning)."""
    wanted, written, first = text.encode(errors="surrogatepass"), b"", len(likely)
    while first and wanted not in written:
        first -= 1
        written = likely[first].chosen.piece + written
    return likely[first:]
