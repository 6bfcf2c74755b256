"""A JupyterLab of our own in a headless Chromium: started on a copy of the notebooks, driven as a learner drives it."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
NO_CHROMIUM = "No Chromium or Chrome is on the PATH: install Debian's package chromium (apt-get install chromium)"
SECONDS_TO_START, SECONDS_TO_RUN = 90, 300
QUIET = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
# As `python -m course_utils lab` does it.
KEEP_STILLS = "--ContentsManager.pre_save_hook=course_utils.delivery.stills.before_saving"

# What JupyterLab itself writes to the console as an error while all is well, and why that is no error of ours.
BENIGN = (
    "Could not restore the debugger state",  # the debugger's request is cut off by a restart that we asked for
    "Canceled future for",  # the same, for other requests under way
    "favicon",  # the tab's icon
)
# What stands on a page where something went wrong: a traceback, a warning, a widget without its model, a crashed view.
TROUBLE = (
    "[data-mime-type='application/vnd.jupyter.error'], [data-mime-type='application/vnd.jupyter.stderr'], "
    ":text('Error displaying widget'), :text('Click to show javascript error')"
)


def chromium() -> str | None:
    """The path of a Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for path in map(shutil.which, names) if path), None)


@contextmanager
def server(work: Path) -> Iterator[str]:
    """A JupyterLab that serves work/root; all that it keeps is kept in `work`. Yields its address, ready to open.

    Another server's settings, trust and progress are neither read nor changed.
    """
    port, token = _free_port(), secrets.token_hex(16)
    settings = work / "app-settings"
    settings.mkdir(parents=True)
    (settings / "overrides.json").write_text(json.dumps(QUIET), encoding="utf-8")
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", f"--ServerApp.root_dir={work / 'root'}"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}"),
        *("--LabApp.expose_app_in_browser=True", f"--LabApp.app_settings_dir={settings}", KEEP_STILLS),
        *(["--allow-root"] if _is_root() else []),
    ]
    log = work / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=_environment(work), cwd=work, stdout=out, stderr=out)
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/status?token={token}", process, log)
        yield f"http://127.0.0.1:{port}/lab/tree/{{name}}?token={token}&reset"
    finally:
        process.terminate()  # the server ends its kernels itself
        process.wait(timeout=30)


