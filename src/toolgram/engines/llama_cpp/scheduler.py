"""Many generations in one batch: who comes next, and how much of whom is evaluated together."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TypeVar

from toolgram.engines.base import Chunk, FinishReason
from toolgram.engines.llama_cpp.generation import Generation
from toolgram.engines.llama_cpp.gguf_model import BATCH, Cancel, Cancelled, Model, NoRoom, Span
from toolgram.engines.llama_cpp.kv_cache import Slot, Slots, common
from toolgram.engines.llama_cpp.outbox import Listener, Outbox
from toolgram.engines.llama_cpp.prompt_lookup import LONGEST_DRAFT
from toolgram.engines.llama_cpp.sampling import Logits
from toolgram.engines.llama_cpp.turns import Turns
from toolgram.errors import EngineError

_T = TypeVar("_T")
_BESIDE_WRITERS = 96  # tokens of prompts in one pass while others write: more would stall them, fewer take longer each
_SHORT = 32  # tokens that are not worth cutting up
_FEW = 2  # requests at once, beside which there is time to try drafts
_WORTH_WAITING = 64  # tokens that another one is about to read, and that need not be read twice
_TURN = 32  # tokens that a client writes, in all its answers, before one of them gives way to those of other clients
_GRAIN = 64  # tokens of a prompt that a deterministic engine always evaluates together


@dataclass(slots=True, eq=False)
class Request:
    """A generation that was asked for, who listens to it, and for the sake of which client and its program."""

    generation: Generation
    listener: Listener
    client: Hashable = None
    program: str = ""

    @property
    def cancel(self) -> Cancel:
        """Tells whether it is wanted no more."""
        return self.listener.cancel


@dataclass(slots=True, eq=False)
class _Live:
    """A request with its place in the model, and what is guessed to come next."""

    request: Request
    slot: Slot
    began: int  # how many tokens it had when it got its place
    draft: list[int] = field(default_factory=list[int])

    @property
    def generation(self) -> Generation:
        return self.request.generation

    @property
    def pending(self) -> int:
        """How many tokens are to be evaluated."""
        return len(self.generation.tokens) - len(self.slot.tokens)

    def had_its_turn(self, running: int) -> bool:
        """Whether it may wait while others write; so many of its client's run."""
        return (len(self.generation.tokens) - self.began) * running >= _TURN

    @property
    def next(self) -> int:
        """How many of them are to be evaluated next.

        The last token of a prompt has a pass of its own. The kernels add up otherwise for one row than for many, and
        one row is all that is left when the same prompt comes again: so its answer is the same as the first time.
        """
        if self.generation.over and self.generation.watched is not None:
            return self.generation.watched - len(self.slot.tokens)
        count = self.pending if self.generation.writing else max(self.pending - 1, 1)
        return count if (note := self.slot.next_note) is None else min(count, note)


