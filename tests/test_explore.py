"""Live controls: what they redraw, say and refuse, and that a strict run draws every corner of them."""

import base64
import importlib
import io
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from PIL import Image

from course_utils.classroom import figures
from course_utils.classroom.explore import VIEW, Choice, Live, Slider, Steps, Switch, TextBox, corners, explore

module = importlib.import_module("course_utils.classroom.explore")

ALT = "A straight line that gets steeper with the scale"
TEXTS = {"title": "Scale", "x": "position", "y": "value"}
SCALE = Slider("scale of the position", 0, 8, 1, start=1)
KIND = Choice("curve", ["line", "wave"], start="line")
x = np.linspace(0, 10, 50)


def draw(ax, scale, kind="line"):
    ax.plot(x, scale * x if kind == "line" else np.sin(scale * x))
    return f"The scale is {scale} & the curve a <{kind}>."


def live(draw=draw, **controls):
    return Live(draw, tuple(TEXTS.values()), (8, 4.5), controls or {"scale": SCALE}, ALT)


def said(live):
    """The line under the picture, as a reader sees it."""
    return re.search(r'role="status"[^>]*>(.*)</div>', live.line.value)[1]


def opened(png):
    image = Image.open(io.BytesIO(png))
    image.load()
    return image


@pytest.fixture
def shown():
    """The one output of `explore`, as a notebook gets it."""
    InteractiveShell.instance()

    def one(draw=draw, alt=ALT, **controls):
        with capture_output() as seen:
            explore(draw, alt=alt, **TEXTS, **(controls or {"scale": SCALE}))
        (output,) = seen.outputs
        return output

    return one


# ---- the output ----------------------------------------------------------------------------------------------


def test_one_output_holds_the_view_a_still_picture_and_a_stable_text(shown):
    output = shown()
    assert set(output.data) == {VIEW, "image/png", "text/plain"}
    assert output.data["text/plain"] == f"Live control: {ALT} | controls: scale of the position 0 to 8 (now 1)"
    assert output.metadata == {"image/png": {"alt": ALT}, "alt": ALT}
    box = module._open[__name__, "draw", ALT].box
    assert output.data[VIEW] == {"version_major": 2, "version_minor": 0, "model_id": box.model_id}


def test_the_text_names_every_control_and_its_start():
    made = live(
        lambda ax, **values: draw(ax, 1) and None,
        a=Slider("length", 0, 1, 0.25, 0.5),
        b=Steps("dimensions", [2, 16, 128], 16),
        c=KIND,
        d=Switch("centred", True),
        e=TextBox("text", "a cat", 40),
    )
    assert repr(made).split(" | controls: ")[1].split("; ") == [
        "length 0 to 1 (now 0.5)",
        "dimensions 2, 16, 128 (now 16)",
        "curve line, wave (now line)",
        "centred on or off (now on)",
        'text any text up to 40 characters (now "a cat")',
    ]


def test_the_still_picture_is_the_live_one_with_a_note_below(shown):
    output, made = shown(), live()
    still, moving = opened(base64.b64decode(output.data["image/png"])), opened(made.image.value)
    assert moving.size == (900, 506)
    assert still.width == 900 and 20 < still.height - 506 < 80
    np.testing.assert_array_equal(np.asarray(still)[:506], np.asarray(moving))
    assert np.asarray(still)[506:].min() < 128, "the note has letters"


def test_each_control_becomes_a_widget_with_its_whole_label():
    made = live(
        lambda ax, **values: draw(ax, 1),
        a=Slider("length", 0, 1, 0.25, 0.5),
        b=Slider("whole", 0, 8, 2, 4),
        c=Steps("dimensions", [2, 16, 128], 16),
        d=KIND,
        e=Switch("centred"),
        f=TextBox("text", "a cat", 40),
    )
    kinds = [type(widget).__name__ for widget in made.inputs.values()]
    assert kinds == ["FloatSlider", "IntSlider", "SelectionSlider", "RadioButtons", "Checkbox", "Text"]
    for widget, control in zip(made.inputs.values(), made.controls.values(), strict=True):
        assert widget.description == control.label
        assert widget.value == control.start
        assert widget.style.description_width == "initial"
    assert made.inputs["a"].readout_format == ".2f"


# ---- redrawing ------------------------------------------------------------------------------------------------


