"""A tool call from Python, and its result. Run it after `pip install 'toolgram[embedded,agent]'`."""

from pathlib import Path

import toolgram
from toolgram.agent import tools_of
from toolgram.chat import generate_sync
from toolgram.engines import LlamaCpp
from toolgram.engines.base import Sampling
from toolgram.models.catalog import default_model


def main() -> None:
    """Asks the default model, and prints the calls that it makes, and what comes of them."""
    model = default_model()
    template = toolgram.ChatTemplate.from_gguf(model)
    tools = {tool.name: tool for tool in tools_of(Path(__file__).with_name("tools.py"))}
    request = {
        "messages": [{"role": "user", "content": "What will the weather be in Paris over the next three days?"}],
        "tools": [tool.to_openai() for tool in tools.values()],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    plan = toolgram.plan(request, template)
    reply = generate_sync(plan, LlamaCpp(model), Sampling(max_tokens=256))
    for call in reply.message.tool_calls:
        tool = tools[call.name]
        print(f"{call.name}({call.arguments})")
        print(tool.function(**tool.arguments(call.arguments)))


if __name__ == "__main__":
    main()
