"""The tasks of `_agent_tasks` through another framework of agents, which asks a server: one line of JSON for each.

    python _agent_peers.py pydantic-ai|openai-agents URL SHOP MODEL COUNT

It waits for a line on stdin before each task, so that the server can count what each one costs.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from _agent_tasks import FUNCTIONS, INSTRUCTIONS, STEPS, TASKS, TOKENS, Task, operations

Run = Callable[[Task, list[Callable[..., Any]]], Any]


def pydantic_ai(url: str, model: str) -> Run:
    """The task as an agent of pydantic-ai."""
    from pydantic_ai import Agent, ModelRetry, UsageLimits
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    asked = OpenAIChatModel(model, provider=OpenAIProvider(base_url=url, api_key="none"))

    def told(tool: Callable[..., Any]) -> Callable[..., Any]:
        """The tool, whose errors are told to the model, as the others do by themselves."""

        @wraps(tool)
        def call(**arguments: Any) -> Any:
            try:
                return tool(**arguments)
            except Exception as error:
                raise ModelRetry(f"{type(error).__name__}: {error}") from error

        return call

    def run(task: Task, tools: list[Callable[..., Any]]) -> Any:
        settings: Any = {"temperature": 0, "max_tokens": TOKENS}
        agent = Agent(
            asked,
            output_type=task.answer,
            tools=[told(each) for each in tools],
            instructions=INSTRUCTIONS,
            model_settings=settings,
        )
        return agent.run_sync(task.goal, usage_limits=UsageLimits(request_limit=STEPS)).output

    return run


def openai_agents(url: str, model: str) -> Run:
    """The task as an agent of openai-agents."""
    sys.path.remove(str(Path(__file__).parent))  # where another agents.py is
    from openai import AsyncOpenAI

    import agents

    agents.set_tracing_disabled(True)

    def run(task: Task, tools: list[Callable[..., Any]]) -> Any:
        agent = agents.Agent(
            "assistant",
            instructions=INSTRUCTIONS,
            tools=[agents.function_tool(each) for each in tools],
            model=agents.OpenAIChatCompletionsModel(model, AsyncOpenAI(base_url=url, api_key="none")),
            output_type=task.answer,
            model_settings=agents.ModelSettings(temperature=0, max_tokens=TOKENS),
        )
        return asyncio.run(agents.Runner.run(agent, task.goal, max_turns=STEPS)).final_output

    return run


def main() -> None:
    """All tasks, one after the other."""
    side, url, shop, model, count = sys.argv[1:]
    run = {"pydantic-ai": pydantic_ai, "openai-agents": openai_agents}[side](f"{url}/v1", model)
    tools = {**FUNCTIONS, **operations(shop)}
    for task in TASKS[: int(count)]:
        sys.stdin.readline()
        begun = time.monotonic()
        said: dict[str, Any] = {}
        try:
            said["answer"] = run(task, [tools[name] for name in task.tools]).model_dump()
        except Exception as error:  # noqa: BLE001 - a run that fails is a result
            said["error"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps({**said, "seconds": time.monotonic() - begun}), flush=True)


if __name__ == "__main__":
    main()
