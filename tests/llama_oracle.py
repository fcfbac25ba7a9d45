"""llama.cpp's own grammar reader and recogniser out of the shared object of xllamacpp, and walks through it; no model.

The symbols are C++ of that one version. Only grammars without left recursion may go in: llama.cpp takes all memory on
a hidden one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

_POOL = '"}]{[:, aeZ019-.+\\/_\n\té😀'
_CLOSERS = '"}]:'
_CHAR, _NOT, _UPTO, _OR = 3, 4, 5, 6  # the kinds of llama_grammar_element that speak of characters
_VECTOR = 3 * ctypes.sizeof(ctypes.c_void_p)


@lru_cache(maxsize=1)
def _library() -> Any:
    spec = find_spec("xllamacpp")
    assert spec is not None
    assert spec.origin is not None
    (path,) = Path(spec.origin).parent.glob("xllamacpp*.so")
    library = ctypes.CDLL(str(path))
    make = library._Z23llama_grammar_init_implPK11llama_vocabPKcS3_bPS3_mPKim
    make.restype = ctypes.c_void_p
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, *[ctypes.c_void_p] * 4]
    library._Z20llama_grammar_acceptP13llama_grammarj.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    library._Z24llama_grammar_get_stacksP13llama_grammar.argtypes = [ctypes.c_void_p]
    library._Z24llama_grammar_get_stacksP13llama_grammar.restype = ctypes.POINTER(ctypes.c_void_p)
    library._Z23llama_grammar_free_implP13llama_grammar.argtypes = [ctypes.c_void_p]
    library._Z24llama_grammar_clone_implRK13llama_grammar.argtypes = [ctypes.c_void_p]
    library._Z24llama_grammar_clone_implRK13llama_grammar.restype = ctypes.c_void_p
    return library


def gbnf_accepts(gbnf: str, text: str) -> bool:
    """Whether llama.cpp takes the whole text as a sentence. Raises ValueError for GBNF that it cannot read."""
    library, grammar = _library(), _read(gbnf)
    for char in text:
        library._Z20llama_grammar_acceptP13llama_grammarj(grammar, ord(char))
    done = any(map(_is_empty, _stacks(grammar)))
    library._Z23llama_grammar_free_implP13llama_grammar(grammar)
    return done


def _read(gbnf: str) -> int:
    grammar = _library()._Z23llama_grammar_init_implPK11llama_vocabPKcS3_bPS3_mPKim(
        None, gbnf.encode(), b"root", 0, None, None, None, None
    )
    if not grammar:
        raise ValueError(gbnf)
    return grammar


def _stacks(grammar: int) -> range:
    """Where the stacks of a grammar are; none is left where the text is no beginning of a sentence."""
    stacks = _library()._Z24llama_grammar_get_stacksP13llama_grammar(grammar)
    return range(stacks[0] or 0, stacks[1] or 0, _VECTOR)


def random_sentence(gbnf: str, rng: Random, long: int, longest: int) -> bytes | None:
    """A random walk through what llama.cpp takes, which after `long` characters tries to end.

    None after `longest` of them. Raises ValueError for GBNF that it cannot read, and where nothing may follow.
    """
    library, grammar = _library(), _read(gbnf)
    text = ""
    try:
        while len(text) < longest:
            stacks = _stacks(grammar)
            hurry = len(text) > long or rng.random() < 0.2
            done = any(map(_is_empty, stacks))
            if done and (hurry or len(stacks) == 1):
                return text.encode()
            named = [char for stack in stacks if not _is_empty(stack) for char in _next_chars(stack, rng)]
            candidates = [*rng.sample(named, len(named)), *rng.sample(_POOL, len(_POOL))]
            if hurry:
                candidates[:0] = _CLOSERS
            for char in candidates:
                after = library._Z24llama_grammar_clone_implRK13llama_grammar(grammar)
                library._Z20llama_grammar_acceptP13llama_grammarj(after, ord(char))
                fits = bool(_stacks(after))
                library._Z23llama_grammar_free_implP13llama_grammar(grammar if fits else after)
                if fits:
                    grammar, text = after, text + char
                    break
            else:
                if done:
                    return text.encode()
                raise ValueError(f"nothing that was tried may follow {text!r}")
        return None
    finally:
        library._Z23llama_grammar_free_implP13llama_grammar(grammar)


class _Element(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("value", ctypes.c_uint32))


def _next_chars(stack: int, rng: Random) -> list[str]:
    """Characters that stand in the grammar at the top of a stack: most may come next, those of a complement may not."""
    end = ctypes.c_void_p.from_address(stack + ctypes.sizeof(ctypes.c_void_p)).value
    assert end is not None
    at = ctypes.c_void_p.from_address(end - ctypes.sizeof(ctypes.c_void_p)).value
    assert at is not None
    found: list[int] = []
    while (element := _Element.from_address(at)).kind in (_CHAR, _NOT, _UPTO, _OR):
        if found and element.kind in (_CHAR, _NOT):
            break
        found.append(rng.randint(found[-1], element.value) if element.kind == _UPTO else element.value)
        at += ctypes.sizeof(_Element)
    return [chr(code) for code in found if not 0xD800 <= code <= 0xDFFF]


def gbnf_accepted(gbnf: str, texts: Iterable[str]) -> set[str]:
    """Those of the texts that llama.cpp takes as a sentence."""
    return {text for text in texts if gbnf_accepts(gbnf, text)}


def _is_empty(vector: int) -> bool:
    begin, end, _ = (ctypes.c_void_p * 3).from_address(vector)
    return begin == end
