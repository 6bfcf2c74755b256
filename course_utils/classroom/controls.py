"""What a learner moves: five controls, each of which knows its values, its ends, its words and its widget.

Each raises ValueError where it is made with values that don't fit together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

import ipywidgets as widgets

LONGEST_LABEL = 60  # characters: a longer label leaves no room for the control


@dataclass(frozen=True)
class Slider:
    """Numbers from `low` to `high` in steps of `step`; whole numbers where all four are whole."""

    label: str
    low: float
    high: float
    step: float
    start: float

    def __post_init__(self):
        _check_label(self.label)
        for name in ("low", "high", "step", "start"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
                raise ValueError(f"slider {self.label!r}: {name} is {value!r}, it has to be a finite number")
        if self.low >= self.high or not 0 < self.step <= self.high - self.low:
            raise ValueError(
                f"slider {self.label!r} runs from {self.low} to {self.high} in steps of {self.step}: "
                "low has to be below high, and the step above 0 and no wider than the range"
            )
        off_grid = abs(self.read(self.start) - self.start) > 1e-9 * self.step
        if off_grid or not self.low <= self.start <= self.high:
            raise ValueError(
                f"slider {self.label!r} starts at {self.start}, which isn't among its values: "
                f"{self.low}, {self.read(self.low + self.step)}, ... up to {self.high}"
            )

    def read(self, value: float) -> float:
        """The slider's value nearest to `value`: a browser's 0.30000000000000004 is 0.3."""
        return round(self.low + round((value - self.low) / self.step) * self.step, 12)

    def ends(self) -> tuple:
        # the last step, where the range isn't a whole number of steps
        return self.low, self.read(self.low + int((self.high - self.low) / self.step + 1e-9) * self.step)

    def words(self) -> str:
        return f"{self.label} {self.low:g} to {self.high:g} (now {self.start:g})"

    def widget(self) -> widgets.Widget:
        whole = all(isinstance(value, int) for value in (self.low, self.high, self.step, self.start))
        kind = widgets.IntSlider if whole else widgets.FloatSlider
        digits = max(len(f"{value:.6f}".rstrip("0").split(".")[1]) for value in (self.low, self.step))
        limits = {"min": self.low, "max": self.high, "step": self.step}
        return kind(value=self.start, readout_format="d" if whole else f".{digits}f", **limits)


@dataclass(frozen=True)
class Steps:
    """A slider over listed values, such as 16, 64, 256."""

    label: str
    values: Sequence
    start: Any

    def __post_init__(self):
        _check_label(self.label)
        _check_listed(self.label, self.values, self.start)

    def read(self, value: Any) -> Any:
        return value

    def ends(self) -> tuple:
        return self.values[0], self.values[-1]

    def words(self) -> str:
        return f"{self.label} {', '.join(map(str, self.values))} (now {self.start})"

    def widget(self) -> widgets.Widget:
        return widgets.SelectionSlider(options=[(str(v), v) for v in self.values], value=self.start)


@dataclass(frozen=True)
class Choice:
    """One of several named options, all of them seen."""

    label: str
    options: Sequence
    start: Any

    def __post_init__(self):
        _check_label(self.label)
        _check_listed(self.label, self.options, self.start)

    def read(self, value: Any) -> Any:
        return value

    def ends(self) -> tuple:
        return tuple(self.options)

    def words(self) -> str:
        return f"{self.label} {', '.join(map(str, self.options))} (now {self.start})"

    def widget(self) -> widgets.Widget:
        # no drop-down menu: JupyterLab takes the arrow keys away from it
        options = [(str(v), v) for v in self.options]
        return widgets.RadioButtons(options=options, value=self.start, orientation="horizontal")


@dataclass(frozen=True)
class Switch:
    """On or off."""

    label: str
    start: bool = False

    def __post_init__(self):
        _check_label(self.label)
        if not isinstance(self.start, bool):
            raise ValueError(f"switch {self.label!r} starts at {self.start!r}: it is True or False")

    def read(self, value: bool) -> bool:
        return value

    def ends(self) -> tuple:
        return False, True

    def words(self) -> str:
        return f"{self.label} on or off (now {'on' if self.start else 'off'})"

    def widget(self) -> widgets.Widget:
        return widgets.Checkbox(value=self.start, indent=False)


@dataclass(frozen=True)
class TextBox:
    """A line of text, at most `limit` characters; the picture follows when Enter is pressed."""

    label: str
    start: str
    limit: int

    def __post_init__(self):
        _check_label(self.label)
        if not isinstance(self.limit, int) or not 1 <= len(self.start) <= self.limit:
            raise ValueError(
                f"text box {self.label!r} starts with {len(self.start)} characters and allows {self.limit!r}: "
                "it needs a text to start with, no longer than the limit"
            )

    def read(self, value: str) -> str:
        """What was typed. Raises ValueError where it is longer than the limit."""
        if len(value) > self.limit:
            raise ValueError(f"{len(value)} characters, {self.limit} are allowed: shorten the text")
        return value

    def ends(self) -> tuple:
        return "", (f"{self.start} " * self.limit)[: self.limit]

    def words(self) -> str:
        return f'{self.label} any text up to {self.limit} characters (now "{self.start}")'

    def widget(self) -> widgets.Widget:
        return widgets.Text(value=self.start, continuous_update=False, placeholder="type, then press Enter")


Control = Slider | Steps | Choice | Switch | TextBox


def _check_label(label: str) -> None:
    if not isinstance(label, str) or not 1 <= len(label.strip()) <= LONGEST_LABEL:
        raise ValueError(f"a label is {label!r}: name the control in 1 to {LONGEST_LABEL} characters")


def _check_listed(label: str, values: Sequence, start: Any) -> None:
    names = [str(value) for value in values]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(
            f"{label!r} offers {', '.join(names) or 'nothing'}: give two values or more, once each"
        )
    if start not in values:
        raise ValueError(f"{label!r} starts at {start!r}, which isn't among its values: {', '.join(names)}")
