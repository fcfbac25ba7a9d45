"""ECMA-262 patterns, searched for anywhere in a text as JSON Schema does, as automata.

A pattern becomes a program (Thompson's construction), whose threads run in step. A thread that meets a lookahead takes
the threads of its body along, as a claim about the rest of the text; a lookbehind is an automaton of its own that reads
the text from its start. A set of threads with their claims, and the states of the lookbehinds, is a state of the
automaton: so assertions may stand anywhere, in loops too. `^` is "not after a character", `$` is "not before one".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from toolgram.grammar.ir import CharSet
from toolgram.grammar.regular.alphabet import Alphabet
from toolgram.grammar.regular.as_written import as_written
from toolgram.grammar.regular.automata import Automaton, explore, table_of
from toolgram.grammar.regular.regex_syntax import (
    ANYTHING,
    END,
    START,
    Alt,
    Cat,
    Look,
    Malformed,
    Rep,
    Tree,
    Unsupported,
    charsets,
    inner,
    parse,
    uncounted,
)
from toolgram.grammar.regular.subsets import is_plain, plain_automaton
from toolgram.work import MAX_STEPS, TooLarge, remembered, spend

__all__ = [
    "Malformed",
    "TooLarge",
    "Unsupported",
    "language",
    "pattern",
    "pattern_as_written",
    "pattern_uncounted",
    "pattern_with_lengths",
]

_MAX_PROGRAM = 20_000
_MAX_PARALLEL = 4  # threads that may read the same character where a pattern is written down as it stands


@remembered(maxsize=128)  # each may have thousands of states
def pattern(text: str) -> Automaton:
    """The texts in which the pattern is found. Raises Malformed, Unsupported and TooLarge."""
    return _of_tree(parse(text))


def _of_tree(tree: Tree) -> Automaton:
    searching = _Search(tree)
    automaton = searching.automaton()
    many_states = len(automaton.states) > 2 * len(charsets(tree))
    return as_written(automaton, tree, preferred=searching.parallel <= (_MAX_PARALLEL if many_states else 1))


@remembered(maxsize=64)
def pattern_as_written(text: str) -> Automaton:
    """The same, to be written down in the shape of the pattern, however its loops overlap."""
    tree = parse(text)
    return as_written(_Search(tree, shared=True).automaton(), tree, preferred=True)


@remembered(maxsize=64)
def pattern_uncounted(text: str) -> Automaton | None:
    """The texts in which the pattern is found, and others, in which its parts repeat more often than it says.

    None for a pattern that says nothing of the kind. Raises as `pattern` does.
    """
    tree = parse(text)
    loose = uncounted(tree)
    return None if loose == tree else _of_tree(loose)


def pattern_with_lengths(text: str) -> tuple[Automaton, int, int | None]:
    """A language and lengths (low, high) that make up the pattern together; `^[a-z]{1,9999}$` is never unrolled."""
    match parse(text):
        case Cat((first, Rep(CharSet() as charset, low, high), last)) if first == START and last == END:
            tail = Cat((START, Rep(charset, 0, None), END))
            return as_written(_Search(tail).automaton(), tail, preferred=True), low, high
        case _:
            return pattern(text), 0, None


def language(tree: Tree) -> Automaton:
    """The texts in which a parsed pattern is found. Raises TooLarge."""
    return _Search(tree).automaton()


@dataclass(frozen=True, slots=True)
class _Read:
    """Reads one character of these classes."""

    letters: tuple[int, ...]
    then: int


@dataclass(frozen=True, slots=True)
class _Split:
    """Goes on at all of these places."""

    then: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Goes on if the rest of the text begins (does not begin) with what the program at `body` matches."""

    negative: bool
    body: int
    then: int


@dataclass(frozen=True, slots=True)
class _Behind:
    """Goes on if the lookbehind of this number holds (does not hold) here."""

    negative: bool
    number: int
    then: int


@dataclass(frozen=True, slots=True)
class _Match:
    """The pattern is found: the rest of the text is free."""


_Instruction = _Read | _Split | _Ahead | _Behind | _Match


@dataclass(frozen=True, slots=True)
class _Claim:
    """That one of the threads will match the rest of the text, or that none will."""

    negative: bool
    threads: _Threads


_Thread = tuple[int, frozenset[_Claim]]  # place in the program, what must hold besides
_Threads = frozenset[_Thread]
_NO_CLAIMS: frozenset[_Claim] = frozenset()
_MATCH = 0
_FOUND: _Threads = frozenset(((_MATCH, _NO_CLAIMS),))
_State = tuple[tuple[int, ...], _Threads]  # the lookbehinds, the threads
_Passed = tuple[bool, ...]  # which lookbehinds hold here


