"""The embedded engine, on the default model (fetched into the cache on the first run, about 93 MB)."""

# What must not be seen from outside is tested here too.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import ctypes
import importlib.metadata
import importlib.util
import json
import math
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from toolgram.engines import llama_cpp
from toolgram.engines.base import Choice, Chunk, Engine, Prompt, Sampling
from toolgram.engines.llama_cpp import ffi, ffi_layout
from toolgram.engines.llama_cpp.bundled_server import LlamaObject
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.llama_cpp.guide import Guide
from toolgram.errors import EngineError, ModelError
from toolgram.models.catalog import default_model

CALL = r"""
start: "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {" arguments "}}\n</tool_call>"
arguments: "\"city\": " string ", \"days\": " DAYS
string: "\"" /[^"\\\x00-\x1f\x7f]{0,20}/ "\""
DAYS: /[1-9][0-9]?/
"""
CALL_TEXT = re.compile(
    r'<tool_call>\n\{"name": "get_weather", "arguments": \{"city": "[^"\\\x00-\x1f\x7f]{0,20}", "days": [1-9][0-9]?\}\}'
    r"\n</tool_call>"
)
PEOPLE = r"""
start: "[" person (", " person)~2 "]"
person: "{\"name\": \"" /[A-Z][a-z]{1,9}/ "\", \"work\": \"" ("teacher" | "physician" | "technician") "\"}"
"""


@dataclass(frozen=True)
class Lark:
    """A grammar written by hand, in the place of a constraint and its grammar."""

    text: str

    @property
    def grammar(self) -> Lark:
        return self

    def to(self, dialect: str, /) -> str:
        assert dialect == "lark"
        return self.text


@pytest.fixture(scope="module")
def path() -> Path:
    return default_model()


@pytest.fixture(scope="module")
def engine(path: Path) -> Iterator[LlamaCpp]:
    engine = LlamaCpp(path)
    yield engine
    engine.close()


def asked(question: str) -> Prompt:
    return (
        ("<|im_start|>user\n", True),
        (question, False),
        ("<|im_end|>\n<|im_start|>assistant\n", True),
    )


SEA = asked("Write a poem about the sea.")
WEATHER = asked("What will the weather in Paris be for the next three days?")


async def chunks_of(engine: Engine, prompt: Prompt, lark: str | None, sampling: Sampling) -> list[Chunk]:
    constraint = None if lark is None else Lark(lark)
    return [chunk async for chunk in engine.generate(prompt, constraint, sampling)]


