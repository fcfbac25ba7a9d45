"""What every engine offers: raw text for a prompt, in chunks, under a grammar."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, runtime_checkable

from toolgram.errors import EngineError

Prompt = tuple[tuple[str, bool], ...]
"""Pieces of the prompt with whether each is trusted: only trusted text may hold special tokens."""

FinishReason = Literal["stop", "length", "cancelled"]

# What lies beyond is more than 32-bit logits can be changed by, and far more than changes any choice.
LEAST_REPETITION_PENALTY, MOST_REPETITION_PENALTY = 0.01, 100.0
_LARGEST = 1e6


class WritesGrammar(Protocol):
    """A grammar that can be written in a dialect."""

    def to(self, dialect: str, /) -> str:
        """The grammar as text in `dialect`."""
        ...


class SupportsGrammar(Protocol):
    """Whatever carries a grammar; an engine needs to know no more of a constraint."""

    @property
    def grammar(self) -> WritesGrammar:
        """The grammar of the whole output."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice between some `tokens` and all others, with a `bias` on these.

    It is at the first token that is sampled; or, with `after`, at each that comes where this text was written last.
    With a bias the two sides are chosen between by their odds, and then a token of that side; greedily the likelier
    side is taken, even if its likeliest token is not the likeliest of all.
    """

    tokens: tuple[int, ...]
    bias: float = 0.0
    after: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen, and when to stop.

    `logit_bias` is added to the logits of tokens by id. Of tokens that were written already, `repetition_penalty`
    divides a positive logit and multiplies a negative one (tokens of the prompt count too, 1: off), `frequency_penalty`
    is taken off once for each time, and `presence_penalty` once. Then temperature 0 takes the likeliest token; above it
    the temperature is applied first, then `top_k` (0: off), `top_p` (1: off) and `min_p` (0: off), as vLLM does.
    With `logprobs` chunks tell how likely each token was, and so many of the likeliest beside it. With `trace` the
    embedded engine's tell what the grammar ruled out; other engines have no such thing. An engine with the capability
    moves the `choice`, and tells its odds, and a `later` one, which has a text that it comes `after`.

    `max_tokens` None goes on to the end of the context; `seed` None differs from call to call. A stop string ends the
    text and is not part of it; each of `ends` does so only as a token of its own, so that text which merely spells it
    (inside a JSON string, say) goes on.

    Raises EngineError for a value out of range.
    """

    max_tokens: int | None = None
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict[int, float])
    logprobs: int | None = None
    trace: bool = False
    choice: Choice | None = None
    later: Choice | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for rule, holds in _RULES.items():
            if not holds(self):
                raise EngineError(rule)


def _moderate(value: float) -> bool:
    return -_LARGEST <= value <= _LARGEST


_RULES: Mapping[str, Callable[[Sampling], bool]] = {
    "max_tokens must be at least 1": lambda it: it.max_tokens is None or it.max_tokens >= 1,
    "temperature must be a number from 0 up": lambda it: 0 <= it.temperature < float("inf"),
    "top_k must be at least 0": lambda it: it.top_k >= 0,
    "top_p must be above 0 and at most 1": lambda it: 0 < it.top_p <= 1,
    "min_p must be between 0 and 1": lambda it: 0 <= it.min_p <= 1,
    f"presence_penalty must be between -{_LARGEST:g} and {_LARGEST:g}": lambda it: _moderate(it.presence_penalty),
    f"frequency_penalty must be between -{_LARGEST:g} and {_LARGEST:g}": lambda it: _moderate(it.frequency_penalty),
    f"repetition_penalty must be between {LEAST_REPETITION_PENALTY:g} and {MOST_REPETITION_PENALTY:g}": (
        lambda it: LEAST_REPETITION_PENALTY <= it.repetition_penalty <= MOST_REPETITION_PENALTY
    ),
    f"each logit_bias must be between -{_LARGEST:g} and {_LARGEST:g}": (
        lambda it: all(map(_moderate, it.logit_bias.values()))
    ),
    "logprobs must be at least 0": lambda it: it.logprobs is None or it.logprobs >= 0,
    "seed must be at least 0": lambda it: it.seed is None or it.seed >= 0,
    "a stop string must not be empty": lambda it: "" not in it.stop,
}


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """How the tokens of a model are chosen where a request does not say; `source` says whose these values are."""

    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    source: str = ""

    @classmethod
    def of(cls, values: Mapping[str, float], source: str) -> SamplingDefaults:
        """The defaults of a model's own configuration. Raises EngineError for a value out of range."""
        made = replace(cls(), source=source, **dict[str, Any](values)) if values else cls()
        made.filling(Sampling(), cls.names())
        return made

    @classmethod
    def names(cls) -> frozenset[str]:
        """The fields of a Sampling that have such defaults."""
        return frozenset(each.name for each in fields(cls)) - {"source"}

    def filling(self, sampling: Sampling, unsaid: Iterable[str]) -> Sampling:
        """The sampling with these defaults for its `unsaid` fields. Raises EngineError as Sampling does."""
        return replace(sampling, **{name: getattr(self, name) for name in unsaid})

    def __str__(self) -> str:
        usual = Sampling()
        others = sorted(self.names() - {"temperature"})
        said = [f"{name} {getattr(self, name):g}" for name in others if getattr(self, name) != getattr(usual, name)]
        return ", ".join([f"temperature {self.temperature:g}", *said])


