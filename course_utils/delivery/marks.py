"""grade: run nbgrader's autograde over all submissions, one by one, and write the marks.

A real zero is told from "could not be graded". What did not change since the last run is not graded again.
"""

import csv
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from nbformat.warnings import MissingIDFieldWarning
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGraderAPI
from nbgrader.apps.baseapp import NbGrader
from nbgrader.utils import rmtree
from sqlalchemy.exc import SAWarning

from course_utils import exercises
from course_utils.delivery import CourseError
from course_utils.delivery.assignments import CONFIG, PATTERN
from course_utils.delivery.outcomes import title, why_nbgrader_failed, why_points_are_missing
from course_utils.delivery.submissions import Expected, Ungradable, fingerprint, inspect
from course_utils.places import replacing

KEPT = "grading"  # the folder that remembers what was graded
GRADED, UNGRADED = "graded", "could not be graded"
HEAD, TAIL = ["student", "status", "mark", "of"], ["message", "file"]


@dataclass
class Result:
    """What came of a submission. The marks themselves stand in nbgrader's gradebook."""

    student: str
    status: str
    message: str  # why it could not be graded; else why points are missing
    file: str
    state: str = ""  # fingerprint of what was graded, and with what


def grade(name: str, course: Path, table: Path | None = None, again: bool = False) -> int:
    """Grade what changed (or all, again), print a line a submission, write the table as CSV.

    Returns how many could not be graded. Raises CourseError where the folder is no course, or the assignment was not
    generated.
    """
    course = course.absolute()
    table = (table or course / f"{name}_marks.csv").absolute()
    with _nbgrader(course) as api:
        expected = _expected(api, name)
        results = list(_grade_all(api, name, expected, again))
        _write_table(api, name, results, table)
    failed = sum(result.status == UNGRADED for result in results)
    print(f"{len(results) - failed} graded, {failed} could not be graded. Marks: {table}")
    return failed


@contextmanager
def _nbgrader(course: Path) -> Iterator[NbGraderAPI]:
    """nbgrader's own interface with the course's settings, its messages kept for us, at work in the course's folder."""
    if not (course / CONFIG).is_file():
        raise CourseError(f"{course} is no nbgrader course (it has no {CONFIG}): name the folder that assign made.")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # alembic
    with chdir(course), warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingIDFieldWarning)  # a test cell that nbgrader puts back has no id
        warnings.simplefilter("ignore", SAWarning)  # of nbgrader's gradebook, where it makes a submission's entry
        app = NbGrader()
        app.initialize([])
        for handler in list(app.log.handlers):
            app.log.removeHandler(handler)
        app.log.propagate = False
        yield NbGraderAPI(coursedir=app.coursedir, parent=app)


def _gradebook(api: NbGraderAPI) -> Gradebook:
    return Gradebook(api.coursedir.db_url, api.coursedir.course_id)


def _expected(api: NbGraderAPI, name: str) -> list[Expected]:
    """The assignment's notebooks, as the gradebook has them."""
    command = f"run 'nbgrader generate_assignment \"{name}\"' in {api.coursedir.root}"
    missing = CourseError(f"The gradebook has no assignment {name!r}: {command}.")
    database = re.fullmatch("sqlite:///(.+)", api.coursedir.db_url)
    if database and not Path(database[1]).exists():
        raise missing
    with _gradebook(api) as gradebook:
        try:
            notebooks = gradebook.find_assignment(name).notebooks
        except MissingEntry:
            raise missing from None
        return [_as_expected(notebook) for notebook in notebooks]


def _as_expected(notebook) -> Expected:
    cells = tuple(cell.name for cell in notebook.source_cells)
    return Expected(notebook.name, cells, frozenset(cell.name for cell in notebook.grade_cells))


def _grade_all(api: NbGraderAPI, name: str, expected: Sequence[Expected], again: bool) -> Iterator[Result]:
    """Each submission's result, kept as soon as it is there, so that a stop loses nothing."""
    root = Path(api.coursedir.root)
    tools = fingerprint(root / api.coursedir.source_directory / name, root / CONFIG, Path(exercises.__file__).parent)
    record = root / KEPT / f"{name}.json"
    kept = {one["student"]: Result(**one) for one in json.loads(record.read_text("utf-8"))} if record.exists() else {}
    for folder, student in _submissions(api, name):
        state = f"{tools} {_fingerprint(folder)}"
        before = kept.get(student)
        if again or before is None or before.state != state or not _still_there(api, name, before):
            kept[student] = _grade_one(api, name, student, folder, expected)
            kept[student].state = state
            _keep(record, kept)
        print(f"{student}: {_line(api, name, kept[student])}", flush=True)
        yield kept[student]


def _fingerprint(folder: Path) -> str:
    """What a submission holds; a fresh text each time where it can't be read."""
    try:
        return fingerprint(folder)
    except OSError as error:
        return f"{error} {time.time()}"


