"""What a recording holds, and how it stands in a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

import toolgram
from toolgram.engines.base import Capabilities, Chunk, SamplingDefaults, TracePoint, Usage
from toolgram.errors import ToolgramError

Kind = Literal["refused", "error", "cut", "invalid", "fine"]
"""How a request ended: it was refused; something failed; the answer was cut off, or is not what was asked for."""

VERSION = 1


class BadRecording(ToolgramError):
    """A file that is no recording, or one of another version."""


@dataclass(frozen=True, slots=True)
class End:
    """How a request ended: the answer's status, an error's code and words, why the engine finished, and what was read.

    `answers` are the messages that were read, one for each choice, in OpenAI's shape.
    """

    kind: Kind
    status: int
    code: str = ""
    message: str = ""
    finish: str = ""
    answers: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """What the engine wrote when it was asked once: texts with their tokens, and what it says of its end.

    `trace` says where the grammar ruled out what the model was about to write. Without a `finish` it was broken off.
    """

    pieces: tuple[str, ...]
    tokens: tuple[tuple[int, ...], ...] = ()
    finish: Literal["stop", "length", "cancelled"] | None = None
    stopped_by: str | None = None
    usage: Usage | None = None
    trace: tuple[tuple[int, int, str, float], ...] = ()  # offset, token, the text that was preferred, what was removed

    @classmethod
    def of(cls, chunks: list[Chunk]) -> Written:
        """The chunks of one call."""
        last = chunks[-1] if chunks else Chunk("")
        points = (point for chunk in chunks for point in chunk.trace)
        return cls(
            tuple(chunk.text for chunk in chunks),
            tuple(chunk.tokens for chunk in chunks),
            last.finish,
            last.stopped_by,
            last.usage,
            tuple(
                (p.offset, p.token, p.piece.decode(errors="replace"), p.removed)
                for p in points
                if p.preferred != p.token
            ),
        )

    def chunks(self) -> list[Chunk]:
        """The chunks again; what the model preferred comes with the last one."""
        tokens = self.tokens if len(self.tokens) == len(self.pieces) else ((),) * len(self.pieces)
        made = [Chunk(text, ids) for text, ids in zip(self.pieces, tokens, strict=True)] or [Chunk("")]
        trace = tuple(
            TracePoint(at, token, -1, preferred.encode(), removed, at) for at, token, preferred, removed in self.trace
        )
        made[-1] = replace(made[-1], finish=self.finish, stopped_by=self.stopped_by, usage=self.usage, trace=trace)
        return made


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of the engine: the name of its class, and its words; `ready`: it came before anything was written.

    `tokens` and `limit` are those of a prompt that was too long.
    """

    error: str
    message: str
    ready: bool = False
    tokens: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """What of a model a request depends on: names, template, sampling by default, and what its engine can do.

    `called` is what the template's source calls the model, and it `sees` if it was shown images.
    """

    name: str
    aliases: tuple[str, ...]
    source: str
    bos_token: str
    eos_token: str
    response_template: str
    control_tokens: tuple[str, ...]
    defaults: SamplingDefaults
    capabilities: Capabilities
    tool_use: str = ""
    called: str = ""
    sees: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What of the server's settings changes answers."""

    style: str | None = None
    max_tokens: int | None = None
    request_templates: bool = False
    any_model_name: bool = False
    allow_unenforced: bool = False


@dataclass(frozen=True, slots=True)
class Recording:
    """A request: its path and body, the model and settings it met, what the engine wrote, and how it ended.

    `calls` has for each choice what the engine wrote, call by call: there is more than one where a bound was reached.
    `style` and `format` are how the turn is written, for people.
    """

    path: str
    body: Any
    model: Model | None
    settings: Settings
    end: End
    calls: tuple[tuple[Written, ...], ...] = ()
    failure: Failure | None = None
    seed: int | None = None
    style: str | None = None
    format: str = ""
    time: str = ""
    toolgram: str = toolgram.__version__
    version: int = VERSION

    def to_json(self) -> str:
        """The recording as it stands in a file."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_file(cls, file: Path) -> Recording:
        """Raises BadRecording."""
        try:
            made = _RECORDING.validate_python(json.loads(file.read_text(encoding="utf-8")))
        except OSError as error:
            raise BadRecording(f"{file}: cannot be read: {error.strerror}") from error
        except (ValueError, ValidationError) as error:
            raise BadRecording(f"{file}: is no recording: {str(error).splitlines()[0]}") from error
        if made.version != VERSION:
            raise BadRecording(f"{file}: is a recording of version {made.version}; this toolgram reads {VERSION}")
        return made


_RECORDING = TypeAdapter(Recording)
