"""The pages of the documentation: their order, what they link to, and `llms.txt`.

    python docs/pages.py

prints what is wrong: a page that the navigation of mkdocs.yml does not name, a link that leads nowhere. It needs no
MkDocs.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/toolgram/toolgram/blob/main/"
TAKEN_IN = {"changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md", "contributing.md": "CONTRIBUTING.md"}
"""Pages of the site that are files of the repository's root."""

_FENCED = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?P<target>[^)\s]+)(?=\))")
_HEADING = re.compile(r"^#{1,6} (.+?)(?: \{#(?P<id>[\w-]+)\})?$", re.MULTILINE)
_ELSEWHERE = ("http://", "https://", "mailto:")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the navigation: its place under docs/, its title there, and the titles of the sections above it."""

    path: str
    title: str
    sections: tuple[str, ...] = ()


@cache
def settings() -> dict[str, Any]:
    """What mkdocs.yml says."""
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def navigation() -> list[Page]:
    """The pages, in the order of the navigation."""
    return list(_named(settings()["nav"], ()))


def _named(items: list[Any], sections: tuple[str, ...]) -> Iterator[Page]:
    for item in items:
        [(title, inner)] = item.items()
        if isinstance(inner, list):
            yield from _named(inner, (*sections, title))
        else:
            yield Page(inner, title, sections)


def source(path: str) -> Path:
    """The file of a page."""
    return ROOT / TAKEN_IN[path] if path in TAKEN_IN else ROOT / "docs" / path


def on_site(document: str) -> str | None:
    """The page that a file of the repository is on the site, None for one that is no page."""
    taken = {file: page for page, file in TAKEN_IN.items()}
    if document.startswith("docs/") and document.endswith((".md", ".svg")):
        return document.removeprefix("docs/")
    return taken.get(document)


def relinked(text: str, page: str) -> str:
    """The text of a page whose links to files of the repository lead to their pages, or to the repository."""
    file = source(page).relative_to(ROOT).as_posix()

    def led(found: re.Match[str]) -> str:
        target, mark, place = found["target"].partition("#")
        if not target or target.startswith(_ELSEWHERE):
            return found["target"]
        document = normpath(str(PurePosixPath(file).parent / target))
        inner = on_site(document)
        if inner is None:
            return f"{REPOSITORY}{document}{mark}{place}"
        return f"{relpath(inner, str(PurePosixPath(page).parent))}{mark}{place}"

    pieces, at = list[str](), 0
    for fence in _FENCED.finditer(text):
        pieces += [_LINK.sub(led, text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*pieces, _LINK.sub(led, text[at:])])


def anchors(text: str) -> set[str]:
    """The places of a page that can be linked to, as Python-Markdown names them."""
    headings = _HEADING.finditer(_FENCED.sub("", text))
    return {found["id"] or slug(found[1]) for found in headings}


def slug(heading: str) -> str:
    """A heading as the end of an address."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def dead_links(document: str) -> list[str]:
    """The links of a file of the repository that lead to no file, or to no heading of it."""
    path = ROOT / document
    dead = list[str]()
    for found in _LINK.finditer(_FENCED.sub("", path.read_text(encoding="utf-8"))):
        target, _, place = found["target"].partition("#")
        if found["target"].startswith(_ELSEWHERE):
            continue
        file = (path.parent / target).resolve() if target else path
        is_there = file.exists() and (not place or place in anchors(file.read_text(encoding="utf-8")))
        dead += [] if is_there else [f"{document}: {found['target']}"]
    return dead


def faults() -> list[str]:
    """What is wrong with the navigation and the links."""
    named = [page.path for page in navigation()]
    there = [path.relative_to(ROOT / "docs").as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
    wrong = [f"mkdocs.yml: twice in the navigation: {path}" for path in {*named} if named.count(path) > 1]
    wrong += [f"mkdocs.yml: not in the navigation: {path}" for path in there if path not in named]
    wrong += [f"mkdocs.yml: there is no {path}" for path in named if not source(path).exists()]
    documents = ["README.md", *TAKEN_IN.values(), *(f"docs/{path}" for path in there)]
    return wrong + [link for document in documents for link in dead_links(document)]


def about(text: str) -> str:
    """The first paragraph of a page, on one line, without its links."""
    body = re.sub(r"<!--.*?-->", "", _FENCED.sub("", text), flags=re.DOTALL)
    paragraphs = [each.strip() for each in body.split("\n\n")]
    first = next((each for each in paragraphs if each and not each.startswith(("#", "|", "!", "-", "[!"))), "")
    return " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", first).split())


def llms() -> str:
    """`llms.txt` (https://llmstxt.org): the pages as Markdown, with what each is about, in the navigation's order."""
    lines = [f"# {settings()['site_name']}", "", f"> {settings()['site_description']}"]
    section: tuple[str, ...] | None = None
    for page in navigation():
        if page.sections != section:
            section = page.sections
            lines += ["", f"## {': '.join(section) or 'Begin here'}", ""]
        lines.append(f"- [{page.title}]({page.path}): {about(source(page.path).read_text(encoding='utf-8'))}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    found = faults()
    print("\n".join(found) or "Every page is in the navigation, and every link leads somewhere.")
    sys.exit(bool(found))
