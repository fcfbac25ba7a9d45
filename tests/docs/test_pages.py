"""The site of the documents, without MkDocs: its navigation, its links, its pictures, and what pages quote."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import toolgram
import toolgram.agent
import toolgram.engines

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@cache
def module(name: str) -> ModuleType:
    """A script of docs/, imported."""
    sys.path.insert(0, str(DOCS))
    try:
        spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[spec.name] = made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made
    finally:
        sys.path.remove(str(DOCS))


pages = module("pages")


def test_every_page_is_in_the_navigation_and_every_link_leads_somewhere() -> None:
    assert pages.faults() == []


def test_faults_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A page\n\n[b](b.md) [c](c.md#none) [here](#a-page)\n")
    (tmp_path / "docs" / "c.md").write_text("# C\n")
    for name in ("README.md", *pages.TAKEN_IN.values()):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "settings", lambda: {"nav": [{"A": "a.md"}, {"D": "d.md"}]})
    assert pages.faults() == [
        "mkdocs.yml: not in the navigation: c.md",
        "mkdocs.yml: there is no d.md",
        "docs/a.md: b.md",
        "docs/a.md: c.md#none",
    ]


def test_links_lead_to_pages_of_the_site() -> None:
    text = "[a](../../SECURITY.md) [b](../schema.md#keywords) [c](../../examples/tools.py) \n"
    led = "[a](../security.md) [b](../schema.md#keywords) "
    led += "[c](https://github.com/toolgram/toolgram/blob/main/examples/tools.py)"
    assert pages.relinked(text, "guides/gguf.md").startswith(led)


def test_llms_txt_names_every_page_with_what_it_is_about() -> None:
    lines = [line for line in pages.llms().splitlines() if line.startswith("- ")]
    matched = [re.fullmatch(r"- \[[^\]]+\]\((\S+\.md)\): (.{20,})", line) for line in lines]
    assert all(matched), [line for line, found in zip(lines, matched, strict=True) if found is None]
    assert [found[1] for found in matched if found is not None] == [page.path for page in pages.navigation()]


def test_lists_and_tables_begin_after_an_empty_line() -> None:
    """Python-Markdown takes them for text otherwise."""
    for path in sorted(DOCS.rglob("*.md")):
        text = re.sub(r"^```.*?^```$", "```", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for before, line in zip(text.splitlines(), text.splitlines()[1:], strict=False):
            begins = re.match(r"([-*] |\d+\. |\|)", line)
            goes_on = not before.strip() or re.match(r"([-*] |\d+\. |\|| {2,}\S|<!-- )", before)
            assert not begins or goes_on, f"{path.name}: {line[:60]}"


@pytest.mark.parametrize("name", list(module("pictures").DRAWN))
def test_a_picture_is_as_it_would_be_drawn_now(name: str, request: pytest.FixtureRequest) -> None:
    file, drawn = DOCS / "pictures" / f"{name}.svg", module("pictures").DRAWN[name]()
    if request.config.getoption("--update-golden"):
        file.write_text(drawn, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == drawn, "python docs/pictures.py draws it anew"


def test_every_picture_is_shown() -> None:
    shown = "\n".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *DOCS.rglob("*.md")])
    for path in (DOCS / "pictures").glob("*.svg"):
        assert path.name == "icon.svg" or f"pictures/{path.name})" in shown, path.name


def test_the_reference_has_the_whole_public_api() -> None:
    named = set(re.findall(r"^::: (\S+)$", (DOCS / "reference/api.md").read_text(), re.MULTILINE))
    public = {
        f"{package.__name__}.{name}"
        for package in (toolgram, toolgram.engines, toolgram.agent)
        for name in package.__all__
        if name != "__version__"
    }
    assert public <= named, public - named
    for package in (toolgram, toolgram.engines, toolgram.agent):
        assert [name for name in package.__all__ if not hasattr(package, name)] == []


def texts_of_the_source() -> list[str]:
    """Every text in the source, with … where a value is put in."""
    found = list[str]()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
                found.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_each_message_of_the_troubleshooting_is_one_of_the_source() -> None:
    text = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    messages = [found[2].strip() for found in re.finditer(r"^\*\*(`+)(.+?)\1\*\*$", text, re.MULTILINE)]
    assert len(messages) > 40
    source = texts_of_the_source()
    for message in messages:
        words = re.compile(".*".join(re.escape(part) for part in message.split("…")), re.DOTALL)
        assert any(words.search(each) for each in source), message
