"""What a benchmark measured, kept as JSON: for plots (docs/plots.py), and to compare runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("toolgram", "llguidance", "xgrammar", "transformers", "xllamacpp")


def keep(path: Path | None, command: str, rows: Sequence[dict[str, Any]]) -> None:
    """Writes rows with the command that made them, the date and the versions of all that was measured; not to None."""
    if path is None:
        return
    versions = {name: found for name in PACKAGES if (found := _version(name)) is not None}
    kept = {"command": command, "date": f"{datetime.now(UTC):%Y-%m-%d}", "versions": versions, "rows": [*rows]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
