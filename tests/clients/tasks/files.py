"""The tools that Python agents are given: reading, editing and writing files of the current folder."""

from __future__ import annotations

from pathlib import Path


def read(file: str) -> str:
    """The text of a file.

    Args:
        file: its name
    """
    return Path(file).read_text(encoding="utf-8")


def edit(file: str, old: str, new: str) -> str:
    """Puts one word in the place of another.

    Args:
        file: its name
        old: the word that is there
        new: the word to put there
    """
    Path(file).write_text(read(file).replace(old, new), encoding="utf-8")
    return "edited"


def write(file: str, text: str) -> str:
    """Writes a file.

    Args:
        file: its name
        text: all that it is to hold
    """
    Path(file).write_text(text, encoding="utf-8")
    return "written"
