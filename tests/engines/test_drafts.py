"""Drafts from the prompt: what is proposed, when it ends, and that it changes nothing but the work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest

import toolgram
from toolgram.engines.base import Prompt, Sampling, Usage
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.llama_cpp.generation import Generation
from toolgram.engines.llama_cpp.prompt_lookup import LONGEST_DRAFT, Drafter
from toolgram.grammar.constraint import Constraint
from toolgram.models.catalog import default_model

NOTE = (
    "Please call Mr. Bartholomew Featherstonehaugh at +44 20 7946 0958, and write to featherstonehaugh@example.org. "
    "He lives at 221B Baker Street, London."
)
TEXT = {"type": "string", "maxLength": 60}
CARD = Constraint(
    toolgram.schema_grammar(
        {
            "type": "object",
            "properties": {"name": TEXT, "phone": TEXT, "address": TEXT},
            "required": ["name", "phone", "address"],
            "additionalProperties": False,
        }
    )
)
PROMPT: Prompt = (
    ("<|im_start|>user\nWho is it? Answer with name, phone and address in JSON.\n", True),
    (NOTE, False),
    ("<|im_end|>\n<|im_start|>assistant\n", True),
)


def letters(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def drafter(prompt: str) -> Drafter:
    return Drafter(letters(prompt), [bytes([byte]) for byte in range(128)])


def test_what_follows_in_the_prompt_is_proposed() -> None:
    one = drafter("Call Anna Karenina, not Anna Komnene.")
    assert one.propose(b'{"name": "') == ()
    assert one.propose(b'{"name": "A') == ()  # one letter says little
    assert one.propose(b'{"name": "An') == letters("n")
    one.learn(1, 1)
    assert one.propose(b'{"name": "Anna K') == letters("om")  # the last one that there is
    assert one.propose(b'{"name": "Anna Ka') == letters("re")
    assert one.propose(b'{"name": "Anna Kb') == ()
    assert one.propose(b'{"name": "Anna Karenina", "') == ()
    assert drafter("ab").propose(b"ab") == []  # nothing follows


def test_drafts_grow_while_they_are_right() -> None:
    one = drafter("an " + "x" * 40)
    sizes: list[int] = []
    for _ in range(6):
        draft = one.propose(b"an ")
        sizes.append(len(draft))
        one.learn(len(draft), len(draft))
    assert sizes == [1, 2, 4, 8, LONGEST_DRAFT, LONGEST_DRAFT]


def test_drafts_end_where_they_are_wrong() -> None:
    one = drafter("an " + "x" * 40)
    drafted = 0
    while draft := one.propose(b"an "):
        drafted += len(draft)
        one.learn(len(draft), 0)
    assert drafted == 2


@pytest.fixture(scope="module")
def engine() -> Iterator[LlamaCpp]:
    engine = LlamaCpp(default_model(), context=512)
    yield engine
    engine.close()


def said(engine: LlamaCpp, sampling: Sampling) -> tuple[list[int], Usage]:
    async def run() -> tuple[list[int], Usage]:
        tokens, usage = list[int](), Usage()
        async for chunk in engine.generate(PROMPT, CARD, sampling):
            tokens += chunk.tokens
            usage = chunk.usage or usage
        return tokens, usage

    return asyncio.run(run())


def no_draft(_: Generation) -> list[int]:
    return []


def wrong(_: Drafter, _written: bytes) -> Sequence[int]:
    return [1000, 2000, 3000]


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(max_tokens=90),
        Sampling(max_tokens=90, temperature=0.5, seed=4, frequency_penalty=0.2),
        Sampling(max_tokens=90, temperature=1.0, seed=3, top_p=0.9),
    ],
)
def test_drafts_change_nothing_but_the_work(
    engine: LlamaCpp, sampling: Sampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, usage = said(engine, sampling)
    with monkeypatch.context() as patch:
        patch.setattr(Generation, "draft", no_draft)
        plain, cost = said(engine, sampling)
    monkeypatch.setattr(Drafter, "propose", wrong)
    misled, _ = said(engine, sampling)
    assert tokens == plain == misled
    assert usage.completion_tokens == len(tokens)
    assert usage.forward_passes <= cost.forward_passes
    if sampling.temperature == 0:
        assert usage.forward_passes < 0.7 * cost.forward_passes  # most of it is copied


def test_a_text_that_ends_within_a_draft_leaves_the_engine_sound(engine: LlamaCpp) -> None:
    whole, _ = said(engine, Sampling(max_tokens=90))
    for length in range(10, 40, 3):
        tokens, usage = said(engine, Sampling(max_tokens=length))
        assert tokens == whole[:length]
        assert usage.completion_tokens == length
    stop = engine.detokenize(whole)[20:26]
    said(engine, Sampling(max_tokens=90, stop=(stop,)))
    assert said(engine, Sampling(max_tokens=90))[0] == whole
