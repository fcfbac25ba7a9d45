"""The header of a GGUF file: what a model says of itself, by keys.

GGUF: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The official reader makes a Python object of each token
of the vocabulary, which takes seconds; here arrays are skipped, and their places kept.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

STRING, INT32 = 8, 5
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", INT32: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_ARRAY = 9
_LONGEST_STRING = 1 << 24
_POINTER = b"version https://git-lfs."


class Array(NamedTuple):
    """An array that was skipped: the kind of its items, how many there are, and where in the file."""

    kind: int
    length: int
    offset: int


def metadata(path: Path) -> Mapping[str, Any]:
    """What a file says of its model, without arrays. Raises OSError, and ValueError for what is no GGUF file."""
    with path.open("rb") as file:
        return {key: value for key, value in fields(file).items() if not isinstance(value, Array)}


def numbers(file: BinaryIO, array: Array) -> tuple[Any, ...]:
    """What an array of numbers holds. Raises ValueError where it is none, or ends too early."""
    file.seek(array.offset)
    return tuple(_unpack(file, _scalar(array.kind)) for _ in range(array.length))


def fields(file: BinaryIO) -> dict[str, Any]:
    """All that it says. Raises ValueError for what is no GGUF file, or ends too early."""
    if (magic := file.read(4)) != b"GGUF":
        raise ValueError(_instead(magic + file.read(len(_POINTER) - len(magic))))
    if (version := _unpack(file, "I")) not in (2, 3):
        raise ValueError(f"it is of version {version}; must be little-endian GGUF 2 or 3")
    _tensors, count = _unpack(file, "Q"), _unpack(file, "Q")
    found: dict[str, Any] = {}
    for _ in range(count):
        key = string(file)
        found[key] = _value(file, _unpack(file, "I"))
    return found


def _instead(begin: bytes) -> str:
    """What a file is that is no GGUF file, by its first bytes."""
    if not begin:
        return "it is empty"
    if begin == _POINTER:
        return "it is a pointer of Git LFS, which stands for the file: `git lfs pull` fetches that"
    return f"it begins with {begin[:4]!r}, not with b'GGUF'"


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return string(file)
    if kind != _ARRAY:
        return _unpack(file, _scalar(kind))
    array = Array(_unpack(file, "I"), _unpack(file, "Q"), file.tell())
    if array.kind == STRING:
        skip_strings(file, array.length)
    elif array.kind == _ARRAY:
        for _ in range(array.length):
            _value(file, _ARRAY)
    else:
        file.seek(array.length * struct.calcsize(_scalar(array.kind)), 1)
    return array


def skip_strings(file: BinaryIO, count: int) -> None:
    """Go on behind so many strings. Raises ValueError where there are fewer."""
    read, seek = file.read, file.seek
    for _ in range(count):
        size = read(8)
        if len(size) < 8:
            raise ValueError("it ends inside its metadata")
        length = int.from_bytes(size, "little")
        # A short read stays in the buffer that the file object holds anyway.
        if length < 1024:
            read(length)
        else:
            seek(length, 1)


def string(file: BinaryIO, errors: str = "strict") -> str:
    """The string that begins here. Raises ValueError where it is none, or too long; `errors` are those of `decode`."""
    length = _unpack(file, "Q")
    if length > _LONGEST_STRING:
        raise ValueError(f"a string of {length} bytes in its metadata")
    data = file.read(length)
    if len(data) < length:
        raise ValueError("it ends inside its metadata")
    return data.decode("utf-8", errors)


def _scalar(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(f"a value of the unknown type {kind} in its metadata")
    return f"<{_SCALARS[kind]}"


def _unpack(file: BinaryIO, form: str) -> Any:
    form = form if form.startswith("<") else f"<{form}"
    data = file.read(size := struct.calcsize(form))
    if len(data) < size:
        raise ValueError("it ends inside its metadata")
    return struct.unpack(form, data)[0]
