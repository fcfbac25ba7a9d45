"""Chat templates, rendered as transformers renders them, but for the calls that some take in a form of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, cast

import jinja2

from toolgram.errors import OutOfTime, TemplateError, TooMuchWork
from toolgram.template.apart import asked
from toolgram.template.capabilities import Capabilities, capabilities
from toolgram.template.macros import Remembered, pure_macros
from toolgram.template.observations import Observing, observing
from toolgram.template.rounds import rounds_as_macros
from toolgram.template.sandbox import MeteredContext, Raised, environment
from toolgram.work import give_way

_REASONING_KEYS = ("reasoning_content", "thinking", "reasoning")


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A model's chat template: a Jinja text that writes a conversation as a prompt.

    `response_template` is JSON text with which the tokenizer's configuration describes the model's answers, if it does
    (transformers 5.13 and later). `control_tokens` are the control tokens of the vocabulary that do not look like any.
    `tool_use` is the text for conversations with tools where the model has one of its own for them. `model` is what the
    source calls the model, if it does: some models share a template, and write calls in ways of their own.
    Immutable, hashable, safe to share between threads. Raises `TemplateError` if the source does not compile.
    """

    source: str
    bos_token: str = ""
    eos_token: str = ""
    response_template: str = ""
    control_tokens: tuple[str, ...] = ()
    tool_use: str = ""
    model: str = field(default="", compare=False)  # what it renders is the same

    def __post_init__(self) -> None:
        if asked({"template": [self.source]}) is None:
            compiled(self.source)

    @property
    def with_tools(self) -> ChatTemplate:
        """The template for conversations with tools, as transformers chooses it: the one named `tool_use`, if any."""
        return replace(self, source=self.tool_use, tool_use="") if self.tool_use else self

    @classmethod
    def from_file(cls, path: str | Path, bos_token: str = "", eos_token: str = "") -> ChatTemplate:
        """Reads a `.jinja` file, or a `.json` one as Hugging Face has them or a `.gguf`, with its tokens where none are
        given."""
        from toolgram.template import sources  # only those who read files pay for the import

        path = Path(path)
        if path.suffix not in (".json", ".gguf"):
            return cls(sources.read_text(path), bos_token, eos_token)
        found = sources.from_json(path) if path.suffix == ".json" else sources.from_gguf(path)
        return cls(*found._replace(bos_token=bos_token or found.bos_token, eos_token=eos_token or found.eos_token))

    @classmethod
    def from_gguf(cls, path: str | Path, name: str | None = None, source: str | None = None) -> ChatTemplate:
        """Reads the templates and the special tokens in a GGUF file's metadata; `name`: a named template alone.

        A `source` takes the place of the templates, which may be missing then.
        """
        from toolgram.template import sources  # only those who read files pay for the import

        return cls(*sources.from_gguf(Path(path), name, source))

    @classmethod
    def from_hf(cls, folder: str | Path, name: str | None = None) -> ChatTemplate:
        """Reads a folder in Hugging Face's layout; `name`: a named template alone, such as `tool_use`."""
        from toolgram.template import sources  # only those who read files pay for the import

        return cls(*sources.from_hf(Path(folder), name))

    @property
    def capabilities(self) -> Capabilities:
        """What the template can express, found by rendering, once."""
        return capabilities(self)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        *,
        now: datetime | None = None,
        **kwargs: Any,
    ) -> str:
        """The prompt for a conversation in OpenAI's shape; `now` is for `strftime_now`, `kwargs` are variables.

        Raises `TemplateError` if the template refuses the conversation, fails, or exceeds the sandbox's limits.
        """
        give_way()
        given: dict[str, Any] = {"messages": messages, "tools": tools, **kwargs}
        given["add_generation_prompt"] = add_generation_prompt
        place = (self.source, self.bos_token, self.eos_token)
        text = asked({"template": place, "arguments": given, "now": now and now.isoformat()})
        return self._rendered(now, **given) if text is None else text

    def _rendered(
        self,
        now: datetime | None,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        **variables: Any,
    ) -> str:
        if tools or any("tool_calls" in message or message.get("role") == "tool" for message in messages):
            messages, tools = _observing(self).spelled(messages, tools)
        return _as_it_is(self, now, messages, tools, **variables)


def _as_it_is(
    template: ChatTemplate,
    now: datetime | None,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    **variables: Any,
) -> str:
    """The prompt for messages in the template's own form."""
    program, macros = compiled(template.source)
    given: dict[str, Any] = {
        "messages": [_with_reasoning(message) for message in messages],
        "tools": list(tools) if tools is not None else None,
        "documents": None,
        "bos_token": template.bos_token,
        "eos_token": template.eos_token,
        "strftime_now": (now or datetime.now()).strftime,
        **variables,
    }
    context = cast("MeteredContext", program.new_context(given))
    context.remembered = Remembered.of(template.source, macros, given)
    try:
        return program.environment.concat(program.root_render_func(context))
    except (OutOfTime, TooMuchWork):
        raise
    except Raised as error:
        said = f": {error.message}" if error.message else ""
        raise TemplateError(f"the template refuses the conversation{said}") from error
    except Exception as error:  # untrusted code may raise anything
        line = _line(program, error.__traceback__)
        raise TemplateError(f"chat template{line}: {_reason(error)}") from error


@lru_cache(maxsize=256)
def _observing(template: ChatTemplate) -> Observing:
    """The form of calls, results and tools that the template takes."""
    return observing(lambda messages, tools: _as_it_is(template, None, messages, tools))


class Program(NamedTuple):
    """A compiled template, and its macros whose texts may be remembered."""

    template: jinja2.Template
    macros: Mapping[str, frozenset[str]]


@lru_cache(maxsize=256)
def compiled(source: str) -> Program:
    """The compiled template; raises `TemplateError` if it does not compile."""
    try:
        tree = environment().parse(source)
        macros = pure_macros(tree)
        macros |= rounds_as_macros(tree, macros)
        return Program(environment().from_string(tree), macros)
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"chat template, line {error.lineno}: {error.message}") from error
    except Exception as error:  # constants are computed here, and may fail in any way
        raise TemplateError(f"chat template does not compile: {_reason(error)}") from error


def _with_reasoning(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Gives reasoning all the names that templates use for it, as transformers does."""
    for key in _REASONING_KEYS:
        if (reasoning := message.get(key)) is not None:
            return {"thinking": reasoning, **message, "reasoning_content": reasoning}
    return message


def _line(template: jinja2.Template, traceback: TracebackType | None) -> str:
    """Where in the source an error came from: the innermost frame of the template's own code."""
    line = ""
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == template.filename or (
            traceback.tb_frame.f_globals.get("__jinja_template__") is template
        ):
            line = f", line {template.get_corresponding_lineno(traceback.tb_lineno)}"
        traceback = traceback.tb_next
    return line


def _reason(error: Exception) -> str:
    text = str(error)
    return text if isinstance(error, jinja2.TemplateError) and text else f"{type(error).__name__}: {text}".rstrip(": ")
