"""Figures: one look, described, readable from the back of a room, and nothing of pyplot."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib.text import Text
from PIL import Image

from course_utils.classroom import figures
from course_utils.classroom.figures import chance, figure, label_line, measured, pixels_to_png, show, theory, to_png

ALT = "A straight line that rises from 0 to 9"
x = np.arange(10.0)


@pytest.fixture
def shown():
    """The one output that `show` displays, as a notebook gets it."""
    InteractiveShell.instance()

    def one(fig, alt=ALT):
        with capture_output() as seen:
            show(fig, alt)
        (output,) = seen.outputs
        return output

    return one


def drawn(title="Steps", **looks):
    fig, ax = figure(title, "position", "value", **looks)
    ax.plot(x, x, label="line")
    return fig, ax


def opened(png):
    image = Image.open(io.BytesIO(png))
    image.load()
    return image


def test_show_gives_one_png_with_its_description(shown):
    fig, _ = drawn()
    output = shown(fig)
    assert set(output.data) == {"image/png", "text/plain"}
    assert output.data["text/plain"] == f"Figure: {ALT}"
    assert output.metadata == {"image/png": {"alt": ALT}, "alt": ALT}


@settings(deadline=None, max_examples=10)
@given(width=st.integers(4, 14), height=st.integers(3, 8))
def test_every_picture_is_about_900_pixels_wide(width, height):
    fig, _ = drawn(size=(width, height))
    image = opened(to_png(fig))
    assert abs(image.width - 900) <= 1
    assert abs(image.height - 900 * height / width) <= 1


def test_the_same_picture_is_the_same_bytes_with_no_time_or_version_in_them():
    first, second = (to_png(drawn()[0]) for _ in range(2))
    assert first == second
    assert set(opened(first).info) == set()


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.binary(min_size=4 * n * 5, max_size=4 * n * 5).map(
            lambda data: np.frombuffer(data, np.uint8).reshape(n, 5, 4)
        )
    ),
    st.integers(0, 9),
)
def test_a_png_holds_the_pixels_that_went_in(pixels, level):
    np.testing.assert_array_equal(np.asarray(opened(pixels_to_png(pixels, level))), pixels)


def test_no_figure_is_left_open_in_pyplot(shown):
    for _ in range(5):
        shown(drawn()[0])
    assert plt.get_fignums() == []


def test_letters_and_lines_are_readable_from_the_back():
    fig, (left, right) = figure(["Lines", "Dots"], "position", ["value", "error"], size=(11, 4.5), panels=2)
    for k in range(6):
        left.plot(x, k * x, label=f"line {k}")
    left.legend()
    theory(right, x, x, label="theory")
    measured(right, x, x, spread=0.5, label="measured")
    chance(right, 4)
    label_line(left.lines[0])
    fig.canvas.draw()
    sizes = [text.get_fontsize() for text in fig.findobj(Text) if text.get_text()]
    assert len(sizes) > 30 and min(sizes) >= 14
    assert min(line.get_linewidth() for ax in (left, right) for line in ax.lines) >= 2
    assert not left.spines["top"].get_visible() and not left.spines["right"].get_visible()


def test_no_two_lines_of_the_cycle_differ_by_colour_alone():
    fig, ax = drawn()
    lines = [ax.plot(x, x)[0] for _ in figures.COLOURS]
    dots = [measured(ax, x, x)[0] for _ in figures.MARKERS]
    assert len({line.get_color() for line in lines}) == len({str(line._dash_pattern) for line in lines}) == len(lines)
    assert len({row.get_marker() for row in dots}) == len({row.get_color() for row in dots}) == len(dots)


def test_lines_are_ordered_by_their_contrast_with_white():
    def contrast(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        light = np.dot(
            [0.2126, 0.7152, 0.0722], [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        )
        return 1.05 / (light + 0.05)

    contrasts = [contrast(colour) for colour in figures.COLOURS]
    assert contrasts == sorted(contrasts, reverse=True)
    assert contrasts[2] > 3  # what WCAG asks of a graphic: three lines are a usual picture


def test_theory_takes_no_colour_from_the_cycle_and_lies_over_the_dots():
    fig, ax = figure("Theory", "x", "y")
    line = theory(ax, x, x, label="theory")
    dots = measured(ax, x, x, label="measured")
    assert line.get_color() == figures.INK and dots[0].get_color() == figures.BLUE
    assert line.get_zorder() > dots[0].get_zorder()
    assert dots[0].get_linestyle() == "None" and dots[0].get_marker() == "o"


@pytest.mark.parametrize("spread, reach", [(0.5, 0.5), (np.full(10, 0.25), 0.25), (np.full((2, 10), 2.0), 2.0)])
def test_spread_draws_bars_of_that_length(spread, reach):
    fig, ax = figure("Bars", "x", "y")
    (bars,) = measured(ax, x, x, spread=spread, color=figures.SKY, marker="D")[2]
    np.testing.assert_allclose(bars.get_segments()[3], [[3, 3 - reach], [3, 3 + reach]])


def test_the_level_of_chance_carries_its_label():
    fig, ax = drawn()
    line = chance(ax, 0.25, label="a coin")
    assert (np.asarray(line.get_ydata()) == 0.25).all() and line.get_linestyle() == "--"
    assert [(text.get_text(), text.get_position()[1]) for text in ax.texts] == [("a coin", 0.25)]


def test_a_line_s_label_stands_at_its_end():
    fig, ax = drawn()
    label_line(ax.lines[0])
    label_line(ax.lines[0], "end")
    assert [(text.get_text(), text.xy) for text in ax.texts] == [("line", (9, 9)), ("end", (9, 9))]


def test_a_picture_of_numbers_has_no_grid_over_it(shown):
    fig, ax = figure("Scores", "key", "query")
    ax.imshow(np.eye(4))
    fig.colorbar(ax.images[0], ax=ax, label="score")
    shown(fig)
    assert ax.images[0].get_zorder() > ax.xaxis.get_zorder()


@pytest.mark.parametrize("texts", [("", "x", "y"), ("t", "  ", "y"), ("t", "x", ""), ("t", "x", None)])
def test_a_figure_without_a_text_is_refused(texts):
    with pytest.raises((ValueError, TypeError), match="needs its title and both labels|NoneType"):
        figure(*texts)


@pytest.mark.parametrize("panels", [0, -1, 1.5, "2"])
def test_a_strange_number_of_panels_is_refused(panels):
    with pytest.raises(ValueError, match="how many pictures stand side by side"):
        figure("t", "x", "y", panels=panels)


def test_panels_want_a_title_each():
    with pytest.raises(ValueError, match="2 panels need 2 titles"):
        figure("one title", "x", "y", panels=2)
    with pytest.raises(ValueError, match="title has 3 texts for 2 panel"):
        figure(["a", "b", "c"], "x", "y", panels=2)
    with pytest.raises(ValueError, match="y has 1 texts for 2 panel"):
        figure(["a", "b"], "x", ["y"], panels=2)


@pytest.mark.parametrize("alt", ["", "too short", " " * 40, None])
def test_a_description_that_says_too_little_is_refused(shown, alt):
    fig, _ = drawn()
    with pytest.raises(ValueError, match="describe the picture in a sentence"):
        shown(fig, alt)


@pytest.mark.parametrize("name, strip", [("title", "set_title"), ("x", "set_xlabel"), ("y", "set_ylabel")])
def test_an_axes_without_a_text_is_not_shown(shown, name, strip):
    fig, ax = drawn()
    getattr(ax, strip)("")
    with pytest.raises(ValueError, match=f"no {name} label"):
        shown(fig)


def test_a_title_on_the_left_is_a_title(shown):
    fig, ax = drawn()
    ax.set_title("")
    ax.set_title("Steps", loc="left")
    shown(fig)


def test_a_text_that_is_cut_off_is_not_shown(shown):
    fig, _ = drawn(
        "A title that goes on and on, far beyond what a picture of this width has room for, in large letters"
    )
    with pytest.raises(ValueError, match="title label runs out of the picture, shorten it: 'A title"):
        shown(fig)


@pytest.mark.parametrize("draw", [lambda ax: None, lambda ax: ax.plot([np.nan], [np.nan]), lambda ax: ax.plot([], [])])
def test_an_empty_picture_is_not_shown(shown, draw):
    fig, ax = figure("Nothing", "x", "y")
    draw(ax)
    with pytest.raises(ValueError, match="nothing is drawn"):
        shown(fig)


@pytest.mark.filterwarnings("error")
def test_an_axes_switched_off_needs_no_labels_but_something_in_it(shown):
    fig, ax = figure("A drawing", "x", "y")
    ax.axis("off")
    with pytest.raises(ValueError, match="nothing is drawn"):
        shown(fig)
    ax.text(0.5, 0.5, "word + position")
    ax.set_title("")
    shown(fig)


def test_a_colour_bar_needs_its_label(shown):
    fig, ax = figure("Scores", "key", "query")
    bar = fig.colorbar(ax.imshow(np.eye(3)), ax=ax)
    with pytest.raises(ValueError, match="no colour bar's label"):
        shown(fig)
    bar.set_label("score")
    shown(fig)


@pytest.mark.parametrize("draw", [theory, measured])
def test_rows_of_two_lengths_are_refused(draw):
    fig, ax = figure("t", "x", "y")
    with pytest.raises(ValueError, match=r"x has shape \(10,\) and y \(9,\)"):
        draw(ax, x, x[:-1], label="a")
    with pytest.raises(ValueError, match="two rows of numbers of one length"):
        draw(ax, x.reshape(2, 5), x.reshape(2, 5), label="a")


@pytest.mark.parametrize("level", [np.nan, np.inf])
def test_a_level_of_chance_is_a_number(level):
    fig, ax = drawn()
    with pytest.raises(ValueError, match="level of 'chance' is (nan|inf)"):
        chance(ax, level)
