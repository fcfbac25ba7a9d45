"""Tools that run: Python functions as tools of a model."""

from toolgram.agent.tools import FunctionTool, InvalidTool, tool_of, tools_of

__all__ = ["FunctionTool", "InvalidTool", "tool_of", "tools_of"]
