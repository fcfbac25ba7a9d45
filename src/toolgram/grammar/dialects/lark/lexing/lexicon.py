"""What two lexemes may do to one another when llguidance's lexer has both before it.

The lexer runs all lexemes that may come next at once, and goes on as long as one of them can: it never comes back to
one that ended earlier. So a lexeme A is only found where it ends if no other, B, can run on over the character that
follows A.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeVar

from toolgram.grammar.dialects.lark.lexing.alphabet import END, Alphabet, Letters, letters
from toolgram.grammar.dialects.lark.lexing.automaton import Automaton, States, TooManyStates
from toolgram.grammar.dialects.lark.lexing.free_text import CharReader, FreeText
from toolgram.grammar.dialects.lark.tree import Lexeme
from toolgram.grammar.ir import START, CharSet, Choice, Except, Expr, Literal, Ref, Rules, Sequence, Text, seq
from toolgram.grammar.walk import is_plain
from toolgram.work import remembered, spend

_Place = TypeVar("_Place")
_FEW = 8  # markers that a text must not begin with either: more are those of a set of tools
_QUOTES = "\"'"  # with which strings begin at most

Meeting = tuple[int, int, bool]
"""Of two lexemes at the same place: where the one has matched something, the characters over whose first byte the other
can run on; the same the other way around; and whether both can end together."""


class Lexicon:
    """The lexemes of one grammar by number, and what each pair of them may do; everything is worked out once.

    A lexeme that is very large is taken to do its worst, which can only report too many conflicts.
    """

    def __init__(self, lexemes: Iterable[Lexeme], words: Rules, *, inside: bool, before: Lexicon | None = None) -> None:
        """Strings are looked into only with `inside`, without which there is no `meet`; what the one `before`, of the
        same words, found of lexemes is known."""
        places: dict[Expr, int] = {}
        tails: dict[int, str | None] = {}
        bare: set[int] = set()
        self.numbers: dict[Lexeme, int] = {}
        for lexeme in lexemes:
            self.numbers[lexeme] = number = places.setdefault(lexeme.expr, len(places))
            tails[number] = lexeme.tail
            if lexeme.bare:
                bare.add(number)
        self.exprs = tuple(places)
        self.tails = tuple(tails.values())
        ends = tuple([None if number in bare else tail for number, tail in tails.items()])  # a bare key is as it is
        self._words = words
        seen = (expr for expr, end in zip(self.exprs, ends, strict=True) if inside or end is None)
        self._of_opening: dict[str, str] = {}
        openings = (self._openings(expr) for expr, end in zip(self.exprs, ends, strict=True) if end is not None)
        self.alphabet = Alphabet(seen, words, set('"').union(*openings))
        self.automata: dict[Expr, Automaton | None] = {}
        self.meetings: dict[tuple[int, int], Meeting] = {}
        if before is not None and before.alphabet.is_like(self.alphabet):
            self.alphabet, self.automata = before.alphabet, before.automata
            self.meetings |= _known(before, places, self.tails)
        self._rivals: dict[tuple[int, ...], tuple[tuple[int, int], ...]] = {}
        self._running: dict[int, int] = {}
        self._of_word: dict[str, Letters] = {}
        self.letters = [self._letters(expr, end) for expr, end in zip(self.exprs, ends, strict=True)]
        self.begins = [each.first | END if each.nullable else each.first for each in self.letters]

    def _letters(self, expr: Expr, tail: str | None) -> Letters:
        if tail is None:
            return letters(expr, self.alphabet, self._letters_of_word)
        everything = self.alphabet.everything
        first = self.alphabet.of_chars(self._openings(expr))
        return Letters(nullable=False, first=first, later=everything, every=everything)

    def _openings(self, expr: Expr) -> str:
        """The characters that a string begins with."""
        match expr:
            case Literal(text) if text:
                return text[0]
            case Sequence((first, *_)):
                return self._openings(first)
            case Except():
                return expr.quote
            case Choice(options):
                return "".join(dict.fromkeys("".join(map(self._openings, options))))
            case Ref(name):
                if name not in self._of_opening:
                    self._of_opening[name] = self._openings(self._words[name])
                return self._of_opening[name]
            case _:
                return _QUOTES

    def _letters_of_word(self, name: str) -> Letters:
        if name not in self._of_word:
            self._of_word[name] = letters(self._words[name], self.alphabet, self._letters_of_word)
        return self._of_word[name]

    def rivals(self, numbers: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """The pairs of different lexemes among these of which the one does anything to the other, or that can end
        together.

        Negative numbers stand for special tokens, which meet nothing.
        """
        if numbers not in self._rivals:
            pairs = tuple(self._that_may_meet([number for number in numbers if number >= 0]))
            spend(len(numbers) + len(pairs))
            self._rivals[numbers] = tuple([pair for pair in pairs if any(self.meet(*pair))])
        return self._rivals[numbers]

    def are_apart(self, numbers: Iterable[int]) -> bool:
        """Whether all are literals none of which begins with another, so that they do nothing to one another: a quick
        look."""
        texts: list[str] = []
        for number in numbers:
            if number >= 0:
                expr = self.exprs[number]
                if not isinstance(expr, Literal):
                    return False
                texts.append(expr.text)
        texts.sort()
        return not any(later.startswith(text) for text, later in pairwise(texts))

    def _that_may_meet(self, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
        """The pairs of different lexemes that begin alike; of two literals, where the one begins with the other."""
        texts: list[tuple[str, int]] = []
        others: list[int] = []
        for number in numbers:
            expr = self.exprs[number]
            if isinstance(expr, Literal):
                texts.append((expr.text, number))
            else:
                yield from ((other, number) for other in others if self._begin_alike(other, number))
                others.append(number)
        begun: list[tuple[str, int]] = []
        for text, number in sorted(texts):
            while begun and not text.startswith(begun[-1][0]):
                begun.pop()
            yield from ((shorter, number) for _, shorter in begun)
            yield from ((other, number) for other in others if self._begin_alike(other, number))
            begun.append((text, number))

    def _begin_alike(self, one: int, other: int) -> bool:
        return bool(self.letters[one].first & self.letters[other].first)

    def may_run_on(self, number: int) -> int:
        """All characters that the lexeme might run on over beyond where it could end: a quick look, never too few."""
        if number not in self._running:
            expr = self.exprs[number]
            ends = isinstance(expr, Literal) or self.tails[number] is not None or self._ends_itself(expr)
            self._running[number] = 0 if ends else self.alphabet.alike(self.letters[number].later)
        return self._running[number]

    def meet(self, one: int, other: int) -> Meeting:
        """What two lexemes do at the same place."""
        key = (one, other)
        if key not in self.meetings:
            over, back, together = self._met(one, other)
            self.meetings[key] = self.alphabet.alike(over), self.alphabet.alike(back), together
        return self.meetings[key]

    def _met(self, one: int, other: int) -> Meeting:
        left, right = self.exprs[one], self.exprs[other]
        if one == other and self._ends_itself(left):
            return 0, 0, True
        here, there = self.tails[one], self.tails[other]
        if isinstance(left, Literal) and isinstance(right, Literal):
            here, there = left.text, right.text
        if here is not None and there is not None:  # literals; or strings, of which none is the beginning of another
            over, together = self._texts(here, there)
            return over, self._texts(there, here)[0], together
        if isinstance(left, Literal):
            return self._literal_and(left.text, right)
        if isinstance(right, Literal):
            over, back, together = self._literal_and(right.text, left)
            return back, over, together
        over, together = self._product(left, right)
        return over, over if one == other else self._product(right, left)[0], together

    def _ends_itself(self, expr: Expr) -> bool:
        """Whether no word is the beginning of another, since what ends it, a literal, cannot be read before."""
        match expr:
            case Sequence((Text(without), Literal(text))) if text in without:
                return not any(text.endswith(text[:length]) for length in range(1, len(text)))
            case Sequence((*first, Literal(text))):
                inside = self._letters(seq(*first), None).every
                return not inside & self.alphabet.alike(self.alphabet.of_char(text[0]))
            case _:
                return False

    def _texts(self, ended: str, running: str) -> tuple[int, bool]:
        if not running.startswith(ended):
            return 0, False
        longer = len(running) > len(ended)
        return (self.alphabet.of_char(running[len(ended)]) if longer else 0), not longer

    def _product(self, ended: Expr, running: Expr) -> tuple[int, bool]:
        left, right = self._spelled(ended), self._spelled(running)
        # What is of one set of tools is not remembered beyond that, but run over one alphabet.
        if _is_of_format(left) and _is_of_format(right):
            over, together = _of_plain(left, right)
            return self.alphabet.everything if over is None else self.alphabet.of_set(over), together
        one, other = self._automaton(ended), self._automaton(running)
        if one is None or other is None:
            return self.alphabet.everything, True
        return (_of_itself(one), True) if one is other else _of_automata(one, other)

    def _literal_and(self, text: str, expr: Expr) -> tuple[int, int, bool]:
        """As `meet`, of a literal and what is none."""
        reader = FreeText.of(self._spelled(expr), self.alphabet)
        if reader is not None:
            return self._literal_in(text, reader)
        automaton = self._automaton(expr)
        if automaton is None:
            return self.alphabet.everything, self.alphabet.everything, True
        return self._literal_in(text, automaton)

    def _literal_in(self, text: str, reader: CharReader[_Place]) -> tuple[int, int, bool]:
        back = 0
        for at, place in enumerate(_run(reader, text), start=1):
            if at == len(text):
                return reader.next(place), back, reader.accepts(place)
            back |= self.alphabet.of_char(text[at]) if reader.accepts(place) else 0
        return 0, back, False

    def _spelled(self, expr: Expr) -> Expr:
        """The expression with a word that it is, or begins with, put in."""
        match expr:
            case Ref(name):
                return self._words[name]
            case Sequence((Ref(name), *others)):
                return seq(self._words[name], *others)
            case _:
                return expr

    def _automaton(self, expr: Expr) -> Automaton | None:
        if expr not in self.automata:
            try:
                self.automata[expr] = Automaton(expr, self.alphabet, self._words)
            except TooManyStates:
                self.automata[expr] = None
        return self.automata[expr]

    def boundaries(self, text: str, ended: Expr, follow: int) -> list[int]:
        """The places inside a literal where `ended` may end although the literal's next character begins like one in
        `follow`."""
        follow = self.alphabet.alike(follow)
        if isinstance(ended, Literal):
            at = len(ended.text)
            begun = 0 < at < len(text) and text.startswith(ended.text)
            return [at] if begun and self.alphabet.of_char(text[at]) & follow else []
        automaton = self._automaton(ended)
        if automaton is None:
            return list(range(1, len(text)))
        after = enumerate(zip(text[1:], _run(automaton, text), strict=False), start=1)
        return [
            place
            for place, (char, states) in after
            if self.alphabet.of_char(char) & follow and automaton.accepts(states)
        ]


def _known(
    before: Lexicon, numbers: Mapping[Expr, int], tails: tuple[str | None, ...]
) -> dict[tuple[int, int], Meeting]:
    """What is known of lexemes that have these numbers now, and the same tails."""
    now = {
        number: numbers[expr]
        for number, (expr, tail) in enumerate(zip(before.exprs, before.tails, strict=True))
        if expr in numbers and tails[numbers[expr]] == tail
    }
    return {
        (now[one], now[other]): meeting
        for (one, other), meeting in before.meetings.items()
        if one in now and other in now
    }


def _is_of_format(expr: Expr) -> bool:
    """Whether it is text of the format, which is in many grammars: a literal, or free text and what ends it, unless the
    text must not begin with any of many tools."""
    if isinstance(expr, Literal):
        return True
    first = expr.items[0] if isinstance(expr, Sequence) else expr
    return isinstance(first, Text) and (first.seen != START or len(first.without) <= _FEW) and is_plain(expr)


def _run(reader: CharReader[_Place], text: str) -> Iterator[_Place]:
    """Where one is after each character of a text, as far as a word goes on so."""
    place: _Place | None = reader.start
    for char in text:
        spend(4)
        place = reader.after(place, char)
        if place is None:
            return
        yield place


@remembered(maxsize=256)  # the texts of a format are in every grammar
def _of_plain(ended: Expr, running: Expr) -> tuple[CharSet | None, bool]:
    """As `_of_automata`, of expressions without words; None for all characters, as where one is too large to know."""
    alphabet = Alphabet((ended, running), {})
    try:
        one = Automaton(ended, alphabet, {})
        if ended == running:
            return alphabet.set_of(_of_itself(one)), True
        over, together = _of_automata(one, Automaton(running, alphabet, {}))
    except TooManyStates:
        return None, True
    return alphabet.set_of(over), together


def _of_itself(automaton: Automaton) -> int:
    """What a lexeme can run on over where it could have ended."""
    over, seen = 0, set[States]()  # the start too is one only once something was read
    waiting, every = [automaton.start], automaton.alphabet.characters
    while waiting and over != every:
        moves = automaton.moves(waiting.pop())
        spend(4)
        for _, to in moves:
            if to not in seen:
                seen.add(to)
                waiting.append(to)
                over |= automaton.next(to) if automaton.accepts(to) else 0
    return over


def _of_automata(ended: Automaton, running: Automaton) -> tuple[int, bool]:
    """What the one can run on over where the other ended, and whether both can end together."""
    over, together = 0, False
    seen = {(ended.start, running.start)}
    waiting, every = list(seen), ended.alphabet.characters
    while waiting and not (together and over == every):
        here, there = waiting.pop()
        spend(4)
        for mask, to in ended.moves(here):
            for step, away in running.moves(there):
                if not mask & step:
                    continue
                if ended.accepts(to):
                    over |= running.next(away)
                    together = together or running.accepts(away)
                if (to, away) not in seen:
                    seen.add((to, away))
                    waiting.append((to, away))
    return over, together
