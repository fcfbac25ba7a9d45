"""Grammars in Lark as regular expressions, beside llguidance, which reads Lark itself."""

from __future__ import annotations

import contextlib
import json
import re
import time

import pytest

import toolgram
from oracles import lark_accepts
from toolgram.conversation.lark_patterns import as_pattern
from toolgram.errors import GrammarError

EDITS = """\
start: "begin" LF edit+ "end" LF?

edit: added | removed | changed
added: "add " path LF new_line+
removed: "remove " path LF
changed: "change " path LF moved? (place | line)+ bottom?
path: /(.+)/
new_line: "+" /(.*)/ LF -> line

moved: "to " path LF
place: ("@" | "@ " /(.+)/) LF
line: ("+" | "-" | " ") /(.*)/ LF
bottom: "bottom" LF

%import common.LF
"""
"""Edits of files in the manner in which coding agents ask for patches."""

SUM = """\
// sums of products
?start: product (("+" | "-") product)*
product: NUMBER ("*" NUMBER)*   -> times
       | "(" NUMBER ")"         # one alone
NUMBER.2: /[0-9]{1,3}/
%ignore " "
"""

CASES = {
    "edits": (
        EDITS,
        [
            "begin\nadd a.py\n+x = 1\n+\nend",
            "begin\nremove b\nend\n",
            "begin\nchange é\nto c d\n@ def f():\n-a\n+b\n c\nbottom\nadd e\n+\nend",
        ],
        ["begin\nend", "begin\nadd a.py\nx\nend", "begin\nadd \n+x\nend", "begin\nremove b\nend\n\n"],
    ),
    "what is ignored": (SUM, ["1", "1+ 2 *  3 - (4)", "12 "], ["", " 1", "1 2", "1000", "(1+2)", "1\n"]),
    "left recursion": ('start: item | start "," item\nitem: "a" | "b"\n', ["a", "a,b,a"], ["", ",a", "a,"]),
    "right recursion": ('start: item "," start | item\nitem: "a" | "b"\n', ["a", "a,b,a"], ["", ",a", "a,"]),
    "both": ('start: start "+" start | "-" start | start "!" | "x"\n', ["x", "--x!+x!!"], ["", "x-x", "!x", "x+"]),
    "counts": ('start: "a"~2 "b"~1..2 ["c"]\n', ["aab", "aabbc"], ["ab", "aabbb", "aabcc"]),
    "ranges and cases": ('start: "a".."f"+ "x"i /[k-m]+/i\n', ["acxk", "fXKlM"], ["gxk", "ayk", "ax"]),
    "terminals of terminals": (
        'start: PAIR (";" PAIR)*\nPAIR: _KEY "=" (INT | ESCAPED_STRING)\n_KEY: LETTER+\n%import common (INT, LETTER)\n'
        "%import common.ESCAPED_STRING\n%ignore / +/\n",
        ["a=1", 'ab="x\\"y" ; c=22'],
        ["a = 1", "a=", '"a"=1', "a=1;"],
    ),
    "itself": ('start: start | "a"\n', ["a"], ["", "aa"]),
    "nothing at all": ('start: | "a" start\n', ["", "a", "aa"], ["b"]),
    "dots over lines": ("start: /a.b/s | /a.c/\n", ["a\nb", "axb", "axc"], ["a\nc", "ab"]),
    "named groups": (r"start: /(?P<y>\d{4})-\d\d/ " + "\n", ["2026-11"], ["26-11"]),
}

DOUBLED = "start: r0\n" + "".join([f"r{n}: r{n + 1} r{n + 1}\n" for n in range(20)]) + 'r20: "a"\n'


def takes(pattern: str, text: str) -> bool:
    grammar = toolgram.schema_grammar({"type": "string", "pattern": f"^{pattern}$"})
    return grammar.accepts(json.dumps(text, ensure_ascii=False))


@pytest.mark.parametrize("name", CASES)
def test_a_pattern_takes_what_the_grammar_takes(name: str) -> None:
    lark, good, bad = CASES[name]
    pattern = as_pattern(lark)
    assert [text for text in good if not takes(pattern, text)] == []
    assert [text for text in bad if takes(pattern, text)] == []


@pytest.mark.parametrize("name", sorted(set(CASES) - {"nothing at all", "itself"}))
def test_llguidance_takes_it_too(name: str) -> None:
    lark, good, bad = CASES[name]
    lark = lark.replace("NUMBER.2", "NUMBER").replace("# one alone", "")  # which it does not read
    assert [text for text in good if not lark_accepts(lark, text)] == []
    assert [text for text in bad if lark_accepts(lark, text)] == []


@pytest.mark.parametrize(
    ("lark", "offset", "says"),
    [
        ("begin: /a/\n", 0, "no rule named start"),
        ("start: a\n", 7, "a is not defined"),
        ('start: "(" start ")" | "x"\n', 11, "start → start: a rule may hold itself only as the first or the last"),
        ('start: a\na: "x" b | "y"\nb: a "z"\n', 27, "a → b → a"),
        ('start: "a" start\n', None, "start never ends"),
        ('start: "a"\nstart: "b"\n', 11, "start is defined twice"),
        ('start: ("a"\n', 11, "expected )"),
        ('start: "a" $\n', 11, "not Lark"),
        ("start: A\nA: b\nb: /c/\n", 12, "a terminal cannot hold the rule b"),
        ("%import python.NAME\nstart: NAME\n", 8, "only what is in common"),
        ("%import common.NAME\nstart: NAME\n", 15, "there is no NAME in common"),
        ('%declare X\nstart: "a"\n', 0, "%declare is not read"),
        ('list{x}: x\nstart: list{"a"}\n', 4, "templates are not read"),
        ("start: /a/x\n", 7, "the flag x"),
        ("start: /a\\Z/\n", 7, "\\Z is not read"),
        ('start: "z".."a"\n', 7, "a range goes"),
        ('start: "\\q"\n', 7, "no escape \\q"),
        ('start: "a"~3..2\n', 15, "the highest count"),
        ('start: "a"~1..9999999999\n', 14, "a count has more than 9 digits"),
        ('start: "x"' + "\n" * 70_000, 65536, "at most 65536 characters, not 70010"),
        ("start: " + "(" * 5000, None, "nested too deeply"),
        ('start: "x"' + "?" * 5000, None, "nested too deeply"),
        (DOUBLED, None, "characters when written out"),
        ('%ignore "' + "y" * 20_000 + '"\nstart: ' + '"x" ' * 900, None, "4000000 characters are to be written"),
    ],
)
def test_what_is_not_read_is_told_with_its_place(lark: str, offset: int | None, says: str) -> None:
    with pytest.raises(GrammarError, match=re.escape(says)) as raised:
        as_pattern(lark)
    assert offset in (None, raised.value.position)


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        ('start: "x"', "\n"),
        ('start: "x"', "\n "),
        ('start: "x"', "\n//\n#\n"),
        ('start: "x"', '\n\n | "y"'),
        ('start: "x"\n_: "', "\\\\"),
        ("start: /", "\\p{"),
        ("start: /", "(?P<"),
        ("start: ", '"x" '),
    ],
)
def test_four_times_the_text_takes_about_four_times_as_long(begin: str, again: str) -> None:
    def costs(size: int) -> float:
        text = begin + again * (size // len(again))
        times: list[float] = []
        for _ in range(3):
            started = time.process_time()
            with contextlib.suppress(GrammarError):
                as_pattern(text)
            times.append(time.process_time() - started)
        return min(times)

    assert costs(60_000) < 8 * costs(15_000) + 0.02
