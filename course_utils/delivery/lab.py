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


def open_lab(chapter: str, extra: Sequence[str] = ()) -> NoReturn:
    """Become a JupyterLab that serves the clone and opens at the chapter. extra goes to JupyterLab."""
    page = find(chapter).relative_to(ROOT).as_posix()
    silence_news(Path(sys.prefix))
    print(f"Opening {page}. To stop JupyterLab, press Ctrl-C here twice.", flush=True)
    settings = [
        f"--ServerApp.root_dir={ROOT}",
        f"--LabApp.default_url=/lab/tree/{page}",
        "--ContentsManager.pre_save_hook=course_utils.delivery.stills.before_saving",
    ]
    become([sys.executable, "-m", "jupyterlab", *settings, *extra])


def silence_news(prefix: Path) -> None:
    """Turn off JupyterLab's question about news, in this environment only."""
    settings = prefix / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps(NO_NEWS, indent=2) + "\n", encoding="utf-8", newline="\n")
