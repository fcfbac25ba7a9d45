"""What a body of any API comes down to: a request to be planned, and how its answer is to be generated."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from toolgram.api.results import answers_of_tools
from toolgram.chat.guarantees import refuse_parts
from toolgram.conversation.request import Request, placed
from toolgram.engines.base import Sampling
from toolgram.errors import GrammarError, GrammarRefused, InvalidRequest, TemplateError
from toolgram.planning.images import marked
from toolgram.planning.plan import Plan, plan_of
from toolgram.planning.profile import Profile
from toolgram.planning.prompt import Parts
from toolgram.template.adapt import parts_beside_text, shown_result
from toolgram.template.chat_template import ChatTemplate

_LONGEST = 1 << 16  # characters


@dataclass(frozen=True, slots=True)
class GivenTemplate:
    """A chat template that a body brings, at `pointer`; a token that is None is the model's own."""

    source: str
    pointer: str
    bos_token: str | None = None
    eos_token: str | None = None

    def instead_of(self, template: ChatTemplate) -> ChatTemplate:
        """The template in the place of a model's. Raises InvalidRequest where it does not compile, or is too long."""
        if len(self.source) > _LONGEST:
            reason = f"has {len(self.source)} characters: a chat template may have at most {_LONGEST}"
            raise InvalidRequest(self.pointer, reason)
        bos = template.bos_token if self.bos_token is None else self.bos_token
        eos = template.eos_token if self.eos_token is None else self.eos_token
        try:
            return ChatTemplate(self.source, bos, eos, control_tokens=template.control_tokens, model=template.model)
        except TemplateError as error:
            raise InvalidRequest(self.pointer, str(error)) from error


@dataclass(frozen=True, slots=True)
class Generation:
    """A body, read.

    `unsaid` are the fields of `sampling` that the body leaves to the model, and `limit` is the one that bounds the
    tokens. `model` None is the server's default; `chat_template` stands in for the model's; `ignored` are fields that
    are not known here.
    """

    request: Request
    sampling: Sampling
    unsaid: frozenset[str] = frozenset()
    limit: str = "max_tokens"
    model: str | None = None
    style: str | None = None
    chat_template: GivenTemplate | None = None
    n: int = 1
    stream: bool = False
    ignored: tuple[str, ...] = ()

    def plan(
        self,
        template: ChatTemplate,
        style: str | None = None,
        now: datetime | None = None,
        profile: Profile | None = None,
        fits: Callable[[Parts], object] | None = None,
        *,
        sees: bool = False,
    ) -> Plan:
        """The plan with a model's template and profile; `style` is the server's, which the body's own goes before.

        `fits` looks at the prompt before a grammar is made. A model that `sees` is shown images. Raises what
        it and `toolgram.plan` raise, with pointers into the body, and InvalidRequest for what else is not text; where a
        tool answered with that, a text is in its place.
        """
        if self.chat_template is not None:
            template, profile = self.chat_template.instead_of(template), None
        request, shown = marked(self.request, template) if sees else (self.request, {})
        request, left_out = _in_text(request)
        made = plan_of(request, template, self.style or style, now, profile, fits, shown)
        return replace(made, left_out=(*left_out, *made.left_out)) if left_out else made


def _in_text(request: Request) -> tuple[Request, tuple[str, ...]]:
    """The request with nothing but text in its results, and where else there was more. Raises InvalidRequest."""
    answers = answers_of_tools(request.messages)
    parts = parts_beside_text(request.messages)
    left_out = tuple(placed(request.places, part.pointer) for part in parts if part.message in answers)
    refuse_parts(request, left_out)
    if not left_out:
        return request, ()
    messages = tuple({**each, "content": shown_result(each.get("content"))} for each in request.messages)
    return replace(request, messages=messages), left_out


@contextmanager
def grammar_at_fault(pointer: str) -> Generator[None]:
    """What an engine finds wrong with a grammar is an InvalidRequest, with a pointer to what the grammar is of."""
    try:
        yield
    except (GrammarError, GrammarRefused) as error:
        raise InvalidRequest(pointer, str(error)) from error
