"""The terminals that `%import common.…` brings: `lark/grammars/common.lark` of Lark 1.2, as regular expressions."""

from __future__ import annotations

from collections.abc import Mapping

_INT = "[0-9]+"
_DECIMAL = r"(?:[0-9]+\.[0-9]*|\.[0-9]+)"
_EXPONENT = "[eE][+\\-]?[0-9]+"
_FLOAT = f"(?:{_INT}{_EXPONENT}|{_DECIMAL}(?:{_EXPONENT})?)"
_NUMBER = f"(?:{_FLOAT}|{_INT})"
_LETTER = "[a-zA-Z]"

COMMON: Mapping[str, str] = {
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[0-9a-fA-F]",
    "INT": _INT,
    "SIGNED_INT": f"[+\\-]?{_INT}",
    "DECIMAL": _DECIMAL,
    "FLOAT": _FLOAT,
    "SIGNED_FLOAT": f"[+\\-]?{_FLOAT}",
    "NUMBER": _NUMBER,
    "SIGNED_NUMBER": f"[+\\-]?{_NUMBER}",
    "ESCAPED_STRING": r'"(?:[^"\\\n]|\\[^\n])*"',
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "LETTER": _LETTER,
    "WORD": f"{_LETTER}+",
    "CNAME": "[a-zA-Z_][a-zA-Z_0-9]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(?:\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"\/\/[^\n]*",
    "C_COMMENT": r"\/\*(?:[^*]|\*+[^*\/])*\*+\/",
    "SQL_COMMENT": r"--[^\n]*",
}
