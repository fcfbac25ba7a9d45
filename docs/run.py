"""Runs the code in Markdown documents, and reports where its output differs from what they show.

    python docs/run.py [--update] [--model] [FILE …]

It runs in the root of the repository. Of every document it runs
- `python` blocks, which share one namespace; a `text` block directly after one is its output;
- `console` blocks: a line that begins with "$ " is a command, the lines after it are its output;
- `<!-- printed by: COMMAND -->` … `<!-- end -->`: the command prints the Markdown between.
After a line `<!-- needs the model -->` a block runs only with `--model`, after `<!-- needs the data -->` only if there
are chat templates in the folder of `TOOLGRAM_DATA` (without it, where benchmarks/_data.py looks), after
`<!-- run by: TEST -->` in that test alone, after `<!-- not run: REASON -->` never.
`--update` rewrites the documents.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmarks"))  # last: one of them is named as a package is
from _data import folder  # noqa: E402 - of the benchmarks

DATA = folder()
_PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
DOCUMENTS = ("README.md", "CONTRIBUTING.md", *_PAGES)

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>needs the model|needs the data|run by: \S+|not run: [^\n]+) -->\n+)?"
    r"(?:^```(?P<kind>\w*)\n(?P<source>.*?)^```$(?P<text>\n\n```text\n.*?^```$)?"
    r"|^<!-- printed by: (?P<command>[^\n]+) -->\n(?P<printed>.*?)^<!-- end -->$)",
    re.MULTILINE | re.DOTALL,
)
# What differs from run to run, and from machine to machine.
_VARYING = re.compile(
    r"\d+\.\d+ s\b|\d+ tokens/s|(?<=^answer: )\d+|(?<=grammar: )\d+|(?<=passes: )\d+|(?<=turns, )\d+|\d+%"
    r"|call_[0-9a-f]{24}|\d+ forced, \d+ passes",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a document: its source, and the offsets in the document between which its output is."""

    kind: str
    source: str
    begin: int
    end: int
    line: int
    mark: str


def blocks(document: str) -> Iterator[Block]:
    """The blocks of a document, in order."""
    for found in _BLOCK.finditer(document):
        if found["command"]:
            kind, source, (begin, end) = "printed", found["command"], found.span("printed")
        else:
            kind, source = found["kind"], found["source"]
            begin, end = found.span("source") if kind == "console" else (found.end("source") + 3, found.end())
        yield Block(kind, source, begin, end, document.count("\n", 0, found.start()) + 1, found["mark"] or "")


def shown(block: Block, namespace: dict[str, Any]) -> str:
    """What should be between the block's offsets; runs the block."""
    match block.kind:
        case "python":
            printed = _python(block, namespace)
            return f"\n\n```text\n{printed}```" if printed else ""
        case "console":
            commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", block.source, re.MULTILINE)
            return "\n".join(f"$ {command}\n{_command(command)}" for command in commands)
        case _:
            return f"\n{_command(block.source, check=True)}\n"


def rewritten(document: str, *, model: bool) -> str:
    """The document with the current output of its blocks; output that merely varies is left as it is."""
    namespace: dict[str, Any] = {"__name__": "document"}
    pieces: list[str] = []
    at = 0
    for block in blocks(document):
        if block.kind not in ("python", "console", "printed") or block.mark.startswith(("not run", "run by")):
            continue
        if block.mark == "needs the model" and not model:
            continue
        if block.mark == "needs the data" and not (DATA / "templates").is_dir():
            continue
        old, new = document[block.begin : block.end], shown(block, namespace)
        same = _VARYING.sub("…", old) == _VARYING.sub("…", new)
        pieces += [document[at : block.begin], old if same else new]
        at = block.end
    return "".join([*pieces, document[at:]])


def _python(block: Block, namespace: dict[str, Any]) -> str:
    code = compile(
        "\n" * block.line + block.source, "the document", "exec", dont_inherit=True
    )  # of this file's futures
    with redirect_stdout(io.StringIO()) as printed:
        exec(code, namespace)  # noqa: S102 - our own documents
    return _tidy(printed.getvalue())


def _command(command: str, *, check: bool = False) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    same = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}
    done = subprocess.run(  # noqa: S603 - our own documents
        ["/bin/sh", "-c", command],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "TOOLGRAM_DATA": str(DATA), **same},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        encoding="utf-8",
    )
    if check and done.returncode:
        sys.exit(f"{command}: failed\n{done.stdout}")
    return _tidy(done.stdout)


def _tidy(printed: str) -> str:
    """The output without white space at line ends or empty lines at its ends, with one final newline."""
    text = "\n".join(line.rstrip() for line in printed.split("\n")).strip("\n")
    return f"{text}\n" if text else ""


def checked(name: str, *, update: bool, model: bool) -> bool:
    """Whether a document is true; prints the differences, or rewrites it."""
    path = Path(name)
    old = path.read_text(encoding="utf-8")
    new = rewritten(old, model=model)
    if update:
        path.write_text(new, encoding="utf-8")
    elif new != old:
        print("\n".join(unified_diff(old.split("\n"), new.split("\n"), name, "what is printed now", lineterm="")))
    return update or new == old


def main() -> None:
    """Checks or rewrites the named documents, or all of them; exits with 1 if one is not true."""
    parser = argparse.ArgumentParser(description="Runs the code in documents.")
    parser.add_argument("--update", action="store_true", help="rewrite the documents")
    parser.add_argument("--model", action="store_true", help="also run what needs the default model")
    parser.add_argument("documents", nargs="*", default=DOCUMENTS, metavar="FILE")
    options = parser.parse_args()
    os.chdir(ROOT)
    if len(options.documents) == 1:
        sys.exit(not checked(options.documents[0], update=options.update, model=options.model))
    flags = [f"--{flag}" for flag in ("update", "model") if getattr(options, flag)]
    # Each in its own process, so that what one registers does not exist for the next.
    command = [sys.executable, __file__, *flags]
    codes = [
        subprocess.run([*command, name], check=False).returncode  # noqa: S603 - this very script
        for name in options.documents
    ]
    sys.exit(any(codes))


if __name__ == "__main__":
    main()