def test_moving_a_control_redraws_the_picture_and_the_reading():
    made = live(scale=SCALE, kind=KIND)
    pictures = {made.image.value}
    assert said(made) == "The scale is 1 &amp; the curve a &lt;line&gt;."
    made.inputs["scale"].value = 5
    pictures.add(made.image.value)
    made.inputs["kind"].value = "wave"
    pictures.add(made.image.value)
    assert len(pictures) == 3
    assert said(made) == "The scale is 5 &amp; the curve a &lt;wave&gt;."


def test_one_figure_serves_all_redraws():
    made = live(scale=SCALE, kind=KIND)
    figure, before = made.fig, None
    for step in range(24):
        made.inputs["scale"].value = (made.inputs["scale"].value + 1) % 9
        parts = len(made.fig.findobj())
        before = before or parts
        assert made.fig is figure and made.fig.axes == [made.ax]
        assert parts <= before, step
    assert plt.get_fignums() == []


def test_where_draw_fails_the_picture_stays_and_the_line_says_why():
    def fragile(ax, scale):
        ax.plot(x, x)
        if scale == 3:
            raise KeyError("no <row> 3")
        return "fine"

    made = live(fragile)
    before = made.image.value
    made.inputs["scale"].value = 3
    assert made.image.value == before
    assert said(made) == "No new picture for scale = 3. KeyError: &#x27;no &lt;row&gt; 3&#x27;"
    made.inputs["scale"].value = 4
    assert said(made) == "fine"


def test_draw_may_return_a_sentence_or_nothing_else():
    with pytest.raises(TypeError, match="draw returned list: return one sentence or nothing"):
        live(lambda ax, scale: ax.plot(x, x))
    assert said(live(lambda ax, scale: ax.plot(x, x) and None)) == ""


def test_a_text_box_says_that_it_computes_and_refuses_a_long_text():
    def count(ax, text):
        ax.plot([0, len(text)], [0, 1])
        return f"{len(text)} letters"

    made = live(count, text=TextBox("text", "a cat", 10))
    lines = []
    made.line.observe(lambda change: lines.append(said(made)), names="value")
    made.inputs["text"].value = "two cats"
    assert lines == ["computing...", "8 letters"]
    assert not made.inputs["text"].continuous_update
    before = made.image.value
    made.inputs["text"].value = "a great many cats"
    assert said(made).endswith("17 characters, 10 are allowed: shorten the text")
    assert made.image.value == before


def rough(ax, what):
    """Does to the axes whatever a draw function may do to them."""
    ax.plot(x, x + 1)
    if what == "log":
        ax.set_yscale("log")
    elif what == "ticks":
        ax.set_xticks([1, 5, 9], ["one", "five", "nine"], rotation=40)
    elif what == "off":
        ax.axis("off")
    elif what == "image":
        ax.imshow(np.eye(4), extent=(0, 10, 0, 10))
    elif what == "bar":
        ax.get_figure().colorbar(ax.scatter(x, x, c=x), ax=ax, label="value")
    elif what == "marks":
        ax.tick_params(axis="x", labelrotation=30, length=12, colors="red")
        ax.grid(False)
    elif what == "limits":
        ax.set(xlim=(10, 0), ylim=(-1, 99))
    elif what == "words":
        ax.set(title="Other words", xlabel="two\nlines", ylabel="three\nwhole\nlines")
        ax.text(1, 1, "a word in the picture")
    elif what == "outside":
        ax.get_figure().text(0.5, 0.5, "not in the axes")
        ax.get_figure().legend(ax.lines, ["a line"])
    elif what == "twin":
        ax.twinx().plot(x, -x)


WAYS = ["plain", "log", "ticks", "off", "image", "bar", "marks", "limits", "words", "outside", "twin"]


def placed(picture, values):
    """The pixels with the axes placed for this picture alone, however much room earlier ones have needed."""
    for _ in range(2):  # a colour bar comes within a tenth of a pixel of its place at first, within nothing then
        picture.fig.set_layout_engine(module._WhenTextsGrow())
        pixels, _ = picture.paint(values)
    return pixels.copy()


@settings(deadline=None, max_examples=15)
@given(st.lists(st.sampled_from(WAYS), min_size=1, max_size=3), st.sampled_from(WAYS))
def test_nothing_of_an_earlier_picture_is_left_in_a_later_one(earlier, last):
    made, fresh = (live(rough, what=Choice("what", WAYS, "plain")) for _ in range(2))
    for what in earlier:
        made.paint({"what": what})
    difference = placed(made, {"what": last}).astype(int) - placed(fresh, {"what": last})
    # What is left of a colour bar's shift shades the edges of letters. Anything left behind would differ by much more.
    assert np.abs(difference).max() <= 40


