"""Outputs of models to be read: of any length, in any style, cut as a tokenizer cuts."""

from __future__ import annotations

import codecs
import json
import os
import random
from functools import cache

import toolgram
from _common import CHATML, Tool, request
from toolgram.engines.llama_cpp import ffi
from toolgram.engines.llama_cpp.vocabulary import Vocabulary
from toolgram.models import catalog
from toolgram.planning.readable_names import some_id

SAVE: Tool = {
    "type": "function",
    "function": {
        "name": "save_report",
        "description": "Keeps a report",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}
_SPEECH = (
    "the of and to a in is was for on with order report weather customer invoice shipped tomorrow because Vienna "
    'Łódź 17 2026 3.5 (late) "again" x<y <b>not</b> it\'s C:\\temp — therefore, finally.\n item: 😀 total; unless'
)
_WORDS = _SPEECH.split(" ")


def plan_for(style: str) -> toolgram.Plan:
    """A plan with one tool that takes a long text."""
    return toolgram.plan(request([SAVE]), CHATML, style)


def output(plan: toolgram.Plan, tokens: int) -> str:
    """A turn of about so many tokens: one half is text, the other the string argument of a call.

    The text is reasoning where the style has no place for content beside a call; the call is all of the turn where it
    has none for reasoning either.
    """
    half = _prose(tokens // 2)
    call_id = some_id("save_report", plan.style.wire)
    call = toolgram.ToolCall("save_report", json.dumps({"text": half}), call_id)
    alone = toolgram.ToolCall("save_report", json.dumps({"text": _prose(tokens)}), call_id)
    turns = (
        toolgram.Message(half, None, (call,)),
        toolgram.Message(None, half, (call,)),
        toolgram.Message(None, None, (alone,)),
    )
    for message in turns:
        if (written := plan.write(message)) is not None:
            return written
    raise ValueError(f"{plan.style.name} cannot write a call")


def _prose(tokens: int) -> str:
    chance = random.Random(tokens)
    return " ".join(chance.choice(_WORDS) for _ in range(tokens * 3 // 5))


def cut(text: str) -> list[str]:
    """The text in pieces as a model would write them: SmolLM2's tokens if its file is there, else runs of letters."""
    vocabulary = _smollm2()
    if vocabulary is None:
        chance = random.Random(0)
        pieces: list[str] = []
        at = 0
        while at < len(text):
            pieces.append(text[at : (at := at + chance.randint(1, 7))])
        return pieces
    decoder = codecs.getincrementaldecoder("utf-8")()
    decoded = (decoder.decode(vocabulary.pieces[token]) for token in vocabulary.tokenize(((text, False),)))
    return [piece for piece in decoded if piece]


def cutter() -> str:
    """What `cut` cuts like."""
    return "tokens of SmolLM2" if _smollm2() else "pieces of 1 to 7 characters (SmolLM2 is not in the cache)"


@cache
def _smollm2() -> Vocabulary | None:
    path = catalog.cached(catalog.DEFAULT)
    if path is None:
        return None
    library = ffi.library().c
    parameters = library.llama_model_default_params()
    parameters.vocab_only = True
    return Vocabulary.of_model(library.llama_model_load_from_file(os.fsencode(path), parameters))
