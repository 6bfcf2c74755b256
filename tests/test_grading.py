"""From picking exercises to marks, through the real nbgrader: each kind of submission, and what comes of it."""

import csv
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mischief
import nbformat
import pytest
from nbclient import NotebookClient
from nbgrader.api import Gradebook
from notebook_reading import read, tagged

from course_utils import exercises
from course_utils.delivery import cli
from course_utils.delivery.chapters import find
from course_utils.delivery.excerpt import cut_out, with_solution
from course_utils.delivery.running import ThisPython
from course_utils.exercises import ch10, marking
from course_utils.exercises.fresh import fresh_cases, with_fresh_cases
from course_utils.exercises.grading import RIGHT, grade
from course_utils.places import DATA, NOTEBOOKS, ROOT

PICKED, POINTS = ["10.1", "10.2", "10.4", "15.3"], ["2", "3", "1", "4"]
QUICKLY = "\nc.Execute.timeout = 6\nc.Execute.iopub_timeout = 6\n"  # at the end of the course's settings
ALL = [one for chapter in exercises.chapters() for one in exercises.of_chapter(chapter)]
WRONG = [f"wrong {number}" for number in range(max(len(exercises.find(one).wrong) for one in PICKED))]
SETTINGS = os.environ | {
    "COURSE_VENV": sys.prefix,
    "PYTHONPATH": str(ROOT),
    "PYTHONUTF8": "1",
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
}
NOT_YET = "not attempted. The function returns nothing yet"

MARKS = {  # kind: mark, what the message says
    "full_marks": (10, ""),
    "half_done": (2, NOT_YET),
    "blank": (0, "10.4 What multiplying by √d does: not attempted"),
    "syntax_error": (8, "10.1: NameError name 'decode' is not defined (before it: cell 10-1-answer: SyntaxError"),
    "infinite_loop": (8, "10.1: took too long, an endless loop?"),
    "memory_hog": (8, "raised MemoryError: Unable to allocate 1.00 GiB"),
    "memory_hog_outside": (8, "before it: cell 10-1-answer: MemoryError"),
    "sys_exit": (8, "before it: cell 10-1-answer: SystemExit"),
    "plain_exit": (8, "before it: cell 10-1-answer: SystemExit"),
    "output_of_many_lines": (10, ""),
    "endless_lines": (8, "before it: cell 10-1-answer: took too long"),
    "stored_output_of_50_mb": (10, ""),
    "prints_inside": (10, ""),
    "warns_inside": (10, ""),
    "edited_test": (8, f"10.1 Take a sum apart: {NOT_YET}"),
    "points_raised": (10, ""),
    "deleted_test": (8, f"10.1 Take a sum apart: {NOT_YET}"),
    "deleted_test_of_a_right_answer": (10, ""),
    "deleted_answer": (7, "10.2: NameError name 'decode_three' is not defined"),
    "answer_turned_to_text": (10, ""),
    "test_turned_to_text": (8, f"10.1 Take a sum apart: {NOT_YET}"),
    "out_of_order": (7, "raised NameError: name 'last' is not defined"),
    "moved_cells": (10, ""),
    "windows_line_endings": (10, ""),
    "asks_for_input": (8, "before it: cell 10-1-answer: StdinNotImplementedError"),
    "forks_and_threads": (10, ""),
    "recursion_without_end": (8, "raised RecursionError"),
    "another_notebook_beside_it": (10, ""),
    "copied_results": (8, "10.1 Take a sum apart: error"),
    "own_course_package": (8, f"10.1 Take a sum apart: {NOT_YET}"),
}
NO_MARKS = {  # kind: why
    "stubborn_loop": "a cell could not be stopped",
    "os_exit": "the kernel died",
    "output_of_50_mb": "oversized output: 50 MB, most of it by cell 10-1-answer",
    "deleted_exercise": "cells are missing, or lost their metadata: 10-2-answer, 10-2-test",
    "invalid_json": "the file is damaged: no valid JSON from line",
    "not_a_notebook": "the file is not a notebook",
    "a_script": "the file is not a notebook",
    "nested_too_deep": "the file is not a notebook",
    "notebook_is_a_folder": "there is no week3.ipynb, but 'x.txt'",
    "metadata_of_another_kind": "nbgrader's metadata are damaged",
    "duplicate_grade_id": "duplicate grade id 10-1-answer",
    "stripped_metadata": "nbgrader's metadata are gone from all cells",
    "old_metadata": "nbgrader's metadata are damaged: Outdated schema version",
    "damaged_metadata": "nbgrader's metadata are damaged",
    "renamed_notebook": "there is no week3.ipynb, but 'week3 (final) (2).ipynb'",
    "empty_folder": "the folder is empty",
    "with_a_bom": "byte order mark",
}