def test_the_axes_stay_where_they_are_once_the_widest_texts_were_there():
    made = live(lambda ax, scale: ax.plot(x, 10.0**scale * x) and None, scale=SCALE)
    for scale in range(9):
        made.paint({"scale": scale})
    place = made.ax.get_position().bounds
    for scale in (6, 0, 3, 8):
        made.paint({"scale": scale})
        np.testing.assert_allclose(made.ax.get_position().bounds, place, atol=1e-12)
        figures.check_axes(made.ax)


def test_a_curve_after_a_square_map_keeps_its_labels_in_the_picture():
    def either(ax, view):
        ax.imshow(np.eye(8)) if view == "map" else ax.plot(x, x)
        ax.set_ylabel(view)

    made = live(either, view=Choice("view", ["map", "curve"], "map"))
    for view in ("map", "curve", "map", "curve"):
        made.paint({"view": view})
        assert made.ax.yaxis.label.get_window_extent().x0 > 0, view


def test_running_the_cell_again_closes_the_old_control(shown):
    shown()
    (old,) = [one for name, one in module._open.items() if name[2] == ALT]
    shown()
    (new,) = [one for name, one in module._open.items() if name[2] == ALT]
    assert new is not old
    assert old.box.comm is None and old.image.comm is None and new.box.comm is not None


# ---- corners and strict runs ------------------------------------------------------------------------------------

controls_drawn = st.dictionaries(
    st.sampled_from("abcde"),
    st.one_of(
        st.integers(0, 5).map(lambda start: Slider("whole", 0, 5, 1, start)),
        st.integers(0, 4).map(lambda step: Slider("part", -1.0, 0.0, 0.25, -1 + 0.25 * step)),
        st.sampled_from([2, 4, 8]).map(lambda start: Steps("steps", [2, 4, 8], start)),
        st.sampled_from("xyz").map(lambda start: Choice("choice", list("xyz"), start)),
        st.booleans().map(lambda start: Switch("switch", start)),
        st.just(TextBox("text", "a cat", 12)),
    ),
    min_size=1,
)


@given(controls_drawn, st.integers(1, 40))
def test_corners_begin_with_the_start_reach_every_end_and_stay_few(controls, most):
    found = corners(controls, most)
    assert found[0] == {name: control.start for name, control in controls.items()}
    for name, control in controls.items():
        assert set(control.ends()) <= {values[name] for values in found}
        for values in found:
            assert values[name] in {control.start, *control.ends()}
    ends = sum(len(set(control.ends()) - {control.start}) for control in controls.values())
    assert len(found) <= max(most, 1 + ends)
    assert len({tuple(values.items()) for values in found}) == len(found)


def test_a_strict_run_finds_what_fails_at_a_corner(shown, monkeypatch):
    def fails(ax, scale, kind):
        ax.plot(x, x)
        if scale == 8 and kind == "wave":
            raise ZeroDivisionError("no wave at 8")

    monkeypatch.setenv("COURSE_STRICT", "0")
    shown(fails, scale=SCALE, kind=KIND)
    monkeypatch.setenv("COURSE_STRICT", "1")
    with pytest.raises(RuntimeError, match="scale = 8, kind = wave: ZeroDivisionError: no wave at 8"):
        shown(fails, scale=SCALE, kind=KIND)


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda ax: None, "nothing is drawn"),
        (lambda ax: ax.plot(x, x * np.nan), "nothing is drawn"),
        (lambda ax: (ax.plot(x, x), ax.set_title("")), "no title label"),
        (lambda ax: (ax.plot(x, x), ax.set_xlabel("long " * 40)), "runs out of the picture"),
        (lambda ax: ax.set_xlim(0, np.inf), "cannot be NaN or Inf"),
        (lambda ax: (ax.plot(x, x), ax.set_xlabel(r"$\nonsense$")), "nonsense"),
    ],
)
def test_a_strict_run_finds_an_empty_or_spoilt_picture(shown, monkeypatch, spoil, words):
    monkeypatch.setenv("COURSE_STRICT", "1")

    def spoilt(ax, scale):
        if scale == 8:
            spoil(ax)
        else:
            ax.plot(x, x)

    with pytest.raises(RuntimeError, match=f"(?s)scale = 8: .*{words}"):
        shown(spoilt)


