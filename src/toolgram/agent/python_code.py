"""A tool that runs Python which a model wrote, in Monty: an interpreter without files, network and environment.

Monty (github.com/pydantic/monty) runs in a process of its own, knows a part of Python and of its standard library, and
limits time and memory.
"""

from __future__ import annotations

from toolgram.agent.calls import CallFailed
from toolgram.agent.tools import FunctionTool, InvalidTool, tool_of

_MEGABYTE = 1 << 20


def python_tool(seconds: float = 10.0, memory: int = 128 * _MEGABYTE, output: int = _MEGABYTE) -> FunctionTool:
    """The tool `python`: code runs for so many `seconds`, in so many bytes of `memory`, and prints so many bytes.

    Each call begins anew. Raises InvalidTool where pydantic-monty is not installed.
    """
    try:
        from pydantic_monty import CollectString, Monty, MontyError, ResourceLimits
    except ImportError as error:
        raise InvalidTool(
            "the tool python needs a package that is not installed: pip install 'toolgram[python]'"
        ) from error

    def python(code: str) -> str:
        """Run Python code without files, network and packages; gives what it prints, and its last expression's value.

        Args:
            code: Python, such as "sum(n * n for n in range(10))".
        """
        printed = CollectString(output)
        limits = ResourceLimits(max_feed_duration_secs=seconds, max_memory=memory, max_suspensions=1000)
        try:
            # Not its asynchronous form, which at times aborts the whole process at its end (1.4.0).
            with Monty(max_processes=1) as pool, pool.checkout(limits=limits, os_policy={"sleep": "zero"}) as session:
                value = session.feed_run(code, print_callback=printed)
        except MontyError as error:
            raise CallFailed(f"{printed.output}{error}") from error
        return printed.output if value is None else f"{printed.output}{value!r}"

    return tool_of(python)
