"""Caches bounded by what they hold: what users send may be of any size, so that a count of entries bounds nothing.

And what users send as a value to look up by, a `Document`.
"""

from __future__ import annotations

import gc
import json
import marshal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, partial, wraps
from hashlib import sha256
from sys import getsizeof
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_LARGEST = 8  # of what a cache may hold, this part at most is one entry
_GROWTH = 32  # bytes that a grammar takes in all its forms, for one of the text that it was made of
_OF_THE_PROGRAM = (type, ModuleType, FunctionType, CodeType)  # which is there anyway
_MADE = 10 * (1 << 20)  # bytes that usually come of a second's work
_LOOKED_AT = 4  # beyond this part of the largest entry it is not guessed at, but looked through, which takes its time
_PARSED = 8  # bytes that a value takes, for one of what it is packed in
_BY_CONTENT = 2  # the last format of marshal in which equal values are equal bytes, shared or not

MEGABYTE = 1 << 20


class _Kept(NamedTuple):
    """A result, with what it is the result of, and how many bytes it takes."""

    function: object
    arguments: tuple[Hashable, ...]
    result: Any
    weight: int


def made_of(*sources: str | Document) -> int:
    """How many bytes a grammar takes, roughly, that was made of these, with what it was made of."""
    sizes = (source.size if isinstance(source, Document) else getsizeof(source) for source in sources)
    return (1 + _GROWTH) * sum(sizes)


def compiled_from(grammar: str) -> int:
    """How many bytes llguidance keeps of a grammar, roughly: of the least some hundred kilobytes."""
    return MEGABYTE + made_of(grammar)


class Memory:
    """The results of functions, those of all of them that were used last, up to `most` bytes together.

    Safe to share between threads.
    """

    def __init__(self, most: int) -> None:
        self.held = 0
        self.largest = most // _LARGEST
        self._most = most
        self._kept = OrderedDict[int, _Kept]()  # by the hash of both, so that nothing is hashed or compared twice
        self._counted: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def get(self, key: int, function: object, arguments: tuple[Hashable, ...]) -> _Kept | None:
        """What was put here; `key` is the hash of the function and the arguments."""
        with self._lock:
            if (found := self._kept.get(key)) is None:
                return None
            self._kept.move_to_end(key)
        return found if found.function is function and found.arguments == arguments else None

    def put(self, key: int, kept: _Kept) -> None:
        """Keep a result, and forget what was not used for longest. One that would fill an eighth is not kept."""
        if kept.weight > self.largest:
            return
        with self._lock:
            if (before := self._kept.pop(key, None)) is not None:
                self.held -= before.weight
            self._kept[key] = kept
            self.held += kept.weight
            while self.held > self._most:
                _, forgotten = self._kept.popitem(last=False)
                self.held -= forgotten.weight

    def recall(self, place: object, arguments: tuple[Hashable, ...]) -> Any | None:
        """What was noted in a place under these arguments."""
        found = self.get(hash((place, arguments)), place, arguments)
        return None if found is None else found.result

    def note(self, place: object, arguments: tuple[Hashable, ...], result: object, weight: int) -> None:
        """Keep a result in a place under these arguments."""
        self.put(hash((place, arguments)), _Kept(place, arguments, result, weight))

    def forget(self) -> None:
        """Forget all, what is counted too."""
        with self._lock:
            self._kept.clear()
            self.held = 0
        for clear in self._counted:
            clear()

    def forgets(self, clear: Callable[[], object]) -> None:
        """Where all is forgotten, this is called."""
        self._counted.append(clear)

    def clear(self, function: object) -> None:
        """Forget what this function gave."""
        with self._lock:
            for key in [key for key, kept in self._kept.items() if kept.function is function]:
                self.held -= self._kept.pop(key).weight


def size_of(value: object, most: int) -> int:
    """How many bytes a value takes with all that it holds; beyond `most` it is not looked at further."""
    seen, size, held = set[int](), 0, [value]
    while held and size <= most:  # one level after the other, since there may be many values
        fresh = dict(zip(map(id, held), held, strict=True))
        for known in [key for key, one in fresh.items() if key in seen or isinstance(one, _OF_THE_PROGRAM)]:
            del fresh[known]
        seen.update(fresh)
        size += sum(map(getsizeof, fresh.values()))
        held = gc.get_referents(*fresh.values())
    return size


TOGETHER = Memory(64 * MEGABYTE)
"""What is made of requests: some thirty sets of tools of a large agent."""


