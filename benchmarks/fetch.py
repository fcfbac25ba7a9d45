"""Fetches the public data of the benchmarks from packages, by pip; about 80 MB, once.

    python benchmarks/fetch.py [--more] [FOLDER]

- jsonschema's has the official JSON-Schema-Test-Suite (MIT); of it the required tests of draft 2020-12 are kept.
- llama-cpp-python's has llama.cpp's collection of chat templates (MIT).
- With --more, the chat templates in the wheels of axolotl, TRL and Xinference (Apache-2.0), 44 MB.

Benchmarks find the folder by the variable TOOLGRAM_DATA; without FOLDER it is .data, where they look anyway. MaskBench
(real schemas with instances) is in no package: clone https://github.com/guidance-ai/jsonschemabench, and name its
folder maskbench/data to `benchmarks/jsonschema.py`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from _data import FETCHED

SUITE = "jsonschema==4.26.0"
TEMPLATES = "llama-cpp-python==0.3.36"
MORE_TEMPLATES = ("axolotl==0.19.0", "trl==1.16.0", "xinference==1.10.0")
_DRAFT = "json/tests/draft2020-12"
_JINJA = "llama.cpp/models/templates"


def archive(package: str, folder: Path) -> Path:
    """The source archive of a package, downloaded into an empty folder."""
    return _downloaded(package, folder, "--no-binary")


def wheel(package: str, folder: Path) -> Path:
    """The wheel of a package, downloaded into an empty folder."""
    return _downloaded(package, folder, "--only-binary")


def _downloaded(package: str, folder: Path, of_form: str) -> Path:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    subprocess.run([*command, of_form, ":all:", "--dest", str(folder), package], check=True)
    (found,) = folder.iterdir()
    return found


def templates_in(wheel: Path) -> Iterator[tuple[str, str]]:
    """Names and texts of the chat templates in a wheel: its files, and those of Xinference's list of models."""
    with zipfile.ZipFile(wheel) as opened:
        for name in sorted(opened.namelist()):
            path = PurePosixPath(name)
            if path.suffix == ".jinja":
                yield path.stem, opened.read(name).decode()
            elif path.name == "llm_family.json":
                models = ((model["model_name"], model.get("chat_template")) for model in json.loads(opened.read(name)))
                yield from ((name, text) for name, text in models if text)


def fetch_more(target: Path) -> int:
    """Writes the templates of further packages into a folder, a folder for each; gives how many there are."""
    count = 0
    for package in MORE_TEMPLATES:
        place = target / "more_templates" / package.partition("==")[0]
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            for name, text in templates_in(wheel(package, Path(folder))):
                (place / f"{name}.jinja").write_text(text, encoding="utf-8")
                count += 1
    return count


def members(archive: Path, folder: str, suffix: str) -> Iterator[tuple[str, str]]:
    """Names and texts of the files that lie in such a folder of an archive, by name; not of those further down."""
    with tarfile.open(archive) as opened:
        for member in sorted(opened.getmembers(), key=lambda each: each.name):
            path = PurePosixPath(member.name)
            file = opened.extractfile(member) if path.suffix == suffix and str(path.parent).endswith(folder) else None
            if file is not None:
                yield path.stem, file.read().decode()


def cases(name: str, text: str) -> Iterator[dict[str, Any]]:
    """The groups of a file of the suite, in the form of MaskBench."""
    for at, group in enumerate(json.loads(text)):
        tests = [{"valid": test["valid"], "data": test["data"]} for test in group["tests"]]
        yield {"id": f"{name}#{at}", "schema": group["schema"], "tests": tests}


def fetch(target: Path) -> dict[str, int]:
    """Writes suite and templates into a folder; gives how many there are of each."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        suite = list(members(archive(SUITE, Path(one)), _DRAFT, ".json"))
        templates = list(members(archive(TEMPLATES, Path(other)), _JINJA, ".jinja"))
    rows = [json.dumps(case) for name, text in suite for case in cases(name, text)]
    (target / "conformance").mkdir(parents=True, exist_ok=True)
    (target / "templates").mkdir(exist_ok=True)
    (target / "conformance" / "json_schema_test_suite_2020_12.jsonl").write_text("\n".join(rows) + "\n", "utf-8")
    for name, text in templates:
        (target / "templates" / f"{name}.jinja").write_text(text, encoding="utf-8")
    return {"schemas": len(rows), "templates": len(templates)}


def main() -> None:
    """Fetches, and says what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FETCHED, help="where to put it (.data)")
    parser.add_argument("--more", action="store_true", help="templates of further packages, too")
    arguments = parser.parse_args()
    counts = fetch(arguments.folder)
    counts["templates"] += fetch_more(arguments.folder) if arguments.more else 0
    print(
        f"{arguments.folder}: {counts['schemas']} schemas of the official suite, {counts['templates']} chat templates"
    )


if __name__ == "__main__":
    main()
