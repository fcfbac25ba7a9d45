"""Whether a schema spoils what a model knows: python benchmarks/copying.py [--model FILE] [--questions 40] [--wrong].

The model is given a valid record of a real schema (conformance/maskbench_dev.jsonl) as an outline, and asked for the
same as JSON: all that it needs stands there. An answer is right if it is that record. Asked are `toolgram serve`
without the schema (the JSON in the text counts, in a fence too), the same with it, and llama.cpp's own server with it,
at temperature 0. Under a schema as many should be right as without: what is lost is what the grammar led the model to.
An answer that has no end after 600 tokens is unfinished.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import httpx

from _answers_tables import sign_test
from _common import end_in_order, show
from _schema_cases import DEFAULT_FILES, Case, load
from _server_peers import LLAMA_CPP, running
from toolgram.models.catalog import default_model

CONTEXT, TOKENS, SEED = 4096, 600, 1
SCHEMA, RECORD = 6000, range(40, 501)  # characters of JSON
ASK = "Here is some data in YAML:\n\n{}\n\nWrite the same data as JSON, with the same keys and values and nothing else."
_FENCED = re.compile(r"```(?:json)?\n(.*?)```", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z][\w .,/@-]*(?<! )")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off")


@dataclass(frozen=True)
class Record:
    """A valid instance of a schema."""

    name: str
    schema: Mapping[str, Any]
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """What came, whether the record is that, and whether the answer came to its end."""

    text: str
    right: bool
    finished: bool


def records(count: int) -> list[Record]:
    """So many of them, of schemas that are drawn with a fixed seed."""
    cases = list(load(DEFAULT_FILES[:1]))
    random.Random(SEED).shuffle(cases)
    return list(islice(filter(None, map(_record, cases)), count))


def _record(case: Case) -> Record | None:
    """The first valid object of a schema, of a size that a small model can write."""
    data = next((one.data for one in case.instances if one.valid and _is_object(one.data, RECORD)), None)
    if data is None or not _is_object(case.schema, range(SCHEMA + 1)):
        return None
    return Record(case.id, case.schema, data)


def _is_object(value: Any, characters: range) -> bool:
    return isinstance(value, dict) and len(json.dumps(value)) in characters


def outline(value: Any, indent: str = "") -> Iterator[str]:
    """The lines of a value in YAML."""
    items = cast("dict[str, Any]", value).items() if isinstance(value, dict) else (("-", each) for each in value)
    for key, item in items:
        lead = f"{indent}-" if key == "-" else f"{indent}{_scalar(key)}:"
        if isinstance(item, (dict, list)) and item:
            yield lead
            yield from outline(item, indent + "  ")
        else:
            yield f"{lead} {_scalar(item)}"


def _scalar(value: Any) -> str:
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def body(record: Record, *, schema: bool) -> dict[str, Any]:
    """The body of a chat-completions request."""
    question = ASK.format("\n".join(outline(record.data)))
    asked = {"messages": [{"role": "user", "content": question}], "max_tokens": TOKENS, "temperature": 0}
    form = {"type": "json_schema", "json_schema": {"name": "record", "schema": record.schema}}
    return {**asked, "response_format": form} if schema else asked


async def asked(address: str, record: Record, *, schema: bool) -> Answer:
    """The answer of a server; a refusal is one that is wrong."""
    async with httpx.AsyncClient(base_url=address, timeout=600) as client:
        answer = await client.post("/v1/chat/completions", json=body(record, schema=schema))
    if answer.is_error:
        return Answer(answer.text, right=False, finished=True)
    (choice,) = answer.json()["choices"]
    text = choice["message"]["content"] or ""
    return Answer(text, is_copy(text, record.data), choice["finish_reason"] == "stop")


def _found(text: str) -> Any:
    """The JSON in a text; None where there is none."""
    fenced = _FENCED.search(text)
    text = fenced[1] if fenced else text
    try:
        return json.JSONDecoder().raw_decode(text[max(text.find("{"), 0) :])[0]
    except ValueError:
        return None


def is_copy(text: str, data: Mapping[str, Any]) -> bool:
    """Whether the JSON in a text is the record: keys may come in any order, and 1.0 is not 1."""
    return json.dumps(_found(text), sort_keys=True) == json.dumps(data, sort_keys=True)


def main() -> None:
    """Prints the table."""
    end_in_order()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, metavar="FILE", help="a GGUF file; default: SmolLM2")
    parser.add_argument("--questions", type=int, default=40, metavar="N", help="how many records")
    parser.add_argument("--wrong", action="store_true", help="show the wrong answers under a schema")
    options = parser.parse_args()
    model, chosen = str(options.model or default_model()), records(options.questions)
    serve = ["serve", "--model", model, "--port", "0", "--parallel", "1", "--max-model-len", str(CONTEXT)]
    with (
        running([sys.executable, "-m", "toolgram", *serve]) as ours,
        running([sys.executable, "-c", LLAMA_CPP, model, "1", str(CONTEXT)]) as theirs,
    ):
        sides = {
            "no schema": (ours.address, False),
            "toolgram": (ours.address, True),
            "llama.cpp": (theirs.address, True),
        }
        found = {
            side: [asyncio.run(asked(address, record, schema=schema)) for record in chosen]
            for side, (address, schema) in sides.items()
        }
    head = ["side", "right", "unfinished", "only toolgram right", "only this", "p"]
    show(f"{len(chosen)} records copied by {Path(model).stem}", head, [row(side, found) for side in found])
    if options.wrong:
        _tell_wrong(chosen, found)


def row(side: str, found: Mapping[str, Sequence[Answer]]) -> list[object]:
    """A side of the table: how many of its answers are right, how many have no end, and how it compares."""
    pairs = list(zip(found["toolgram"], found[side], strict=True))
    ours = sum(mine.right and not other.right for mine, other in pairs)
    theirs = sum(other.right and not mine.right for mine, other in pairs)
    answers = found[side]
    told = [None] * 3 if side == "toolgram" else [ours, theirs, sign_test(ours, theirs)]
    return [side, sum(one.right for one in answers), sum(not one.finished for one in answers), *told]


def _tell_wrong(chosen: Sequence[Record], found: Mapping[str, Sequence[Answer]]) -> None:
    for at, record in enumerate(chosen):
        if not found["toolgram"][at].right:
            print(f"\n== {record.name}\nrecord:    {json.dumps(record.data, ensure_ascii=False)}")
            for side, answers in found.items():
                print(f"{side}: {'right' if answers[at].right else 'wrong'}: {answers[at].text!r}")


if __name__ == "__main__":
    main()