@dataclass(slots=True)
class _Search:
    """One tree as a program, and the steps of its threads; `parallel` is how many read one character at most, if none
    that have the same future are `shared`."""

    tree: Tree
    shared: bool = False
    parallel: int = 0
    _program: list[_Instruction] = field(default_factory=lambda: [_Match()])
    _lookbehinds: dict[Tree, Automaton] = field(default_factory=dict[Tree, Automaton])
    _tables: list[dict[int, dict[int, int]]] = field(init=False)
    _alphabet: Alphabet = field(init=False)
    _moved: dict[_Threads, dict[int, list[_Thread]]] = field(default_factory=dict[_Threads, "dict[int, list[_Thread]]"])
    _closed: dict[tuple[_Threads, _Passed], _Threads] = field(
        default_factory=dict[tuple["_Threads", "_Passed"], "_Threads"]
    )
    _work: int = 0

    def automaton(self) -> Automaton:
        """The texts in which the tree is found."""
        if (bound := _bound(self.tree)) is not None:
            whole, to_the_end = bound
            automaton, self.parallel = plain_automaton(whole, found=not to_the_end, shared=self.shared)
            return automaton
        self._find_lookbehinds(self.tree)
        behind_sets = [edge[0] for one in self._lookbehinds.values() for state in one.states for edge in state.edges]
        self._alphabet = Alphabet([*charsets(self.tree), *behind_sets])
        self._tables = [table_of(one, self._alphabet) for one in self._lookbehinds.values()]
        begin = self._compile(self.tree if _is_anchored(self.tree) else Cat((ANYTHING, self.tree)), _MATCH)
        behind = (0,) * len(self._tables)
        threads = self._closure([(begin, _NO_CLAIMS)], self._passed(behind))
        found = explore((behind, threads), self._step, lambda state: _ends(state[1]), self._alphabet)
        spend(self._work)
        return found

    def _find_lookbehinds(self, tree: Tree) -> None:
        if isinstance(tree, Look) and tree.behind:
            if tree.body not in self._lookbehinds:
                if _looks_ahead(tree.body):
                    raise Unsupported("a lookbehind that looks ahead")
                self._lookbehinds[tree.body] = _Search(Cat((tree.body, END))).automaton()
            return
        for part in inner(tree):
            self._find_lookbehinds(part)

    # The program

    def _add(self, instruction: _Instruction) -> int:
        if len(self._program) >= _MAX_PROGRAM:
            raise TooLarge
        self._program.append(instruction)
        return len(self._program) - 1

    def _compile(self, tree: Tree, then: int) -> int:
        """Where the program of a tree begins that goes on at `then`."""
        match tree:
            case CharSet():
                return self._add(_Read(self._alphabet.letters(tree), then))
            case Cat(items):
                for item in reversed(items):
                    then = self._compile(item, then)
                return then
            case Alt(options):
                return self._add(_Split(tuple(self._compile(option, then) for option in options)))
            case Rep():
                return self._compile_repeat(tree, then)
            case Look(True, negative, body):
                return self._add(_Behind(negative, list(self._lookbehinds).index(body), then))
            case Look(False, negative, body):
                return self._add(_Ahead(negative, self._compile(body, _MATCH), then))
            case _:
                raise AssertionError(tree)

    def _compile_repeat(self, tree: Rep, then: int) -> int:
        if tree.max is None:
            loop = self._add(_Split(()))
            body = self._compile(tree.item, loop)
            self._program[loop] = _Split((body, then))
            begin, copies = (body, tree.min - 1) if tree.min else (loop, 0)
        else:
            begin, copies = then, tree.min
            for _ in range(tree.max - tree.min):
                begin = self._add(_Split((self._compile(tree.item, begin), then)))
        for _ in range(copies):
            begin = self._compile(tree.item, begin)
            self._spend(1)
        return begin

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > MAX_STEPS:
            raise TooLarge

    # The threads

    def _passed(self, behind: tuple[int, ...]) -> _Passed:
        machines = zip(self._lookbehinds.values(), behind, strict=True)
        return tuple(number >= 0 and one.states[number].accepts for one, number in machines)

    def _closure(self, waiting: list[_Thread], passed: _Passed) -> _Threads:
        """The threads where they read next, or have matched with claims left; `_FOUND` if one has matched for sure."""
        seen = set(waiting)
        resting: list[_Thread] = []
        while waiting:
            place, claims = thread = waiting.pop()
            self._spend(1)
            match self._program[place]:
                case _Match():
                    if not claims:
                        return _FOUND
                    resting.append(thread)
                    continue
                case _Read():
                    resting.append(thread)
                    continue
                case _Split(then):
                    after = [(to, claims) for to in then]
                case _Behind(negative, number, then):
                    after = [] if passed[number] is negative else [(then, claims)]
                case _Ahead(negative, body, then):
                    claim = _Claim(negative, self._closure([(body, _NO_CLAIMS)], passed))
                    more = _with(claims, claim)
                    after = [] if more is None else [(then, more)]
            fresh = [thread for thread in after if thread not in seen]
            seen.update(fresh)
            waiting.extend(fresh)
        return _without_idle(resting)

    def _step(self, state: _State) -> Iterable[tuple[int, _State]]:
        behind, threads = state
        if threads == _FOUND:
            return [(letter, ((), _FOUND)) for letter in self._alphabet.every]
        after: list[tuple[int, _State]] = []
        alike: dict[tuple[tuple[int, ...], tuple[_Thread, ...]], _State] = {}  # where no claim looks at the letter
        for letter, moved in self._moves(threads).items():
            free = sum(not claims for _, claims in moved)
            self.parallel = max(self.parallel, free)
            now = tuple([table[number].get(letter, -1) for table, number in zip(self._tables, behind, strict=True)])
            key = now, tuple(moved)
            if key in alike:
                after.append((letter, alike[key]))
                continue
            reached = self._advance(moved, letter, self._passed(now))
            if reached:
                target = (() if reached == _FOUND else now, reached)
                after.append((letter, target))
                if free == len(moved):
                    alike[key] = target
        return after

    def _moves(self, threads: _Threads) -> dict[int, list[_Thread]]:
        """The threads after each letter, their claims not yet advanced."""
        if threads in self._moved:
            return self._moved[threads]
        moves: dict[int, list[_Thread]] = {}
        for place, claims in threads:
            instruction = self._program[place]
            if isinstance(instruction, _Read):
                letters, then = instruction.letters, instruction.then
            else:
                letters, then = self._alphabet.every, place  # matched: only claims are left
            for letter in letters:
                moves.setdefault(letter, []).append((then, claims))
            self._spend(len(letters))
        self._moved[threads] = moves
        return moves

    def _advance(self, moved: list[_Thread], letter: int, passed: _Passed) -> _Threads:
        """The threads that have read the letter, with their claims advanced over it."""
        alive: list[_Thread] = []
        for then, claims in moved:
            left: frozenset[_Claim] | None = _NO_CLAIMS
            for claim in claims:
                self._spend(1 + len(claim.threads))
                inside = self._moves(claim.threads).get(letter, []) if claim.threads != _FOUND else []
                left = _with(left, _Claim(claim.negative, self._advance(inside, letter, passed)))
                if left is None:
                    break
            if left is not None:
                alive.append((then, left))
        key = frozenset(alive), passed
        if key not in self._closed:
            self._closed[key] = self._closure(alive, passed)
        return self._closed[key]


