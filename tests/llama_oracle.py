"""llama.cpp's own grammar reader and recogniser, out of the shared object of xllamacpp; it needs no model.

The symbols are C++ of that one version. Only grammars without left recursion may go in: llama.cpp takes all memory on
a hidden one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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
    return library


def gbnf_accepts(gbnf: str, text: str) -> bool:
    """Whether llama.cpp takes the whole text as a sentence. Raises ValueError for GBNF that it cannot read."""
    library = _library()
    grammar = library._Z23llama_grammar_init_implPK11llama_vocabPKcS3_bPS3_mPKim(
        None, gbnf.encode(), b"root", 0, None, None, None, None
    )
    if not grammar:
        raise ValueError(gbnf)
    for char in text:
        library._Z20llama_grammar_acceptP13llama_grammarj(grammar, ord(char))
    stacks = library._Z24llama_grammar_get_stacksP13llama_grammar(grammar)
    done = any(_is_empty(stack) for stack in range(stacks[0] or 0, stacks[1] or 0, _VECTOR))
    library._Z23llama_grammar_free_implP13llama_grammar(grammar)
    return done


def gbnf_accepted(gbnf: str, texts: Iterable[str]) -> set[str]:
    """Those of the texts that llama.cpp takes as a sentence."""
    return {text for text in texts if gbnf_accepts(gbnf, text)}


def _is_empty(vector: int) -> bool:
    begin, end, _ = (ctypes.c_void_p * 3).from_address(vector)
    return begin == end
