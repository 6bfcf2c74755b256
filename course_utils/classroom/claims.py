"""Claims: what a chapter says, what it expects to measure, and the card that sets the two side by side.

data/claims/NN.toml holds a chapter's claims. settle() compares one of them with what the cell above it measured.
"""

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from course_utils.classroom import progress
from course_utils.classroom.cards import card
from course_utils.places import DATA

KINDS = ("identity", "experiment", "miniature", "reported", "wording")
VERDICTS = ("holds", "holds if", "fails", "cited")
STRICT = "COURSE_STRICT"  # set to 1 in the project's own runs: a value outside its range then raises


class ClaimError(AssertionError):
    """A claim was settled with a value outside its range, in a strict run."""


@dataclass(frozen=True)
class Range:
    """The closed interval [low, high] in which a measured value has to lie, why it is so wide, and what it refutes."""

    low: float
    high: float
    why: str
    label: str = ""  # what the card calls the value; its name where this is empty
    null: float | None = None  # the value if the claim were false: chance, shuffled, untrained, the belief refuted
    null_is: str = ""

    def holds(self, value: float) -> bool:
        """True if low <= value <= high. False for NaN."""
        return self.low <= value <= self.high

    def shown(self, value: float) -> str:
        """The value, rounded to a quarter of the range's width: digits that hold on every machine."""
        if not math.isfinite(value):
            return str(value)
        ends = [end for end in (self.low, self.high) if math.isfinite(end)]
        if len(ends) == 2 and self.high > self.low:
            decimals = max(0, round(-math.log10((self.high - self.low) / 4)))
        else:  # as many as its one bound has
            decimals = len(f"{ends[0]:.12f}".rstrip("0").split(".")[1])
        return number(round(value, decimals) + 0.0)  # adding 0.0 turns -0.0 into 0.0

    def __str__(self) -> str:
        if self.high - self.low < 1e-6 * abs(self.high):
            return number((self.low + self.high) / 2)
        if self.low == -math.inf:
            return f"at most {number(self.high)}"
        if self.high == math.inf:
            return f"at least {number(self.low)}"
        return f"{number(self.low)} to {number(self.high)}"


@dataclass(frozen=True)
class Claim:
    """One line of the ledger. rows: the register's rows that it covers; expect: a Range for each measured value."""

    id: str
    chapter: str
    statement: str
    kind: str
    verdict: str
    source: str
    expect: Mapping[str, Range]
    rows: tuple[str, ...] = ()
    condition: str = ""
    predictions: Mapping[str, str] = field(default_factory=dict)  # those it answers: key -> the option that came out
    seed: int | None = None
    volatile: bool = False  # the value changes from run to run (time, memory): its card shows the bound alone