def say(engine: LlamaCpp, prompt: Prompt, lark: str | None = None, **sampling: object) -> tuple[str, Chunk]:
    """The whole text, and the last chunk."""
    chunks = asyncio.run(chunks_of(engine, prompt, lark, Sampling(**sampling)))  # type: ignore[arg-type] - passed on
    assert [chunk.finish is None for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens == sum(len(chunk.tokens) for chunk in chunks)
    assert usage.forced_tokens == sum(chunk.forced for chunk in chunks)
    return "".join(chunk.text for chunk in chunks), chunks[-1]


def test_a_grammar_holds_at_any_temperature(engine: LlamaCpp) -> None:
    for seed, temperature in enumerate((0.0, 0.7, 1.5, 3.0, 10.0)):
        text, last = say(engine, WEATHER, CALL, temperature=temperature, seed=seed, max_tokens=200)
        assert CALL_TEXT.fullmatch(text), text
        assert last.finish == "stop"


def test_a_trace_tells_what_the_model_alone_would_have_written(engine: LlamaCpp) -> None:
    """The model's own answer under a grammar that allows it has no divergence; one that does not, has them."""
    own, _ = say(engine, WEATHER, max_tokens=8)
    for lark, divergent in ((r"start: /(?s:.)*/", False), (r"start: /[0-9]{8,}/", True)):
        chunks = asyncio.run(chunks_of(engine, WEATHER, lark, Sampling(max_tokens=8, trace=True)))
        points = [point for chunk in chunks for point in chunk.trace]
        written = [token for chunk in chunks for token in chunk.tokens]
        assert [written[point.position] for point in points] == [point.token for point in points]
        assert len(points) + sum(chunk.forced for chunk in chunks) == len(written)
        assert any(point.removed > 0.5 and point.preferred != point.token for point in points) == divergent
        assert all((point.preferred == point.token) or point.removed > 0 for point in points)
        if not divergent:
            assert b"".join(point.piece for point in points).decode() == own


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_trace_tells_what_would_have_come_in_the_place_of_a_forced_end(path: Path, *, deterministic: bool) -> None:
    """The text is over without another look at the model, but what it would have said is asked first."""
    engine = LlamaCpp(path, context=512, parallel=3, threads=1, deterministic=deterministic)
    ends = (("/[0-9]{3}/", '"}"'), ("/[0-9]{4}/", r'"}\n"'), ("/[a-z]{5}/", r'"\""'))

    async def run() -> list[list[Chunk]]:
        sampling = Sampling(max_tokens=20, trace=True)
        return await asyncio.gather(*(chunks_of(engine, SEA, f"start: {a} {b}", sampling) for a, b in ends))

    try:
        answers = asyncio.run(run())
    finally:
        engine.close()
    for chunks in answers:
        text = "".join(chunk.text for chunk in chunks)
        *sampled, last = [point for chunk in chunks for point in chunk.trace]
        assert chunks[-1].finish == "stop"
        assert not any(point.forced for point in sampled)
        assert last.forced
        assert text[last.offset :] in ("}", "}\n", '"')
        assert last in chunks[-1].trace
        assert last.removed > 0.5


def test_nothing_is_traced_unless_asked(engine: LlamaCpp) -> None:
    for lark, trace in ((r"start: /[0-9]{8,}/", False), (None, True)):
        chunks = asyncio.run(chunks_of(engine, WEATHER, lark, Sampling(max_tokens=4, trace=trace)))
        assert not any(chunk.trace for chunk in chunks)


def test_a_choice_is_moved_at_the_first_token_alone_and_its_odds_are_the_models_own(engine: LlamaCpp) -> None:
    own = asyncio.run(chunks_of(engine, WEATHER, None, Sampling(max_tokens=6)))
    first = own[0].tokens[0]
    other = engine.tokens["<"]
    for lark in (None, r"start: /(?s:.*)/"):
        told: list[float] = []
        for bias, begins in ((0.0, first), (40.0, other), (-40.0, first)):
            sampling = Sampling(max_tokens=6, choice=Choice((other,), bias))
            chunks = asyncio.run(chunks_of(engine, WEATHER, lark, sampling))
            assert chunks[0].tokens[0] == begins
            assert all(chunk.log_odds is None for chunk in chunks[:-1])
            assert chunks[-1].log_odds is not None
            told.append(chunks[-1].log_odds)
            written = [token for chunk in chunks for token in chunk.tokens]
            assert written.count(other) <= 1
            assert begins == other or "".join(chunk.text for chunk in chunks) == "".join(chunk.text for chunk in own)
        assert told[0] < 0
        assert told == pytest.approx([told[0]] * 3, abs=1e-3)
    assert own[-1].log_odds is None


def test_a_later_choice_is_moved_wherever_its_text_was_written(engine: LlamaCpp) -> None:
    lark = 'start: ("Yes." "!"? " "){3}'
    told: list[float] = []
    for bias, text in ((0.0, None), (40.0, "Yes.! Yes.! Yes.! "), (-40.0, "Yes. Yes. Yes. ")):
        sampling = Sampling(later=Choice((engine.tokens["!"],), bias, "Yes."))
        chunks = asyncio.run(chunks_of(engine, WEATHER, lark, sampling))
        assert text in (None, "".join(chunk.text for chunk in chunks))
        assert chunks[-1].log_odds is None
        assert chunks[-1].later_log_odds is not None
        told.append(chunks[-1].later_log_odds)
    assert told == pytest.approx([told[0]] * 3, abs=1e-3)


def test_a_later_choice_that_never_comes_has_no_odds(engine: LlamaCpp) -> None:
    text, last = say(engine, WEATHER, 'start: "Yes." "!"?', later=Choice((engine.tokens["!"],), 40.0, "No."))
    assert text.startswith("Yes.")
    assert last.later_log_odds is None


def test_a_choice_that_the_grammar_leaves_no_room_for_is_certain(engine: LlamaCpp) -> None:
    tokens = (engine.tokens["<"],)
    _, last = say(engine, WEATHER, r"start: /[a-z ]{4}/", choice=Choice(tokens))
    assert last.log_odds == -math.inf
    _, last = say(engine, WEATHER, r'start: "<" | "<<"', choice=Choice((*tokens, engine.tokens.get("<<", tokens[0]))))
    assert last.log_odds is None or last.log_odds == math.inf


def test_a_model_cannot_end_where_the_grammar_does_not(engine: LlamaCpp) -> None:
    text, last = say(engine, asked("Say hi."), r"start: /[a-z ]{80,90}/")
    assert re.fullmatch("[a-z ]{80,90}", text)
    assert last.finish == "stop"


def test_the_model_is_not_asked_for_white_space_that_only_the_end_follows(engine: LlamaCpp) -> None:
    text, last = say(engine, WEATHER, r'start: "yes" ("\n" | "\n\n")?')
    assert (text, last.finish) == ("yes", "stop")
    assert last.usage is not None
    assert last.usage.forward_passes == 0
    _, last = say(engine, WEATHER, r'start: "yes" ("\n" "no")* ("\n" | "\n\n")?', max_tokens=20)
    assert last.usage is not None
    assert last.usage.forward_passes > 0


def test_a_grammar_may_name_special_tokens(engine: LlamaCpp) -> None:
    mark = engine.vocabulary["<repo_name>"]
    text, _ = say(engine, SEA, f'start: "a" <[{mark}]> "b" <|im_end|> "c"')
    assert text == "a<repo_name>b<|im_end|>c"


def test_text_never_spells_a_control_token_as_one(engine: LlamaCpp) -> None:
    chunks = asyncio.run(chunks_of(engine, SEA, r"start: /<\|im_start\|>/ /(.|\n)*/", Sampling(max_tokens=20)))
    ids = [token for chunk in chunks for token in chunk.tokens]
    assert "".join(chunk.text for chunk in chunks).startswith("<|im_start|>")
    assert not set(ids) & set(engine.vocabulary.values())


def no_tokens(_: Guide) -> list[int]:
    return []


@pytest.mark.parametrize("lark", [CALL, PEOPLE, r'start: "🎉🎊" /[A-Z][a-z]{3}/ " naïve 日本語"'])
def test_jumping_forward_changes_nothing_but_the_work(
    engine: LlamaCpp, lark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jumped, with_jumps = say(engine, WEATHER, lark)
    monkeypatch.setattr(Guide, "forced", no_tokens)
    stepped, without = say(engine, WEATHER, lark)
    assert jumped == stepped
    assert with_jumps.usage is not None
    assert without.usage is not None
    assert with_jumps.usage.forced_tokens > 0 == without.usage.forced_tokens
    assert with_jumps.usage.forward_passes < without.usage.forward_passes * 0.6


def test_characters_are_whole(engine: LlamaCpp) -> None:
    chunks = asyncio.run(chunks_of(engine, SEA, r"start: /[🎉☃日]{6}/", Sampling(temperature=2, seed=3)))
    text = "".join(chunk.text for chunk in chunks)
    assert re.fullmatch("[🎉☃日]{6}", text)
    assert sum(len(chunk.tokens) for chunk in chunks) > 6
    cut, last = say(engine, SEA, 'start: "日日"', max_tokens=1)
    assert (cut, last.finish) == ("", "length")


def test_a_seed_repeats_the_answer(engine: LlamaCpp) -> None:
    first, second, other, greedy, again = (
        say(engine, SEA, temperature=temperature, seed=seed, max_tokens=25)[0]
        for temperature, seed in ((1, 1), (1, 1), (1, 2), (0, 1), (0, None))
    )
    assert first == second != other
    assert greedy == again


def test_a_stop_string_ends_the_text_and_is_not_in_it(engine: LlamaCpp) -> None:
    whole, _ = say(engine, SEA, max_tokens=60)
    stop = whole[30:38]
    text, last = say(engine, SEA, max_tokens=60, stop=("never seen", stop))
    assert text == whole[: whole.index(stop)]
    assert last.finish == "stop"


def test_the_end_of_turn_is_not_text(engine: LlamaCpp) -> None:
    text, last = say(engine, asked("What is the capital of France? One word."), max_tokens=200)
    assert last.finish == "stop"
    assert "Paris" in text
    assert "<|" not in text


def test_max_tokens_and_the_end_of_the_context(engine: LlamaCpp, path: Path) -> None:
    _, last = say(engine, SEA, max_tokens=7)
    assert last.finish == "length"
    assert last.usage is not None
    assert last.usage.completion_tokens == 7
    _, last = say(engine, SEA, r'start: "a long literal that takes more than four tokens"', max_tokens=4)
    assert last.usage is not None
    assert (last.finish, last.usage.completion_tokens) == ("length", 4)
    small = LlamaCpp(path, context=64, threads=1)
    _, last = say(small, SEA)
    assert last.usage is not None
    assert (last.finish, last.usage.prompt_tokens + last.usage.completion_tokens) == ("length", 64)
    with pytest.raises(EngineError, match=r"\d+ tokens > 64 maximum: .* maximum context length is 64"):
        say(small, asked("too long " * 40))
    assert say(small, SEA, max_tokens=3)[1].finish == "length"
    small.close()


def test_closing_the_generator_stops_the_work(engine: LlamaCpp) -> None:
    async def leave_early() -> str:
        stream = engine.generate(SEA, None, Sampling(max_tokens=2000))
        async for chunk in stream:
            if chunk.text:
                break
        await stream.aclose()
        return (await chunks_of(engine, WEATHER, CALL, Sampling()))[-1].finish or ""

    assert asyncio.run(asyncio.wait_for(leave_early(), timeout=20)) == "stop"


def test_reading_a_long_prompt_is_broken_off_in_the_middle(engine: LlamaCpp) -> None:
    async def run() -> float:
        stream = engine.generate(asked("so many words " * 900), None, Sampling())
        reading = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.2)
        reading.cancel()
        began = time.perf_counter()
        await chunks_of(engine, SEA, None, Sampling(max_tokens=1))
        return time.perf_counter() - began

    say(engine, SEA, max_tokens=1)
    assert asyncio.run(run()) < 1.5  # the prompt takes many seconds


def test_a_task_that_is_cancelled_frees_the_engine(engine: LlamaCpp) -> None:
    async def run() -> list[Chunk]:
        asked_for = [
            asyncio.create_task(chunks_of(engine, SEA, None, Sampling(max_tokens=3000))),  # runs
            asyncio.create_task(chunks_of(engine, SEA, None, Sampling(max_tokens=3000))),  # waits
        ]
        await asyncio.sleep(0.2)
        for task in asked_for:
            task.cancel()
        return await chunks_of(engine, WEATHER, CALL, Sampling())

    assert asyncio.run(asyncio.wait_for(run(), timeout=20))[-1].finish == "stop"


def test_a_stream_that_was_forgotten_does_not_block(engine: LlamaCpp) -> None:
    async def forget() -> None:
        stream = engine.generate(SEA, None, Sampling(max_tokens=3000))
        await anext(stream)

    asyncio.run(forget())
    assert say(engine, SEA, max_tokens=2)[1].finish == "length"


def same_but_for_ties(one: list[Chunk], other: list[Chunk]) -> bool:
    """Whether two greedy answers agree up to the first place where two tokens are about as likely.

    What is evaluated together changes the last digits of the logits: by some hundredths with weights of four bits.
    """
    for mine, theirs in zip(one, other, strict=False):
        if mine.tokens != theirs.tokens:
            first, second = mine.logprobs[0].top
            return first.logprob - second.logprob < 0.3
    return len(one) == len(other)


def test_several_at_once_are_answered_as_if_alone(engine: LlamaCpp) -> None:
    questions = [asked(f"What is {n} plus {n}?") for n in range(12)]
    sampling = Sampling(max_tokens=12, logprobs=2)
    alone = [asyncio.run(chunks_of(engine, question, None, sampling)) for question in questions]

    async def together() -> list[list[Chunk]]:
        return await asyncio.gather(*(chunks_of(engine, each, None, sampling) for each in questions))

    assert all(map(same_but_for_ties, alone, asyncio.run(together())))


def test_what_prompts_have_in_common_is_read_once(engine: LlamaCpp) -> None:
    system = (("<|im_start|>system\n" + "You are kind to everyone. " * 20 + "<|im_end|>\n", True),)
    say(engine, SEA, max_tokens=1)
    first, last = say(engine, system + WEATHER, max_tokens=10)
    assert last.usage is not None
    assert last.usage.cached_tokens < 5
    say(engine, system + SEA, max_tokens=5)
    second, last = say(engine, system + WEATHER, max_tokens=10)
    assert last.usage is not None
    assert last.usage.cached_tokens > 100
    assert first == second


def test_control_tokens_come_from_trusted_text_only(engine: LlamaCpp) -> None:
    start = engine.vocabulary["<|im_start|>"]
    tokenize = engine._model.vocabulary.tokenize
    assert tokenize((("<|im_start|>user", True),))[0] == start
    assert start not in tokenize((("<|im_start|>user", False),))
    assert engine.count_tokens((("<|im_start|>", True),)) == 1 < engine.count_tokens((("<|im_start|>", False),))


def test_a_prompt_in_parts_has_the_tokens_of_the_whole(engine: LlamaCpp) -> None:
    text = "<|im_start|>user\n  Grüße,\nwhat's\tup? <b>日本</b> 🎉<|im_end|>\n<|im_start|>assistant\n"
    raw = text.encode()
    room = (ctypes.c_int32 * 200)()
    vocabulary = engine._model.vocabulary
    count = ffi.library().c.llama_tokenize(vocabulary.pointer, raw, len(raw), room, 200, False, True)  # noqa: FBT003 - C knows no names
    whole = room[:count]
    assert vocabulary.tokenize(((text, True),)) == whole
    marks = re.split(r"(<\|\w+\|>)", text)
    for size in (1, 2, 3, 7):
        parts = [
            (piece, mark.startswith("<|"))
            for mark in marks
            for piece in ([mark] if mark.startswith("<|") else re.findall(f"(?s).{{1,{size}}}", mark))
        ]
        assert vocabulary.tokenize(tuple(parts)) == whole


@pytest.mark.parametrize("lark", ["start: nowhere", 'start: "a', "", 'start: "a" <|no_such_token|>'])
def test_a_grammar_that_is_refused_is_an_error(engine: LlamaCpp, lark: str) -> None:
    with pytest.raises(EngineError, match="llguidance refuses the grammar"):
        say(engine, SEA, lark)
    assert say(engine, SEA, max_tokens=1)[1].finish == "length"


def test_an_empty_prompt_is_refused(engine: LlamaCpp) -> None:
    with pytest.raises(EngineError, match="empty"):
        say(engine, (("", True),))


def test_the_writer_of_the_grammar_may_fail(engine: LlamaCpp) -> None:
    class Broken(Lark):
        def to(self, dialect: str, /) -> str:
            raise EngineError(f"cannot be written in {dialect}")

    async def run() -> None:
        async for _ in engine.generate(SEA, Broken(""), Sampling()):
            pass

    with pytest.raises(EngineError, match="cannot be written in lark"):
        asyncio.run(run())


def test_closing_the_engine_ends_what_runs_and_what_waits(path: Path) -> None:
    async def run() -> list[Chunk]:
        async with LlamaCpp(path, context=2048) as engine:
            tasks = [asyncio.create_task(chunks_of(engine, SEA, None, Sampling(max_tokens=1500))) for _ in range(2)]
            await asyncio.sleep(0.3)
        ends = [chunks[-1] for chunks in await asyncio.gather(*tasks)]
        engine.close()
        with pytest.raises(EngineError, match="closed"):
            await chunks_of(engine, SEA, None, Sampling())
        return ends

    assert [chunk.finish for chunk in asyncio.run(run())] == ["cancelled", "cancelled"]


def test_a_model_is_freed_when_it_is_closed_or_forgotten(path: Path) -> None:
    for forget in (False, True):
        engine = LlamaCpp(path)
        say(engine, WEATHER, CALL, max_tokens=3)
        memory = engine._model._free
        assert memory.alive
        if not forget:
            engine.close()
            assert not memory.alive
        del engine
        for _ in range(100):  # the worker lets go of its last job a moment after the answer
            if not memory.alive:
                break
            time.sleep(0.02)
        assert not memory.alive


def damaged(content: bytes) -> dict[str, bytes]:
    return {
        "empty": b"",
        "text": b"not a model at all",
        "only the magic": content[:4],
        "cut in the header": content[:5_000],
        "cut in the vocabulary": content[:1_000_000],
        "cut in the weights": content[:50_000_000],
        "another version": content[:4] + b"\x63" + content[5:],
        "another architecture": content.replace(b"\0llama", b"\0zlama", 1),
        "noise": b"GGUF\x03\0\0\0" + b"\xa5" * 5_000,
    }


def test_a_file_that_cannot_be_run_is_an_error(path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.gguf"
    said: dict[str, str] = {}
    for name, content in damaged(path.read_bytes()).items():
        file.write_bytes(content)
        with pytest.raises(ModelError) as caught:
            LlamaCpp(file)
        said[name] = str(caught.value)
        assert str(file) in said[name], json.dumps(said)
    assert "not a GGUF file" in said["text"]
    assert "corrupted or incomplete" in said["cut in the weights"]
    assert "unknown model architecture: 'zlama'" in said["another architecture"]
    with pytest.raises(ModelError, match="No such file"):
        LlamaCpp(tmp_path / "missing.gguf")
    with pytest.raises(ModelError, match="Is a directory"):
        LlamaCpp(tmp_path)
    assert capfd.readouterr().err == ""


def test_a_model_larger_than_the_memory_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgram.engines.llama_cpp.machine.memory", lambda: 50_000_000)
    for engine in (LlamaCpp, LlamaObject):
        with pytest.raises(ModelError, match=r"has 0\.1 GB, and there are only 0\.1 GB of memory"):
            engine(path)


def test_another_version_of_xllamacpp_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", "2027.1.1".format)
    with pytest.raises(EngineError, match=r"xllamacpp 2027\.1\.1 is installed.*pip install xllamacpp=="):
        ffi.library.__wrapped__()


def test_another_build_of_the_same_version_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", f"{ffi.XLLAMACPP}+cu128".format)
    assert ffi._shared_object().name.startswith("xllamacpp")


def test_another_layout_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lib = ffi.library().c
    assert list(ffi_layout.misfits(lib)) == []
    monkeypatch.setitem(ffi_layout.CONTEXT_DEFAULTS, "n_batch", 4096)
    assert list(ffi_layout.misfits(lib)) == ["in llama_context_params, n_batch is 2048 by default, not 4096"]


def test_another_library_cannot_crash_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "xllamacpp.so"
    library.write_bytes(b"not a library")
    with pytest.raises(ffi.OtherLibrary, match=r"xllamacpp\.so is not that of xllamacpp"):
        ffi._check(library)
    of_python = importlib.util.find_spec("llguidance._lib")
    assert of_python is not None
    assert of_python.origin is not None
    with pytest.raises(ffi.OtherLibrary, match=r"shows none of llama\.cpp's C functions, as in wheels of xllamacpp"):
        ffi._check(Path(of_python.origin))
    crashing = tmp_path / "layout.py"
    crashing.write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(ffi_layout, "__file__", str(crashing))
    with pytest.raises(ffi.OtherLibrary, match="ended with status -11"):
        ffi._check(library)


def test_with_another_version_the_server_of_llama_cpp_takes_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> ffi.Library:
        raise ffi.OtherLibrary("xllamacpp 2027 is installed")

    monkeypatch.setattr(ffi, "library", refuse)
    notices: list[str] = []
    engine = llama_cpp.load(path, notices.append, context=512)
    assert isinstance(engine, LlamaObject)
    assert engine.memory == "context of 512 tokens (trained for 8192); 0.0 GB of memory for 1 at once"
    assert len(notices) == 1
    with pytest.raises(EngineError, match="cannot be made deterministic here: xllamacpp 2027 is installed"):
        llama_cpp.load(path, notices.append, deterministic=True)
    assert notices[0].startswith("xllamacpp 2027 is installed; llama.cpp's own server runs the model instead")

    async def run() -> str:
        chunks = await chunks_of(engine, WEATHER, None, Sampling(max_tokens=4))
        await engine.aclose()
        with pytest.raises(EngineError, match="closed"):
            await chunks_of(engine, WEATHER, None, Sampling(max_tokens=4))
        return "".join(chunk.text for chunk in chunks)

    assert asyncio.run(run())


def test_a_file_that_the_server_cannot_run_is_an_error(tmp_path: Path) -> None:
    for content, reason in ((None, "No such file"), (b"text", "not a GGUF file"), (b"GGUF", "cannot be loaded")):
        file = tmp_path / "bad.gguf"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ModelError, match=reason):
            LlamaObject(file)


def test_a_forked_process_is_told(engine: LlamaCpp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_process", os.getpid() + 1)
    with pytest.raises(EngineError, match="fork"):
        say(engine, SEA)


@pytest.mark.parametrize("wrong", [{"context": 0}, {"threads": 0}, {"parallel": 0}])
def test_options_out_of_range_are_refused(path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(EngineError, match="at least 1"):
        LlamaCpp(path, **wrong)
