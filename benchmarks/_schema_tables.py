"""What the outcomes add up to: counts of schemas, and the lines of the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from _schema_cases import Case, Instance, only_format_forbids
from _schema_contestants import Outcome, Reader
from _schema_pool import Lost

Outcomes = Sequence[Outcome | Lost]
HEAD = [
    "who",
    "schemas",
    "all-correct %",
    "except format %",
    "compiled %",
    "unsound %",
    "of it by format %",
    "incomplete %",
    "hung",
    "died",
    "p50 ms",
    "p95 ms",
    "max ms",
]


class Wrong(NamedTuple):
    """A verdict that is not that of the data. `kind`: unsound, unsound by format alone, incomplete."""

    case: Case
    kind: str
    instance: Instance
    text: str | None


class Score(NamedTuple):
    """Numbers of schemas. The first two add up with those that did not compile and those with a wrong verdict."""

    total: int
    all_correct: int
    except_format: int
    compiled: int
    unsound: int
    by_format: int
    incomplete: int

    def percent(self, count: int) -> float:
        """This number of schemas, in percent of all."""
        return 100 * count / self.total if self.total else 0.0


def wrong_verdicts(cases: Sequence[Case], outcomes: Outcomes) -> Iterator[Wrong]:
    """The verdicts that are not those of the data, over what compiled."""
    for case, outcome in zip(cases, outcomes, strict=True):
        if isinstance(outcome, Lost) or outcome.refusal is not None:
            continue
        for instance, text in zip(case.instances, outcome.accepted, strict=True):
            if instance.valid and text is None:
                yield Wrong(case, "incomplete", instance, None)
            elif not instance.valid and text is not None:
                kind = "unsound by format alone" if only_format_forbids(case, instance) else "unsound"
                yield Wrong(case, kind, instance, text)


def score(cases: Sequence[Case], outcomes: Outcomes) -> Score:
    """How many of the schemas are right, and wrong in which way."""
    kinds: dict[int, set[str]] = {}
    for wrong in wrong_verdicts(cases, outcomes):
        kinds.setdefault(id(wrong.case), set()).add(wrong.kind)
    compiled = sum(isinstance(outcome, Outcome) and outcome.refusal is None for outcome in outcomes)
    format_only = sum(each == {"unsound by format alone"} for each in kinds.values())
    right = compiled - len(kinds)
    unsound = sum("unsound" in each for each in kinds.values())
    by_format = sum("unsound by format alone" in each and "unsound" not in each for each in kinds.values())
    incomplete = sum("incomplete" in each for each in kinds.values())
    return Score(len(cases), right, right + format_only, compiled, unsound + by_format, by_format, incomplete)


def score_row(name: str, cases: Sequence[Case], outcomes: Outcomes) -> list[object]:
    """The line of a contestant, as `HEAD` names its columns."""
    made = score(cases, outcomes)
    shares = [made.percent(count) for count in made[1:]]
    lost = Counter(outcome.how for outcome in outcomes if isinstance(outcome, Lost))
    return [name, made.total, *shares, lost["hung"], lost["died"], *times(outcomes)]


def times(outcomes: Outcomes) -> list[float | None]:
    """Milliseconds of a conversion, refusals included: the median, the 95th of a hundred, the longest."""
    seconds = [outcome.seconds for outcome in outcomes if isinstance(outcome, Outcome)]
    return [None if value is None else value * 1000 for value in quantiles(seconds, (0.5, 0.95, 1.0))]


def quantiles(values: Iterable[float], at: Sequence[float]) -> list[float | None]:
    """The smallest values that so many of all do not exceed; None where there are none."""
    ordered = sorted(values)
    return [ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None for share in at]


def refusals(outcomes: Outcomes) -> Counter[str]:
    """How many schemas were refused for each keyword (of peers: by what they say), or lost in which stage."""
    return Counter(
        f"{outcome.how} in: {outcome.stage}" if isinstance(outcome, Lost) else str(outcome.keyword)
        for outcome in outcomes
        if isinstance(outcome, Lost) or outcome.refusal is not None
    )


class Agreement(NamedTuple):
    """The instances on which all readers of one grammar said the same of every text, and of whether there is one that
    they take; which did not, and who."""

    same: int
    alike: int
    total: int
    differing: list[tuple[Case, Instance, str]]
    unread: Counter[str]


def agreement(cases: Sequence[Case], outcomes: Mapping[Reader, Outcomes]) -> Agreement:
    """Compare the verdicts of each engine with our matcher's, on the schemas that compiled."""
    same = alike = total = 0
    differing: list[tuple[Case, Instance, str]] = []
    unread: Counter[str] = Counter()
    for at, case in enumerate(cases):
        base = outcomes["matcher"][at]
        if isinstance(base, Lost) or base.refusal is not None:
            continue
        others = {reader: each[at] for reader, each in outcomes.items() if reader != "matcher"}
        read = {r: o for r, o in others.items() if isinstance(o, Outcome) and o.refusal is None}
        for reader in others.keys() - read.keys():
            other = others[reader]
            how = f"{other.how} in: {other.stage}" if isinstance(other, Lost) else other.keyword
            unread[f"{reader}: {how}"] += 1
        for index, instance in enumerate(case.instances):
            against = [reader for reader, other in read.items() if other.verdicts[index] != base.verdicts[index]]
            total += 1
            same += not against and len(read) == len(others)
            takes = [any(each.verdicts[index]) for each in (base, *read.values())]
            alike += len(set(takes)) == 1 and len(read) == len(others)
            if against:
                differing.append((case, instance, ", ".join(f"{r}: {_said(read[r], index)}" for r in against)))
    return Agreement(same, alike, total, differing, unread)


def _said(outcome: Outcome, index: int) -> str:
    return f"accepts {sum(outcome.verdicts[index])} of {len(outcome.verdicts[index])} texts" + (
        f" ({outcome.trouble})" if outcome.trouble else ""
    )
