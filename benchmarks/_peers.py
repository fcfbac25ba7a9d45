"""What other projects make of the same tools, called as their users call them."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from _common import Tool

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # or it advises to install a deep-learning framework

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
_oracles: Any = importlib.import_module("oracles")  # it loads XGrammar without torch
_llguidance: Any = importlib.import_module("llguidance")
_BYTES = _llguidance.LLTokenizer("byte")


def calls_schema(tools: Iterable[Tool]) -> dict[str, Any]:
    """One call of any of the tools, as a JSON Schema."""
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool["function"]["name"]}, "arguments": tool["function"]["parameters"]},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return {"oneOf": calls}


# transformers


def transformers_render(source: str, messages: Sequence[Any], tools: Sequence[Tool], **variables: Any) -> str:
    """The prompt as `apply_chat_template` renders it, before it makes tokens of it."""
    templates: Any = importlib.import_module("transformers.utils.chat_template_utils")
    rendered, _ = templates.render_jinja_template(
        [messages], tools=tools, chat_template=source, add_generation_prompt=True, **variables
    )
    return rendered[0]


def transformers_parser(response_template: Any) -> Any:
    """The streaming parser of transformers for a response template."""
    parsing: Any = importlib.import_module("transformers.utils.chat_parsing")
    return parsing.ResponseParser(response_template, prefix="<|im_start|>assistant\n")


# XGrammar


def xgrammar_of_tools(tools: Sequence[Tool]) -> Any:
    """XGrammar's grammar of its built-in structural tag for Qwen 3: text, and calls in <tool_call> tags."""
    xgrammar = _oracles.xgrammar()
    tag = xgrammar.get_model_structural_tag("qwen_3", tools=list(tools), reasoning="disabled")
    return xgrammar.Grammar.from_structural_tag(tag)


def xgrammar_of_text(ebnf: str) -> Any:
    """XGrammar's grammar of EBNF."""
    return _oracles.xgrammar().Grammar.from_ebnf(ebnf)


# llguidance


def llguidance_lark(tools: Iterable[Tool]) -> str:
    """Text and calls in <tool_call> tags, with the schemas as they are: llguidance compiles them itself."""
    functions = [tool["function"] for tool in tools]
    begins = [json.dumps(f'\n{{"name": "{function["name"]}", "arguments": ') for function in functions]
    return "\n".join(
        [
            "start: call* TAIL",
            "call: begin (" + " | ".join(f"call_{i}" for i in range(len(functions))) + ') "}\\n</tool_call>"',
            "begin[lazy]: /(?s:.*)<tool_call>/",
            "TAIL: ~/(?s:.*)<tool_call>(?s:.*)/",
            *(f"call_{i}: {begin} args_{i}" for i, begin in enumerate(begins)),
            *(f"args_{i}: %json {json.dumps(function['parameters'])}" for i, function in enumerate(functions)),
        ]
    )


def llguidance_parser(lark: str) -> Any:
    """llguidance's parser of Lark, over single bytes as tokens. Raises ValueError for Lark that it cannot read."""
    matcher = _llguidance.LLMatcher(_BYTES, lark, log_level=0)
    if matcher.is_error():
        raise ValueError(matcher.get_error())
    return matcher


# llama.cpp


class _StringHead(ctypes.Structure):
    """What stands before the characters of a `std::string` of the ABI that xllamacpp's wheels are built for."""

    _fields_ = (("length", ctypes.c_size_t), ("capacity", ctypes.c_size_t), ("references", ctypes.c_int64))


@cache
def _llama_library() -> ctypes.CDLL:
    origin = importlib.import_module("xllamacpp").__file__
    assert origin is not None  # noqa: S101 - an installed package has a file
    (path,) = Path(origin).parent.glob("xllamacpp*.so")
    return ctypes.CDLL(str(path))


def llama_gbnf(schema: Any) -> str:
    """GBNF of a JSON Schema by llama.cpp's own `json_schema_to_grammar`.

    xllamacpp's function of that name answers with Lark for llguidance, so that the C++ function is called: with a
    `std::string` and with room for a `common_json`, both made here.
    """
    library = _llama_library()
    head = ctypes.sizeof(_StringHead)
    raw = json.dumps(schema).encode()
    string = ctypes.create_string_buffer(bytes(_StringHead(len(raw), len(raw), 0)) + raw)
    document = ctypes.create_string_buffer(256)
    library._ZN11common_json5parseERKSs(document, ctypes.byref(ctypes.c_void_p(ctypes.addressof(string) + head)))
    result = ctypes.c_void_p()
    library._Z22json_schema_to_grammarRK11common_jsonb(ctypes.byref(result), document, ctypes.c_bool(True))  # noqa: FBT003 - force GBNF
    library._ZN11common_jsonD1Ev(document)
    assert result.value is not None  # noqa: S101 - a std::string is never null
    return ctypes.string_at(result.value, _StringHead.from_address(result.value - head).length).decode()


def llama_reads(gbnf: str) -> bool:
    """Whether llama.cpp builds a grammar of GBNF; it is freed again."""
    importlib.import_module("llama_oracle").gbnf_accepts(gbnf, "")  # raises ValueError where it cannot
    return True


# The way of the hermes parsers of vLLM and SGLang

_CALL = re.compile(r"<tool_call>\s*(.*?)(</tool_call>|$)", re.DOTALL)
_NAME = re.compile(r'"name"\s*:\s*"([^"]*)"')
_ARGUMENTS = re.compile(r'"arguments"\s*:\s*(.*)', re.DOTALL)


def reread(pieces: Iterable[str], tell: Callable[[str], object]) -> None:
    """Reads calls in <tool_call> tags by regular expressions over all text so far, at every piece.

    Tells content and arguments as far as they are new, and holds back half tags. This is how vLLM's hermes parser goes
    about it, written anew and shorter.
    """
    text = ""
    told: dict[int, int] = {}

    def tell_new(place: int, so_far: str) -> None:
        if len(so_far) > told.get(place, 0):
            tell(so_far[told.get(place, 0) :])
            told[place] = len(so_far)

    for piece in pieces:
        text += piece
        sure = _without_half_tag(text)
        tell_new(-1, sure.partition("<tool_call>")[0])
        for index, call in enumerate(_CALL.finditer(sure)):
            if _NAME.search(call[1]) and (arguments := _ARGUMENTS.search(call[1])):
                whole = arguments[1].rstrip()
                tell_new(index, whole.removesuffix("}") if call[2] else whole[:-1])


def _without_half_tag(text: str) -> str:
    for tag in ("<tool_call>", "</tool_call>"):
        for length in range(len(tag) - 1, 0, -1):
            if text.endswith(tag[:length]):
                return text[:-length]
    return text
