"""Who is evaluated with whom, and what sequences share; with the default model where a model is needed."""

# What must not be seen from outside is tested here too.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from toolgram import work
from toolgram.engines.base import Chunk, Prompt, Sampling, TokenLogprobs
from toolgram.engines.llama_cpp import scheduler
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.llama_cpp.generation import Generation
from toolgram.engines.llama_cpp.gguf_model import BATCH, Model
from toolgram.engines.llama_cpp.kv_cache import common
from toolgram.engines.llama_cpp.outbox import Listener, Outbox
from toolgram.engines.llama_cpp.sampling import Sampler
from toolgram.engines.llama_cpp.scheduler import share
from toolgram.errors import EngineError
from toolgram.models.catalog import default_model


@pytest.mark.parametrize(
    ("pending", "room", "expected"),
    [
        ([1, 5, 1], 64, [1, 5, 1]),
        ([1000], BATCH, [BATCH]),
        ([1, 1000], 64, [1, 63]),
        ([1000, 1], 64, [63, 1]),
        ([1000, 1000, 1000], 64, [32, 16, 16]),
        ([1000, 40, 1], 64, [32, 31, 1]),
        ([40, 1000], BATCH, [40, 472]),
        ([20] * 30, 64, [20] * 25 + [12] + [0] * 4),
        ([32] * 10 + [100], 64, [32] * 10 + [32]),
    ],
)
def test_a_batch_is_shared(pending: list[int], room: int, expected: list[int]) -> None:
    assert share(pending, room) == expected


def test_shares_always_fit_and_something_always_moves() -> None:
    chance = random.Random(5)
    for _ in range(2000):
        pending = [chance.choice((1, 2, 9, 31, 32, 33, 64, 700, 4000)) for _ in range(chance.randint(1, 40))]
        shares = share(pending, chance.choice((64, BATCH)))
        assert 0 < sum(shares) <= BATCH
        assert all(0 <= mine <= whole for mine, whole in zip(shares, pending, strict=True))


