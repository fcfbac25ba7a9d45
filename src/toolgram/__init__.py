"""Make any open-weight model call tools and answer in a schema, correctly by construction."""

from toolgram.conversation.message import CustomToolCall, Message, ToolCall
from toolgram.errors import (
    EngineError,
    GrammarError,
    InvalidRequest,
    InvalidSchema,
    ModelError,
    Relaxation,
    TemplateError,
    ToolgramError,
    UnsupportedSchema,
)
from toolgram.grammar.grammar import Grammar
from toolgram.planning.plan import Plan, plan
from toolgram.schema import schema_grammar
from toolgram.styles.base import ToolStyle
from toolgram.styles.registry import register_style, styles
from toolgram.template.chat_template import ChatTemplate

__version__ = "0.1.0"

__all__ = [
    "ChatTemplate",
    "CustomToolCall",
    "EngineError",
    "Grammar",
    "GrammarError",
    "InvalidRequest",
    "InvalidSchema",
    "Message",
    "ModelError",
    "Plan",
    "Relaxation",
    "TemplateError",
    "ToolCall",
    "ToolStyle",
    "ToolgramError",
    "UnsupportedSchema",
    "__version__",
    "plan",
    "register_style",
    "schema_grammar",
    "styles",
]