@dataclass(frozen=True, slots=True)
class Usage:
    """What a generation cost; an engine leaves at 0 what it cannot know.

    `cached_tokens` of the prompt were left from other requests; `forced_tokens` of the completion were appended
    without sampling; `forward_passes` counts the evaluations that a token was chosen from. `reasoning_tokens` of the
    completion are reasoning, which was `reasoning_closed` where its bound was reached; no engine tells these two.
    `estimated`: no tokens were counted where they were read and written, and these are about as many as the texts have.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0
    forward_passes: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    reasoning_tokens: int = 0
    reasoning_closed: bool = False
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        """What both cost together."""
        flags = ("reasoning_closed", "estimated")
        either = {name: getattr(self, name) or getattr(other, name) for name in flags}
        names = [each.name for each in fields(Usage) if each.name not in either]
        return Usage(**either, **{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True)
class Logprob:
    """A token, its bytes, and the natural logarithm of how likely it was.

    Where a server tells only the text of a token, `token` is -1, and `piece` that text.
    """

    token: int
    piece: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """How likely a token was among all that could come there under the grammar, biases and penalties applied.

    `top` has the likeliest, the best first, as many as `Sampling.logprobs` asks for and the grammar allows.
    A token that the grammar forced was certain. Engines that ask a server tell what it tells: llama-server and vLLM
    look at the model alone, before grammar, biases and penalties.
    """

    chosen: Logprob
    top: tuple[Logprob, ...] = ()


@dataclass(frozen=True, slots=True)
class TracePoint:
    """What the model wanted where it wrote a token under a grammar, biases and penalties applied.

    `position` counts the tokens of the completion from 0, and `offset` the characters of its text before this one.
    Without the grammar `preferred` was the likeliest token, and `piece` are its bytes; the grammar ruled out `removed`
    of all probability, from 0 to 1. Where it left but one text, `token` was `forced`.
    """

    position: int
    token: int
    preferred: int
    piece: bytes
    removed: float
    offset: int = 0
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Chunk:
    """More raw text, and the tokens that were added; `forced` of them, the last ones, were not sampled.

    Text may lag behind the tokens: a character that is not complete, or what may begin a stop string, waits. The last
    chunk, and no other, has `finish` and `usage`, and `stopped_by` if the engine tells which of `Sampling.stop` it was.
    `logprobs` has one entry for each token, if they were asked for. `trace` has one for each that was sampled under a
    grammar; and one for the first of those that were forced where a number or text ended, which comes with a later one.
    The last chunk also has the `log_odds` of `Sampling.choice` if a token was chosen: the natural logarithm of how much
    likelier its tokens were than all others that the grammar allowed, without the bias; and `later_log_odds`, those of
    `Sampling.later` where it came first.
    """

    text: str
    tokens: tuple[int, ...] = ()
    forced: int = 0
    finish: FinishReason | None = None
    usage: Usage | None = None
    logprobs: tuple[TokenLogprobs, ...] = ()
    stopped_by: str | None = None
    trace: tuple[TracePoint, ...] = ()
    log_odds: float | None = None
    later_log_odds: float | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do.

    `dialects`: the grammar dialects that it takes, the best first, none if it cannot constrain. `special_tokens`: a
    grammar may name tokens by id. `lazy`: a grammar may start at a trigger. `token_ids`: special tokens in untrusted
    prompt text stay plain text, since the prompt is sent as ids. `unenforced`: it takes requests whose format it cannot
    enforce; what comes of them is read leniently, and checked afterwards. `choice`: it tells the texts of its tokens,
    and takes `Sampling.choice` and `Sampling.later`. `turns`: where more run than it writes at once, clients write in
    turn.
    """

    dialects: tuple[str, ...] = ()
    special_tokens: bool = False
    lazy: bool = False
    token_ids: bool = False
    unenforced: bool = False
    choice: bool = False
    turns: bool = False


class BrokenOff(Exception):
    """Thrown into a generation (`athrow`) of which no more is wanted, though somebody still asks what it cost."""


@runtime_checkable
class ShowsImages(Protocol):
    """An engine that may show its model images."""

    @property
    def is_one_of_several(self) -> bool:
        """Whether the model may have to be loaded only to be asked about."""
        ...

    async def sees(self) -> bool:
        """Whether the model is shown images. Raises EngineError where a server fails."""
        ...


class Engine(Protocol):
    """Turns a prompt into raw text. Engines never see styles, messages or tools."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        ...

    def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """Chunks of the answer; closing the generator (`aclose`) stops the work within a token.

        `BrokenOff` that is thrown into it does so too; an engine that takes it gives one chunk more then, the last one,
        which tells what the work cost, and has no text.
        Raises EngineError where the engine fails or refuses its input.
        """
        ...

    async def aclose(self) -> None:
        """Stop what runs and free what is held."""
        ...


async def shows_images(engine: Engine) -> bool:
    """Whether an engine shows its model images. Raises EngineError where a server fails."""
    return isinstance(engine, ShowsImages) and await engine.sees()
