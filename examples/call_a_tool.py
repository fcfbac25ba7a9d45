"""A tool call from Python: request, plan, engine, reply. Run it after `pip install 'toolgram[embedded]'`."""

from pathlib import Path

import toolgram
from toolgram.agent import tools_of
from toolgram.chat import generate_sync
from toolgram.engines import LlamaCpp
from toolgram.engines.base import Sampling
from toolgram.models.catalog import default_model


def main() -> None:
    """Asks the default model, and prints the calls that it makes."""
    model = default_model()
    template = toolgram.ChatTemplate.from_gguf(model)
    request = {
        "messages": [{"role": "user", "content": "What will the weather be in Paris over the next three days?"}],
        "tools": tools_of(Path(__file__).with_name("tools.py")),
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    plan = toolgram.plan(request, template)
    reply = generate_sync(plan, LlamaCpp(model), Sampling(max_tokens=256))
    for call in reply.message.tool_calls:
        print(f"{call.name}({call.arguments})")


if __name__ == "__main__":
    main()