def _with(claims: frozenset[_Claim], claim: _Claim) -> frozenset[_Claim] | None:
    """The claims and one more; None if it cannot hold."""
    if claim.threads == _FOUND:
        return None if claim.negative else claims
    if not claim.threads:
        return claims if claim.negative else None
    return claims | {claim}


def _without_idle(threads: list[_Thread]) -> _Threads:
    """The threads without those that another one at the same place, with fewer claims, makes idle."""
    by_place: dict[int, list[frozenset[_Claim]]] = {}
    for place, claims in threads:
        by_place.setdefault(place, []).append(claims)
    return frozenset(
        (place, claims) for place, found in by_place.items() for claims in found if not any(o < claims for o in found)
    )


def _ends(threads: _Threads) -> bool:
    """Whether a text that ends here matches."""
    return any(
        place == _MATCH and all(_ends(claim.threads) is not claim.negative for claim in claims)
        for place, claims in threads
    )


def _bound(tree: Tree) -> tuple[Tree, bool] | None:
    """What stands after `^`, and whether `$` ends it; None where there are other assertions, or no `^`."""
    match tree:
        case Cat((first, *middle)) if first == START:
            to_the_end = middle[-1:] == [END]
            whole = Cat(tuple(middle[:-1] if to_the_end else middle))
            return (whole, to_the_end) if is_plain(whole) else None
        case _:
            return None


def _is_anchored(tree: Tree) -> bool:
    """Whether it can match at the start of the text alone."""
    match tree:
        case Cat((first, *_)):
            return _is_anchored(first)
        case Alt(options):
            return all(map(_is_anchored, options))
        case _:
            return tree == START


def _looks_ahead(tree: Tree) -> bool:
    return (isinstance(tree, Look) and not tree.behind) or any(map(_looks_ahead, inner(tree)))
