"""openai-agents asks for tools that the server runs, and approves their calls: python with_hosted_mcp.py TASK.

The variable ADDRESS is the server's, which is configured with an MCP server named `demo`.
"""

from __future__ import annotations

import asyncio
import os
import sys

from openai import AsyncOpenAI

from agents import Agent, HostedMCPTool, OpenAIResponsesModel, Runner, set_tracing_disabled


async def main(task: str) -> None:
    """The task; prints the name of every call that was approved, and the last word."""
    set_tracing_disabled(True)
    model = OpenAIResponsesModel("recorded", AsyncOpenAI(base_url=f"{os.environ['ADDRESS']}/v1", api_key="any"))
    config = {"type": "mcp", "server_label": "demo", "server_url": "", "require_approval": "always"}

    def approve(request):
        print(request.data.name)  # noqa: T201 - a script
        return {"approve": True}

    agent = Agent("adder", model=model, tools=[HostedMCPTool(tool_config=config, on_approval_request=approve)])
    print((await Runner.run(agent, task)).final_output)  # noqa: T201 - a script
    streamed = Runner.run_streamed(agent, task)
    async for _ in streamed.stream_events():
        pass
    print(streamed.final_output)  # noqa: T201 - a script


asyncio.run(main(sys.argv[1]))
