"""What a vLLM in one's own process is told; `make test-vllm` asks a real one."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from types import ModuleType
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


def test_guidance_is_told_lark() -> None:
    told = options(toolgram.plan({**ASKED, **CALLS}, CHATML, "long"), dialect="lark")
    assert f"<[{TOKENS.vocabulary['<tool_call>']}]>" in told["structured_outputs"].grammar


def test_where_the_turn_has_no_token_of_its_own_it_is_told_ebnf() -> None:
    plain = toolgram.ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ")
    told = options(toolgram.plan({**ASKED, "response_format": {"type": "json_object"}}, plain))
    assert told["structured_outputs"].grammar.startswith("root ::= ")


def test_a_request_that_constrains_nothing_has_stop_strings() -> None:
    plan = toolgram.plan(ASKED, CHATML)
    assert options(plan) == {
        "stop_token_ids": [END],
        "stop": [],
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
    }
    assert sampling_options(TOKENS, None, ("<|im_end|>", "\nUser:"))["stop"] == ["\nUser:"]
