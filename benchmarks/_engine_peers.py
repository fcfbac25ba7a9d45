"""Who runs the model: toolgram's engine, and llama.cpp's own server, in this process, with equal threads and slots."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import toolgram
from _engine_census import LONGEST, bound
from _tool_tasks import Task
from toolgram.engines.base import Sampling, Usage
from toolgram.engines.llama_cpp import LlamaCpp

SLOTS = 16
CONTEXT = 2048
TEXT_TOKENS = 64  # of an answer without a grammar


class Cost(NamedTuple):
    """Of one request: seconds to the first token that was sampled, and to the end; both by processor time too."""

    first: float
    total: float
    cpu_first: float
    cpu_total: float
    tokens: int
    passes: int
    text: str

    @property
    def called(self) -> bool:
        """Whether there is a tool call in it."""
        return "tool_call" in self.text

    @property
    def decode(self) -> float:
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
        return cls(time.perf_counter(), time.process_time())

    def sampled(self) -> None:
        """A token has come."""
        if not self.first:
            self.first = time.perf_counter() - self.began
            self.cpu_first = time.process_time() - self.cpu_began

    def stop(self, tokens: int, passes: int, text: str) -> Cost:
        total, cpu = time.perf_counter() - self.began, time.process_time() - self.cpu_began
        return Cost(self.first or total, total, self.cpu_first or cpu, cpu, tokens, passes, text)


Ask = Callable[[Task], Cost]
"""Sends one request, and waits for the answer; may be called from several threads at once."""


def ours(engine: LlamaCpp, template: toolgram.ChatTemplate) -> Mapping[str, Ask]:
    """Our engine: a tool call, and a text."""

    async def ask(plan: toolgram.Plan, sampling: Sampling, clock: Clock) -> Cost:
        text, usage = "", Usage()
        async for chunk in engine.generate(plan.prompt_parts, bound(engine, plan), sampling):
            text += chunk.text
            usage = chunk.usage or usage
            if len(chunk.tokens) > chunk.forced:
                clock.sampled()
        return clock.stop(usage.completion_tokens, usage.forward_passes, text)

    def call(task: Task) -> Cost:
        clock = Clock.start()
        return asyncio.run(ask(task.plan(template), Sampling(max_tokens=LONGEST), clock))

    def write(task: Task) -> Cost:
        clock = Clock.start()
        plan = toolgram.plan({"messages": [{"role": "user", "content": task.question}]}, template)
        bias = dict.fromkeys(engine._model.vocabulary.ends, -100.0)  # as long a text for each
        return asyncio.run(ask(plan, Sampling(max_tokens=TEXT_TOKENS, logit_bias=bias), clock))

    return {"call": call, "text": write}


def llama_cpp(model: Path, template: toolgram.ChatTemplate) -> Mapping[str, Ask]:
    """llama.cpp's server: a call by raw completion under our GBNF, by its chat layer, and a text."""
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    import xllamacpp  # it reads the environment

    params: Any = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_parallel, params.n_ctx, params.kv_unified = SLOTS, 4 * CONTEXT, True
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = 1, os.cpu_count() or 1
    params.ui, params.verbosity, params.port, params.use_jinja = False, -1, 0, True
    server: Any = xllamacpp.Server(params)

    def raw(body: dict[str, Any], clock: Clock) -> Cost:
        text, last = "", dict[str, Any]()

        def take(event: Any) -> bool:
            nonlocal text, last
            for part in event if isinstance(event, list) else [event]:
                text += part["choices"][0]["text"] if part.get("choices") else ""
                if text:
                    clock.sampled()
                last = part if "timings" in part else last
            return False

        server.handle_completions({"stream": True, "temperature": 0, "cache_prompt": True, **body}, take)
        tokens = last["timings"]["predicted_n"]
        return clock.stop(tokens, tokens, text)

    def call(task: Task) -> Cost:
        plan = task.plan(template)
        grammar = plan.constraint.grammar.to("gbnf") if plan.constraint else ""
        clock = Clock.start()  # the prompt and the grammar are given
        return raw({"prompt": plan.prompt, "grammar": grammar, "n_predict": LONGEST}, clock)

    def write(task: Task) -> Cost:
        plan = toolgram.plan({"messages": [{"role": "user", "content": task.question}]}, template)
        clock = Clock.start()
        return raw({"prompt": plan.prompt, "n_predict": TEXT_TOKENS, "ignore_eos": True}, clock)

    def chat(task: Task, choice: str) -> Cost:
        clock = Clock.start()
        text, last = "", dict[str, Any]()

        def take(event: Any) -> bool:
            nonlocal text, last
            for part in event if isinstance(event, list) else [event]:
                deltas = [choice["delta"] for choice in part["choices"]]
                if any(delta.get("content") or delta.get("tool_calls") for delta in deltas):
                    clock.sampled()
                text += str(part["choices"])
                last = part if "timings" in part else last
            return False

        options = {"stream": True, "temperature": 0, "max_tokens": LONGEST}
        server.handle_chat_completions({**task.request(tool_choice=choice), **options}, take)
        tokens = last["timings"]["predicted_n"]
        return clock.stop(tokens, tokens, text)

    return {
        "call": call,
        "text": write,
        "required": lambda task: chat(task, "required"),
        "auto": lambda task: chat(task, "auto"),
    }


def at_once(ask: Ask, tasks: list[Task], clients: int) -> tuple[list[Cost], float, float]:
    """All tasks, so many at once; with the seconds that it took, and the processor's."""
    with ThreadPoolExecutor(clients) as pool:
        began, cpu = time.perf_counter(), time.process_time()
        costs = list(pool.map(ask, tasks))
        return costs, time.perf_counter() - began, time.process_time() - cpu
