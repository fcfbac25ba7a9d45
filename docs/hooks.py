"""What MkDocs calls while it builds the site (`hooks` of mkdocs.yml)."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import pages


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are files of the repository's root."""
    for page in pages.TAKEN_IN:
        files.append(File.generated(config, page, content=pages.source(page).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leads links to files of the repository to their pages."""
    return pages.relinked(markdown, page.file.src_uri)


def on_page_content(html: str, **_: Any) -> str:
    """Takes the backslash from pipes in tables, where GitHub needs one and Python-Markdown shows it."""
    return re.sub(r"<td[ >].*?</td>", lambda cell: cell[0].replace("\\|", "|"), html, flags=re.DOTALL)


def on_post_build(config: Any) -> None:
    """Writes `llms.txt`, and each page as Markdown beside its HTML, where `llms.txt` finds it."""
    site = Path(config["site_dir"])
    for page in pages.navigation():
        target = site / page.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(pages.relinked(pages.source(page.path).read_text(encoding="utf-8"), page.path), "utf-8")
    (site / "llms.txt").write_text(pages.llms(), encoding="utf-8")
