"""assign: a source assignment for nbgrader out of exercises that an instructor picks."""

import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from course_utils import exercises
from course_utils.delivery import CourseError
from course_utils.delivery.chapters import find
from course_utils.delivery.excerpt import Excerpt, cut_out, with_solution
from course_utils.delivery.keeping import KERNEL
from course_utils.exercises import Exercise
from course_utils.exercises.fresh import fresh_cases
from course_utils.places import DATA

CONFIG = "nbgrader_config.py"
PATTERN = set("*?[]")  # nbgrader looks for folders by pattern
NAME = re.compile(r"\w(?:[\w .-]{0,78}[\w-])?")  # nbgrader refuses + and strips spaces; folders refuse others
OPENING = """# {name}

{count}, {points}. Replace the three dots by your answer and run the cell below it: it says whether the answer is right.

Before you hand in: restart the kernel and run all cells, so that you see what the grader will see; then save. Hand in \
this file, **{name}.ipynb**, under this name. Don't delete or copy cells that hold code: each has a number inside by \
which it is found. Cells of your own are welcome."""
TEST = """# Your check for {id}. Run it as often as you like, and leave it as it is.
try:
    from course_utils.exercises.marking import visible
except ImportError:
    assert {name} is not ..., "Not attempted yet: fill in the cell above, run it, then run this cell again."
    print("The course is not installed here, so this cell can't say whether the answer is right. It will be graded.")
else:
    visible("{id}", {name})
### BEGIN HIDDEN TESTS
from course_utils.exercises.marking import hidden
hidden("{id}", {name}, {seed})
### END HIDDEN TESTS"""


def assign(name: str, picked: Sequence[Exercise], points: Sequence[float], out: Path) -> Path:
    """Write source/NAME/NAME.ipynb into the course folder out, and nbgrader's settings where there are none.

    Returns the notebook. Raises CourseError, and writes nothing, where the name, the points or the folder won't do.
    """
    points = _checked_points(picked, points)
    path = _checked_place(name, out)
    notebook = assignment(name, [cut_out(one, find(one.chapter)) for one in picked], points)
    try:
        path.parent.mkdir(parents=True)
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8", newline="\n")
        if not (out / CONFIG).exists():
            shutil.copyfile(DATA / CONFIG, out / CONFIG)
    except OSError as error:
        raise CourseError(f"{out} can't be written to ({error.strerror}): choose another folder.") from error
    return path


def pick(ids: Sequence[str], chapter: str | None) -> list[Exercise]:
    """The exercises of these ids, or all of the chapter. Raises CourseError for one that there isn't, or is twice."""
    try:
        picked = exercises.of_chapter(chapter.zfill(2)) if chapter else [exercises.find(one) for one in ids]
    except KeyError as error:
        raise CourseError(error.args[0]) from None
    if not picked:
        raise CourseError("Nothing is picked: name exercises, such as --exercises 10.1 10.2, or a --chapter.")
    twice = {one.id for one in picked if picked.count(one) > 1}
    if twice:
        raise CourseError(f"Exercise {', '.join(sorted(twice))} is named twice: name each once.")
    return picked


def listing() -> str:
    """All exercises, a line for each: id, minutes, points, title."""
    every = [one for chapter in exercises.chapters() for one in exercises.of_chapter(chapter)]
    lines = [f"{one.id:6} {one.minutes:7} {one.points:6}  {one.title}" for one in every]
    return "\n".join([f"{'id':6} {'minutes':>7} {'points':>6}  title", *lines])


def report(path: Path, picked: Sequence[Exercise]) -> str:
    """What was written, what to know about it, and what comes next."""
    fixed = [one.id for one in picked if one.cases is not None and not fresh_cases(one, 0)]
    known = f"{', '.join(fixed)}: no fresh trials, so a table of the visible check's results would pass.\n"
    name, course = path.stem, path.parents[2]
    done = f"Wrote {path}.\n" + (known if fixed else "")
    again = " --force" if (course / "release" / name).exists() else ""  # nbgrader keeps an old release without a word
    return f'{done}Next, in {course}: nbgrader generate_assignment "{name}"{again}'