class Scheduler:
    """Runs requests on one thread, `limit` at once; the others wait, those of clients with fewer that run less long.

    Where all places are taken, one of the client with most gives way to a client with fewer when it has written for a
    while, and waits to go on: so a client's many long answers do not keep out another's short one. Where there is one
    client alone, all this holds for its programs.

    Each pass evaluates what those that write have to add, and beside it a part of the prompts that are being read;
    clients that had more of the time than others wait (`Turns`).
    What fails in one generation (its grammar, its sampling) ends that one alone.

    When the memory is full, what ended is forgotten, and then the youngest that runs goes back to wait: the oldest
    always gets on.

    If it is `deterministic`, the logits after a text depend on nothing but the text: a pass evaluates one request
    alone, prompts are cut where they always are, and nothing is drafted.
    """

    def __init__(self, model: Model, worker: ThreadPoolExecutor, limit: int, *, deterministic: bool = False) -> None:
        self._model = model
        self._deterministic = deterministic
        self._worker = worker
        self._limit = limit
        self._lock = threading.Lock()  # for the two next, which other threads touch
        self._inbox: list[Request] = []
        self._awake = False
        self._slots = Slots(model, _GRAIN if deterministic else 1)
        self._outbox = Outbox()
        self._waiting = deque[Request]()
        self._live: list[_Live] = []  # the oldest first
        self._full = False  # nobody is let in until somebody ends
        self._turns = Turns()
        self._turn = 0  # of whom, where one is evaluated alone
        self._by_program = False  # as there is one client alone

    def submit(self, request: Request) -> None:
        """Run a request when its turn comes."""
        with self._lock:
            self._inbox.append(request)
            if not self._awake:
                self._worker.submit(self._run)
                self._awake = True

    def _run(self) -> None:
        while self._fetch():
            try:
                self._step()
            except Exception as error:  # noqa: BLE001 - whoever waits must be told, whatever it is
                self._fail_all(error)
        self._turns.pause()
        self._outbox.send()

    def _fetch(self) -> bool:
        """Whether there is anything to do."""
        with self._lock:
            self._waiting += self._inbox
            self._inbox.clear()
            self._awake = bool(self._waiting or self._live)
            return self._awake

    def _step(self) -> None:
        self._drop_cancelled()
        requests = (*(live.request for live in self._live), *self._waiting)
        self._by_program = len({request.client for request in requests}) == 1
        self._admit()
        spans = self._spans()
        self._outbox.send()  # what the last pass gave is read while the next one runs
        if not spans:
            return
        began = time.perf_counter()
        alone = spans[0][0].request.cancel if len(spans) == 1 else Cancel()  # others must not suffer from one who goes
        try:
            logits = self._model.evaluate([span for _, span in spans], alone)
        except Cancelled:
            self._slots.restore()
            return
        except NoRoom:
            self._make_room()
            return
        for live, span in spans:
            live.slot.tokens += span.tokens
            self._slots.note(live.slot)
        if len(self._live) > 1:  # one alone has less to gain, and keeps its place in memory: then answers repeat
            self._slots.evaluated(sum(len(span.tokens) for _, span in spans))
        for (live, span), rows in zip(spans, logits, strict=True):
            if span.more is not None:
                self._look(live, rows[0])
            if span.wanted and live in self._live:
                self._advance(live, rows[-span.wanted :])
        self._turns.took(
            [(self._whose(live.request), len(span.tokens)) for live, span in spans], time.perf_counter() - began
        )

    def _drop_cancelled(self) -> None:
        for request in [request for request in self._waiting if request.cancel.is_set()]:
            self._waiting.remove(request)
            self._outbox.put(request.listener, request.generation.last_chunk("cancelled"))
        for live in [live for live in self._live if live.request.cancel.is_set()]:
            self._end(live, "cancelled")

    def _admit(self) -> None:
        for request in self._in_turn():
            full = len(self._live) == self._limit
            other = self._who_gives_way(request) if full else None
            if self._full or (full and other is None):
                return
            tokens = request.generation.tokens
            if reading := [(live, count) for live in self._live if (count := _to_read(live, tokens))]:
                for live, count in reading:
                    self._slots.will_part(live.slot, count)
                continue
            if other is not None:
                self._live.remove(other)
                self._slots.end(other.slot)
                self._waiting.append(other.request)
            self._waiting.remove(request)
            self._start(request)

    def _in_turn(self) -> list[Request]:
        """Those that wait: the first of each client, then the second, as if those that run were first."""
        before = Counter(self._whose(live.request) for live in self._live)
        places: list[int] = []
        for request in self._waiting:
            whose = self._whose(request)
            places.append(before[whose])
            before[whose] += 1
        return [request for _, request in sorted(zip(places, self._waiting, strict=True), key=itemgetter(0))]

    def _who_gives_way(self, request: Request) -> _Live | None:
        """One of a client with more that run than this one's, which had its turn, unless this client has just come."""
        running = Counter(self._whose(live.request) for live in self._live)
        most, mine = max(running.values()), running[self._whose(request)]
        if most <= mine or self._deterministic:
            return None
        has_come = most > 1 and not mine and not request.generation.begun
        may = (live for live in self._live if running[self._whose(live.request)] == most and not live.generation.over)
        return next((live for live in may if has_come or live.had_its_turn(most)), None)

    def _whose(self, request: Request) -> Hashable:
        return (request.client, request.program) if self._by_program else request.client

    def _start(self, request: Request) -> None:
        """Give it a sequence: one that has what the grammar forces at once too, if the same was asked before."""
        generation = request.generation
        chunk = None if generation.begun else _tried(generation.begin)
        if isinstance(chunk, Exception):
            self._outbox.put(request.listener, chunk)
            return
        live = _Live(request, self._slots.take(generation.tokens), len(generation.tokens))
        self._live.append(live)
        generation.found(len(live.slot.tokens))
        self._tell(live, lambda: chunk)

    def _spans(self) -> list[tuple[_Live, Span]]:
        """What is evaluated in the next pass."""
        if self._deterministic:
            return self._one_span()
        waiting = self._turns.waiting(Counter(self._whose(live.request) for live in self._live))
        ready = [live for live in self._live if self._whose(live.request) not in waiting]
        writers = [live for live in ready if live.generation.writing]
        chosen = self._turns.choose([self._whose(live.request) for live in writers])
        left_out = {live for live, is_chosen in zip(writers, chosen, strict=True) if not is_chosen}
        lives = [live for live in ready if live not in left_out]
        shares = share([live.next for live in lives], _BESIDE_WRITERS if writers else BATCH)
        guess = len(self._live) <= _FEW and self._model.shares and sum(shares) + _FEW * LONGEST_DRAFT <= BATCH
        shared = [(live, count) for live, count in zip(lives, shares, strict=True) if count]
        for live, count in shared:
            live.draft = self._draft(live) if guess and count == live.pending else []
        spans = [(live, _span(live, count)) for live, count in shared if live in self._live]
        # llama.cpp evaluates neighbours together, in their order, where the memories of sequences are apart.
        return sorted(spans, key=lambda each: each[1].sequence) if self._model.apart else spans

    def _one_span(self) -> list[tuple[_Live, Span]]:
        """What is evaluated of the one whose turn it is, whatever others do."""
        if not self._live:
            return []
        self._turn = (self._turn + 1) % len(self._live)
        live = self._live[self._turn]
        whole_grains = not live.generation.writing and live.pending > _GRAIN
        count = _GRAIN if whole_grains else live.next if live.generation.over else live.pending
        return [(live, _span(live, count))]

    def _draft(self, live: _Live) -> list[int]:
        draft = _tried(live.generation.draft)
        if isinstance(draft, Exception):
            self._fail(live, draft)
            return []
        return draft

    def _advance(self, live: _Live, rows: Sequence[Logits]) -> None:
        """Write on as far as there are logits: those after the draft serve where the draft is what was written."""
        read, tokens = live.slot.tokens, live.generation.tokens
        first = len(tokens)  # of the text that the first row is about

        def row(at: int) -> Logits | None:
            """The logits before this place of the text, if the draft was right as far as there."""
            return rows[at - first] if at <= len(read) and read[first:at] == tokens[first:at] else None

        self._tell(live, lambda: live.generation.advance(rows[0]))
        while live.generation.finish is None and live in self._live:
            if (at := live.generation.watched) is not None and (found := row(at)) is not None:
                self._look(live, found)
            elif (found := row(len(tokens))) is not None:
                self._tell(live, lambda found=found: live.generation.advance(found, drafted=True))
            else:
                break
        taken = common(read[first:], tokens[first:])
        live.generation.learn(len(live.draft), taken)
        live.draft = []
        if live in self._live:
            self._slots.cut(live.slot, first + taken)

    def _look(self, live: _Live, row: Logits) -> None:
        self._tell(live, lambda: live.generation.look(row))

    def _tell(self, live: _Live, work: Callable[[], Chunk | None]) -> None:
        """Tell what the work gives; end the request if it ended, or failed."""
        chunk = _tried(work)
        if isinstance(chunk, Exception):
            self._fail(live, chunk)
            return
        if chunk is not None:
            self._outbox.put(live.request.listener, chunk)
        if live.generation.finish is not None:
            self._end(live, live.generation.finish)

    def _fail(self, live: _Live, error: Exception) -> None:
        """End one request with an error; what it read is kept, and the others go on."""
        self._leave(live)
        self._outbox.put(live.request.listener, error)

    def _end(self, live: _Live, finish: FinishReason) -> None:
        self._leave(live)
        self._outbox.put(live.request.listener, live.generation.last_chunk(finish))

    def _leave(self, live: _Live) -> None:
        self._live.remove(live)
        self._slots.end(live.slot)
        self._full = False

    def _make_room(self) -> None:
        if self._slots.evict():
            return
        if len(self._live) == 1:
            raise EngineError("llama.cpp finds no room for a text that fits into the context")
        youngest = self._live.pop()
        self._slots.suspend(youngest.slot)
        self._waiting.appendleft(youngest.request)
        self._full = True

    def _fail_all(self, error: Exception) -> None:
        """After a failure of the model, which all share, and of which nobody knows what it left."""
        failed = [*(live.request for live in self._live), *self._waiting]
        self._live.clear()
        self._waiting.clear()
        self._slots.forget()
        self._full = False
        for request in failed:
            self._outbox.put(request.listener, error)