def _environment(work: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key != "COURSE_STRICT"}
    own = {f"JUPYTER_{name}_DIR": str(work / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    own |= {f"JUPYTERLAB_{name}_DIR": str(work / name.lower()) for name in ("SETTINGS", "WORKSPACES")}
    return kept | own | {"COURSE_PROGRESS": str(work / "progress"), "PYTHONPATH": str(ROOT)}


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(errors='replace')[-3000:]}")


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium with a profile of its own."""
    flags = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    flags += ["--disable-component-update", "--disable-sync", *(["--no-sandbox"] if _is_root() else [])]
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=chromium(), args=flags)
        yield opened
        opened.close()


class Notebook:
    """A notebook open in JupyterLab. Cells are counted from 0, text cells included."""

    def __init__(self, page: Page, address: str, name: str):
        self.page, self.address, self.name = page, address.format(name=name), name
        self.console: list[str] = []  # errors that the page wrote, benign ones left out
        page.set_default_timeout(30_000)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.console.append(f"uncaught: {error}"))
        self.open()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(words in message.text for words in BENIGN):
            self.console.append(message.text)

    def open(self) -> None:
        """Load the page anew and wait for the notebook and its kernel."""
        self.page.goto(self.address)
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.context")
        self.page.evaluate("jupyterapp.shell.currentWidget.context.ready.then(() => true)")
        self.page.wait_for_function(  # all cells: a long notebook comes in parts
            "jupyterapp.shell.currentWidget.content.model.cells.length"
            " === document.querySelectorAll('.jp-Notebook .jp-Cell').length"
        )
        self.wait_for_kernel()

    def wait_for_kernel(self) -> None:
        ready = "jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
        self.page.wait_for_function(ready, timeout=SECONDS_TO_START * 1000)

    def command(self, name: str, confirm: bool = False) -> None:
        """Run a command of JupyterLab to its end, saying yes to its dialog where it has one."""
        self.page.evaluate(
            "name => { window.ended = false; "
            "jupyterapp.commands.execute(name).finally(() => { window.ended = true; }); }",
            name,
        )
        if confirm:
            self.page.locator(".jp-Dialog .jp-mod-accept").click()
        self.page.wait_for_function("window.ended", timeout=SECONDS_TO_RUN * 1000)

    def restart_and_run_all(self) -> None:
        self.command("notebook:restart-run-all", confirm=True)
        self.wait_for_kernel()

    def restart(self) -> None:
        self.command("kernelmenu:restart", confirm=True)
        self.wait_for_kernel()

    def counts(self) -> list[int | None]:
        """The execution count of each code cell that holds code."""
        return self.page.evaluate(
            "jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model)"
            ".filter(m => m.type === 'code' && m.sharedModel.getSource().trim()).map(m => m.executionCount)"
        )

    def cell(self, index: int) -> Locator:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> Locator:
        return self.cell(index).locator(".jp-Cell-outputArea")

    def run(self, index: int) -> None:
        """Run one cell to its end."""
        self.page.evaluate("i => { jupyterapp.shell.currentWidget.content.activeCellIndex = i; }", index)
        self.command("notebook:run-cell")

    def write(self, index: int, source: str) -> None:
        """Replace a cell's code by typing, and run it with Shift+Enter."""
        self.cell(index).locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(source)
        counted = (
            "i => { const m = jupyterapp.shell.currentWidget.content.widgets[i].model;"
            " return m.executionState === 'idle' ? m.executionCount : null; }"
        )
        before = self.page.evaluate(counted, index)
        self.page.keyboard.press("Shift+Enter")
        self.page.wait_for_function(f"([i, before]) => ![null, before].includes(({counted})(i))", arg=[index, before])

    def trouble(self) -> list[str]:
        """What an unhappy page would show."""
        return self.page.locator(TROUBLE).all_inner_texts()

    def photograph(self, name: str, what: Locator | None = None) -> None:
        """Save a picture of the page, or of a part of it, where COURSE_SCREENSHOTS names a folder."""
        folder = os.environ.get("COURSE_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            (what or self.page).screenshot(path=Path(folder) / f"{Path(self.name).stem}-{name}.png")


class Control:
    """One control of a live picture, moved by keyboard."""

    KINDS = {
        "slider": "[role=slider]",
        "choice": ".widget-radio",
        "switch": "input[type=checkbox]",
        "text": "input[type=text]",
    }

    def __init__(self, live: Locator, kind: str, place: int):
        self.live, self.kind, self.element = live, kind, live.locator(self.KINDS[kind]).nth(place)
        if kind == "choice":  # an option that is not chosen yet
            self.element = self.element.locator("input[type=radio]:not(:checked)").last

    @classmethod
    def all(cls, live: Locator) -> list["Control"]:
        """The controls under a live picture, in the order of KINDS."""
        counts = {kind: live.locator(selector).count() for kind, selector in cls.KINDS.items()}
        return [cls(live, kind, place) for kind, count in counts.items() for place in range(count)]

    def picture(self) -> str:
        """The bytes of the picture that is shown now, in hexadecimal."""
        return self.live.locator("img.widget-image").evaluate(
            "async img => { const data = await (await fetch(img.src)).arrayBuffer();"
            " const hash = await crypto.subtle.digest('SHA-256', data);"
            " return Array.from(new Uint8Array(hash), b => b.toString(16).padStart(2, '0')).join(''); }"
        )

    def move(self) -> bool:
        """Move the control by keyboard; whether the picture changed."""
        before, end = self.picture(), time.monotonic() + 10
        self.element.focus()
        for key in self._keys():
            self.element.press(key)
        while time.monotonic() < end:
            if self.picture() != before:
                return True
            time.sleep(0.05)
        return False

    def _keys(self) -> list[str]:
        if self.kind == "slider":
            at_end = self.element.get_attribute("aria-valuenow") == self.element.get_attribute("aria-valuemax")
            return ["ArrowLeft"] if at_end else ["ArrowRight"]
        return ["End", "a", "Enter"] if self.kind == "text" else ["Space"]
