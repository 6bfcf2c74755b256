"""Figures in the course's one look, each shown with a description in words.

A figure here never goes through pyplot: it belongs to no list of open figures, so nothing piles up and
nothing has to be closed. Colours are those of Okabe and Ito, ordered by contrast with white; every line also
has its own dash, and every row of dots its own marker, so that no picture depends on telling colours apart.
"""

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence

import matplotlib
import numpy as np
from cycler import cycler
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW, INK = "#E69F00", "#56B4E9", "#F0E442", "#222222"

COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, SKY, ORANGE)
DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (8, 2, 2, 2)), (0, (4, 4)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")

WIDTH_PX = 900  # the picture's width on the page, whatever its size in inches
SHORTEST_ALT = 20  # characters; shorter is a caption, not a description

LOOK = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters on every machine
    "font.size": 14,
    "axes.titlesize": 16,
    "axes.titley": 1.0,  # a fixed place spares a search for a free one at every redraw
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=COLOURS) + cycler(linestyle=DASHES),
    "errorbar.capsize": 4,
    "grid.color": "0.88",
    "grid.linewidth": 1,
    "image.cmap": "viridis",
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "lines.linewidth": 2.5,
    "lines.markersize": 8,
    "patch.linewidth": 2,
}


class Picture:
    """One output: a PNG with a description in words.

    `words` is what stands where no picture can be shown, and what a strict comparison of outputs reads.
    """

    def __init__(self, png: bytes, alt: str, words: str):
        self.png, self.alt, self.words = png, alt, words

    def __repr__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data = {"text/plain": self.words, "image/png": b64encode(self.png).decode()}
        return data, {"image/png": {"alt": self.alt}, "alt": self.alt}


def figure(
    title: str | Sequence[str],
    x: str | Sequence[str],
    y: str | Sequence[str],
    size: tuple[float, float] = (8, 4.5),
    panels: int = 1,
) -> tuple[Figure, Axes | np.ndarray]:
    """A new figure of `size` inches and its axes, titled and labelled.

    With more than one panel (side by side) `title` is a sequence with one title a panel; `x` and `y` may be
    sequences too, or one text for all panels. Returns (figure, axes), or (figure, array of shape (panels,)).
    Raises ValueError where a title or label is empty, or where their number is not that of the panels.
    """
    if not isinstance(panels, int) or panels < 1:
        raise ValueError(f"panels is {panels!r}: it is how many pictures stand side by side, 1 or more")
    if panels > 1 and isinstance(title, str):
        raise ValueError(f"{panels} panels need {panels} titles: give a list, not the one text {title!r}")
    titles, xs, ys = (_texts(name, text, panels) for name, text in (("title", title), ("x", x), ("y", y)))
    matplotlib.rcParams.update(LOOK)
    fig = Figure(figsize=size, dpi=WIDTH_PX / size[0], layout="constrained")
    FigureCanvasAgg(fig)
    axes = fig.subplots(1, panels, squeeze=False)[0]
    for ax, *texts in zip(axes, titles, xs, ys, strict=True):
        dress(ax, *texts)
    return fig, axes if panels > 1 else axes[0]


def _texts(name: str, given: str | Sequence[str], panels: int) -> list[str]:
    texts = [given] * panels if isinstance(given, str) else list(given)
    if len(texts) != panels:
        raise ValueError(f"{name} has {len(texts)} texts for {panels} panel(s): give one a panel")
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{name} is {text!r}: a picture needs its title and both labels, in words")
    return texts


def dress(ax: Axes, title: str, x: str, y: str) -> None:
    """Give a new or cleared `ax` its title, its labels, and no more ticks than large letters allow."""
    ax.locator_params(nbins=6)
    ax.set_title(title)
    ax.set_xlabel(x)
    ax.set_ylabel(y)


def theory(ax: Axes, x: np.ndarray, y: np.ndarray, label: str) -> Line2D:
    """Draw what the formula says, y over x, both of shape (n,), as the thin dark line; returns the line."""
    _check_curve(x, y)
    (line,) = ax.plot(x, y, color=INK, linestyle="-", linewidth=2, label=label, zorder=3)
    return line


def measured(
    ax: Axes,
    x: np.ndarray,
    y: np.ndarray,
    spread: float | np.ndarray | None = None,
    label: str | None = None,
    color: str | None = None,
    marker: str | None = None,
) -> ErrorbarContainer:
    """Draw what was measured, y over x, both of shape (n,), as dots.

    `spread` draws bars: one number, shape (n,), or shape (2, n) for below and above; in the unit of y.
    `color` and `marker` default to the next ones of the course. Returns what Axes.errorbar does.
    """
    _check_curve(x, y)
    rows_before = sum(isinstance(container, ErrorbarContainer) for container in ax.containers)
    looks = {"linestyle": "none", "elinewidth": 2, "marker": marker or MARKERS[rows_before % len(MARKERS)]}
    return ax.errorbar(x, y, yerr=spread, label=label, **looks, **({"color": color} if color else {}))


