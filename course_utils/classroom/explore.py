"""Live controls: a pure function draws a picture from a few values, and the learner moves the values.

    def draw(ax, scale):
        ax.plot(positions, scale * positions)
        return f"The last point stands at {scale * positions[-1]:.1f}."

    explore(draw, alt="A straight line, steeper with the scale", title="Scale", x="position", y="value",
            scale=Slider("scale of the position", 0, 8, 1, start=1))

One figure lives as long as the control and is redrawn into one image. Beside the live view the output holds a
still picture of the start and a line of text, for readers without a kernel.
"""

import inspect
import os
import time
from collections.abc import Callable, Mapping
from html import escape
from itertools import product
from textwrap import wrap
from typing import Any

import ipywidgets as widgets
import numpy as np
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine

from course_utils.classroom import figures
from course_utils.classroom.controls import Choice, Control, Slider, Steps, Switch, TextBox

__all__ = ["Choice", "Slider", "Steps", "Switch", "TextBox", "corners", "explore"]

MOST_CORNERS = 8  # drawn by a strict run; every end of every control is among them, whatever their number
TICKS = 8  # marks along an axis: as many as a picture with large letters has, or one more
SECONDS_FOR_TEXT = 3.0  # what a text box may compute
_LINE = (  # the image widget has no alt of its own: the description stands beside it, for screen readers only
    '<span style="position:absolute; clip-path:inset(50%); height:1px; overflow:hidden">Picture: {alt}</span>'
    '<div role="status" style="font-size:1.15em; min-height:1.5em; line-height:1.4">{text}</div>'
)
VIEW = "application/vnd.jupyter.widget-view+json"

_open: dict[tuple, "Live"] = {}  # the live control of each draw function: running its cell again replaces it


def explore(
    draw: Callable,
    *,
    alt: str,
    title: str,
    x: str,
    y: str,
    size: tuple[float, float] = (8, 4.5),
    **controls: Control,
) -> None:
    """Display a picture drawn by `draw(ax, **values)` with a control for each value.

    `draw` draws into `ax`, depends on its arguments only, and may return one sentence, the reading, which
    stands under the picture. `title`, `x`, `y`, `size` (inches) and `alt` are those of `figure` and `show`;
    `draw` may set title and labels anew. Where it raises for a moved control, the picture stays and a line
    under it says why.

    Raises ValueError or TypeError where the controls don't match draw's parameters, and what `draw` raises at
    the start. Under COURSE_STRICT=1 it also draws every corner of the controls and raises RuntimeError where
    one fails or leaves the picture empty: no slider moves in a headless run, so nothing else would notice.
    """
    figures.check_alt(alt)
    _check_match(draw, controls)
    live = Live(draw, (title, x, y), size, controls, alt)
    if os.environ.get("COURSE_STRICT") == "1":
        live.check_corners()
    name = (getattr(draw, "__module__", ""), getattr(draw, "__qualname__", ""), alt)
    if name in _open:
        _open.pop(name).close()
    _open[name] = live
    display(live)


def _check_match(draw: Callable, controls: Mapping[str, Control]) -> None:
    if not controls:
        raise ValueError("explore has no control: give one, or use figure and show for a still picture")
    for name, control in controls.items():
        if not isinstance(control, Control):
            raise TypeError(f"{name} is {control!r}: a control is a Slider, Steps, Choice, Switch or TextBox")
    _, *parameters = inspect.signature(draw).parameters.values()
    named = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    unknown = [] if takes_any else [name for name in controls if name not in named]
    missing = [name for name, p in named.items() if name not in controls and p.default is p.empty]
    if unknown or missing:
        raise TypeError(
            f"draw takes {', '.join(named) or 'nothing'} after ax, the controls are {', '.join(controls)}: "
            f"no parameter for {', '.join(unknown) or 'none'}, no control for {', '.join(missing) or 'none'}"
        )


def corners(controls: Mapping[str, Control], most: int = MOST_CORNERS) -> list[dict[str, Any]]:
    """The values to test a draw function with: the start, each end of each control, then combinations.

    Fewer moved controls come first; the list stops at `most`, yet never before each end has had its turn.
    """
    choices = [[c.start, *(end for end in c.ends() if end != c.start)] for c in controls.values()]
    places = sorted(product(*(range(len(c)) for c in choices)), key=np.count_nonzero)
    enough = max(most, 1 + sum(len(c) - 1 for c in choices))
    return [{name: c[i] for name, c, i in zip(controls, choices, place, strict=True)} for place in places[:enough]]


