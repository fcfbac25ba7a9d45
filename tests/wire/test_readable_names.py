"""That formats of which it is said that they read all words as names do: asked name by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

import toolgram
from toolgram.planning import readable_names
from toolgram.planning.readable_names import is_readable
from toolgram.styles.registry import all_styles
from toolgram.wire import format as wire
from toolgram.wire.after_words import with_calls_after_words
from toolgram.wire.encodings import JSON
from toolgram.wire.unclosed import closed_by_calls

WORDS = (
    *("name", "arguments", "parameters", "tool_call", "call", "end", "user", "functions", "to", "json", "id", "type"),
    *("a", "0", "-", "_", "assistant", "commentary", "null", "True", "x" * 256, "get-weather_2"),
)


@pytest.mark.parametrize("style", all_styles(), ids=lambda style: style.name)
def test_what_reads_words_reads_each(style: toolgram.ToolStyle):
    for word in WORDS:
        assert is_readable(word, style.wire) == readable_names._reads_back(word, style.wire)


@pytest.mark.parametrize("style", all_styles(), ids=lambda style: style.name)
def test_so_it_is_where_calls_of_offered_tools_end_thoughts_or_words(style: toolgram.ToolStyle):
    """For all sets of tools alike, so that it is found once."""
    formats = [closed_by_calls(style.wire, offered) for offered in (WORDS[:8], WORDS[8:], ("zq",))]
    if style.calls_after_words is not None:
        formats += [with_calls_after_words(style.wire, style.calls_after_words, offered) for offered in (WORDS, ("a",))]
    for format_ in formats:
        assert [is_readable(word, format_) for word in WORDS] == [
            readable_names._reads_back(word, format_) for word in WORDS
        ]
    assert len({replace(each, turn=readable_names._of_any_tools(each.turn)) for each in formats[:3]}) == 1


def test_where_another_way_begins_like_a_name_each_is_asked_by_itself():
    call = wire.Call(wire.Seq(wire.Mark("to="), wire.Name(), wire.Lit(" "), wire.Arguments(JSON)))
    other = wire.Seq(wire.Mark("to=user{"), wire.Content())
    format_ = wire.WireFormat(wire.Alt(call, other))
    assert not readable_names._reads_words(format_)
    assert is_readable("weather", format_)


def test_a_name_that_is_too_long_is_asked_for_by_itself():
    style = next(style for style in all_styles() if style.name == "hermes")
    assert is_readable("x" * 300, style.wire) == readable_names._reads_back("x" * 300, style.wire)


def test_in_nearly_all_formats_no_name_need_be_asked_for():
    asked = {style.name for style in all_styles() if not readable_names._reads_words(style.wire)}
    # Where `all` is no tool, and where a call begins with the name of one that is offered.
    assert asked == {"functionary_v2", "functionary_v3", "glm_4"}