def test_a_strict_run_lets_a_draw_function_refuse_a_text_but_nothing_else(shown, monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "1")
    box = TextBox("word", "cat", 20)

    def lookup(ax, word, scale=1):
        if word != "cat":
            raise ValueError(f"{word!r} is not in the vocabulary")
        if scale == 8:
            raise ValueError("no scale 8")
        ax.plot(x, x)

    shown(lookup, word=box)
    with pytest.raises(RuntimeError, match="word = cat, scale = 8: ValueError: no scale 8"):
        shown(lookup, word=box, scale=SCALE)

    def crash(ax, word):
        ax.plot(x, x)
        return word[0]

    with pytest.raises(RuntimeError, match="IndexError"):
        shown(crash, word=box)


def test_a_strict_run_times_a_text_box(shown, monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "1")
    monkeypatch.setattr(module, "SECONDS_FOR_TEXT", 0.0)
    with pytest.raises(RuntimeError, match="computes longer than the 0 s that a text box has"):
        shown(lambda ax, text: ax.plot(x, x) and None, text=TextBox("text", "a cat", 10))


# ---- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Slider("", 0, 1, 1, 0), "name the control in 1 to 60 characters"),
        (lambda: Slider("long " * 20, 0, 1, 1, 0), "name the control in 1 to 60 characters"),
        (lambda: Slider("s", 1, 1, 1, 1), "low has to be below high"),
        (lambda: Slider("s", 0, 1, 0, 0), "the step above 0"),
        (lambda: Slider("s", 0, 1, 2, 0), "no wider than the range"),
        (lambda: Slider("s", 0, 8, 2, 3), "starts at 3, which isn't among its values: 0, 2, ... up to 8"),
        (lambda: Slider("s", 0, 8, 2, 10), "starts at 10, which isn't among its values"),
        (lambda: Slider("s", 0, float("nan"), 1, 0), "high is nan, it has to be a finite number"),
        (lambda: Slider("s", 0, 1, True, 0), "step is True, it has to be a finite number"),
        (lambda: Slider("s", "0", 1, 1, 0), "low is '0', it has to be a finite number"),
        (lambda: Steps("s", [1], 1), "give two values or more, once each"),
        (lambda: Steps("s", [1, 1, 2], 1), "give two values or more, once each"),
        (lambda: Steps("s", [1, 2], 3), "starts at 3, which isn't among its values: 1, 2"),
        (lambda: Choice("c", [], None), "offers nothing"),
        (lambda: Choice("c", ["a", "b"], "c"), "starts at 'c', which isn't among its values: a, b"),
        (lambda: Switch("s", 1), "it is True or False"),
        (lambda: TextBox("t", "", 10), "it needs a text to start with"),
        (lambda: TextBox("t", "abc", 2), "starts with 3 characters and allows 2"),
        (lambda: TextBox("t", "abc", None), "allows None"),
    ],
)
def test_a_control_that_does_not_fit_is_refused(make, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        make()


@pytest.mark.parametrize(
    "draw, controls, words",
    [
        (lambda ax, scale: None, {"size_of_it": SCALE}, "no parameter for size_of_it, no control for scale"),
        (lambda ax: None, {"scale": SCALE}, "draw takes nothing after ax"),
        (lambda ax, scale, other: None, {"scale": SCALE}, "no parameter for none, no control for other"),
        (lambda ax, scale: None, {"scale": (0, 8)}, "scale is (0, 8): a control is a Slider"),
    ],
)
def test_controls_that_do_not_match_draw_are_refused(draw, controls, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        explore(draw, alt=ALT, **TEXTS, **controls)


def test_no_control_and_no_description_are_refused():
    with pytest.raises(ValueError, match="explore has no control"):
        explore(draw, alt=ALT, **TEXTS)
    with pytest.raises(ValueError, match="describe the picture in a sentence"):
        explore(draw, alt="short", **TEXTS, scale=SCALE)
    with pytest.raises(ValueError, match="needs its title and both labels"):
        explore(draw, alt=ALT, title="", x="x", y="y", scale=SCALE)


@given(st.integers(-20, 20), st.sampled_from([0.1, 0.25, 1 / 3, 2, 5]), st.integers(0, 30), st.floats(-0.4, 0.4))
def test_a_slider_reads_the_nearest_of_its_values(low, step, place, off):
    slider = Slider("s", low, low + 30 * step, step, low)
    assert slider.read(low + (place + off) * step) == pytest.approx(low + place * step, abs=1e-9)


def test_a_slider_ends_on_its_last_step():
    assert Slider("s", 0, 10, 4, 0).ends() == (0, 8)
    assert Slider("s", 0, 1, 0.1, 0.3).ends() == (0, 1)
