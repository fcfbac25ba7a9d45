"""Free text in Lark: read by its own steps as by the automaton of a lexer, and rules that other tokens leave alone."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from toolgram.grammar.dialects.lark.lexing.alphabet import Alphabet
from toolgram.grammar.dialects.lark.lexing.automaton import Automaton
from toolgram.grammar.dialects.lark.lexing.free_text import CharReader, FreeText
from toolgram.grammar.dialects.lark.lower import lower
from toolgram.grammar.ir import END, START, Expr, Literal, Ref, Rules, Text, Token, choice, seq

_MARKS = st.lists(st.from_regex(f"{START}?[ab<]{{1,4}}{END}?", fullmatch=True), min_size=1, max_size=5, unique=True)


def _read(reader: CharReader[object], text: str) -> Iterator[tuple[bool, int]]:
    place: object | None = reader.start
    for char in text:
        place = reader.after(place, char)
        if place is None:
            return
        yield reader.accepts(place), reader.next(place)


@given(_MARKS, st.sampled_from(["", "<", "ab", "<a<a"]), st.lists(st.text("ab<c", max_size=8), min_size=1))
def test_it_is_read_as_by_the_automaton_of_a_lexer(marks: list[str], end: str, texts: list[str]) -> None:
    expr = seq(Text(tuple(marks), START), *([end] if end else []))
    alphabet = Alphabet((expr, *map(Literal, texts)), {})
    free = FreeText.of(expr, alphabet)
    assert free is not None
    for text in texts:
        assert [*_read(free, text)] == [*_read(Automaton(expr, alphabet, {}), text)]


def _call(name: str, *parameters: str) -> Expr:
    """A call whose parameters stand in tags of their names, which are tokens."""
    marked = (seq(Token(f"<{each}>"), Text(("</",)), "</", f"{each}>") for each in parameters)
    return seq(f"<call>{name}\n", *marked, "</call>")


def _calls(**tools: str) -> Rules:
    made = {f"{name}-call": _call(name, *parameters.split()) for name, parameters in tools.items()}
    return {"root": choice(*map(Ref, made)), **made}


def test_a_tool_whose_parameters_are_tokens_of_their_own_leaves_other_calls_as_they_are() -> None:
    before = lower(_calls(find="where what", go="where")).tree
    after = lower(_calls(find="where what", go="where", see="who")).tree
    assert "see-call" in after
    assert all(after[name] is node for name, node in before.items() if name != "root")
    spelled = lower(_calls(find="where what", go="where", see="/where")).tree  # a token that stands in their texts
    assert spelled["go-call"] is not before["go-call"]
