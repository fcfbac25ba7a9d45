"""Make any open-weight model call tools and answer in a schema, correctly by construction."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolgram.chat import generate, stream
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


# Loaded when used: the command's help needs none of it, a template no schemas, and plans no asyncio.
_WHERE = {
    "toolgram.chat": ("generate", "stream"),
    "toolgram.conversation.message": ("CustomToolCall", "Message", "ToolCall"),
    "toolgram.grammar.grammar": ("Grammar",),
    "toolgram.planning.plan": ("Plan", "plan"),
    "toolgram.planning.profile": ("Profile",),
    "toolgram.schema": ("schema_grammar",),
    "toolgram.styles.base": ("ToolStyle",),
    "toolgram.styles.registry": ("register_style", "style_names"),
    "toolgram.template.chat_template": ("ChatTemplate",),
}
_MODULES = {name: module for module, names in _WHERE.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULES.get(name, "toolgram.errors")), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
