"""A style whose marker is a control token of SmolLM2: the embedded engine writes the token, not its letters."""

from __future__ import annotations

import asyncio

import toolgram
from situations import tool
from toolgram import ToolStyle
from toolgram.chat import Reply, stream
from toolgram.engines.base import Chunk, Sampling
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.models.catalog import default_model
from toolgram.wire.format import Arguments, Call, Content, Lit, Many, Mark, Name, Object, Opt, Seq, WireFormat

JSON = Object(("name", Name()), ("arguments", Arguments()))
CALL = Call(Seq(Mark("<jupyter_code>"), Lit("\n"), JSON, Lit("\n"), Mark("<jupyter_output>")))
STYLE = ToolStyle("cells", WireFormat(Seq(Opt(Content()), Many(CALL))), "calls in cells", lambda _: "Call a tool.")
CITY = {"type": "object", "properties": {"city": {"enum": ["Paris", "Oslo"]}}, "required": ["city"]}


async def collected(plan: toolgram.Plan) -> list[object]:
    async with LlamaCpp(default_model()) as engine:
        return [item async for item in stream(plan, engine, Sampling(max_tokens=60))]


def test_the_model_writes_the_token() -> None:
    request = {
        "messages": [{"role": "user", "content": "Weather in Oslo?"}],
        "tools": [tool("get_weather", CITY)],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    plan = toolgram.plan(request, toolgram.ChatTemplate.from_gguf(default_model()), STYLE)
    items = asyncio.run(collected(plan))
    tokens = [token for item in items if isinstance(item, Chunk) for token in item.tokens]
    assert (tokens.count(13), tokens.count(14)) == (1, 1)  # <jupyter_code> and <jupyter_output> in SmolLM2's vocabulary
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert reply.text.startswith('<jupyter_code>\n{"name": "get_weather", "arguments": {"city": "')
    assert [call.name for call in reply.message.tool_calls] == ["get_weather"]
