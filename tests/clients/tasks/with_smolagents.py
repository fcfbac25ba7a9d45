"""smolagents carries out a task in the current folder: python with_smolagents.py TASK.

The variable ADDRESS is the server's.
"""

from __future__ import annotations

import os
import sys

from files import edit, read, write
from smolagents import OpenAIServerModel, ToolCallingAgent, tool


def main(task: str) -> None:
    """The task; prints the last word."""
    model = OpenAIServerModel("recorded", api_base=f"{os.environ['ADDRESS']}/v1", api_key="any")
    print(ToolCallingAgent([tool(read), tool(edit), tool(write)], model, verbosity_level=0).run(task))  # noqa: T201 - a script


main(sys.argv[1])
