"""How long a live control takes from a key press to the new picture, in a real browser, and what it leaves behind.

    python tests/bench_controls.py [NOTEBOOK]      # default: chapter 10; on an otherwise idle machine

Prints, for each control of the notebook, median and 95th percentile in ms over 60 key presses; then how much memory
500 redraws add to the kernel, and how many figures pyplot holds open after them.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "browser"), str(HERE.parent)]

import lab  # noqa: E402

PRESSES, REDRAWS = 60, 500

# The clock starts as the page gets the key and stops as the browser has the new picture decoded.
WATCH = """live => {
    const image = live.querySelector('img.widget-image');
    addEventListener('keydown', () => { window.pressed = performance.now(); window.took = null; }, true);
    const stop = () => { window.took ??= performance.now() - window.pressed; };
    image.addEventListener('load', () => image.decode().then(stop));
}"""

MEMORY = f"""
import importlib, psutil
lives = list(importlib.import_module("course_utils.classroom.explore")._open.values())
def redraw(times):
    for _ in range(times):
        for live in lives:
            live.redraw()
    return psutil.Process().memory_info().rss / 2**20
before = redraw(20)
grown = redraw({REDRAWS}) - before
pyplot = importlib.import_module("matplotlib.pyplot")
result = [grown, len(pyplot.get_fignums()), len(lives)]
"""

ASK = """async code => {
    const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const reply = await kernel.requestExecute({code, user_expressions: {r: 'result'}}).done;
    return reply.content.user_expressions?.r?.data?.['text/plain'] ?? JSON.stringify(reply.content);
}"""


def latency(notebook: lab.Notebook, live: lab.Locator, kind: str, place: int) -> np.ndarray:
    """Milliseconds from each press to its picture: (PRESSES,)."""
    took, there = [], "ArrowRight"
    for _ in range(PRESSES + 2):  # the first two warm up
        control = lab.Control(live, kind, place)
        control.element.focus()
        if kind == "slider":
            now, least, most = (control.element.get_attribute(f"aria-value{what}") for what in ("now", "min", "max"))
            there = {least: "ArrowRight", most: "ArrowLeft"}.get(now, there)
        for key in {"slider": [there], "text": ["a", "Enter"]}.get(kind, ["Space"]):
            control.element.press(key)
        notebook.page.wait_for_function("window.took !== null")
        notebook.page.wait_for_timeout(100)  # a person's pace
        took.append(notebook.page.evaluate("window.took"))
    return np.array(took[2:])


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, lab.browser() as browser:
        work = Path(folder)
        (work / "root").mkdir()
        shutil.copy(path, work / "root")
        with lab.server(work) as address:
            notebook = lab.Notebook(browser.new_page(viewport={"width": 1300, "height": 1100}), address, path.name)
            notebook.restart_and_run_all()
            print(f"{path.name}, {PRESSES} presses each; load of the machine {os.getloadavg()[0]:.1f}")
            images = notebook.page.locator("img.widget-image")
            for number in range(images.count()):
                live = images.nth(number).locator("xpath=ancestor::*[contains(@class, 'jp-OutputArea-output')]")
                live.scroll_into_view_if_needed()
                live.evaluate(WATCH)
                for kind, selector in lab.Control.KINDS.items():
                    for place in range(live.locator(selector).count()):
                        ms = latency(notebook, live, kind, place)
                        middle, late = np.percentile(ms, [50, 95])
                        times = f"median {middle:4.0f} ms, p95 {late:4.0f} ms"
                        print(f"  picture {number}, {kind} {place}: {times}", flush=True)
            print(f"  [MB grown over {REDRAWS} redraws, figures open, pictures]: {notebook.page.evaluate(ASK, MEMORY)}")


if __name__ == "__main__":
    if lab.chromium() is None:
        sys.exit(lab.NO_CHROMIUM)
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else next((HERE.parent / "notebooks").glob("10_*.ipynb")))
