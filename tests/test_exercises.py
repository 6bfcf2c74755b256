"""Exercises: the reference is right, each known wrong answer gets its message, and nothing a learner does raises."""

import math

import numpy as np
import pytest

from course_utils import exercises
from course_utils.classroom import check, hint, progress, solution
from course_utils.exercises import Exercise, Wrong, grading
from course_utils.exercises.grading import ERROR, NOT_ATTEMPTED, RIGHT, WRONG, grade

ALL = [exercise for chapter in exercises.chapters() for exercise in exercises.of_chapter(chapter)]
KNOWN_WRONG = [(exercise, wrong) for exercise in ALL for wrong in exercise.wrong]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path))


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.id)
def test_the_reference_solution_is_right(exercise):
    assert grade(exercise, exercise.solution).state == RIGHT


@pytest.mark.parametrize(
    ("exercise", "wrong"), KNOWN_WRONG, ids=[f"{e.id}-{i}" for e in ALL for i in range(len(e.wrong))]
)
def test_a_known_wrong_answer_is_answered_by_name(exercise, wrong):
    assert grade(exercise, wrong.answer) == grading.Outcome(WRONG, wrong.message)


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.id)
def test_an_exercise_is_complete(exercise):
    assert len(exercise.wrong) >= 2 and len({wrong.message for wrong in exercise.wrong}) == len(exercise.wrong)
    assert exercise.hints and exercise.title and exercise.why
    assert exercise.minutes > 0 and exercise.points > 0


DOUBLE = Exercise(
    id="99.1",
    title="Double it",
    minutes=1,
    points=1,
    hints=("Times two.", "2 * x"),
    solution=lambda x: 2 * x,
    why="Twice.",
    wrong=(Wrong(lambda x: x**2, "That is the square."),),
    cases=lambda: [(np.array([1.0, 3.0]),), (np.array([0.5]),)],
)


def stop(x):
    raise SystemExit("bye")


def spoil(x):
    x += 1
    return 2 * (x - 1)


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (None, NOT_ATTEMPTED, "Fill in the cell"),
        (..., NOT_ATTEMPTED, "Fill in the cell"),
        (lambda x: ..., NOT_ATTEMPTED, "returns nothing yet"),
        (lambda x: None, NOT_ATTEMPTED, "returns nothing yet"),
        (lambda x: x + x, RIGHT, "all 2 trials"),
        (spoil, RIGHT, "all 2 trials"),
        (lambda x: (2 * x).tolist(), RIGHT, "all 2 trials"),
        (lambda x: x**2, WRONG, "That is the square."),
        (lambda x: 3 * x, WRONG, "given x of shape (2,), gives 3 at [0]; it should be 2 there. 2 of 2 differ"),
        (lambda x: np.nan * x, WRONG, "it should be"),
        (lambda x: 2 * x[None], WRONG, "an array of shape (1, 2); it should have the shape (2,)"),
        (lambda x: "two", WRONG, "it should be"),
        (lambda x: x.nothing, ERROR, "AttributeError"),
        (lambda: 1, ERROR, "TypeError"),
        (stop, ERROR, "SystemExit: bye"),
        (3, WRONG, "The answer is a function"),
    ],
)
def test_whatever_a_learner_writes_gets_an_answer(answer, state, words):
    outcome = grade(DOUBLE, answer)
    assert outcome.state == state and words in outcome.message


def test_a_message_shows_no_machine_address():
    assert "0x" not in grade(DOUBLE, lambda x: object()).message
    assert "0x" not in grade(exercises.find("10.4"), lambda: 1).message


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (2 * math.sqrt(768), RIGHT),
        (55.4, RIGHT),
        (np.float32(55.43), RIGHT),
        ("55.4", WRONG),
        (math.nan, WRONG),
        ([1, 2], WRONG),
        (..., NOT_ATTEMPTED),
    ],
)
def test_a_value_is_graded_with_its_tolerance(answer, state):
    assert grade(exercises.find("10.4"), answer).state == state


@pytest.mark.parametrize(("answer", "words"), [("55.4", "without quotes"), ([55.4], "one number"), (55.4j, "is not it")])
def test_a_value_of_another_kind_is_told_what_it_is(answer, words):
    assert words in grade(exercises.find("10.4"), answer).message


def test_check_keeps_the_result_and_right_stays_right(capsys):
    exercise = exercises.find("10.1")
    check("10.1", lambda sums, words: ...)
    assert progress.read("10")["exercises"] == {}
    check("10.1", lambda sums, words: 0)
    assert progress.read("10")["exercises"] == {"10.1": "wrong"}
    check("10.1", exercise.solution)
    check("10.1", lambda sums, words: 0)
    assert progress.read("10")["exercises"] == {"10.1": "right"}
    assert "✓ 10.1 Take a sum apart: right" in capsys.readouterr().out


def test_hints_come_one_by_one_and_never_raise(capsys):
    for number in (1, 2, 3, 3):
        hint("10.2")
        assert f"10.2, hint {number} of 3" in capsys.readouterr().out
    hint("10.1", 3)
    assert "10.1, hint 3 of 3" in capsys.readouterr().out
    for number in (0, 4, "two"):
        hint("10.1", number)
        assert "10.1: there are hints 1 to 3" in capsys.readouterr().out


def test_a_solution_is_shown_with_its_reason(capsys):
    solution("10.1")
    said = capsys.readouterr().out
    assert "The word that you put in has the largest dot product" in said


@pytest.mark.parametrize("call", [check, hint, solution])
@pytest.mark.parametrize("name", ["10.99", "77.1", "", None, 10.1])
def test_an_unknown_exercise_is_named_and_nothing_raises(call, name, capsys):
    call(name)
    said = capsys.readouterr().out
    assert "no exercise is called" in said or name == 10.1