def number(value: float) -> str:
    """A number as the course prints it: 50,257 and 0.3745 and 2.8e-14."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}"


def load_claims(folder: Path = DATA / "claims") -> dict[str, Claim]:
    """All claims by id, in the order of chapters. Raises ValueError naming file and claim where one is malformed."""
    claims: dict[str, Claim] = {}
    for file in sorted(folder.glob("[0-9][0-9].toml")):
        for entry in tomllib.loads(file.read_text(encoding="utf-8")).get("claim", []):
            claim = _claim(file.stem, entry)
            if claim.id in claims:
                raise ValueError(f"{file.name}: the id {claim.id!r} is used twice")
            claims[claim.id] = claim
    return claims


def settle(claim_id: str, value: object = None, /, **values: object) -> None:
    """Compare a claim with what was measured, keep the result, and show its card.

    One value where the claim expects one, else each by its name: settle("angles", mean=.05, widest=.26).
    In strict runs a value outside its range raises ClaimError; for a learner the card says that it differs.
    Raises KeyError for an unknown claim, TypeError for values other than those the claim names.
    """
    claim = _known(claim_id)
    measured = _named(claim, values if value is None else {**values, "": value})
    outside = [name for name, expected in claim.expect.items() if not expected.holds(measured[name])]
    finite = {name: value for name, value in measured.items() if math.isfinite(value)}
    progress.note(claim.chapter, "settled", claim.id, {"values": finite, "within": not outside})
    _show(claim, measured, outside)
    if outside and os.environ.get(STRICT) == "1":
        wrong = ", ".join(f"{name} = {measured[name]!r}, expected {claim.expect[name]}" for name in outside)
        raise ClaimError(f"claim {claim.id}: {wrong}")


@cache
def _all() -> dict[str, Claim]:
    return load_claims()


def _known(claim_id: str) -> Claim:
    if claim_id not in _all():
        raise KeyError(f"no claim is called {claim_id!r}: the ids stand in data/claims, one file a chapter")
    return _all()[claim_id]


def _named(claim: Claim, values: Mapping[str, object]) -> dict[str, float]:
    names = list(claim.expect)
    if "" in values and len(names) == 1:
        values = {names[0]: values[""]}
    if set(values) != set(names):
        given = ", ".join(name or "one value without a name" for name in values) or "nothing"
        raise TypeError(f"claim {claim.id} is settled with {', '.join(names)}; given: {given}")
    return {name: _scalar(claim, name, values[name]) for name in names}


def _scalar(claim: Claim, name: str, value: object) -> float:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = None
    if array is None or array.size != 1:
        raise TypeError(f"claim {claim.id}: {name} is one number, given {value!r}; settle a mean, a share or a count")
    return float(array.reshape(()))


def _show(claim: Claim, measured: Mapping[str, float], outside: list[str]) -> None:
    # "fails" beside a tick would read as if the run had: the tick is about the values, the word about the claim
    verdict = "as expected, the claim fails" if claim.verdict == "fails" else claim.verdict
    verdict = "differs: did you change something above?" if outside else verdict
    condition = [f"Condition: {claim.condition}"] if claim.condition else []
    lines = [claim.statement, *condition, *_predictions(claim, settled=not outside)]
    card("bad" if outside else "good", f"{verdict} ({claim.id})", lines, _comparison(claim, measured, outside))


def _comparison(claim: Claim, measured: Mapping[str, float], outside: list[str]) -> list[tuple[str, ...]]:
    rows = [("", "measured", "expected", "")]
    for name, expected in claim.expect.items():
        value = f"{measured[name]:,.7g}" if name in outside else expected.shown(measured[name])
        value = "its bound is checked" if claim.volatile else value
        rows.append(
            (expected.label or name.replace("_", " "), value, str(expected), "✗ differs" if name in outside else "✓")
        )
    return rows


def _predictions(claim: Claim, settled: bool) -> list[str]:
    """A line for each prediction that the claim answers; what came out is told only by a measurement within range."""
    kept = progress.read(claim.chapter)["predictions"]
    lines = []
    for key, outcome in claim.predictions.items():
        name = key.split(".", 1)[1].replace("-", " ")
        said = f"you predicted: {kept[key]}" if key in kept else "you made no prediction"
        verdict = "as it came out" if kept.get(key) == outcome else f"it came out: {outcome}"
        lines.append(f"{name}: {said}" + (f" ({verdict})" if settled else ""))
    return lines


def _claim(chapter: str, entry: dict) -> Claim:
    name = f"data/claims/{chapter}.toml, claim {entry.get('id', '?')!r}"
    try:
        expect = {key: _range(table) for key, table in entry.pop("expect").items()}
        claim = Claim(chapter=chapter, expect=expect, rows=tuple(entry.pop("rows", ())), **entry)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error
    if claim.kind not in KINDS or claim.verdict not in VERDICTS:
        raise ValueError(f"{name}: kind is one of {', '.join(KINDS)}; verdict one of {', '.join(VERDICTS)}")
    if claim.verdict == "holds if" and not claim.condition:
        raise ValueError(f"{name}: 'holds if' needs a condition")
    return claim


def _range(table: dict) -> Range:
    """A Range from one of equals (with within), between, at_least, at_most."""
    rest = {key: table[key] for key in ("why", "label", "null", "null_is") if key in table}
    kinds = [key for key in ("equals", "between", "at_least", "at_most") if key in table]
    if len(kinds) != 1 or set(table) - {*kinds, *rest, "within"} or not rest.get("why"):
        raise ValueError("expects exactly one of equals, between, at_least, at_most, with the reason in why")
    value, slack = table[kinds[0]], table.get("within", 0)
    low, high = {
        "equals": lambda: (value - slack, value + slack),
        "between": lambda: value,
        "at_least": lambda: (value, math.inf),
        "at_most": lambda: (-math.inf, value),
    }[kinds[0]]()
    if not low <= high:
        raise ValueError(f"an empty range: {low} to {high}")
    return Range(low, high, **rest)
