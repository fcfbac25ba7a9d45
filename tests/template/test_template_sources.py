"""Templates found in files and folders."""

from __future__ import annotations

import codecs
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import pytest

from toolgram import Profile, ProfileError, plan
from toolgram.cli.inputs import template_of
from toolgram.errors import TemplateError
from toolgram.planning.profile import template_hash
from toolgram.template.chat_template import ChatTemplate

TOKENS = ["<unk>", "<s>", "</s>", "é" * 2000, "<|im_end|>"]


def write_gguf(
    path: Path,
    template: str | None,
    bos: int | None = 1,
    eos: int | None = 4,
    named: str | None = None,
    tokens: Sequence[str | bytes] = TOKENS,
    types: Sequence[int] = (),
) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 3)
    writer.add_float32("llama.scale", 0.5)
    writer.add_bool("tokenizer.ggml.add_bos_token", val=True)
    writer.add_array("llama.list", [1, 2, 3])
    writer.add_array("llama.flags", [True, False])
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(TOKENS))
    if types:
        writer.add_token_types(types)
    if bos is not None:
        writer.add_bos_token_id(bos)
    if eos is not None:
        writer.add_eos_token_id(eos)
    if template is not None:
        writer.add_string("tokenizer.chat_template", template)
    if named is not None:
        writer.add_string("tokenizer.chat_template.tool_use", named)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_gguf(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", "T{{ 1 }}é", named="U")
    assert ChatTemplate.from_gguf(path) == ChatTemplate("T{{ 1 }}é", "<s>", "<|im_end|>", tool_use="U")
    assert ChatTemplate.from_gguf(str(path), name="tool_use").source == "U"
    assert ChatTemplate.from_file(path) == ChatTemplate.from_gguf(path)
    assert "<b>" in {ChatTemplate.from_file(path, "<b>").bos_token}


def test_the_odd_control_tokens_of_a_vocabulary_are_known(tmp_path: Path) -> None:
    tokens = ["a", "~~end~~", "  ", "plain", b"\xff!", "<|im_end|>", "=user="]
    path = write_gguf(tmp_path / "m.gguf", "T", None, None, tokens=tokens, types=[1, 3, 4, 1, 4, 3, 4])
    assert ChatTemplate.from_gguf(path).control_tokens == ("~~end~~", "\ufffd!", "=user=")
    path = write_gguf(tmp_path / "n.gguf", "T", None, None, tokens=tokens, types=[3])
    assert ChatTemplate.from_gguf(path).control_tokens == ()
    added = [{"id": 3, "content": "~~end~~"}, {"id": 4, "content": "<s>"}]
    config = {"chat_template": "T", "added_tokens_decoder": {"3": {"content": "=user="}}}
    for files, expected in (
        ({"tokenizer_config_json": {"chat_template": "T"}, "tokenizer_json": {"added_tokens": added}}, ("~~end~~",)),
        ({"tokenizer_config_json": config}, ("=user=",)),
    ):
        assert ChatTemplate.from_hf(folder(tmp_path / expected[0], **files)).control_tokens == expected


def test_gguf_agrees_with_the_official_reader(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", "T", bos=3)
    fields = gguf.GGUFReader(path).fields
    token = fields["tokenizer.ggml.tokens"].contents(fields["tokenizer.ggml.bos_token_id"].contents())
    assert ChatTemplate.from_gguf(path) == ChatTemplate(
        fields["tokenizer.chat_template"].contents(), token, "<|im_end|>"
    )


def test_gguf_without_special_tokens(tmp_path: Path) -> None:
    assert ChatTemplate.from_gguf(write_gguf(tmp_path / "m.gguf", "T", bos=None, eos=None)) == ChatTemplate("T")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a readable GGUF file: it is empty"),
        (b"GGUF", "not a readable GGUF file: it ends inside its metadata"),
        (b"Hi!\n", r"it begins with b'Hi!\\n', not with b'GGUF'"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a pointer of Git LFS, .* `git lfs pull`"),
        (b"GGML" + bytes(20), "b'GGML'"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(16), "version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 5), "not a readable GGUF"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 40), "a string of 1099511627776 bytes"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<I", 77), "unknown type 77"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 8, 1 << 40), "ends inside"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "its metadata has no tokenizer.chat_template"),
    ],
)
def test_a_damaged_gguf_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    with pytest.raises(TemplateError, match=message) as caught:
        ChatTemplate.from_gguf(path)
    assert "bad.gguf" in str(caught.value)


