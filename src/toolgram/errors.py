"""What can go wrong, as values that say where and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

_MOST_PROBLEMS = 10


class ToolgramError(Exception):
    """The base of every error that toolgram raises on purpose.

    It can be pickled, and so comes back from another process whole: it is made again from its message and what it has,
    since what it was made from is not kept.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[ToolgramError], told: tuple[object, ...]) -> ToolgramError:
    return kind.__new__(kind, *told)


class MissingPackage(ToolgramError, ImportError):
    """A package of an extra that is not installed; says which command installs it."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs {package}: pip install 'toolgram[{extra}]'")


class needing:  # noqa: N801 - it stands where a function would
    """Imports of packages that come with an extra. Raises MissingPackage in the place of ModuleNotFoundError.

    What is imported inside is there afterwards, as type checkers can tell: no exception ends here.
    """

    def __init__(self, extra: str, what: str) -> None:
        self._extra = extra
        self._what = what

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, ModuleNotFoundError):
            name = (error.name or "").partition(".")[0]
            if name not in ("", "toolgram"):  # a package that can be installed
                raise MissingPackage(self._what, name, self._extra) from error


def unreadable(error: OSError | UnicodeDecodeError) -> str:
    """What keeps a file of text from being read: what is not UTF-8 most often comes from a shell of Windows."""
    if isinstance(error, UnicodeDecodeError):
        return f"cannot be read: byte {error.start} is not UTF-8, in which it must be saved"
    return f"cannot be read: {error.strerror or error}"


def nearest(name: str, known: Iterable[str]) -> str:
    """What there is in the place of a name that there is not: what is alike, and all."""
    names = list(known)
    alike = get_close_matches(name, names, n=3, cutoff=0.5)
    if not alike:
        return f"there are: {', '.join(names)}"
    return f"did you mean {' or '.join(map(repr, alike))}? There are: {', '.join(names)}"


class _AtPointer(ToolgramError):
    """An error at a place in a JSON document.

    `pointer` is a JSON pointer (RFC 6901) into the document at fault; "" is its root.
    """

    def __init__(self, pointer: str, reason: str) -> None:
        super().__init__(f"{pointer or '(root)'}: {reason}")
        self.pointer = pointer
        self.reason = reason


def json_pointer(*steps: str | int) -> str:
    """The JSON pointer of these steps, from the root of a document (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


class InvalidRequest(_AtPointer):
    """A request that is malformed, or asks for what cannot be done; `pointer` is into the request."""


class InvalidSchema(_AtPointer):
    """A document that is not a JSON Schema: a keyword's value has the wrong type, a `$ref` points nowhere."""

    def __init__(self, pointer: str, keyword: str, reason: str) -> None:
        super().__init__(pointer, f"{keyword}: {reason}" if keyword else reason)
        self.keyword = keyword


class UnsupportedSchema(_AtPointer):
    """A valid JSON Schema that a grammar cannot enforce exactly; names the keyword that it fails on.

    `reason` says why, or begins with "for" and says for what.
    """

    def __init__(self, pointer: str, keyword: str, reason: str) -> None:
        super().__init__(pointer, f"{keyword}: cannot be enforced{'' if reason.startswith('for ') else ':'} {reason}")
        self.keyword = keyword
        self.why = reason


class InvalidOutput(_AtPointer):
    """What a model wrote is not what it was asked for: an answer, or the arguments of a call.

    `problems` are pairs of a JSON pointer into what it wrote and a reason; `pointer` and `reason` are the first one's.
    The message has all of them, or a first few of many, and is fit to be given back to the model.
    """

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(*problems[0])
        self.problems = problems

    def __str__(self) -> str:
        told = "; ".join(f"{pointer or '(root)'}: {reason}" for pointer, reason in self.problems[:_MOST_PROBLEMS])
        more = len(self.problems) - _MOST_PROBLEMS
        return f"{told}; and {more} more" if more > 0 else told


class TemplateError(ToolgramError):
    """A chat template that does not compile, refuses a conversation, or runs too long."""


class GrammarError(ToolgramError):
    """A grammar that is not well formed, or that a dialect cannot write; `position` is an offset into its text."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason if position is None else f"at offset {position}: {reason}")
        self.reason = reason
        self.position = position


class ProfileError(ToolgramError):
    """A profile that cannot be read, or that is not of the model or the chat template that it is to be used with."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the profile {reason}")
        self.reason = reason


class ModelError(ToolgramError):
    """A model file that is missing, damaged, or of a kind that cannot be run."""


class EngineError(ToolgramError):
    """An engine that failed while it generated, or refused what it was given."""


class TooManyPixels(InvalidRequest):
    """Images that are together larger than memory should hold."""


class GrammarRefused(EngineError):
    """A grammar that an engine does not take."""


class PromptTooLong(EngineError):
    """A prompt that leaves no room for an answer.

    It has `tokens`, and the model's context holds `limit`; where a server does not tell these, `said` is its complaint.
    """

    def __init__(self, tokens: int | None, limit: int | None, said: str = "") -> None:
        # Clients know it by the words of OpenAI ("maximum context length") and of Anthropic ("prompt is too long: 9
        # tokens > 8 maximum", where Claude Code reads the numbers).
        if tokens is None or limit is None:
            told = f"prompt is too long: it goes beyond the model's maximum context length: {said}"
        else:
            most = min(limit, tokens - 1)  # one that fills the context leaves no room for an answer
            told = (
                f"prompt is too long: {tokens} tokens > {most} maximum: "
                f"this model's maximum context length is {limit} tokens: make it shorter"
            )
        super().__init__(told)
        self.tokens = tokens
        self.limit = limit


class OutOfTime(ToolgramError):
    """A request that took longer than it may, or that nobody wants any more."""


class TooMuchWork(ToolgramError):
    """A request that is too costly to be made ready."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A schema keyword that the grammar does not enforce exactly.

    `pointer` is a JSON pointer into the request (or the schema, from `schema_grammar`); `enforced` says what holds
    instead, in words. Of a keyword that is "not enforced" values are possible that it forbids; where the grammar is
    "stricter" than it, all values are valid, but not every valid one is possible.
    """

    pointer: str
    keyword: str
    enforced: str
    kind: Literal["not enforced", "stricter"] = "not enforced"

    def __str__(self) -> str:
        what = "is stricter than asked" if self.kind == "stricter" else "is not enforced"
        return f"{self.pointer or '(root)'}: {self.keyword} {what}: {self.enforced}"
