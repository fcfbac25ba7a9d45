"""Where the data of the benchmarks is: schemas, recorded turns and tools in conformance/, chat templates in templates/.

The variable TOOLGRAM_DATA names the folder. Without it that is the folder `shared` beside the checkout, or else what
`benchmarks/fetch.py` fetched into .data.
"""

from __future__ import annotations

import os
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
FETCHED = _ROOT / ".data"


def folder() -> Path:
    """The folder, which may not be there."""
    beside = _ROOT.parent / "shared"
    named = os.environ.get("TOOLGRAM_DATA")
    return Path(named) if named else beside if beside.is_dir() else FETCHED