def test_a_template_of_ones_own_for_a_gguf_without_any(tmp_path: Path) -> None:
    own = folder(tmp_path, own_jinja="T") / "own.jinja"
    tokens = ["a", "<s>", "</s>", "~~end~~"]
    bare = write_gguf(tmp_path / "m.gguf", None, 1, 2, tokens=tokens, types=[1, 3, 3, 3])
    assert template_of(own, bare) == ChatTemplate("T", "<s>", "</s>", control_tokens=("~~end~~",))


def test_gguf_says_which_templates_there_are(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", None, named="U")
    with pytest.raises(TemplateError, match=r"it has tokenizer\.chat_template\.tool_use"):
        ChatTemplate.from_gguf(path)
    with pytest.raises(TemplateError, match=r"no tokenizer\.chat_template\.rag"):
        ChatTemplate.from_gguf(path, name="rag")


@pytest.mark.parametrize("own", [None, "{% if %}"])
def test_a_template_may_stand_in_for_one_that_a_gguf_lacks_or_that_is_broken(tmp_path: Path, own: str | None) -> None:
    path = write_gguf(tmp_path / "m.gguf", own)
    with pytest.raises(TemplateError):
        ChatTemplate.from_gguf(path)
    assert ChatTemplate.from_gguf(path, source="T") == ChatTemplate("T", "<s>", "<|im_end|>")
    (tmp_path / "t.jinja").write_text("T")
    assert template_of(tmp_path / "t.jinja", path) == ChatTemplate("T", "<s>", "<|im_end|>")


def test_a_gguf_without_a_template_is_told_with_what_helps(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"has no tokenizer\.chat_template: give one \(--template FILE, source=\)"):
        ChatTemplate.from_gguf(write_gguf(tmp_path / "m.gguf", None))


def test_gguf_with_a_token_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="is 9, but there are 5 tokens"):
        ChatTemplate.from_gguf(write_gguf(tmp_path / "m.gguf", "T", bos=9))


def folder(path: Path, **files: Any) -> Path:
    for name, content in files.items():
        file = path / name.replace("__", "/").replace("_jinja", ".jinja").replace("_json", ".json")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_hf_config_with_one_template(tmp_path: Path) -> None:
    config = {"chat_template": "T", "bos_token": None, "eos_token": {"content": "</s>", "lstrip": False}}
    specials = {"bos_token": "<s>", "eos_token": "<no>"}
    assert ChatTemplate.from_hf(folder(tmp_path, tokenizer_config_json=config, special_tokens_map_json=specials)) == (
        ChatTemplate("T", "<s>", "</s>")
    )


def test_hf_config_with_named_templates(tmp_path: Path) -> None:
    templates = [{"name": "default", "template": "T"}, {"name": "tool_use", "template": "U"}]
    path = folder(tmp_path, tokenizer_config_json={"chat_template": templates})
    assert ChatTemplate.from_hf(path).source == "T"
    assert ChatTemplate.from_hf(str(path), name="tool_use").source == "U"
    with pytest.raises(TemplateError, match="named 'rag'; it has default, tool_use"):
        ChatTemplate.from_hf(path, name="rag")


