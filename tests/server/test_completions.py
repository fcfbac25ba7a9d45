"""`/v1/completions`: raw text, what it cost, and what it refuses."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx2
import pytest

from live_server import serving
from sampled_engine import Sampled

PATH = "/v1/completions"


def post(address: str, **body: Any) -> httpx2.Response:
    return httpx2.post(address + PATH, json={"prompt": "Once", "max_tokens": 5, **body}, timeout=20)


def test_each_prompt_is_counted_once_however_many_answers_it_has() -> None:
    with serving(Sampled()) as address:
        answer = post(address, prompt=["a", "b", "c"], n=2).json()
        stream = post(address, prompt=["a", "b", "c"], n=2, stream=True, stream_options={"include_usage": True}).text
        metrics = httpx2.get(f"{address}/metrics").text
    assert [choice["index"] for choice in answer["choices"]] == list(range(6))
    last = json.loads(stream.split("\n\n")[-3].removeprefix("data: "))
    for usage in (answer["usage"], last["usage"]):
        assert usage["prompt_tokens"] == 3
        assert usage["total_tokens"] == 3 + usage["completion_tokens"]
    assert 'toolgram_tokens_total{kind="prompt"} 6.0' in metrics


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[1], []]}, "prompt[1]"),
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 3}, "best_of"),
        ({"logprobs": 21}, "logprobs"),
        ({"logprobs": 1, "echo": True}, "logprobs"),
        ({"grammar": "root := 1"}, "grammar"),
        ({"response_format": {"type": "json_objects"}}, "response_format"),
        ({"guided_regex": "a("}, "guided_regex"),
        ({"regex": "a", "choice": ["a"]}, "choice"),
        ({"regex": "(?!)"}, "regex"),
        ({"structured_outputs": {"json": {"type": "strong"}}}, "structured_outputs.json"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": False}}},
            "response_format.json_schema.schema",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_place(fields: dict[str, Any], param: str) -> None:
    with serving(Sampled()) as address:
        answer = post(address, **fields)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
        assert post(address, response_format={"type": "text"}, guided_json=None).status_code == 200


_NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
_IN_JSON = r'\{\s*"n": -?[0-9]+\s*\}\n{0,2}'


@pytest.mark.parametrize(
    ("fields", "pattern"),
    [
        ({"grammar": 'root ::= "yes" | "no"'}, "yes|no"),
        ({"ebnf": 'root ::= "yes" | "no"'}, "yes|no"),
        ({"guided_grammar": 'start: "yes" | "no"'}, "yes|no"),
        ({"regex": "a+b?"}, "a+b?"),
        ({"guided_regex": "a+b?"}, "a+b?"),
        ({"response_format": {"type": "regex", "regex": "[0-9]{4}"}}, "[0-9]{4}"),
        ({"guided_choice": ["<|im_end|>", "no"]}, r"<\|im_end\|>|no"),  # a text has no format, and so no marks of one
        ({"structured_outputs": {"choice": ["yes", "no"]}}, "yes|no"),
        ({"guided_json": _NUMBER}, _IN_JSON),
        ({"json_schema": json.dumps(_NUMBER)}, _IN_JSON),
        ({"structured_outputs": {"json": _NUMBER}}, _IN_JSON),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": _NUMBER}}}, _IN_JSON),
    ],
)
def test_texts_have_the_form_that_a_body_states_by_any_name(fields: dict[str, Any], pattern: str) -> None:
    with serving(Sampled()) as address:
        answers = [
            post(address, prompt=["One", "Two"], n=4, max_tokens=60, stream=stream, **fields)
            for stream in (False, True)
        ]
    texts = {choice["index"]: choice["text"] for choice in answers[0].json()["choices"]}
    streamed = dict.fromkeys(range(8), "")
    for line in answers[1].text.split("\n\n"):
        for choice in json.loads(line.removeprefix("data: "))["choices"] if line.startswith("data: {") else ():
            streamed[choice["index"]] += choice["text"]
    for text in (*texts.values(), *streamed.values()):
        assert re.fullmatch(pattern, text), text
    assert "x-toolgram-ignored" not in answers[0].headers
    assert ("x-toolgram-relaxations" in answers[0].headers) == (pattern == _IN_JSON)  # integers have 19 digits at most


def test_a_schema_that_cannot_be_kept_to_is_refused_where_it_is_strict_and_else_told() -> None:
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    with serving(Sampled()) as address:
        said = post(address, response_format={"type": "json_schema", "json_schema": {"schema": schema}})
        refused = post(
            address, response_format={"type": "json_schema", "json_schema": {"schema": schema, "strict": True}}
        )
    assert said.status_code == 200
    assert "uniqueItems" in said.headers["x-toolgram-relaxations"]
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "response_format.json_schema.schema"
