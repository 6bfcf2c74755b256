"""Every kind of control in a real JupyterLab, and what happens to keys pressed faster than pictures are drawn."""

import re

import nbformat
import pytest
from lab import Control, Notebook
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

READING = re.compile(r"scale \d+, picture \d+")
CELLS = (
    """\
import numpy as np
from course_utils.classroom import Choice, Slider, Steps, Switch, TextBox, explore
x = np.linspace(0, 10, 200)""",
    """\
drawn = []
def draw(ax, scale, power, kind, marks, text):
    drawn.append(scale)
    y = scale * (x / 10) ** power
    ax.plot(x, y if kind == "curve" else np.sin(y), marker="o" if marks else "")
    ax.set_title(text)
    if text.startswith("no"):
        raise ValueError("this text is refused")
    return f"scale {scale}, picture {len(drawn)}"
explore(draw, alt="A curve whose scale, power, kind and marks are chosen", title="Curve", x="x", y="y",
        scale=Slider("scale", 0, 100, 1, start=10), power=Steps("power", [1, 2, 3], start=2),
        kind=Choice("kind", ["curve", "wave", "none"], start="curve"), marks=Switch("marks"),
        text=TextBox("title", "Curve", 30))""",
)


@pytest.fixture(scope="module")
def sample(browser, lab_folder, address):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, lab_folder / "root" / "sample.ipynb")
    page = browser.new_page(viewport={"width": 1300, "height": 1100})
    opened = Notebook(page, address, "sample.ipynb")
    opened.restart_and_run_all()
    yield opened
    page.close()


def test_each_kind_of_control_works_by_keyboard(sample):
    controls = Control.all(sample.output(1))
    assert [control.kind for control in controls] == ["slider", "slider", "choice", "switch", "text"]
    for control in controls:
        assert control.move(), control.kind
    assert sample.trouble() == [] and sample.console == []


def test_labels_are_seen_in_full(sample):
    for label in ("scale", "power", "kind", "marks", "title"):
        seen = sample.output(1).locator(f"label:text-is('{label}'), span:text-is('{label}')").first
        expect(seen).to_be_visible()
        assert seen.evaluate("label => label.scrollWidth <= label.clientWidth + 1 || label.clientWidth === 0")


def test_a_refused_text_leaves_the_picture_and_says_why(sample):
    live = sample.output(1)
    box = Control(live, "text", 0)
    before = box.picture()
    box.element.fill("no such thing")
    box.element.press("Enter")
    expect(live.get_by_role("status")).to_contain_text("this text is refused")
    assert box.picture() == before
    box.element.fill("x" * 31)
    box.element.press("Enter")
    expect(live.get_by_role("status")).to_contain_text("31 characters, 30 are allowed")
    box.element.fill("Curve")
    box.element.press("Enter")
    expect(live.get_by_role("status")).to_have_text(READING)


def test_fast_keys_do_not_pile_up(sample):
    """Forty presses without a pause: the last value is drawn soon, and not every value before it."""
    live = sample.output(1)
    slider = live.get_by_role("slider").first
    slider.focus()
    said = live.get_by_role("status")
    expect(said).to_have_text(READING)
    drawn_before = int(said.inner_text().split()[-1])
    last = int(float(slider.get_attribute("aria-valuenow"))) + 40
    slider.evaluate(
        "handle => { for (let i = 0; i < 40; i++) handle.dispatchEvent(new KeyboardEvent('keydown',"
        " {key: 'ArrowRight', keyCode: 39, bubbles: true, cancelable: true})); }"
    )
    expect(said).to_contain_text(f"scale {last},", timeout=3000)
    assert int(said.inner_text().split()[-1]) - drawn_before < 20
