"""openai-agents carries out a task in the current folder: python with_openai_agents.py TASK.

The variable ADDRESS is the server's, and KEY what it wants to be told, if it wants anything.
"""

from __future__ import annotations

import asyncio
import os
import sys

from files import edit, read, write
from openai import AsyncOpenAI

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled


async def main(task: str) -> None:
    """The task; prints the last word."""
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{os.environ['ADDRESS']}/v1", api_key=os.environ.get("KEY", "any"))
    model = OpenAIChatCompletionsModel("recorded", client)
    tools = [function_tool(tool) for tool in (read, edit, write)]
    ended = await Runner.run(Agent("mender", instructions="You mend files.", model=model, tools=tools), task)
    print(ended.final_output)  # noqa: T201 - a script


asyncio.run(main(sys.argv[1]))