def weighed(
    weigh: Callable[..., int], memory: Memory = TOGETHER
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Remember the results of a function. `weigh` estimates the bytes of one from its arguments, which are hashable:

    those too that it takes later, such as what is written of a grammar. What took longer to make than so many bytes do
    weighs as much as usually comes of that time, and is measured where that is much: of a few characters may be made
    whatever. What two ask for at once may be made twice.
    """

    def decorate(make: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @wraps(make)
        def remembered(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            arguments = (args, *kwargs.items())
            key = hash((make, arguments))
            if (found := memory.get(key, make, arguments)) is not None:
                return found.result
            began = time.thread_time()
            result = make(*args, **kwargs)
            weight, usual = weigh(*args, **kwargs), int((time.thread_time() - began) * _MADE)
            if usual > weight:
                is_guessed = usual * _LOOKED_AT < memory.largest
                weight = usual if is_guessed else max(weight, size_of(result, memory.largest))
            memory.put(key, _Kept(make, arguments, result, weight))
            return result

        vars(remembered)["cache_clear"] = partial(memory.clear, make)  # as lru_cache names it
        return remembered

    return decorate


def remembers(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Decorates a function that notes in `TOGETHER`, under its own name, what it may recall: it can be told to forget
    that, as one of `lru_cache` can."""
    vars(function)["cache_clear"] = partial(TOGETHER.clear, function)
    return function


def counted(most: int) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Remember the last `most` results of a function, each of them small: looked up faster than what is `weighed`.

    They are forgotten with all the rest: a few bytes in each of many pages of memory keep all of these.
    """

    def decorate(make: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        made = lru_cache(most)(make)
        TOGETHER.forgets(made.cache_clear)
        return cast("Callable[_Arguments, _Result]", made)

    return decorate


def of_the_program(most: int) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Remember the last `most` results of a function of what stands in the program itself, not in requests: as with a
    regular expression of a module they are made once a process, and never forgotten."""

    def decorate(make: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        made = cast("Callable[_Arguments, _Result]", lru_cache(most)(make))

        @wraps(make)
        def known(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            return made(*args, **kwargs)

        return known

    return decorate


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON value to look up by: equal to those of the same content, the order of keys and the types included.

    The value is a copy of its own, so that nobody changes it later; `size` is how many bytes it is packed in.
    """

    digest: bytes = field(repr=False)
    value: Any = field(compare=False)
    size: int = field(compare=False, repr=False)

    @staticmethod
    def of(value: Any) -> Document:
        """The document of a JSON value."""
        return _document(packed_once(value))


_seen: ContextVar[dict[tuple[object, int], tuple[Any, bytes]] | None] = ContextVar("_seen", default=None)


@contextmanager
def unchanged() -> Generator[None]:
    """Nobody changes a request while this lasts: `packed_once` and `digest` look at each of its values once."""
    token = _seen.set({} if (seen := _seen.get()) is None else seen)
    try:
        yield
    finally:
        _seen.reset(token)


def _once(make: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    @wraps(make)
    def made(value: Any) -> bytes:
        if (seen := _seen.get()) is None:
            return make(value)
        key = make, id(value)
        if (known := seen.get(key)) is None:
            seen[key] = known = value, make(value)
        return known[1]

    return made


def packed(value: Any) -> bytes:
    """A JSON value as bytes to look up by, in a quarter of the time that its text takes; `unpacked` gives a copy.

    Raises RecursionError for one that is nested too deeply.
    """
    try:
        return marshal.dumps(value, _BY_CONTENT)
    except ValueError:  # it holds values of types that derive from those of JSON, or is nested too deeply
        plain = json.loads(json.dumps(value))
    try:
        return marshal.dumps(plain, _BY_CONTENT)
    except ValueError as error:  # from Python 3.14 on, JSON may be nested more deeply than what is packed
        raise RecursionError(str(error)) from error


@_once
def packed_once(value: Any) -> bytes:
    """As `packed`; of what is `unchanged`, the bytes that were made before."""
    return packed(value)


@_once
def digest(value: Any) -> bytes:
    """A JSON value as a few bytes to look up by; of what is `unchanged`, those that were made before.

    None at all where it holds values of other types, which may be written otherwise though they are equal, or is nested
    too deeply.
    """
    try:
        return sha256(marshal.dumps(value, _BY_CONTENT)).digest()
    except ValueError:
        return b""


def unpacked(content: bytes) -> Any:
    """The value that `packed` was given: never for bytes from elsewhere."""
    return marshal.loads(content)  # noqa: S302 (bytes that `packed` made, in this process)


def parsed(document: Document) -> int:
    """How many bytes what is made of a document takes, where that is a value as large."""
    return _PARSED * document.size


def _parsed(content: bytes) -> int:
    return _PARSED * getsizeof(content)


@weighed(_parsed)
def _document(content: bytes) -> Document:
    return Document(sha256(content).digest(), unpacked(content), getsizeof(content))