def _tried(work: Callable[[], _T]) -> _T | Exception:
    """What the work of one generation gives, or what it raises: nobody else suffers from it."""
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - a panic in llguidance is no Exception, and this thread serves others
        if isinstance(error, Exception):
            return error
        failure = EngineError(f"a library of the engine failed: {error}")
        failure.__cause__ = error
        return failure


def _span(live: _Live, count: int) -> Span:
    start = len(live.slot.tokens)
    tokens = live.generation.tokens[start : start + count] + live.draft
    wanted = 1 + len(live.draft) if count == live.pending else 0
    watched = live.generation.watched
    more = None if watched is None or watched - start > count else watched - 1 - start
    return Span(live.slot.sequence, start, tokens, wanted, more)


def _to_read(live: _Live, prompt: Sequence[int]) -> int:
    """How many tokens this prompt has in common with it, if it is about to read many of them; else 0."""
    if live.pending <= _WORTH_WAITING:
        return 0
    shared = common(live.generation.tokens, prompt)
    return shared if shared - len(live.slot.tokens) > _WORTH_WAITING else 0


def share(pending: Sequence[int], room: int) -> list[int]:
    """How many tokens of each are evaluated together, of those that each has pending, the oldest first.

    What is short goes whole, so far as a batch holds it. Of the `room` that the short ones leave each long one takes at
    most half of what is left, and the last one all: a long prompt does not keep out a shorter one behind it.
    """
    shares = [0] * len(pending)
    left = BATCH
    for at, count in enumerate(pending):
        if count <= _SHORT:
            shares[at] = min(count, left)
            left -= shares[at]
    left = min(left, max(room - (BATCH - left), _SHORT))
    long = [at for at, count in enumerate(pending) if count > _SHORT]
    for at in long:
        most = left if at == long[-1] else (left + 1) // 2
        shares[at] = min(pending[at], most)
        left -= shares[at]
    return shares
