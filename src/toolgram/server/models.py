"""The models that a server serves, by name."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Protocol, runtime_checkable

from toolgram.api.errors import ApiError
from toolgram.api.ollama.models import tagged, untagged
from toolgram.chat import bound
from toolgram.engines.base import Engine, Prompt, SamplingDefaults, ShowsImages, SupportsGrammar
from toolgram.errors import EngineError, PromptTooLong
from toolgram.grammar.constraint import Constraint
from toolgram.planning.profile import Profile
from toolgram.template.chat_template import ChatTemplate


@runtime_checkable
class CountsTokens(Protocol):
    """An engine that counts the tokens of a prompt and knows the size of its context."""

    @property
    def context(self) -> int:
        """How many tokens prompt and answer may have together."""
        ...

    def count_tokens(self, prompt: Prompt) -> int:
        """The number of tokens in a prompt."""
        ...


@runtime_checkable
class AsksForCounts(Protocol):
    """An engine on another server, which it asks how many tokens a prompt has."""

    async def count_tokens(self, prompt: Prompt) -> int:
        """The number of tokens in a prompt. Raises EngineError where the server fails."""
        ...


@runtime_checkable
class Tokenizes(Protocol):
    """An engine that gives token ids."""

    def tokenize(self, prompt: Prompt) -> list[int]:
        """The ids of a prompt."""
        ...

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of tokens. Raises EngineError for an id that does not exist."""
        ...


@runtime_checkable
class Reached(Protocol):
    """An engine that is on another server."""

    async def check(self) -> None:
        """Raises EngineError unless the server is well."""
        ...


@runtime_checkable
class BoundsPrompts(Protocol):
    """An engine that tells how long a prompt may be."""

    @property
    def most_characters(self) -> int:
        """How many characters a prompt may have at most."""
        ...


@runtime_checkable
class NamesArchitecture(Protocol):
    """An engine that knows of which architecture its model is."""

    @property
    def architecture(self) -> str:
        """As llama.cpp names it: `llama`, `qwen3`, …"""
        ...


@runtime_checkable
class Compiles(Protocol):
    """An engine that makes grammars ready before it writes."""

    def compile(self, constraint: SupportsGrammar) -> None:
        """Raises GrammarError or GrammarRefused for a grammar that cannot be used."""
        ...


@dataclass(frozen=True, slots=True)
class Served:
    """A model: its name, its chat template, and the engine that runs it.

    `defaults` and `profile` are what holds where a request does not say; `told_context` is the context of a server that
    runs the model, as it told at the start.
    """

    name: str
    template: ChatTemplate
    engine: Engine
    aliases: tuple[str, ...] = ()
    created: int = field(default_factory=lambda: int(time.time()))
    defaults: SamplingDefaults = field(default_factory=SamplingDefaults)
    profile: Profile | None = None
    told_context: int | None = None
    _counts: CountsTokens | None = field(init=False, repr=False, compare=False)
    _bounds: BoundsPrompts | None = field(init=False, repr=False, compare=False)
    _compiles: Compiles | None = field(init=False, repr=False, compare=False)
    _shows: ShowsImages | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # What an engine can do besides is asked here alone: for each request it takes longer than reading its body.
        engine = self.engine
        object.__setattr__(self, "_counts", engine if isinstance(engine, CountsTokens) else None)
        object.__setattr__(self, "_bounds", engine if isinstance(engine, BoundsPrompts) else None)
        object.__setattr__(self, "_compiles", engine if isinstance(engine, Compiles) else None)
        object.__setattr__(self, "_shows", engine if isinstance(engine, ShowsImages) else None)

    @property
    def context(self) -> int | None:
        """How many tokens prompt and answer may have together, if the engine knows."""
        return None if self._counts is None else self._counts.context

    @property
    def context_length(self) -> int | None:
        """The same, for clients, or what a server told that may have another one by now."""
        return self.told_context if self.context is None else self.context

    @property
    def architecture(self) -> str | None:
        """Of which architecture the model is, if the engine knows."""
        return self.engine.architecture if isinstance(self.engine, NamesArchitecture) else None

    async def well(self) -> bool:
        """Whether the engine can be reached."""
        try:
            if isinstance(self.engine, Reached):
                await self.engine.check()
        except EngineError:
            return False
        return True

    def check_length(self, texts: Iterable[str]) -> None:
        """Raises PromptTooLong for texts that no prompt has room for, before anything is made of them."""
        if self._bounds is not None and self.context is not None:
            count = sum(map(len, texts))
            if count > self._bounds.most_characters:
                said = f"it has {count} characters, and the context holds {self.context} tokens"
                raise PromptTooLong(None, self.context, said)

    def count(self, prompt: Prompt) -> int | None:
        """The number of tokens in a prompt, if the engine counts them. Raises PromptTooLong if no room is left."""
        if self._counts is None:
            return None
        count, most = self._counts.count_tokens(prompt), self._counts.context
        if count >= most:
            raise PromptTooLong(count, most)
        return count

    async def ask_count(self, prompt: Prompt) -> int | None:
        """The number of tokens in a prompt by another server, if the engine asks one. Raises EngineError."""
        engine = self.engine
        if isinstance(engine, AsksForCounts) and iscoroutinefunction(engine.count_tokens):
            return await engine.count_tokens(prompt)
        return None

    @property
    def may_see(self) -> bool:
        """Whether it is worth asking if the model `sees`."""
        return self._shows is not None

    async def sees(self) -> bool:
        """Whether the model is shown images. Raises EngineError where a server fails."""
        return self._shows is not None and await self._shows.sees()

    async def is_known_to_see(self) -> bool:
        """The same, if the model need not be loaded for that, and its server can be reached."""
        try:
            return self._shows is not None and not self._shows.is_one_of_several and await self._shows.sees()
        except EngineError:
            return False

    def compile(self, constraint: Constraint) -> None:
        """Make a grammar ready, where the engine does so. Raises GrammarError or GrammarRefused as it does."""
        if self._compiles is not None and (taken := bound(constraint, self.engine)) is not None:
            self._compiles.compile(taken)


@dataclass(frozen=True, slots=True)
class Models:
    """All models; the first is the default, and with `any_name` it answers to names that there are not."""

    all: tuple[Served, ...]
    any_name: bool = False

    def find(self, name: str | None) -> Served:
        """The model with a name or alias; without one, as clients also say by "", the default.

        One that is told to clients of Ollama's API with `:latest` is theirs to name so, whichever API they go on with.
        Raises ApiError 404 if there is none.
        """
        if not name:
            return self.all[0]
        names = self._names()
        if (served := names.get(name) or names.get(untagged(name)) or names.get(tagged(name))) is None:
            if self.any_name:
                return self.all[0]
            known = ", ".join(repr(model.name) for model in self.all)
            raise ApiError(404, "model_not_found", f"there is no model {name!r}; there are: {known}", "/model")
        return served

    def _names(self) -> Mapping[str, Served]:
        return {name: model for model in self.all for name in (*model.aliases, model.name)}
