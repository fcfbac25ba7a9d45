"""Make any open-weight model call tools and answer in a schema, correctly by construction."""

from importlib import import_module
from typing import TYPE_CHECKING

from toolgram.conversation.message import CustomToolCall, Message, ToolCall
from toolgram.errors import (
    EngineError,
    GrammarError,
    InvalidOutput,
    InvalidRequest,
    InvalidSchema,
    ModelError,
    ProfileError,
    Relaxation,
    TemplateError,
    ToolgramError,
    UnsupportedSchema,
)
from toolgram.grammar.grammar import Grammar
from toolgram.planning.plan import Plan, plan
from toolgram.planning.profile import Profile
from toolgram.schema import schema_grammar
from toolgram.styles.base import ToolStyle
from toolgram.styles.registry import register_style, style_names
from toolgram.template.chat_template import ChatTemplate

if TYPE_CHECKING:
    from toolgram.chat import generate, stream

__version__ = "0.1.0"

__all__ = [
    "ChatTemplate",
    "CustomToolCall",
    "EngineError",
    "Grammar",
    "GrammarError",
    "InvalidOutput",
    "InvalidRequest",
    "InvalidSchema",
    "Message",
    "ModelError",
    "Plan",
    "Profile",
    "ProfileError",
    "Relaxation",
    "TemplateError",
    "ToolCall",
    "ToolStyle",
    "ToolgramError",
    "UnsupportedSchema",
    "__version__",
    "generate",
    "plan",
    "register_style",
    "schema_grammar",
    "stream",
    "style_names",
]


def __getattr__(name: str) -> object:
    if name not in ("generate", "stream"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("toolgram.chat"), name)  # which loads asyncio: plans do without