def _submissions(api: NbGraderAPI, name: str) -> Iterator[tuple[Path, str]]:
    """What to grade, with its student; and what lies among the submissions, but not where one belongs."""
    root = Path(api.coursedir.root)
    submitted, source = root / api.coursedir.submitted_directory, root / api.coursedir.source_directory
    known = {folder.name for folder in source.iterdir()}
    for entry in sorted(submitted.iterdir()) if submitted.is_dir() else ():
        inside = {one.name for one in entry.iterdir() if one.is_dir()} if entry.is_dir() else set()
        if name in inside:
            yield entry / name, entry.name
        elif not entry.name.startswith(".") and not inside & known:
            yield entry, entry.name


def _grade_one(api: NbGraderAPI, name: str, student: str, folder: Path, expected: Sequence[Expected]) -> Result:
    root = Path(api.coursedir.root)
    graded = root / api.coursedir.autograded_directory / student / name
    try:
        if folder.parent.name != student:
            raise Ungradable(folder, f"it is not where a submission belongs, in {folder.parent.name}/STUDENT/{name}")
        if PATTERN & set(student):
            raise Ungradable(folder, "nbgrader can't take a folder with any of * ? [ ] in its name: rename it")
        inspect(folder, expected)
        _autograde(api, name, student, folder / f"{expected[0].name}.ipynb")
        files = [f"{one.name}.ipynb" for one in expected]
        message = " / ".join(said for file in files for said in why_points_are_missing(graded / file, folder / file))
        return Result(student, GRADED, message, folder.relative_to(root).as_posix())
    except Ungradable as error:
        trouble = error
    except Exception as error:  # whatever it is, the next submission has to have its turn
        trouble = Ungradable(folder, f"{type(error).__name__}: {str(error)[:200]}")
    _take_back(api, name, student, graded)
    return Result(student, UNGRADED, trouble.reason, trouble.file.relative_to(root).as_posix())


def _autograde(api: NbGraderAPI, name: str, student: str, file: Path) -> None:
    """nbgrader's autograde for one student. Raises Ungradable with the reason where it fails."""
    done = api.autograde(name, student)
    if done["success"]:
        return
    if done["error"].rstrip().endswith("KeyboardInterrupt"):  # nbgrader swallows it
        raise KeyboardInterrupt
    raise Ungradable(file, why_nbgrader_failed(done.get("log", "") + done["error"]))


def _take_back(api: NbGraderAPI, name: str, student: str, graded: Path) -> None:
    """No automatic mark for what could not be graded, such as that of an earlier version; marks by hand stay."""
    if graded.exists():
        rmtree(str(graded))
    with _gradebook(api) as gradebook:
        try:
            submission = gradebook.find_submission(name, student)
        except MissingEntry:
            return
        for one in (grade for notebook in submission.notebooks for grade in notebook.grades):
            one.auto_score, one.needs_manual_grade = None, True
        gradebook.db.commit()


def _still_there(api: NbGraderAPI, name: str, before: Result) -> bool:
    """Whether nbgrader still has what it made of the submission."""
    graded = Path(api.coursedir.root) / api.coursedir.autograded_directory / before.student / name
    return before.status == UNGRADED or (graded.is_dir() and _marks(api, name, before.student) is not None)


def _marks(api: NbGraderAPI, name: str, student: str) -> dict[str, float] | None:
    """The gradebook's marks of a submission: mark, of, and one for each test; None where it has none."""
    with _gradebook(api) as gradebook:
        try:
            submission = gradebook.find_submission(name, student)
        except MissingEntry:
            return None
        tests = {title(grade.cell.name): grade.score for one in submission.notebooks for grade in one.grades}
        mark = max(0.0, submission.score - (submission.late_submission_penalty or 0.0))
        return {"mark": mark, "of": submission.max_score} | tests


def _line(api: NbGraderAPI, name: str, result: Result) -> str:
    if result.status == UNGRADED:
        return f"{UNGRADED}: {result.file}: {result.message}"
    marks = _marks(api, name, result.student)
    return f"{marks['mark']:g} of {marks['of']:g}" + (f". {result.message}" if result.message else "")


def _keep(record: Path, kept: dict[str, Result]) -> None:
    record.parent.mkdir(exist_ok=True)
    content = json.dumps([asdict(one) for one in kept.values()], ensure_ascii=False, indent=1)
    with replacing(record) as new:
        new.write_text(content, encoding="utf-8", newline="\n")


def _write_table(api: NbGraderAPI, name: str, results: Sequence[Result], table: Path) -> None:
    """The marks, a line a submission; no mark where it could not be graded. Written so that Excel reads it rightly."""
    rows = []
    for result in results:
        marks = _marks(api, name, result.student) if result.status == GRADED else {}
        rows.append(asdict(result) | marks)
    tests = [title(test) for one in _expected(api, name) for test in one.cells if test in one.tests]
    with table.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, [*HEAD, *tests, *TAIL], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