def chance(ax: Axes, level: float, label: str = "chance") -> Line2D:
    """Draw the level that guessing reaches, as a dashed line with its label on it; returns the line."""
    if not np.isfinite(level):
        raise ValueError(f"the level of {label!r} is {level}: it has to be a finite number")
    line = ax.axhline(level, color="0.4", linestyle="--", linewidth=2, marker="", zorder=1.5)
    place = ax.get_yaxis_transform()  # x as a part of the width, y in data
    ax.text(0.99, level, label, transform=place, ha="right", va="bottom", color="0.25")
    return line


def label_line(line: Line2D, text: str | None = None) -> None:
    """Write a line's label (or `text`) to the right of its last point, in place of a legend."""
    text = line.get_label() if text is None else text
    x, y = line.get_xydata()[-1]
    line.axes.annotate(text, (x, y), (8, 0), textcoords="offset points", va="center", annotation_clip=False)


def _check_curve(x: np.ndarray, y: np.ndarray) -> None:
    x, y = np.asarray(x), np.asarray(y)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"x has shape {x.shape} and y {y.shape}: give two rows of numbers of one length")


def show(fig: Figure, alt: str) -> None:
    """Display `fig` as one PNG, about 900 pixels wide, described by `alt` for those who don't see it.

    `alt` says in a sentence what the picture shows: what is on the axes, and what a reader should see there.
    Raises ValueError where `alt` says too little, where an axes lacks its title or a label (unless it is
    switched off by ax.axis("off")) or holds nothing, and where a title or label runs out of the picture.
    """
    check_alt(alt)
    png = to_png(fig, level=9)
    for ax in fig.axes:
        check_axes(ax)
    display(Picture(png, alt, f"Figure: {alt}"))


def check_alt(alt: str) -> None:
    """Raise ValueError where a description is missing or says too little."""
    if not isinstance(alt, str) or len(alt.strip()) < SHORTEST_ALT:
        raise ValueError(
            f"alt is {alt!r}: describe the picture in a sentence of {SHORTEST_ALT} characters or more, "
            "what is on the axes and what to see there"
        )


def check_axes(ax: Axes) -> None:
    """Raise ValueError where an axes is unnamed, empty or without finite limits, or a text is cut off."""
    box = ax.get_figure().bbox
    texts = {"title": _title(ax), "x": ax.xaxis.label, "y": ax.yaxis.label}
    if hasattr(ax, "_colorbar"):  # a colour bar has one label, on either side, and no title
        texts = {"colour bar's": texts["x"] if texts["x"].get_text().strip() else texts["y"]}
    for name, text in texts.items() if ax.axison else ():
        if not text.get_text().strip():
            raise ValueError(f"a picture has no {name} label: every axes needs its title and both labels")
        extent = text.get_window_extent()
        if extent.x0 < -1 or extent.y0 < -1 or extent.x1 > box.x1 + 1 or extent.y1 > box.y1 + 1:
            raise ValueError(f"the {name} label runs out of the picture, shorten it: {text.get_text()!r}")
    limits = (*ax.get_xlim(), *ax.get_ylim())
    if not np.isfinite(limits).all():
        raise ValueError(f"the axes' limits {limits} are not all finite numbers")
    if not _drawn(ax):
        raise ValueError("nothing is drawn: an axes without any finite data shows an empty picture")


def _title(ax: Axes):
    """The axes' title, whether it stands in the middle, on the left or on the right."""
    return next((t for t in (ax.title, ax._left_title, ax._right_title) if t.get_text().strip()), ax.title)


def _drawn(ax: Axes) -> bool:
    """Whether anything finite is in the picture: data, a picture of its own, or words."""
    words = any(text.get_text().strip() and text.get_visible() for text in ax.texts)
    return words or bool(ax.images) or bool(np.isfinite(ax.dataLim.get_points()).all())


def to_png(fig: Figure, level: int = 1) -> bytes:
    """Draw `fig` and return it as PNG: no time, no version in it, so the same picture is the same bytes."""
    return pixels_to_png(to_pixels(fig), level)


def to_pixels(fig: Figure) -> np.ndarray:
    """Draw `fig` and return its pixels, shape (height, width, 4), uint8; valid until the next drawing."""
    for ax in fig.axes:
        for image in ax.images:
            image.set_zorder(max(image.get_zorder(), 0.6))  # above the grid, which would read as data
        for text in () if ax.axison else ax.texts:
            text.set_in_layout(False)  # words alone: the frame that isn't there would shrink to fit them
    fig.canvas.draw()
    return np.asarray(fig.canvas.buffer_rgba())


def pixels_to_png(pixels: np.ndarray, level: int = 1) -> bytes:
    """Pixels of shape (height, width, 4), uint8, as PNG. `level` is zlib's: 1 for speed, 9 for stored pictures.

    Written here because libraries look for the best filter of each row: on flat colours that gains no byte, and
    it takes longer than the rest.
    """
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 4 * width), np.uint8)  # a leading 0 says that the row is not filtered
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)  # 8 bits a channel, red green blue alpha
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, level)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
