"""Who runs the model: toolgram's engine, and llama.cpp's own server object, with equal slots.

llama.cpp's chat layer drops the tools if the model's template has no place for them, as with SmolLM2; if it has one,
`required` lets a model write forever before it calls. So it is given a template that announces tools and ends just
before the name of a function: in such a format (that of functionary 3.2) it enforces a call.

Unless both are given a number of threads, its server decodes one sequence with one thread and several with all, and
ours uses the cores that are idle.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import toolgram
from _engine_census import LONGEST, bound
from _tool_tasks import Task
from toolgram.engines.base import Sampling, SamplingDefaults, Usage
from toolgram.engines.llama_cpp.engine import LlamaCpp

SLOTS = 16
CONTEXT = 1536  # tokens of prompt and answer; both sides may remember so many for each slot
_UNREADABLE = "does not match the expected"  # the chat layer on a text that it let the model write
TEXT_TOKENS = 64  # of an answer without a grammar
TEMPERATURE = SamplingDefaults().temperature

WITH_TOOLS = """
{%- if tools %}
    {{- '<|im_start|>system\\nYou are a helpful assistant who calls these functions where they help. Write >>>, the ' }}
    {{- 'name of a function, a new line and its arguments as JSON; or >>>all, a new line and an answer in words.\\n' }}
    {%- for tool in tools %}{{ '\\n' + (tool.function | tojson) }}{% endfor %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.role == 'assistant' %}
        {%- if message.content %}{{ '>>>all\\n' + message.content }}{% endif %}
        {%- for call in message.tool_calls or [] %}
            {{- '>>>' + call.function.name + '\\n' + (call.function.arguments | tojson) }}
        {%- endfor %}
    {%- else %}{{ message.content }}{% endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n>>>' }}{% endif %}
"""


class Cost(NamedTuple):
    """Of one request: seconds to the first token that was sampled, and to the end; both by processor time too."""

    first: float
    total: float
    cpu_first: float
    cpu_total: float
    tokens: int
    passes: int
    text: str
    called: bool

    @property
    def decode(self) -> float:
        """Seconds after the first token."""
        return self.total - self.first

    @property
    def cpu_decode(self) -> float:
        """Processor seconds after the first token."""
        return self.cpu_total - self.cpu_first


@dataclass
class Clock:
    """Takes the times of one request."""

    began: float
    cpu_began: float
    first: float = 0.0
    cpu_first: float = 0.0

    @classmethod
    def start(cls) -> Clock:
        """A request begins."""
        return cls(time.perf_counter(), time.process_time())

    def sampled(self) -> None:
        """A token has come."""
        if not self.first:
            self.first = time.perf_counter() - self.began
            self.cpu_first = time.process_time() - self.cpu_began

    def stop(self, tokens: int, passes: int, text: str, *, called: bool) -> Cost:
        """The whole cost."""
        total, cpu = time.perf_counter() - self.began, time.process_time() - self.cpu_began
        return Cost(self.first or total, total, self.cpu_first or cpu, cpu, tokens, passes, text, called)


Ask = Callable[[Task], Cost]
"""Sends one request, and waits for the answer; may be called from several threads at once."""

Asks = dict[str, Ask]
"""The kinds of requests: "call", "text", "sampled" (a text at the server's own temperature) and "required", and "auto"
for llama.cpp's chat layer."""


def ours(engine: LlamaCpp, template: toolgram.ChatTemplate) -> Asks:
    """Our engine: a tool call, one under the template that llama.cpp's chat layer has, and a text."""
    with_tools = toolgram.ChatTemplate(WITH_TOOLS, "", "<|im_end|>")

    async def ask(plan: toolgram.Plan, sampling: Sampling, clock: Clock) -> Cost:
        text, usage = "", Usage()
        async for chunk in engine.generate(plan.prompt_parts, bound(engine, plan), sampling):
            text += chunk.text
            usage = chunk.usage or usage
            if len(chunk.tokens) > chunk.forced:
                clock.sampled()
        called = bool(plan.parse(text).tool_calls)
        return clock.stop(usage.completion_tokens, usage.forward_passes, text, called=called)

    def call(task: Task, template: toolgram.ChatTemplate) -> Cost:
        clock = Clock.start()
        return asyncio.run(ask(task.plan(template), Sampling(max_tokens=LONGEST), clock))

    def write(task: Task, **how: Any) -> Cost:
        clock = Clock.start()
        plan = toolgram.plan({"messages": [{"role": "user", "content": task.question}]}, template)
        bias = dict.fromkeys(engine._model.vocabulary.ends, -100.0)  # as long a text for each
        return asyncio.run(ask(plan, Sampling(max_tokens=TEXT_TOKENS, logit_bias=bias, **how), clock))

    return {
        "call": lambda task: call(task, template),
        "required": lambda task: call(task, with_tools),
        "text": write,
        "sampled": lambda task: write(task, temperature=TEMPERATURE, seed=1),
    }


@dataclass
class _Heard:
    """What llama.cpp's server says, as it comes."""

    clock: Clock
    text: str = ""
    tokens: int = 0
    called: bool = False
    error: str = ""

    def take(self, event: Any) -> bool:
        """An event, or several; whether to stop."""
        for part in event if isinstance(event, list) else [event]:
            if "error" in part:  # what is raised here would be lost
                self.error = part["error"]["message"]
            for choice in part.get("choices", ()):
                delta = choice.get("delta", {})
                said = choice.get("text") or delta.get("content") or delta.get("tool_calls")
                if said:
                    self.clock.sampled()
                    self.text += str(said)
                self.called |= bool(delta.get("tool_calls"))
            self.tokens = part.get("timings", {}).get("predicted_n", self.tokens)
        return False

    def cost(self) -> Cost:
        """The whole cost. Raises RuntimeError for an error, unless it is that the answer cannot be read."""
        if self.error and _UNREADABLE not in self.error:
            raise RuntimeError(self.error)
        if self.error:
            self.tokens = 0  # and nobody says how many there were
        return self.clock.stop(self.tokens, self.tokens, self.text, called=self.called)


def llama_cpp(model: Path, threads: int | None, slots: int, context: int) -> Asks:
    """llama.cpp's server: a call by raw completion under our GBNF, by its chat layer, and a text."""
    template = toolgram.ChatTemplate.from_gguf(model)
    server = _server(model, threads, slots, context)

    def raw(body: dict[str, Any], clock: Clock) -> _Heard:
        heard = _Heard(clock)
        server.handle_completions({"stream": True, "temperature": 0, "cache_prompt": True, **body}, heard.take)
        return heard

    def call(task: Task) -> Cost:
        plan = task.plan(template)
        grammar = plan.constraint.grammar.to("gbnf") if plan.constraint else ""
        clock = Clock.start()  # the prompt and the grammar are given
        heard = raw({"prompt": plan.prompt, "grammar": grammar, "n_predict": LONGEST}, clock)
        heard.called = bool(plan.parse(heard.text).tool_calls)
        return heard.cost()

    def write(task: Task, **how: Any) -> Cost:
        plan = toolgram.plan({"messages": [{"role": "user", "content": task.question}]}, template)
        clock = Clock.start()
        return raw({"prompt": plan.prompt, "n_predict": TEXT_TOKENS, "ignore_eos": True, **how}, clock).cost()

    def chat(task: Task, choice: str) -> Cost:
        heard = _Heard(Clock.start())
        options = {"stream": True, "temperature": 0, "max_tokens": LONGEST}
        server.handle_chat_completions({**task.request(tool_choice=choice), **options}, heard.take)
        return heard.cost()

    return {
        "call": call,
        "text": write,
        "sampled": lambda task: write(task, temperature=TEMPERATURE, seed=1, top_k=0, top_p=1.0, min_p=0.0),
        "required": lambda task: chat(task, "required"),
        "auto": lambda task: chat(task, "auto"),
    }


def _server(model: Path, threads: int | None, slots: int, context: int) -> Any:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    import xllamacpp  # it reads the environment

    params: Any = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_parallel, params.n_ctx, params.kv_unified = slots, slots * context, False
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = threads or 1, threads or os.cpu_count() or 1
    params.ui, params.verbosity, params.port = False, -1, 0
    params.use_jinja, params.chat_template = True, WITH_TOOLS
    return xllamacpp.Server(params)
