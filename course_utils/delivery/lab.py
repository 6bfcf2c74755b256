"""Opening JupyterLab at a chapter. Runs inside the course's environment."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from course_utils.delivery.chapters import find
from course_utils.delivery.environment import become
from course_utils.places import ROOT

NO_NEWS = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
KEEP_STILLS = {"ContentsManager": {"pre_save_hook": "course_utils.delivery.stills.before_saving"}}


def open_lab(chapter: str, extra: Sequence[str] = ()) -> NoReturn:
    """Become a JupyterLab that serves the clone and opens at the chapter. extra goes to JupyterLab."""
    page = find(chapter).relative_to(ROOT).as_posix()
    settle_in(Path(sys.prefix))
    print(f"Opening {page}. To stop JupyterLab, press Ctrl-C here twice.", flush=True)
    settings = [f"--ServerApp.root_dir={ROOT}", f"--LabApp.default_url=/lab/tree/{page}"]
    become([sys.executable, "-m", "jupyterlab", *settings, *extra])


def settle_in(prefix: Path) -> None:
    """Set up JupyterLab in the environment at prefix: no question about news, and stills kept in saved notebooks."""
    _add(prefix / "share" / "jupyter" / "lab" / "settings" / "overrides.json", NO_NEWS)
    _add(prefix / "etc" / "jupyter" / "jupyter_server_config.json", KEEP_STILLS)


def _add(file: Path, settings: dict) -> None:
    """Add settings to a JSON file, which may hold others already."""
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(before | settings, indent=2) + "\n", encoding="utf-8", newline="\n")
