"""Is a grammar enforced: each forbids what a model would write, and the prompt does not tell of it."""

from __future__ import annotations

from toolgram.doctor import judges
from toolgram.doctor.probe import Ask, Probe
from toolgram.doctor.probes.common import CAPITAL, Json, in_schema, said

NOTHING_ENFORCED = (
    "a llama-server or a vLLM enforces grammars, and so does toolgram with the model's GGUF file: "
    "toolgram serve --model FILE.gguf"
)
_BANANA: Json = {
    "type": "object",
    "properties": {
        "color": {"enum": ["crimson", "teal"]},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
        "sizes": {"type": "array", "items": {"type": "integer", "maximum": 9}, "minItems": 2, "maxItems": 3},
    },
    "required": ["color", "code", "sizes"],
}
_LARGE: Json = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": f"zq{n}"}, "size": {"type": "number"}, "note": {"enum": ["a", f"b{n}"]}},
            "required": ["kind", "size", "note"],
        }
        for n in range(100)
    ]
}

GRAMMARS = (
    Probe(
        "grammar",
        "enforced",
        "Is a grammar that forbids the natural answer enforced?",
        (Ask(CAPITAL.body, hidden={"type": "regex", "regex": "zq[0-9]{6}"}),),
        judges.kept,
        NOTHING_ENFORCED,
    ),
    Probe(
        "choice",
        "enforced",
        "Is the answer one of those allowed?",
        (Ask(said("Is snow white? Answer yes or no."), hidden={"type": "choice", "choice": ["purple", "orange"]}),),
        judges.kept,
    ),
    Probe(
        "bounds",
        "enforced",
        "Are numbers within their bounds?",
        (
            Ask(
                said("How many days has a week? Answer with a number."),
                hidden=in_schema({"type": "integer", "minimum": 100, "maximum": 120}),
            ),
        ),
        judges.kept,
    ),
    Probe(
        "schema",
        "enforced",
        "Is an answer in a schema valid?",
        (Ask(said("Describe a banana in JSON."), hidden=in_schema(_BANANA)),),
        judges.kept,
    ),
    Probe(
        "large_grammar",
        "enforced",
        "Is a large grammar taken?",
        (Ask(said("Describe a box in JSON."), hidden=in_schema(_LARGE)),),
        judges.in_time(judges.kept),
    ),
    Probe(
        "json_object",
        "enforced",
        "Is a JSON object one?",
        (Ask(said("Where is Paris?", response_format={"type": "json_object"})),),
        judges.valid,
    ),
)