def run(*command: str, cwd: Path, **settings: str) -> subprocess.CompletedProcess:
    done = subprocess.run(command, cwd=cwd, env=SETTINGS | settings, capture_output=True, text=True, encoding="utf-8")
    return done


def course(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    return run(sys.executable, "-m", "course_utils", *arguments, cwd=cwd)


def nbgrader(*arguments: str, cwd: Path) -> None:
    done = run(sys.executable, "-m", "nbgrader", *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr


def table(folder: Path, name: str = "week3") -> dict[str, dict[str, str]]:
    with (folder / f"{name}_marks.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def dump(folder: Path) -> list[str]:
    """All that the gradebook holds."""
    with sqlite3.connect(folder / "gradebook.db") as gradebook:
        return list(gradebook.iterdump())


def new_course(folder: Path, *picked: str, name: str = "week3") -> Path:
    done = course("assign", "--name", name, *picked, "--out", str(folder), cwd=folder.parent)
    assert (done.returncode, "Next, in" in done.stdout) == (0, True), done
    settings = folder / "nbgrader_config.py"
    settings.write_text(settings.read_text(encoding="utf-8") + QUICKLY, encoding="utf-8")
    nbgrader("generate_assignment", name, cwd=folder)
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    """A command carried out in this process, in an empty folder: its status, and what it prints."""
    monkeypatch.setenv("COURSE_VENV", sys.prefix)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: (cli.main(arguments), *capsys.readouterr())


@pytest.fixture(scope="module")
def class_of_all_kinds(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess]:
    """A course in which every kind of submission came back and was graded, and what grade printed."""
    folder = tmp_path_factory.mktemp("một khoá học") / "course"
    new_course(folder, "--exercises", *PICKED, "--points", *POINTS)
    release = folder / "release" / "week3" / "week3.ipynb"
    for kind, hand_in in mischief.SUBMISSIONS.items():
        hand_in(release, folder / "submitted" / mischief.student(kind) / "week3")
    for number, name in enumerate(WRONG):
        mischief.write(mischief.wrong(release, number), folder / "submitted" / name / "week3")
    return folder, course("grade", "week3", cwd=folder)


@pytest.mark.slow
def test_every_submission_is_in_the_table_and_none_stops_the_others(class_of_all_kinds):
    folder, done = class_of_all_kinds
    assert set(MARKS) | set(NO_MARKS) == set(mischief.SUBMISSIONS)
    assert set(table(folder)) == {*map(mischief.student, mischief.SUBMISSIONS), *WRONG}
    assert done.returncode == 1 and f"{len(NO_MARKS)} could not be graded" in done.stdout.splitlines()[-1]
    assert "Traceback" not in done.stderr and "Warning" not in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", MARKS)
def test_what_can_be_graded_gets_its_mark_and_the_reason(kind, class_of_all_kinds):
    row = table(class_of_all_kinds[0])[mischief.student(kind)]
    mark, message = MARKS[kind]
    assert (row["status"], float(row["mark"] or -1), float(row["of"])) == ("graded", mark, 10), row
    assert message in row["message"] and bool(message) == bool(row["message"]), row
    assert sum(float(row[one]) for one in PICKED) == mark
    assert f"{row['student']}: {mark:g} of 10" in class_of_all_kinds[1].stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", NO_MARKS)
def test_what_cannot_be_graded_has_no_mark_but_a_file_and_a_reason(kind, class_of_all_kinds):
    folder, done = class_of_all_kinds
    row = table(folder)[mischief.student(kind)]
    assert (row["status"], row["mark"], row["10.1"]) == ("could not be graded", "", ""), row
    assert NO_MARKS[kind] in row["message"], row
    assert (folder / row["file"]).exists() and f"could not be graded: {row['file']}: " in done.stdout
    assert not (folder / "autograded" / row["student"] / "week3").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_each_known_wrong_answer_gets_no_points_and_its_own_message(name, class_of_all_kinds):
    row = table(class_of_all_kinds[0])[name]
    assert (row["status"], float(row["mark"])) == ("graded", 0)
    for one in map(exercises.find, PICKED):
        answer = one.wrong[min(int(name.split()[1]), len(one.wrong) - 1)]
        assert f"{one.id} {one.title}: wrong. {answer.message}" in row["message"]


@pytest.mark.slow
def test_a_second_run_grades_nothing_and_changes_nothing(class_of_all_kinds):
    folder, _ = class_of_all_kinds
    before, marks = dump(folder), table(folder)
    times = {path: path.stat().st_mtime_ns for path in (folder / "autograded").rglob("*.ipynb")}
    assert course("grade", "week3", cwd=folder).returncode == 1
    assert dump(folder) == before and table(folder) == marks
    assert {path: path.stat().st_mtime_ns for path in (folder / "autograded").rglob("*.ipynb")} == times != {}


@pytest.mark.slow
def test_feedback_gives_the_reason_and_not_the_hidden_test(class_of_all_kinds):
    folder, _ = class_of_all_kinds
    nbgrader("generate_feedback", "week3", "--student=wrong 0", cwd=folder)
    page = (folder / "feedback" / "wrong 0" / "week3" / "week3.html").read_text(encoding="utf-8")
    hidden = re.findall(r"hidden\([^)]*\)", (folder / "source" / "week3" / "week3.ipynb").read_text(encoding="utf-8"))
    assert "wrong axis" in page and len(hidden) == len(PICKED)
    assert not any(part in page for part in ("HIDDEN TESTS", "import hidden", str(ROOT), "Traceback ("))
    assert not any(re.search(r"\d+\)$", call)[0][:-1] in page for call in hidden)


@pytest.mark.slow
def test_only_what_changed_is_graded_and_no_old_mark_stays(tmp_path):
    folder = new_course(tmp_path / "course", "--exercises", "10.1", "10.4")
    release, submitted = folder / "release" / "week3" / "week3.ipynb", folder / "submitted"
    for name in ("ann", "ben", "cho"):
        mischief.full_marks(release, submitted / name / "week3")
    (submitted / "dan.ipynb").write_text("{}")
    (submitted / "eve" / "Week 3").mkdir(parents=True)
    assert course("grade", "week3", cwd=folder).returncode == 1
    first = table(folder)
    assert [first[name]["mark"] for name in ("ann", "ben", "cho", "dan.ipynb", "eve")] == ["3.0", "3.0", "3.0", "", ""]
    assert "not where a submission belongs" in first["dan.ipynb"]["message"]
    when = (folder / "autograded" / "ann" / "week3" / "week3.ipynb").stat().st_mtime_ns
    shutil.rmtree(submitted / "ben")
    shutil.rmtree(submitted / "cho")
    mischief.blank(release, submitted / "ben" / "week3")
    mischief.duplicate_grade_id(release, submitted / "cho" / "week3")
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as gradebook:
        gradebook.find_grade("10-1-test", "week3", "week3", "ann").manual_score = 0.5
        gradebook.db.commit()
    course("grade", "week3", "--csv", "again.csv", cwd=folder)
    marks = {row["student"]: row["mark"] for row in csv.DictReader((folder / "again.csv").open(encoding="utf-8-sig"))}
    assert marks == {"ann": "2.5", "ben": "0.0", "cho": "", "dan.ipynb": "", "eve": ""}  # ann's has a part by hand
    assert (folder / "autograded" / "ann" / "week3" / "week3.ipynb").stat().st_mtime_ns == when
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as gradebook:
        assert gradebook.find_submission("week3", "cho").score == 0
    course("grade", "week3", "--again", cwd=folder)
    assert table(folder)["ann"]["mark"] == "2.5"
    assert (folder / "autograded" / "ann" / "week3" / "week3.ipynb").stat().st_mtime_ns > when


@pytest.mark.slow
def test_a_kernel_that_answers_no_more_is_no_zero(tmp_path):
    folder = new_course(tmp_path / "course", "--exercises", "10.1", "10.4")
    with (folder / "nbgrader_config.py").open("a") as settings:
        settings.write("c.Execute.timeout = 2\n")
    release, submitted = folder / "release" / "week3" / "week3.ipynb", folder / "submitted"
    mischief.stdout_closed(release, submitted / "ann" / "week3")
    endless = "word_over_position = 2\nwhile True:\n    pass"
    mischief.write(mischief.solved(release, _10_1=mischief.ENDLESS, _10_4=endless), submitted / "ben" / "week3")
    done = course("grade", "week3", cwd=folder)
    assert "the kernel answered no more" in table(folder)["ann"]["message"] and done.stderr == ""
    assert (table(folder)["ben"]["mark"], table(folder)["ben"]["status"]) == ("0.0", "graded")


@pytest.mark.slow
def test_all_exercises_can_be_assigned_and_the_answer_key_gets_all_points(tmp_path):
    folder = new_course(tmp_path / "course", "--exercises", *(one.id for one in ALL))
    source, release = (folder / step / "week3" / "week3.ipynb" for step in ("source", "release"))
    shutil.copytree(source.parent, folder / "submitted" / "key" / "week3")
    done = course("grade", "week3", cwd=folder)
    total = sum(one.points for one in ALL)
    assert (done.returncode, f"key: {total} of {total}\n" in done.stdout) == (0, True), done
    checked = run(sys.executable, "-m", "nbgrader", "validate", str(source), cwd=folder)
    assert "Success! Your notebook passes all the tests." in checked.stdout, checked
    notebook = nbformat.read(release, as_version=4)
    text = nbformat.writes(notebook)
    assert "SOLUTION" not in text and "HIDDEN" not in text and "hidden" not in text
    ids = [cell.metadata.nbgrader.grade_id for cell in notebook.cells if "nbgrader" in cell.metadata]
    assert len(ids) == len(set(ids))
    for one in ALL:
        (path,) = NOTEBOOKS.glob(f"{one.chapter}_*.ipynb")
        stub = mischief.cell(notebook, f"{one.id.replace('.', '-')}-answer")
        assert stub.source.rstrip() == tagged(read(path), "exercise")[one.id].source
        assert mischief.cell(notebook, f"{one.id.replace('.', '-')}-test").metadata.nbgrader.points == one.points


@pytest.mark.parametrize("exercise", ALL, ids=lambda one: one.id)
def test_an_exercise_stands_alone(exercise):
    excerpt = cut_out(exercise, find(exercise.chapter))
    namespace: dict = {}
    for code in (*(code for _, code in excerpt.given), with_solution(excerpt)):
        exec(code, namespace)
    marking.hidden(exercise.id, namespace[excerpt.name], 11)
    assert excerpt.text and len(with_solution(excerpt).splitlines()) > len(excerpt.stub.splitlines()) + 2


class Copier:
    """An answer that knows the results of the exercise's own trials by heart, and nothing else."""

    def __init__(self, exercise):
        cases = exercise.cases()
        self.known = {repr(case): exercise.solution(*case) for case in cases}
        self.refuses = {repr(case) for case in exercise.refuses()}

    def __call__(self, *case):
        if repr(case) in self.refuses:
            raise ValueError
        return self.known[repr(case)]


def _data(cases: list[tuple]) -> list[str]:
    """What the cases hold besides functions."""
    return [repr(part) for case in cases for part in case if not callable(part)]


@pytest.mark.parametrize("exercise", [one for one in ALL if one.cases], ids=lambda one: one.id)
def test_constants_copied_from_the_visible_check_do_not_pass(exercise):
    if not fresh_cases(exercise, 1):
        assert exercise.chapter not in ("00", "03", "08", "10", "15"), "give it `fresh`: its trials draw nothing"
        return
    if any(callable(part) for case in exercise.cases() for part in case):  # nobody can know a function by heart
        assert _data(fresh_cases(exercise, 1)) != _data(exercise.cases())
        return
    copier = Copier(exercise)
    assert grade(exercise, copier).state == RIGHT
    with pytest.raises(marking.NotRight, match=f"{re.escape(exercise.id)} .*: error"):
        marking.hidden(exercise.id, copier, 7)


@pytest.mark.parametrize("exercise", [one for one in ALL if one.cases], ids=lambda one: one.id)
def test_fresh_trials_accept_the_reference_whatever_the_seed(exercise):
    for seed in range(5):
        assert grade(with_fresh_cases(exercise, seed), exercise.solution).state == RIGHT


def test_fresh_trials_leave_numpys_generator_as_it_was():
    before = exercises.find("10.1").cases()[0][0]
    fresh_cases(exercises.find("10.1"), 3)
    assert (exercises.find("10.1").cases()[0][0] == before).all()


def test_a_check_says_right_or_raises_its_reason_alone(capsys):
    marking.visible("10.4", 55.4)
    assert "10.4 What multiplying by √d does: right. 55.4" in capsys.readouterr().out
    with pytest.raises(marking.NotRight, match="That is the ratio before") as raised:
        marking.visible("10.4", 2)
    assert raised.value._render_traceback_() == [str(raised.value)]


@pytest.mark.slow
def test_without_the_course_the_visible_check_says_so_kindly(tmp_path, monkeypatch):
    folder = new_course(tmp_path / "course", "--exercises", "10.1", "10.4")
    elsewhere = tmp_path / "a student's"
    elsewhere.mkdir()
    block = "import sys\nsys.modules['course_utils'] = None\n"
    (elsewhere / "sitecustomize.py").write_text(block, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(elsewhere))
    notebook = mischief.solved(folder / "release" / "week3" / "week3.ipynb", _10_4=None)
    NotebookClient(notebook, kernel_manager_class=ThisPython, allow_errors=True).execute()
    (said,) = mischief.cell(notebook, "10-1-test").outputs
    assert said.text.startswith("The course is not installed here")
    (refused,) = mischief.cell(notebook, "10-4-test").outputs
    assert (refused.ename, "Not attempted yet" in refused.evalue) == ("AssertionError", True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--name", "w+3", "--exercises", "10.1"], "nbgrader can't take 'w+3'"),
        (["--name", "a/b", "--exercises", "10.1"], "nbgrader can't take 'a/b'"),
        (["--name", "..", "--exercises", "10.1"], "nbgrader can't take '..'"),
        (["--name", "week*", "--exercises", "10.1"], "nbgrader can't take 'week*'"),
        (["--name", "week3 ", "--exercises", "10.1"], "nbgrader can't take 'week3 '"),
        (["--name", "", "--exercises", "10.1"], "nbgrader can't take ''"),
        (["--name", "w" * 300, "--exercises", "10.1"], "80 at most"),
        (["--name", "week4", "--exercises", "10.9"], "no exercise is called '10.9'"),
        (["--name", "week4", "--chapter", "77"], "chapter 77 has no exercises"),
        (["--name", "week4"], "Nothing is picked"),
        (["--name", "week4", "--exercises", "10.1", "10.1"], "10.1 is named twice"),
        (["--name", "week4", "--exercises", "10.1", "10.2", "--points", "3"], "2 exercises and 1 points"),
        (["--name", "week4", "--exercises", "10.1", "--points", "-1"], "-1 points can't be given"),
        (["--name", "week4", "--exercises", "10.1", "--points", "nan"], "nan points can't be given"),
        (["--name", "week3", "--exercises", "10.1"], "is there already"),
        (["--exercises", "10.1"], "assign needs --name and --out"),
    ],
)
def test_what_assign_cannot_do_is_one_sentence_and_changes_nothing(arguments, said, tmp_path, here):
    (tmp_path / "course" / "source" / "week3").mkdir(parents=True)
    shutil.copy(DATA / "nbgrader_config.py", tmp_path / "course")
    before = sorted(tmp_path.rglob("*"))
    status, out, err = here("assign", *arguments, "--out", "course")
    assert (status, out, err.count("\n")) == (1, "", 1), err
    assert err.startswith("course: ") and said in err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("out", "said"), [("thesis", "in use"), ("thesis/chapter.txt", "in use"), ("week[3]", "take a path without")]
)
def test_a_folder_in_use_is_left_alone(out, said, tmp_path, here):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    status, _, err = here("assign", "--name", "week3", "--exercises", "10.1", "--out", out)
    assert (status, err.count("\n"), said in err) == (1, 1, True), err
    assert [path.name for path in tmp_path.rglob("*")] == ["thesis", "chapter.txt"]


def test_what_grade_cannot_do_is_one_sentence(tmp_path, here):
    assert "is no nbgrader course" in here("grade", "week3")[2]
    assert here("assign", "--name", "week3", "--exercises", "10.1", "--out", ".")[0] == 0
    status, _, err = here("grade", "week3")
    assert (status, err.count("\n")) == (1, 1), err
    assert "run 'nbgrader generate_assignment \"week3\"'" in err and not (tmp_path / "gradebook.db").exists()


def test_assign_says_what_comes_next_and_what_has_no_fresh_trials(tmp_path, here, monkeypatch):
    (tmp_path / "c" / "release" / "w 2").mkdir(parents=True)
    shutil.copy(DATA / "nbgrader_config.py", tmp_path / "c")
    fixed = replace(exercises.find("10.3"), fresh=None)
    monkeypatch.setattr(ch10, "EXERCISES", (fixed, exercises.find("10.4")))
    status, out, _ = here("assign", "--name", "w 2", "--chapter", "10", "--out", "c")
    assert (status, out.splitlines()[1][:27]) == (0, "10.3: no fresh trials, so a"), out
    assert out.splitlines()[-1] == 'Next, in c: nbgrader generate_assignment "w 2" --force'


def test_the_list_shows_every_exercise(here):
    lines = here("assign", "--list")[1].splitlines()
    for exercise, line in zip(ALL, lines[1:], strict=True):
        assert line.split(maxsplit=3) == [exercise.id, str(exercise.minutes), str(exercise.points), exercise.title]


def test_an_exercise_brings_what_it_refers_to(tmp_path, here):
    assert here("assign", "--name", "w", "--exercises", "10.5", "15.3", "--out", "c")[0] == 0
    notebook = nbformat.read(tmp_path / "c" / "source" / "w" / "w.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "> 10.1 Take a sum apart, from the chapter: Write the decoder." in text
    assert text.count("import numpy as np") == 1 and "def rotate_interleaved(x" in text and "def turn(" not in text
    assert "](" not in "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
