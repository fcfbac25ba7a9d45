"""What several families have in common."""

from __future__ import annotations

from toolgram.wire.format import Lit, Mark, Node, Opt, Reasoning, Seq


def thinking(
    opener: str, closer: str, *, before: str = "", after_opener: str = "", before_closer: str = "", after: str = ""
) -> Node:
    """Optional reasoning between two tags, with the white space that the template writes there."""
    return Opt(
        Seq(Lit(before), Mark(opener), Lit(after_opener), Reasoning(), Lit(before_closer), Mark(closer), Lit(after))
    )


def think(*, after_opener: str = "\n", before_closer: str = "\n", after: str = "\n\n") -> Node:
    """Reasoning between <think> tags, by default as Qwen 3 spaces it."""
    return thinking("<think>", "</think>", after_opener=after_opener, before_closer=before_closer, after=after)
