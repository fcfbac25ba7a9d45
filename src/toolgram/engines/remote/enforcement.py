"""Whether a server keeps to grammars: it is told to write what no model writes by itself."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from toolgram.engines.base import Sampling
from toolgram.engines.remote.completions import Counted, completion, options
from toolgram.engines.remote.http import Http
from toolgram.errors import EngineError
from toolgram.grammar.constraint import Constraint
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import Text, choice, seq
from toolgram.grammar.matcher import Matcher

WORD = "qzxj"
PROBE = Constraint(Grammar({"root": choice(WORD, seq("zqjx", Text(("</q>",)), "</q>"))}))
"""With text up to a mark, which not every version of an engine can read."""


class NotEnforced(EngineError):
    """A server that takes grammars and does not keep to them."""


async def keeps_to_grammars(http: Http, body: Mapping[str, Any]) -> bool:
    """Whether a server writes what the probe allows; `body` has its model, and the probe as the server takes it.

    Raises EngineError where it cannot be asked, and Refused where it refuses.
    """
    asked = {"prompt": "1 + 1 =", **options(Sampling(max_tokens=16)), **body}
    async with aclosing(completion(http, asked, Counted(()))) as chunks:
        text = "".join([chunk.text async for chunk in chunks])
    return bool(text) and Matcher(PROBE.grammar.rules).viable(text)
