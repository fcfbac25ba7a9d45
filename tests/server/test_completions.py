"""`/v1/completions`: raw text, what it cost, and what it refuses."""

from __future__ import annotations

import json
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
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"guided_regex": "a"}, "guided_regex"),
        ({"structured_outputs": {"json": {}}}, "structured_outputs"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_place(fields: dict[str, Any], param: str) -> None:
    with serving(Sampled()) as address:
        answer = post(address, **fields)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
        assert post(address, response_format={"type": "text"}, guided_json=None).status_code == 200
