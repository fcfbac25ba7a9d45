"""What a vLLM in one's own process is told; `make test-vllm` asks a real one."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import toolgram
from engines.contract import CALLS
from engines.small_tokenizer import small_tokenizer
from situations import CHATML
from toolgram.engines.external.tokens import Tokens
from toolgram.engines.external.vllm import sampling_options

TOKENS = Tokens(small_tokenizer())
END = TOKENS.vocabulary["<|im_end|>"]
ASKED = {"messages": [{"role": "user", "content": "Rain?"}]}


@dataclass
class StructuredOutputsParams:
    """As vLLM's, of which one field may be given."""

    grammar: str | None = None
    structural_tag: str | None = None


@pytest.fixture(autouse=True)
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("vllm.sampling_params")
    module.StructuredOutputsParams = StructuredOutputsParams
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", module)


def options(plan: toolgram.Plan, **more: Any) -> dict[str, Any]:
    return sampling_options(TOKENS, plan.constraint, plan.stop, **more)


def test_calls_that_are_tokens_are_a_structural_tag_that_ends_as_the_turn_does() -> None:
    told = options(toolgram.plan({**ASKED, **CALLS}, CHATML, "long"))
    assert told["stop_token_ids"] == [END]
    grammar = json.loads(told["structured_outputs"].structural_tag)["format"]["grammar"]
    assert all(f"Token({TOKENS.vocabulary[text]})" in grammar for text in ("<tool_call>", "</tool_call>", "<|im_end|>"))


def test_all_tokens_that_end_a_text_may_end_the_grammar() -> None:
    other = TOKENS.vocabulary["<|im_start|>"]
    plan = toolgram.plan({**ASKED, **CALLS}, CHATML, "long")
    told = sampling_options(Tokens(small_tokenizer(), ends=[other]), plan.constraint, plan.stop, dialect="lark")
    assert told["stop_token_ids"] == [other, END]
    assert all(f"<[{token}]>" in told["structured_outputs"].grammar for token in (other, END))


def test_guidance_is_told_lark() -> None:
    told = options(toolgram.plan({**ASKED, **CALLS}, CHATML, "long"), dialect="lark")
    assert f"<[{TOKENS.vocabulary['<tool_call>']}]>" in told["structured_outputs"].grammar


def test_a_grammar_of_ones_own_is_told_as_it_is() -> None:
    own = SimpleNamespace(grammar=toolgram.schema_grammar({"type": "boolean"}))
    assert sampling_options(TOKENS, own)["structured_outputs"].grammar.startswith("root ::= ")


def test_a_request_that_constrains_nothing_has_stop_strings() -> None:
    plan = toolgram.plan(ASKED, CHATML)
    assert options(plan) == {
        "stop_token_ids": [END],
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
    }
    assert sampling_options(TOKENS, None, ("<|im_end|>", "\nUser:"))["stop"] == ["\nUser:"]