def assignment(name: str, excerpts: Sequence[Excerpt], points: Sequence[float]) -> NotebookNode:
    """The source notebook, as nbgrader's generate_assignment takes it."""
    count = "1 exercise" if len(excerpts) == 1 else f"{len(excerpts)} exercises"
    cells = [v4.new_markdown_cell(OPENING.format(name=name, count=count, points=_points(sum(points))))]
    in_force: dict[str, str] = {}  # the definition that each name has at this place
    posed: list[str] = []
    for excerpt, worth in zip(excerpts, points, strict=True):
        posed.append(excerpt.exercise.id)
        cells += _exercise_cells(excerpt, worth, in_force, posed)
        in_force.pop(excerpt.name, None)  # from here on the name is the student's
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number:03}"
    return v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL, "language_info": {"name": "python"}})


def _exercise_cells(excerpt: Excerpt, worth: float, in_force: dict[str, str], posed: Sequence[str]) -> list:
    exercise = excerpt.exercise
    title = f"## {exercise.id} {exercise.title} ({_points(worth)}, {exercise.minutes} minutes)"
    cells = [v4.new_markdown_cell("\n\n".join([title, excerpt.text, *_quoted(excerpt, posed)]))]
    given = [code for names, code in excerpt.given if in_force.get(names) != code]
    in_force.update(excerpt.given)
    if given:
        cells.append(_cell("given", exercise, "\n\n\n".join(given), locked=True))
    cells.append(_cell("answer", exercise, with_solution(excerpt), solution=True))
    test = TEST.format(id=exercise.id, name=excerpt.name, seed=secrets.randbelow(10**9))
    cells.append(_cell("test", exercise, test, grade=True, locked=True, points=worth))
    return cells


def _quoted(excerpt: Excerpt, posed: Sequence[str]) -> list[str]:
    """The texts of exercises that this one mentions and that are not posed here."""
    chapter = find(excerpt.exercise.chapter)
    others = [cut_out(exercises.find(one), chapter) for one in excerpt.refers_to if one not in posed]
    return [
        f"> {one.exercise.id} {one.exercise.title}, from the chapter: " + one.text.replace("\n", "\n> ")
        for one in others
    ]


def _cell(kind: str, exercise: Exercise, source: str, **marks: object) -> NotebookNode:
    """A code cell with nbgrader's metadata."""
    plain = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3}
    named = {"grade_id": f"{exercise.id.replace('.', '-')}-{kind}", "cell_type": "code"}
    return v4.new_code_cell(source, metadata={"nbgrader": plain | named | marks})


def _points(worth: float) -> str:
    return "1 point" if worth == 1 else f"{worth:g} points"


def _checked_points(picked: Sequence[Exercise], points: Sequence[float]) -> list[float]:
    """The points, or the exercises' own where none are given; whole numbers as int."""
    if points and len(points) != len(picked):
        raise CourseError(f"{len(picked)} exercises and {len(points)} points: give one number for each, in order.")
    bad = [worth for worth in points if not 0 <= worth < 10_000]
    if bad:
        raise CourseError(f"{bad[0]:g} points can't be given: choose 0 or more, up to 9999.")
    chosen = list(points) or [one.points for one in picked]
    return [int(worth) if worth == int(worth) else worth for worth in chosen]


def _checked_place(name: str, out: Path) -> Path:
    """Where the notebook goes."""
    if not NAME.fullmatch(name):
        allowed = "letters, digits, - and _, inside also spaces and dots, 80 at most"
        raise CourseError(f"nbgrader can't take {name!r} as an assignment's name: use {allowed}.")
    if PATTERN & set(str(out.absolute())):
        raise CourseError(f"nbgrader can't work in {out.absolute()}: take a path without * ? [ ].")
    if out.exists() and not (out / CONFIG).exists() and (not out.is_dir() or any(out.iterdir())):
        raise CourseError(f"{out} is in use and is no nbgrader course (it has no {CONFIG}): choose a new folder.")
    path = out / "source" / name / f"{name}.ipynb"
    if path.parent.exists():
        raise CourseError(f"{path.parent} is there already: choose another name, or remove that folder.")
    return path