class Live:
    """A control on display: one figure, one image, the widgets, and the still picture of the start."""

    def __init__(self, draw: Callable, texts: tuple, size: tuple, controls: Mapping[str, Control], alt: str):
        self.draw, self.texts, self.controls, self.alt = draw, texts, controls, alt
        self.fig, self.ax = figures.figure(*texts, size=size)
        self.fig.set_layout_engine(_WhenTextsGrow())
        self.clean = True  # nothing is drawn yet
        pixels, reading = self.paint({name: control.start for name, control in controls.items()})
        self.still = figures.pixels_to_png(np.vstack([pixels, _note(controls, size[0])]), level=9)
        self.image = widgets.Image(value=figures.pixels_to_png(pixels), format="png")
        self.image.layout.max_width = "100%"
        self.line = widgets.HTML()
        self.say(reading)
        self.inputs = {name: self._input(control) for name, control in controls.items()}
        self.box = widgets.VBox([*self.inputs.values(), self.image, self.line])

    def _input(self, control: Control) -> widgets.Widget:
        made = control.widget()
        made.description = made.tooltip = control.label
        made.layout.width = "min(100%, 900px)"  # as wide as a picture: six choices of three words fit a line
        made.style.description_width = "initial"  # the label in full, never cut off
        made.observe(self.redraw, names="value")
        return made

    def paint(self, values: Mapping[str, Any]) -> tuple[np.ndarray, str]:
        """Draw the picture for `values`; returns its pixels (height, width, 4) and the reading."""
        self._clear()
        self.clean = False
        reading = self.draw(self.ax, **values)
        if reading is not None and not isinstance(reading, str):
            raise TypeError(f"draw returned {type(reading).__name__}: return one sentence or nothing")
        return figures.to_pixels(self.fig), reading or ""

    def _clear(self) -> None:
        """Put new axes where the old ones were. (`ax.clear()` would leave tick marks, colours and shapes as set.)"""
        if self.clean:
            return
        place = self.ax.get_position(original=True)
        self.fig.clear()
        sides = {"left": place.x0, "bottom": place.y0, "right": place.x1, "top": place.y1}
        self.ax = self.fig.add_subplot(GridSpec(1, 1, figure=self.fig, **sides)[0])
        figures.dress(self.ax, *self.texts)
        for axis in (self.ax.xaxis, self.ax.yaxis):
            axis.get_major_ticks(TICKS)  # made now, they need not be made while the learner waits
        self.clean = True

    def redraw(self, change: object = None) -> None:
        """Show the picture for the controls' values. Where drawing fails, it stays and a line says why."""
        values = {name: made.value for name, made in self.inputs.items()}
        if any(isinstance(control, TextBox) for control in self.controls.values()):
            self.say("computing...")
        try:
            values = {name: self.controls[name].read(value) for name, value in values.items()}
            pixels, reading = self.paint(values)
        except Exception as error:
            self.say(f"No new picture for {_spoken(values)}. {type(error).__name__}: {error}")
        else:
            self.image.value = figures.pixels_to_png(pixels)
            self.say(reading)
        self._clear()  # now, while the learner looks, and not when the next key is pressed

    def say(self, text: str) -> None:
        """Put `text` under the picture; a screen reader reads it out."""
        self.line.value = _LINE.format(alt=escape(self.alt), text=escape(text))

    def check_corners(self) -> None:
        """Draw every corner. Raises RuntimeError for one that fails, is empty or takes too long."""
        for values in corners(self.controls):
            try:
                self._check_corner(values)
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
                raise RuntimeError(f"draw fails for {_spoken(values)}: {what}") from error

    def _check_corner(self, values: Mapping[str, Any]) -> None:
        typed = {name: c for name, c in self.controls.items() if isinstance(c, TextBox)}
        began = time.thread_time()
        try:
            self.paint(values)
        except ValueError:
            if all(values[name] == box.start for name, box in typed.items()):
                raise  # an odd text may be refused in words, a value that a control offers may not
            return
        if typed and time.thread_time() - began > SECONDS_FOR_TEXT:
            raise RuntimeError(f"it computes longer than the {SECONDS_FOR_TEXT:g} s that a text box has")
        for ax in self.fig.axes:
            figures.check_axes(ax)

    def close(self) -> None:
        """Take the widgets off the page and free the picture."""
        for widget in (*self.inputs.values(), self.image, self.line, self.box):
            widget.close()

    def __repr__(self) -> str:
        controls = "; ".join(control.words() for control in self.controls.values())
        return f"Live control: {self.alt} | controls: {controls}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data, metadata = figures.Picture(self.still, self.alt, repr(self))._repr_mimebundle_()
        return {VIEW: self.box._repr_mimebundle_()[VIEW], **data}, metadata


class _WhenTextsGrow(ConstrainedLayoutEngine):
    """Places the axes anew only where the texts need more room than ever before.

    Placing takes a third of a redraw, and axes that jump about from one picture to the next are hard to compare.
    """

    room = np.zeros(0)

    def execute(self, fig: Figure) -> None:
        room = np.array([need for ax in fig.axes for need in _room(ax)])
        if len(room) != len(self.room) or len(fig.axes) > 1 or (room > self.room).any():
            super().execute(fig)
            self.room = np.maximum(room, self.room) if len(room) == len(self.room) else room


def _room(ax: Axes) -> list[int]:
    """What the texts around and in an axes need: lines of the title and labels, characters of the rest."""
    ticks = [axis.get_major_formatter().format_ticks(axis.get_majorticklocs()) for axis in (ax.xaxis, ax.yaxis)]
    lines = [len(text.get_text().split("\n")) for text in (ax.title, ax.xaxis.label, ax.yaxis.label)]
    stretched = int(ax.get_aspect() == "auto")  # else, as a square map, it leaves room free that a curve will fill
    longest = (max(map(len, texts), default=0) for texts in (*ticks, [text.get_text() for text in ax.texts]))
    return [*lines, stretched, *longest]


def _note(controls: Mapping[str, Control], inches: float) -> np.ndarray:
    """The strip under the still picture that says what it shows, as pixels of shape (height, width, 4)."""
    shown = ", ".join(f"{c.label} = {_value(c.start)}" for c in controls.values())
    lines = wrap(f"Still picture, at {shown}. Run this cell for the live controls.", width=int(9 * inches))
    fig, ax = figures.figure("note", "note", "note", size=(inches, 0.1 + 0.27 * len(lines)))
    ax.remove()
    fig.text(0.01, 0.97, "\n".join(lines), va="top", style="italic")
    return figures.to_pixels(fig)


def _value(value: Any) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


def _spoken(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_value(value)}" for name, value in values.items())