def test_what_texts_have_in_common() -> None:
    chance = random.Random(6)
    for _ in range(500):
        one, other = ([chance.choice((1, 2)) for _ in range(chance.randint(0, 12))] for _ in "ab")
        wanted = next(
            (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
        )
        assert common(one, other) == wanted


@pytest.fixture(scope="module")
def engine() -> Iterator[LlamaCpp]:
    engine = LlamaCpp(default_model(), context=256, parallel=3, budget=256, threads=1)
    yield engine
    engine.close()


def asked(system: str, question: str = "Why?") -> Prompt:
    begin = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n"
    return ((f"{begin}<|im_start|>assistant\n", True),)


async def answer(engine: LlamaCpp, prompt: Prompt, tokens: int) -> list[Chunk]:
    sampling = Sampling(max_tokens=tokens, logprobs=1, logit_bias={0: -100, 2: -100})  # no end of the turn
    return [chunk async for chunk in engine.generate(prompt, None, sampling)]


def cached(engine: LlamaCpp, system: str) -> int:
    usage = asyncio.run(answer(engine, asked(system), 1))[-1].usage
    assert usage is not None
    return usage.cached_tokens


def test_more_than_the_memory_holds_takes_turns(engine: LlamaCpp) -> None:
    async def run() -> list[list[Chunk]]:
        prompts = [asked(f"{name} says little. " * 10) for name in ("Anna", "Boris", "Clara", "Dora")]
        return await asyncio.gather(*(answer(engine, prompt, 60) for prompt in prompts))

    for chunks in asyncio.run(run()):
        assert chunks[-1].finish == "length"
        assert sum(len(chunk.tokens) for chunk in chunks) == 60


def test_the_long_answers_of_one_client_do_not_keep_out_the_short_one_of_another() -> None:
    engine = LlamaCpp(default_model(), context=512, parallel=2, threads=1)

    async def asked_by(client: work.Client, name: str, tokens: int) -> list[Chunk]:
        with work.on(work.Errand(math.inf, client=client)):
            said = await answer(engine, asked(f"{name} talks."), tokens)
            ended.append(name)
            return said

    async def run() -> list[list[Chunk]]:
        greedy, modest = (work.Client(asyncio.Semaphore(9)) for _ in range(2))
        names = ("Anna", "Boris", "Clara")
        many = [asyncio.create_task(asked_by(greedy, name, 80)) for name in names]
        while len(engine._scheduler._live) < 2:
            await asyncio.sleep(0.005)
        return [await asked_by(modest, "Emil", 8), *(await asyncio.gather(*many))]

    ended: list[str] = []
    try:
        short, *long = asyncio.run(run())
    finally:
        engine.close()
    assert ended[0] == "Emil"
    assert len(ended) == 4
    assert sum(len(chunk.tokens) for chunk in short) == 8
    for chunks in long:
        assert sum(len(chunk.tokens) for chunk in chunks) == 80
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens == 80


def test_one_of_many_gives_way_at_once_to_a_client_that_has_just_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_TURN", 1 << 30)
    engine = LlamaCpp(default_model(), context=512, parallel=2, threads=1)

    async def asked_by(client: work.Client, name: str, tokens: int) -> str:
        with work.on(work.Errand(math.inf, client=client)):
            await answer(engine, asked(f"{name} talks."), tokens)
        ended.append(name)
        return name

    async def run() -> None:
        many, few = (work.Client(asyncio.Semaphore(9)) for _ in range(2))
        long = [asyncio.create_task(asked_by(many, name, 60)) for name in ("Anna", "Boris")]
        while len(engine._scheduler._live) < 2:
            await asyncio.sleep(0.005)
        first = asyncio.create_task(asked_by(few, "Emil", 8))
        while not first.done() and all(live.request.client is not few for live in engine._scheduler._live):
            await asyncio.sleep(0.001)
        await asyncio.gather(*long, first, asked_by(few, "Finn", 8))

    ended: list[str] = []
    try:
        asyncio.run(run())
    finally:
        engine.close()
    assert ended[0] == "Emil"  # and no place is left for its second one, as both have one now
    assert set(ended) == {"Anna", "Boris", "Emil", "Finn"}


def test_the_programs_of_one_client_are_as_clients_where_there_is_no_other() -> None:
    engine = LlamaCpp(default_model(), context=512, parallel=2, threads=1)

    async def asked_by(program: str, name: str, tokens: int) -> None:
        with work.on(work.Errand(math.inf, client=client, program=program)):
            await answer(engine, asked(f"{name} talks."), tokens)
        ended.append(program)

    async def run() -> None:
        batch = [asyncio.create_task(asked_by("batch", name, 60)) for name in ("Anna", "Boris", "Clara", "Dora")]
        while len(engine._scheduler._live) < 2:
            await asyncio.sleep(0.005)
        await asyncio.gather(asked_by("chat", "Emil", 8), *batch)

    client = work.Client(asyncio.Semaphore(9))
    ended: list[str] = []
    try:
        asyncio.run(run())
    finally:
        engine.close()
    assert ended == ["chat", "batch", "batch", "batch", "batch"]


def test_a_prompt_that_is_being_read_gives_way_and_is_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = LlamaCpp(default_model(), context=1024, parallel=2, threads=1)

    async def asked_by(client: work.Client, prompt: Prompt, tokens: int) -> list[Chunk]:
        with work.on(work.Errand(math.inf, client=client)):
            chunks = await answer(engine, prompt, tokens)
        ended.append(client)
        return chunks

    async def run() -> list[list[Chunk]]:
        long = [asyncio.create_task(asked_by(many, prompt, 8)) for prompt in prompts]
        while len(engine._scheduler._live) < 2:
            await asyncio.sleep(0.005)
        short = await asked_by(few, asked("Short."), 4)
        return [short, *(await asyncio.gather(*long))]

    many, few = (work.Client(asyncio.Semaphore(9)) for _ in range(2))
    story = "Paris is the capital of France, and the Seine runs through it. " * 40
    prompts = [asked(f"{number}. {story}", "What is the capital of France?") for number in range(2)]
    ended: list[work.Client] = []
    try:
        _, *long = asyncio.run(run())
        assert ended == [few, many, many]
        monkeypatch.setattr(engine._scheduler._slots, "_best", lambda *_: (None, 0))  # nothing is known
        assert text_of(long[0]) == text_of(asyncio.run(answer(engine, prompts[0], 8)))
        for chunks in long:
            assert chunks[-1].usage is not None
            assert chunks[-1].usage.cached_tokens < 100  # what it had read itself when it gave way is none
    finally:
        engine.close()


def test_an_answer_that_gave_way_goes_on_as_if_it_had_not() -> None:
    engine = LlamaCpp(default_model(), context=512, parallel=1, threads=1)

    async def both() -> tuple[list[Chunk], list[Chunk]]:
        async def asked_by(client: work.Client, name: str) -> list[Chunk]:
            with work.on(work.Errand(math.inf, client=client)):
                return await answer(engine, asked(f"{name} talks."), 80)

        one, other = (work.Client(asyncio.Semaphore(9)) for _ in range(2))
        return await asyncio.gather(asked_by(one, "Anna"), asked_by(other, "Boris"))

    try:
        alone = [asyncio.run(answer(engine, asked(f"{name} talks."), 80)) for name in ("Anna", "Boris")]
        assert list(map(text_of, asyncio.run(both()))) == list(map(text_of, alone))
    finally:
        engine.close()


def test_a_prompt_that_is_being_read_is_not_read_twice(engine: LlamaCpp) -> None:
    async def run() -> list[list[Chunk]]:
        system = "Whatever happens, stay calm and count to ten. " * 12
        return await asyncio.gather(*(answer(engine, asked(f"{system}{n}"), 2) for n in range(3)))

    usages = [chunks[-1].usage for chunks in asyncio.run(run())]
    known = sorted(usage.cached_tokens for usage in usages if usage)  # whichever of them comes first reads it
    assert known[0] < 20
    assert min(known[1:]) > 100


def test_ended_texts_are_found_again_until_there_are_too_many(engine: LlamaCpp) -> None:
    red, blue = "Red is warm. " * 15, "Blue is cold. " * 15
    green, grey = "Green grows everywhere. " * 40, "Grey is all there is. " * 35
    cached(engine, red)
    cached(engine, blue)
    assert min(cached(engine, red), cached(engine, blue)) > 50
    cached(engine, green)  # there is no room for it beside the others, which are put aside
    assert min(cached(engine, red), cached(engine, blue)) > 50
    cached(engine, grey)
    cached(engine, "Gold has no rust. " * 40)
    cached(engine, green)
    assert max(cached(engine, red), cached(engine, blue)) < 20


def test_what_was_put_aside_and_fetched_is_gone_on_with_as_if_it_had_been_read(engine: LlamaCpp) -> None:
    prompt = asked("Count from one to ten, in words. " * 4)
    first = asyncio.run(answer(engine, prompt, 12))
    cached(engine, "Green grows everywhere. " * 40)
    again = asyncio.run(answer(engine, prompt, 12))
    assert again[-1].usage
    assert again[-1].usage.cached_tokens > 30
    assert [chunk.tokens for chunk in again] == [chunk.tokens for chunk in first]


def test_memories_of_their_own_find_texts_again_and_give_the_same_answers(engine: LlamaCpp) -> None:
    apart = LlamaCpp(default_model(), context=256, parallel=3, budget=3 * 256, threads=1)
    try:
        assert apart._model.apart
        assert not engine._model.apart
        texts = [f"{color} is a color. " * 15 for color in ("Red", "Blue", "Green", "Grey", "White")]
        for text in texts:
            cached(apart, text)
        assert min(cached(apart, text) for text in texts) > 50
        prompt = asked("Count from one to ten, in words. " * 4)
        answers = [asyncio.run(answer(each, prompt, 12)) for each in (engine, apart, apart)]
        assert len({tuple(token for chunk in chunks for token in chunk.tokens) for chunks in answers}) == 1
    finally:
        apart.close()


@pytest.mark.parametrize(
    "options", [{"budget": 256}, {"budget": 3 * 256}, {"deterministic": True}], ids=["shared", "apart", "deterministic"]
)
def test_the_same_prompt_gets_the_same_logits_again(options: dict[str, Any]) -> None:
    """What is left of the prompt, put aside, or beside others in the memory changes no digit of them."""
    engine = LlamaCpp(default_model(), context=256, parallel=3, **options)
    try:
        prompts = [asked(f"{name} says little, and {name} does much. " * 8) for name in ("Anna", "Boris", "Clara")]
        cold, *warm = [[told(engine, prompt) for prompt in prompts] for _ in range(3)]
        assert warm == [cold, cold]
    finally:
        engine.close()


def test_a_deterministic_engine_gives_the_same_logits_beside_others() -> None:
    engine = LlamaCpp(default_model(), context=256, parallel=3, deterministic=True)
    others = [asked(f"{name} says little. " * 9) for name in ("Boris", "Clara")]
    prompt = asked("Anna says little, and Anna does much. " * 8)

    async def beside() -> list[list[Chunk]]:
        return await asyncio.gather(*(answer(engine, each, 9) for each in (*others, prompt)))

    try:
        crowded = asyncio.run(beside())[-1]
        assert logprobs(crowded) == told(engine, prompt)
    finally:
        engine.close()


def told(engine: LlamaCpp, prompt: Prompt) -> list[TokenLogprobs]:
    return logprobs(asyncio.run(answer(engine, prompt, 9)))


def logprobs(chunks: list[Chunk]) -> list[TokenLogprobs]:
    return [each for chunk in chunks for each in chunk.logprobs]


@pytest.mark.parametrize(("parallel", "fitting", "at_once"), [(20, 40, 20), (20, 17, 17), (20, 15, 20), (3, 2, 3)])
def test_so_many_run_at_once_as_can_have_a_memory_of_their_own_if_that_is_enough(
    parallel: int, fitting: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Model, "_fitting", lambda _: fitting)
    model = Model(default_model(), 64, 1, parallel=parallel, kept=4)
    assert model.at_once == at_once
    assert model.apart == (fitting >= at_once)
    assert model.room == 64 * (at_once if model.apart else min(4, parallel))
    model.close()


def test_a_pass_wakes_a_loop_once() -> None:
    async def told() -> tuple[list[object], int]:
        outbox, listeners, woken = Outbox(), [Listener(), Listener()], 0
        loop = asyncio.get_running_loop()
        call = loop.call_soon_threadsafe

        def count(*given: Any) -> asyncio.Handle:
            nonlocal woken
            woken += 1
            return call(*given)

        loop.call_soon_threadsafe = count
        for text in "ab":
            for listener in listeners:
                outbox.put(listener, Chunk(text))
        outbox.send()
        outbox.send()  # nothing is left
        return [await listener.queue.get() for listener in listeners for _ in "ab"], woken

    assert asyncio.run(told()) == ([Chunk("a"), Chunk("b")] * 2, 1)


def test_nobody_is_told_when_the_loop_is_closed() -> None:
    async def listener() -> Listener:
        return Listener()

    outbox, gone = Outbox(), asyncio.run(listener())
    outbox.put(gone, Chunk("a"))
    outbox.send()
    assert gone.cancel.is_set()


def test_a_long_prompt_does_not_stall_who_writes(engine: LlamaCpp) -> None:
    heard: list[str] = []

    async def write() -> None:
        async for _ in engine.generate(asked(""), None, Sampling(max_tokens=30, logit_bias={0: -100, 2: -100})):
            heard.append("writer")  # noqa: PERF401 - the other task writes into it at the same time

    async def run() -> None:
        writing = asyncio.create_task(write())
        while not heard:
            await asyncio.sleep(0)
        heard.clear()
        await answer(engine, asked("One sentence is so long. " * 25), 1)
        heard.append("reader")
        await writing

    asyncio.run(run())
    assert heard.index("reader") >= 3  # the prompt is read in three parts


def test_who_goes_does_not_disturb_others(engine: LlamaCpp) -> None:
    async def run() -> list[Chunk]:
        staying = asyncio.create_task(answer(engine, asked("Count."), 20))
        for _ in range(3):
            going = asyncio.create_task(answer(engine, asked("Never mind. " * 30), 20))
            await asyncio.sleep(0.05)
            going.cancel()
        return await staying

    assert sum(len(chunk.tokens) for chunk in asyncio.run(run())) == 20


def test_a_failure_is_told_to_all_and_the_engine_goes_on(engine: LlamaCpp, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object, __: object) -> list[object]:
        raise EngineError("llama.cpp failed")

    async def run() -> list[list[Chunk] | BaseException]:
        asked_for = (answer(engine, asked(f"{n}"), 3) for n in range(5))  # two of them wait
        return await asyncio.gather(*asked_for, return_exceptions=True)

    with monkeypatch.context() as patched:
        patched.setattr(engine._model, "evaluate", fail)
        assert [str(each) for each in asyncio.run(run())] == ["llama.cpp failed"] * 5
    assert all(isinstance(each, list) for each in asyncio.run(run()))


class Planted(BaseException):
    """As a panic of llguidance is: no Exception."""


@pytest.mark.parametrize(("where", "kind"), [("choose", ValueError), ("note", Planted), ("adjusted", IndexError)])
def test_what_fails_in_one_generation_ends_that_one_alone(
    engine: LlamaCpp, where: str, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = getattr(Sampler, where)

    def planted(sampler: Sampler, given: Any) -> Any:
        if sampler._sampling.seed == 13:
            raise kind("planted")
        return work(sampler, given)

    async def run() -> list[Any]:
        bad = engine.generate(asked("You fail."), None, Sampling(max_tokens=8, seed=13))
        others = [answer(engine, asked(f"Count to {n}. " * 12), 8) for n in (10, 20)]
        return await asyncio.gather(anext(bad), *others, return_exceptions=True)

    _, *alone = asyncio.run(run())
    monkeypatch.setattr(Sampler, where, planted)
    failed, *beside = asyncio.run(run())
    assert isinstance(failed, kind if issubclass(kind, Exception) else EngineError)
    assert "planted" in str(failed)
    assert [text_of(chunks) for chunks in beside] == [text_of(chunks) for chunks in alone]
    assert all(chunks[-1].usage.cached_tokens > 30 for chunks in beside)  # what was read is not forgotten
    assert min(cached(engine, f"Count to {n}. " * 12) for n in (10, 20)) > 30


def text_of(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


def test_a_grammar_that_fails_at_the_start_or_in_a_draft_ends_its_own_request(
    engine: LlamaCpp, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, fails = Generation.begin, ["begin"]

    def begun(generation: Generation) -> Chunk | None:
        if fails and generation._sampling.seed == 13:
            raise RuntimeError(f"planted in {fails.pop()}")
        return begin(generation)

    def drafted(generation: Generation) -> list[int]:
        if generation._sampling.seed == 13:
            raise RuntimeError("planted in draft")
        return []

    monkeypatch.setattr(Generation, "begin", begun)
    monkeypatch.setattr(Generation, "draft", drafted)

    async def run() -> list[Any]:
        bad = engine.generate(asked("You fail."), None, Sampling(max_tokens=8, seed=13))
        return await asyncio.gather(anext(bad), answer(engine, asked("Count."), 8), return_exceptions=True)

    for place in ("begin", "draft"):
        failed, good = asyncio.run(asyncio.wait_for(run(), 60))
        assert str(failed) == f"planted in {place}"
        assert good[-1].finish == "length"
