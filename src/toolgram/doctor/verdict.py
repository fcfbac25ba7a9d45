"""What the findings come to: a verdict in a few sentences, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from toolgram.doctor.probe import Finding, Kind

_DECISIVE = "grammar"  # the probe that only a grammar can make succeed


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the findings come to: sentences, the gravest first, and what to do about what is missing.

    `sound`: grammars are enforced, and the server does all that it must. `unenforced`: they are not at all;
    `obliging`: nevertheless a call came wherever one was asked for.
    """

    sentences: tuple[str, ...]
    mends: tuple[str, ...]
    sound: bool
    unenforced: bool
    obliging: bool


def verdict(findings: Sequence[Finding]) -> Verdict:
    """The verdict on all findings."""
    named = {each.probe.name: each.outcome for each in findings}
    unenforced = named.get(_DECISIVE) == "no"
    lacking = [each for each in findings if each.outcome == "no" and each.probe.kind != "extra"]
    if unenforced:  # with it all that is enforced is explained
        lacking = [each for each in lacking if each.probe.kind != "enforced" or each.probe.name == _DECISIVE]
    return Verdict(
        sentences=tuple(_sentences(findings, unenforced=unenforced)),
        mends=tuple(dict.fromkeys(f"{each.probe.name}: {each.probe.mend}" for each in lacking if each.probe.mend)),
        sound=all(each.outcome != "no" for each in findings if each.probe.kind in ("enforced", "server")),
        unenforced=unenforced,
        obliging=all(named.get(name) == "yes" for name in ("required", "named")),
    )


def _sentences(findings: Sequence[Finding], *, unenforced: bool) -> Iterator[str]:
    good, bad = _of(findings, "enforced")
    if unenforced:
        yield (
            "Nothing is enforced: what a grammar forbids is written all the same. Of "
            f"{len(good) + len(bad)} calls and answers that must be valid, {len(good)} were, by the model's own doing."
        )
    elif bad:
        yield f"Grammars are enforced, but not always: {len(good)} of {len(good) + len(bad)}. Not {_names(bad)}."
    elif good:
        yield f"Grammars are enforced: calls and answers in a schema are valid, {len(good)} of {len(good)}."
    good, bad = _of(findings, "server")
    if bad:
        yield f"The server fails in {len(bad)} of {len(good) + len(bad)} things that it must do: {_names(bad)}."
    elif good:
        yield f"The server does what it must, {len(good)} of {len(good)}."
    good, bad = _of(findings, "model")
    if good or bad:
        left = f" Not {_names(bad)}." if bad else ""
        yield f"What only the model can do, it does in {len(good)} of {len(good) + len(bad)}.{left}"


def _of(findings: Sequence[Finding], kind: Kind) -> tuple[list[Finding], list[Finding]]:
    """The findings of a kind with yes and with no."""
    here = [each for each in findings if each.probe.kind == kind]
    return [each for each in here if each.outcome == "yes"], [each for each in here if each.outcome == "no"]


def _names(findings: Sequence[Finding]) -> str:
    return ", ".join(each.probe.name for each in findings)


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """The verdict and all findings, for other programs."""
    found = verdict(findings)
    return {
        "verdict": list(found.sentences),
        "sound": found.sound,
        "enforced": not found.unenforced,
        "mends": list(found.mends),
        "probes": [
            {
                "name": each.probe.name,
                "kind": each.probe.kind,
                "question": each.probe.question,
                "outcome": each.outcome,
                "evidence": each.evidence,
                "seconds": round(each.seconds, 3),
            }
            for each in findings
        ],
    }
