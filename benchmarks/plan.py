"""What a plan costs: prompt, grammar, and its text for each engine, compared with peers on the same tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import _peers as peers
import toolgram
from _common import BOS, CHATML, CHATML_SOURCE, EOS, Tool, clear_caches, median, request, show, tools
from toolgram.conversation.request import parse_request
from toolgram.planning.prompt import build_prompt
from toolgram.planning.turn import compile_turn
from toolgram.planning.turn_spec import TurnSpec, turn_spec
from toolgram.styles.choose import choose_style

STYLES = ("long", "functionary_v2", "thoughtful_steps")
DIALECTS = ("gbnf", "lark", "ebnf")
NOW = datetime(2026, 1, 1)
WITH_TOOLS = (
    "<|im_start|>system\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n"
)


class Row(NamedTuple):
    """A job done by toolgram and by a peer: what each does, and milliseconds."""

    job: str
    who: str
    covers: str
    milliseconds: float


def spec_of(tools: Sequence[Tool], style: str) -> TurnSpec:
    """What decides the grammar of a request with these tools."""
    checked = parse_request(request(tools))
    chosen, _ = choose_style(CHATML, style)
    prompt = build_prompt(checked, CHATML, chosen, NOW)
    return turn_spec(checked, chosen.wire, CHATML.capabilities.stop, parallel=True, opened=prompt.opened, tail="")


def plan_costs(tools: Sequence[Tool], style: str, seconds: float) -> dict[str, float]:
    """Milliseconds of a plan and of its parts."""
    body, one_tool = request(tools), request(tools[:1])

    def first() -> toolgram.Plan:
        return toolgram.plan(body, toolgram.ChatTemplate(CHATML_SOURCE, BOS, EOS), style, NOW)

    def again() -> toolgram.Plan:
        return toolgram.plan(body, CHATML, style, NOW)

    def know_the_template() -> None:
        clear_caches()
        toolgram.plan(one_tool, CHATML, style, NOW)

    checked = parse_request(body)
    chosen, _ = choose_style(CHATML, style)
    spec = spec_of(tools, style)
    grammar = compile_turn(spec).grammar
    times = {
        "first of all": median(first, seconds, clear_caches),
        "new tools": median(again, seconds, know_the_template),
        "same tools": median(again, seconds),
        "prompt": median(lambda: build_prompt(checked, CHATML, chosen, NOW), seconds),
        "grammar": median(lambda: compile_turn(spec), seconds, clear_caches),
        **{dialect: median(lambda to=dialect: replace(grammar).to(to), seconds, clear_caches) for dialect in DIALECTS},
    }
    return {name: time * 1000 for name, time in times.items()}


def peer_rows(tools: Sequence[Tool], seconds: float) -> list[Row]:
    """The same jobs by toolgram and by peers, toolgram's row first in each job."""
    schema, lark = peers.calls_schema(tools), peers.llguidance_lark(tools)
    own_gbnf = peers.llama_gbnf(schema)

    def time(run: Callable[[], object]) -> float:
        return median(run, seconds) * 1000

    llama = time(lambda: peers.llama_gbnf(schema)), time(lambda: peers.llama_reads(own_gbnf))
    xgrammar = time(lambda: peers.xgrammar_of_tools(tools))
    llguidance = time(lambda: peers.llguidance_parser(lark))
    return [
        *_rendering(tools, seconds),
        *_grammar_for("llama.cpp", "gbnf", peers.llama_reads, tools, seconds),
        Row(
            "tools into llama.cpp",
            "llama.cpp",
            "its GBNF for one call without text, and reads it",
            sum(llama),
        ),
        *_grammar_for("XGrammar", "ebnf", peers.xgrammar_of_text, tools, seconds),
        Row("tools into XGrammar", "XGrammar", "its structural tag for Qwen 3: text and calls", xgrammar),
        *_grammar_for("llguidance", "lark", peers.llguidance_parser, tools, seconds),
        Row("tools into llguidance", "llguidance", "Lark with %json for each tool: text and calls", llguidance),
    ]


def _rendering(tools: Sequence[Tool], seconds: float) -> list[Row]:
    messages = request(tools)["messages"]
    template = toolgram.ChatTemplate(WITH_TOOLS, BOS, EOS)
    ours = median(lambda: template.render(messages, tools, now=NOW), seconds)
    tokens = {"bos_token": BOS, "eos_token": EOS}
    theirs = median(lambda: peers.transformers_render(WITH_TOOLS, messages, tools, **tokens), seconds)
    job = "tools into a prompt"
    return [
        Row(job, "toolgram", "ChatTemplate.render alone, the template compiled before", ours * 1000),
        Row(job, "transformers", "apply_chat_template without tokenizing, compiled before", theirs * 1000),
    ]


def _grammar_for(
    engine: str, dialect: str, read: Callable[[str], object], tools: Sequence[Tool], seconds: float
) -> list[Row]:
    """What it takes to make the grammar of a turn in the dialect of an engine, and to have it read there."""
    spec = spec_of(tools, "long")
    text = compile_turn(spec).grammar.to(dialect)
    making = median(lambda: compile_turn(spec).grammar.to(dialect), seconds, clear_caches) * 1000
    reading = median(lambda: read(text), seconds) * 1000
    job = f"tools into {engine}"
    whole = f"our {dialect} for text and calls, no cache, and {engine} reads it"
    return [
        Row(job, "toolgram", whole, making + reading),
        Row(job, "toolgram", f"of that, {engine} reading it: all there is when the grammar is cached", reading),
    ]


def main() -> None:
    """Print both tables."""
    many = tools(30)
    costs = {style: plan_costs(many, style, 1.0) for style in STYLES}
    head = ["style", *costs[STYLES[0]]]
    show("Plan for 30 tools of 5 parameters, ChatML: median ms", head, [[s, *c.values()] for s, c in costs.items()])
    print("\nfirst of all: every cache empty; new tools: the template is known; same tools: the grammar is cached.")
    print("prompt, grammar, and the writing of each dialect are parts, the last four with empty caches.")
    rows = peer_rows(many, 1.0)
    first = {row.job: row.milliseconds for row in reversed(rows)}
    shown = [[*row, row.milliseconds / first[row.job]] for row in rows]
    show("The same tools, style long: median ms", ["job", "who", "what is timed", "ms", "× toolgram"], shown)
    print("\nPeers' grammars are made by C++ (llguidance: Rust); ours by Python, once for a set of tools.")


if __name__ == "__main__":
    main()