def test_the_template_for_tools_is_taken_for_requests_with_tools(tmp_path: Path) -> None:
    turns = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"
    shown = "{{ tools | tojson }}" + turns
    templates = [{"name": "default", "template": turns}, {"name": "tool_use", "template": shown}]
    hf = ChatTemplate.from_hf(folder(tmp_path, tokenizer_config_json={"chat_template": templates}))
    file = write_gguf(tmp_path / "m.gguf", turns, None, None, named=shown)
    asked = {"messages": [{"role": "user", "content": "Hi."}]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    for template in (hf, ChatTemplate.from_gguf(file)):
        assert template.with_tools == ChatTemplate(shown)
        assert plan(asked, template).prompt == "<|user|>Hi.<|end|><|assistant|>"
        assert (
            plan({**asked, "tools": tools}, template).prompt
            == plan({**asked, "tools": tools}, ChatTemplate(shown)).prompt
        )
        profile = Profile("m", template_hash(template))
        profile.check(template)
        with pytest.raises(ProfileError, match="another chat template"):
            profile.check(ChatTemplate(turns))


def test_hf_files_go_before_the_config(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        tokenizer_config_json={"chat_template": "old", "eos_token": "</s>"},
        chat_template_json={"chat_template": "newer"},
        chat_template_jinja="newest",
        additional_chat_templates__tool_use_jinja="U",
    )
    assert ChatTemplate.from_hf(path) == ChatTemplate("newest", "", "</s>", tool_use="U")
    assert ChatTemplate.from_hf(path, name="tool_use").source == "U"
    (path / "chat_template.jinja").unlink()
    assert ChatTemplate.from_hf(path).source == "newer"


def test_hf_folder_without_a_template(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="no chat template"):
        ChatTemplate.from_hf(folder(tmp_path, tokenizer_config_json={}))
    with pytest.raises(TemplateError, match="no such folder"):
        ChatTemplate.from_hf(tmp_path / "none")
    with pytest.raises(TemplateError, match=r"tokenizer_config\.json: not JSON"):
        ChatTemplate.from_hf(folder(tmp_path, tokenizer_config_json="{"))


@pytest.mark.parametrize("name", ["tokenizer_config_json", "chat_template_json"])
def test_a_json_file_is_not_taken_for_jinja(tmp_path: Path, name: str) -> None:
    """As Jinja it is a valid template, which writes the whole file with the conversation in its middle."""
    turns = "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
    templates = [{"name": "default", "template": turns}, {"name": "tool_use", "template": "U"}]
    config = {"bos_token": "<s>", "added_tokens_decoder": {"3": {"content": "=user="}}, "chat_template": templates}
    path = folder(tmp_path, **{name: config}) / name.replace("_json", ".json")
    assert ChatTemplate.from_file(path) == ChatTemplate(turns, "<s>", control_tokens=("=user=",), tool_use="U")
    assert (
        ChatTemplate.from_file(path, "<b>", "<e>").render([{"role": "user", "content": "Hi."}]) == "<|user|>Hi.<|end|>"
    )
    assert template_of(path, None) == ChatTemplate.from_file(path)
    model = write_gguf(tmp_path / "m.gguf", None)
    assert template_of(path, model) == ChatTemplate(turns, "<s>", "<|im_end|>", tool_use="U")


@pytest.mark.parametrize(
    ("text", "message"), [(None, "cannot be read"), ("{", "not JSON"), ('{"model_type": "llama"}', "no chat template")]
)
def test_a_json_file_without_a_template_is_told(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(TemplateError, match=rf"config\.json: {message}"):
        ChatTemplate.from_file(tmp_path / "config.json")


def test_file(tmp_path: Path) -> None:
    path = folder(tmp_path, t_jinja="{{ bos_token }}é") / "t.jinja"
    assert ChatTemplate.from_file(path, "<s>").render([]) == "<s>é"
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())  # as some editors save it
    assert ChatTemplate.from_file(path, "<s>").render([]) == "<s>é"
    with pytest.raises(TemplateError, match=r"none\.jinja"):
        ChatTemplate.from_file(tmp_path / "none.jinja")
    path.write_bytes(b"\xff")
    with pytest.raises(TemplateError, match=r"t\.jinja"):
        ChatTemplate.from_file(path)
