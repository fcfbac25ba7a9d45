"""Every run ends with a valid answer of its type, whatever the model writes and however little room there is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

import toolgram
from situations import CHATML
from toolgram.agent import Agent, Limits, NoAnswer, Run
from toolgram.engines import Replay
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.errors import PromptTooLong
from toolgram.grammar.constraint import Constraint
from toolgram.models.catalog import default_model


class Node(BaseModel):
    name: str
    children: list[Node] = []


class Report(BaseModel):
    title: str
    sections: list[dict[str, str]]
    anything: Any
    code: Annotated[str, Field(pattern="^[a-z]+$")]
    share: float


def page(number: int) -> str:
    """A page of a long book."""
    return f"Page {number}. " + "All work and no play makes Jack a dull boy. " * 400


def call(**arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': 'page', 'arguments': arguments})}\n</tool_call>"


class Talkative:
    """Writes the longest of some sentences that the grammar admits, each byte a token, in a context of so many."""

    capabilities = Capabilities(dialects=("gbnf",))

    def __init__(self, *turns: str, context: int = 1_000_000) -> None:
        self._turns = list(turns)
        self._context = context
        self.prompts: list[int] = []

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """The next of the turns, then the longest."""
        assert isinstance(constraint, Constraint)
        held = len("".join(text for text, _ in prompt).encode())
        if held >= self._context:
            raise PromptTooLong(held, self._context)
        self.prompts.append(held)
        samples = [constraint.grammar.sample(seed) for seed in range(40)]
        said = self._turns.pop(0) if self._turns else max(samples, key=len)
        room = min(sampling.max_tokens or 0, self._context - held)
        whole = said.encode()
        text = whole[:room].decode(errors="ignore")
        finish = "stop" if len(whole) <= room else "length"
        usage = Usage(prompt_tokens=held, completion_tokens=min(room, len(whole)))
        yield Chunk(text, tuple(range(usage.completion_tokens)), finish=finish, usage=usage)

    async def aclose(self) -> None:
        """There is nothing to close."""


def run(engine: Any, answer: Any, tools: Any = (page,), template: Any = CHATML, **limits: Any) -> Run[Any]:
    agent = Agent(engine, template, tools, answer=answer, style="hermes_2_pro", limits=Limits(**limits))
    return asyncio.run(agent.run("Read the book."))


@pytest.mark.parametrize("answer", [Node, Report, list[str], dict[str, Any], str, int | None], ids=str)
@pytest.mark.parametrize("tokens", [200, 1000])
def test_an_answer_that_was_cut_off_is_followed_by_one_that_cannot_be(answer: Any, tokens: int) -> None:
    ended = run(Talkative(), answer, (), steps=1, answer_tokens=tokens)
    assert len(ended.texts) <= 2
    assert not ended.cut


def test_a_full_context_shortens_results_and_ends_the_run() -> None:
    engine = Talkative(call(number=1), call(number=2), '{"name": "Jack"}', context=16_000)
    ended = run(engine, Node, answer_tokens=500)
    assert ended.answer == Node(name="Jack")
    results = [message["content"] for message in ended.messages if message["role"] == "tool"]
    assert len(results) == 2
    assert all("characters left out" in result for result in results)
    assert max(engine.prompts) < 16_000


def test_what_is_cut_by_the_context_is_followed_by_the_answer() -> None:
    first, last = "x" * 40_000, '{"name": "Jack"}'
    held = len(CHATML.render([{"role": "user", "content": "Read the book."}]))
    engine = Talkative(call(number=1), json.dumps({"name": first}), last, context=held + 18_500)
    ended = run(engine, Node, step_tokens=50_000, answer_tokens=500)
    assert ended.answer == Node(name="Jack")
    assert ended.steps == 3  # of ten


def test_a_context_that_the_goal_fills_is_told() -> None:
    with pytest.raises(PromptTooLong):
        run(Talkative(context=10), Node)


def test_reasoning_without_an_end_leaves_room_for_the_answer() -> None:
    source = CHATML.source.replace("assistant\n' }}", "assistant\n<think>\n' }}")
    template = toolgram.ChatTemplate(source, "<s>", "<|im_end|>")
    engine = Replay(["Hm. "] * 1000, '{"name": "Jack"}')
    ended = run(engine, Node, (), template, steps=1, answer_tokens=300)
    assert ended.answer == Node(name="Jack")
    assert ended.texts[0].count("Hm.") == 300
    assert engine.calls[1].sampling.max_tokens in range(290, 301)


def test_calls_without_an_end_are_not_run_in_the_last_step() -> None:
    read: list[int] = []

    def page(number: int) -> str:
        read.append(number)
        return "Jack."

    free = Capabilities(unenforced=True)
    numbers = range(5)
    with pytest.raises(NoAnswer, match="in 3 attempts: Your answer was not accepted"):
        run(Replay(*(call(number=n) for n in numbers), capabilities=free), Node, (page,), steps=3)
    assert read == [0, 1]
    engine = Replay(*(call(number=n) for n in numbers[:3]), '{"name": "Jack"}', capabilities=free)
    assert run(engine, Node, (page,), steps=2).answer == Node(name="Jack")


def test_a_small_model_in_a_small_context_ends_with_an_answer() -> None:
    path = default_model()
    engine = LlamaCpp(path, context=800, threads=1)
    template = toolgram.ChatTemplate.from_gguf(path)

    def pages(number: int) -> str:
        """The text of a page of a long book."""
        return page(number)

    async def answer() -> Any:
        limits = Limits(steps=2, answer_tokens=90)
        try:
            return (
                await Agent(engine, template, [pages], answer=Report, limits=limits).run("Report on page 3.")
            ).answer
        finally:
            await engine.aclose()

    assert isinstance(asyncio.run(answer()), Report)
