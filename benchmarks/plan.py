"""What a plan costs: prompt, grammar, and its text for each engine, beside what peers do with the same tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import _peers as peers
import toolgram
from _common import BOS, CHATML, CHATML_SOURCE, EOS, Tool, clear_caches, median, request, show, tools
from toolgram.plan import choose_style
from toolgram.prompting import build_prompt
from toolgram.request import parse_request
from toolgram.turns import TurnSpec, compile_turn, turn_spec

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
    chosen, _ = choose_style(CHATML, style, with_tools=True)
    prompt = build_prompt(checked, CHATML, chosen, NOW)
    return turn_spec(checked, chosen.wire, CHATML.capabilities.stop, parallel=True, opened=prompt.opened)


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
    chosen, _ = choose_style(CHATML, style, with_tools=True)
    spec = spec_of(tools, style)
    grammar = compile_turn(spec).grammar
    times = {
        "first of all": median(first, seconds, clear_caches),
        "new tools": median(again, seconds, know_the_template),
        "same tools": median(again, seconds),
        "prompt": median(lambda: build_prompt(checked, CHATML, chosen, NOW), seconds),
        "grammar": median(lambda: compile_turn(spec), seconds, clear_caches),
        **{dialect: median(partial(grammar.to, dialect), seconds, clear_caches) for dialect in DIALECTS},
    }
    return {name: time * 1000 for name, time in times.items()}


def peer_rows(tools: Sequence[Tool], seconds: float) -> list[Row]:
    """The same jobs by toolgram and by peers, toolgram's row first in each job."""
    spec = spec_of(tools, "long")
    text = {dialect: compile_turn(spec).grammar.to(dialect) for dialect in DIALECTS}
    schema = peers.calls_schema(tools)
    llama_text, lark = peers.llama_gbnf(schema), peers.llguidance_lark(tools)
    messages = request(tools)["messages"]
    template = toolgram.ChatTemplate(WITH_TOOLS, BOS, EOS)

    def ours(dialect: str) -> float:
        return median(lambda: compile_turn(spec).grammar.to(dialect), seconds, clear_caches)

    def time(run: Callable[[], object]) -> float:
        return median(run, seconds)

    render = time(lambda: template.render(messages, tools, now=NOW))
    peer_render = time(lambda: peers.transformers_render(WITH_TOOLS, messages, tools, bos_token=BOS, eos_token=EOS))
    turn, calls = "text and calls, Python", "one call, no text around it, C++"
    rows = [
        Row("render a prompt with tools", "toolgram", "ChatTemplate.render, compiled before", render),
        Row(
            "render a prompt with tools", "transformers", "apply_chat_template, compiled before, no tokens", peer_render
        ),
        Row("make GBNF", "toolgram", turn, ours("gbnf")),
        Row("make GBNF", "llama.cpp", f"json_schema_to_grammar: {calls}", time(lambda: peers.llama_gbnf(schema))),
        Row("read GBNF", "toolgram", "llama.cpp reads our GBNF", time(lambda: peers.llama_reads(text["gbnf"]))),
        Row("read GBNF", "llama.cpp", "llama.cpp reads its own", time(lambda: peers.llama_reads(llama_text))),
        Row("make EBNF", "toolgram", turn, ours("ebnf")),
        Row(
            "a grammar in XGrammar",
            "toolgram",
            "XGrammar reads our EBNF",
            time(lambda: peers.xgrammar_of_text(text["ebnf"])),
        ),
        Row(
            "a grammar in XGrammar",
            "XGrammar",
            "its structural tag for Qwen 3, C++",
            time(lambda: peers.xgrammar_of_tools(tools)),
        ),
        Row("make Lark", "toolgram", turn, ours("lark")),
        Row(
            "a parser in llguidance",
            "toolgram",
            "llguidance reads our Lark",
            time(lambda: peers.llguidance_parser(text["lark"])),
        ),
        Row(
            "a parser in llguidance",
            "llguidance",
            "Lark with %json for each tool, Rust",
            time(lambda: peers.llguidance_parser(lark)),
        ),
    ]
    return [row._replace(milliseconds=row.milliseconds * 1000) for row in rows]


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


if __name__ == "__main__":
    main()
