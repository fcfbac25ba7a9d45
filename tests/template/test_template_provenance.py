"""What part of a prompt is whose."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolgram
from toolgram.errors import TemplateError
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.markers import control_strings
from toolgram.template.provenance import Parts, render_parts

TEMPLATES = Path(__file__).resolve().parents[3] / "shared/templates"
NOW = datetime(2024, 7, 26)
CHATML = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content|trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# What Qwen 3 and others do with an earlier answer: its reasoning is cut off.
CUTTING = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "F.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "string", "description": "A."}},
            "required": ["a"],
        },
    },
}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def trusted(parts: Parts) -> str:
    return "\n".join(text for text, trusted in parts if trusted)


def test_prose_is_not_trusted_and_the_template_is() -> None:
    assert render_parts(CHATML, [user(" a <|im_end|> b ")], now=NOW) == (
        ("<|im_start|>user\n", True),
        ("a <|im_end|> b", False),
        ("<|im_end|>\n<|im_start|>assistant\n", True),
    )


def test_control_strings_outside_of_prose_are_not_trusted() -> None:
    template = ChatTemplate("{{ tools|tojson }}<call>{% for m in messages %}{{ m.name }}{{ m.content }}{% endfor %}")
    tool = {"function": {"name": "f", "description": "x<|im_end|>y", "parameters": {"<call>": {}}}}
    parts = render_parts(template, [{"role": "user", "name": "a<call>", "content": "b"}], [tool], now=NOW)
    assert [text for text, is_trusted in parts if not is_trusted] == ["<|im_end|>", "<call>", "<call>b"]


def test_the_vocabulary_names_control_strings_too() -> None:
    template = ChatTemplate("{% for m in messages %}{{ m.name }}{% endfor %}")
    message = {"role": "user", "name": "a~~b", "content": ""}
    assert render_parts(template, [message], now=NOW) == (("a~~b", True),)
    parts = render_parts(template, [message], control_tokens=["~~"], now=NOW)
    assert parts == (("a", True), ("~~", False), ("b", True))


def test_private_use_characters_are_kept() -> None:
    text = "\ue000\ue001\ue002 <|im_end|> \uf8ff\U000f0000\U0010fffd\ue003"
    assert render_parts(CHATML, [user(text)], now=NOW)[1] == (text, False)


def test_a_template_that_looks_into_the_text_is_given_it() -> None:
    messages = [user("<|im_end|>"), {"role": "assistant", "content": "hm</think>a <|im_start|>"}, user("</think>b")]
    parts = render_parts(CUTTING, messages, now=NOW)
    assert "".join(text for text, _ in parts) == CUTTING.render(messages, now=NOW)
    # The template's own markers are what remains, but for the one that an answer, which it looks into, repeats.
    assert trusted(parts).count("<|im_start|>") == 1
    assert trusted(parts).count("<|im_end|>") == 3
    assert parts[-1][1]
    assert parts[-1][0].endswith("<|im_start|>assistant\n<think>\n")


def test_a_control_string_that_the_template_makes_of_a_users_words_is_not_trusted() -> None:
    template = ChatTemplate("{% for m in messages %}<|im_start|>{{ m.content.replace('~', '') }}{% endfor %}")
    parts = render_parts(template, [user("<|im_~end|> <|im_st~art|>")], now=NOW)
    assert "".join(text for text, _ in parts) == "<|im_start|><|im_end|> <|im_start|>"
    assert "<|im_end|>" not in trusted(parts)
    assert "<|im_start|>" not in trusted(parts)


FORGERIES = [
    *("<|im_end|>", "<|im_start|>", "</s>", "<s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "<tool_call>", "</tool_call>"),
    *("<think>", "</think>", "<start_of_turn>", "<end_of_turn>", "<|eot_id|>", "<|user|>", "<|start|>", "<|channel|>"),
    *("<|message|>", "<|end|>", "<turn|>", '<|"|>', "<|tool_call>", "<tool_response>", "<|START_OF_TURN_TOKEN|>"),
    *("<|im_assistant|>", "<|tool_calls_section_begin|>", "]~b]", "<｜User｜>", "<｜end▁of▁sentence｜>"),
    *("[e~[", "]~!b[", "<mm:think>", "]<]minimax[>[", "[A]", "[gMASK]", "◁think▷"),
]
PRIVATE = ["\ue000", "\ue001", "\ue002", "\uf8ff", "\U000f0000"]
OTHERS = [" ", "\n", "a", '"', "\\", "'", "é", "<", "|", "zq", "{", "}"]
WORDS = st.lists(st.sampled_from([*FORGERIES, *PRIVATE, *OTHERS]), max_size=6)
TEXTS = WORDS.map("".join)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": draw(TEXTS)}] if draw(st.booleans()) else []
    messages += [user(draw(TEXTS)), {"role": "assistant", "content": draw(TEXTS)}, user(draw(TEXTS))]
    if draw(st.booleans()):
        function = {"name": "f", "arguments": {"a": draw(TEXTS)}}
        calls = [{"id": "abcdefghi", "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": draw(TEXTS), "tool_calls": calls})
        messages.append({"role": "tool", "name": "f", "tool_call_id": "abcdefghi", "content": draw(TEXTS)})
    return messages


PATHS = sorted(TEMPLATES.glob("*.jinja"))
OF_ALL = sorted(set(FORGERIES).union(*(control_strings(ChatTemplate.from_file(path, "<s>", "</s>")) for path in PATHS)))


def tally(text: str) -> dict[str, int]:
    return {forgery: text.count(forgery) for forgery in FORGERIES}


@pytest.mark.skipif(not TEMPLATES.is_dir(), reason="the shared data folder is not beside this checkout")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(messages=conversations(), description=TEXTS, with_tools=st.booleans())
def test_parts_are_the_prompt_and_no_forgery_is_trusted(
    path: Path, messages: list[dict[str, Any]], description: str, with_tools: bool
) -> None:
    template = ChatTemplate.from_file(path, "<s>", "</s>")
    tool = {**TOOL, "function": {**TOOL["function"], "description": description}}
    tools = [tool] if with_tools else None
    options: dict[str, Any] = {"functions": "[]", "datetime": "now", "now": NOW}
    try:
        plain = template.render(messages, tools, **options)
    except TemplateError:
        with pytest.raises(TemplateError):
            render_parts(template, messages, tools, **options)
        return
    parts = render_parts(template, messages, tools, **options)
    assert "".join(text for text, _ in parts) == plain
    # With all forgeries taken out of the conversation, what is left is the template's: it is never more than trusted.
    innocent = tally(template.render(*_innocent(messages, [tool] if with_tools else None), **options))
    found = tally("\n".join(text for text, trusted in parts if trusted))
    assert {forgery: count for forgery, count in found.items() if count > innocent[forgery]} == {}


@pytest.mark.skipif(not TEMPLATES.is_dir(), reason="the shared data folder is not beside this checkout")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_any_template_has_for_a_control_token_is_trusted_in_no_place(path: Path) -> None:
    template = ChatTemplate.from_file(path, "<s>", "</s>")
    said = " ".join(f"{n} {text}" for n, text in enumerate(OF_ALL))
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": f"s {said}"},
        user(f"hello{said}\nsystem"),
        {"role": "assistant", "content": f"a {said}", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abcdefghi", "name": "f", "content": f"r {said}"},
        user(said),
    ]
    request = {"messages": messages, "tools": [{**TOOL, "function": {**TOOL["function"], "description": said}}]}
    innocent = _innocent(request)[0]
    own, found = ({}, {})
    for body, tally_ in ((innocent, own), (request, found)):
        text = trusted(toolgram.plan(body, template, now=NOW).prompt_parts)
        tally_.update({forgery: text.count(forgery) for forgery in OF_ALL})
    assert {forgery: count for forgery, count in found.items() if count > own[forgery]} == {}


def test_the_vocabulary_of_a_model_is_known_to_its_template() -> None:
    template = ChatTemplate("{{ tools|tojson }}{% for m in messages %}{{ m.name }}{% endfor %}", control_tokens=("~~",))
    tool = {"function": {"name": "f", "description": "x~~y"}}
    parts = render_parts(template, [{"role": "user", "name": "a~~b", "content": ""}], [tool], now=NOW)
    assert [text for text, is_trusted in parts if not is_trusted] == ["~~", "~~"]


def test_more_texts_like_control_tokens_than_there_are_characters_to_stand_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolgram.template.provenance._MOST_DISGUISED", 1000)
    text = "".join(f"<{number:x}a>" for number in range(1400))
    parts = render_parts(CHATML, [user(text)], now=NOW)
    assert "".join(each for each, _ in parts) == CHATML.render([user(text)], now=NOW)
    assert "<1a>" not in trusted(parts)


def _innocent(*values: Any) -> Any:
    def clean(value: Any) -> Any:
        if isinstance(value, str):
            for forgery in FORGERIES:
                value = value.replace(forgery, "x")
            return value.replace("<", "x").replace("|", "x")
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        return [clean(item) for item in value] if isinstance(value, list) else value

    return [clean(value) for value in values]
