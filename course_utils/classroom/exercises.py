"""What a learner calls under an exercise: check, hint, solution. None of them raises, whatever the answer does."""

import inspect
from collections import Counter
from html import escape
from typing import Any

from IPython.display import Code, display

from course_utils import exercises
from course_utils.classroom import progress
from course_utils.classroom.cards import card
from course_utils.exercises import Exercise, grading

KIND = {grading.NOT_ATTEMPTED: "open", grading.RIGHT: "good", grading.WRONG: "bad", grading.ERROR: "bad"}

_given: Counter[str] = Counter()  # hints given so far, by exercise


def check(exercise_id: str, answer: Any = None) -> None:
    """Say whether an answer is right and, if not, why. The result is kept with your progress."""
    exercise = _find(exercise_id)
    if exercise is None:
        return
    outcome = grading.grade(exercise, answer)
    if outcome.state != grading.NOT_ATTEMPTED:
        _keep(exercise, outcome.state)
    more = "" if outcome.state == grading.RIGHT else _hints(exercise)
    card(KIND[outcome.state], f"{exercise.id} {exercise.title}: {outcome.state}", [outcome.message], more=more)


def hint(exercise_id: str, number: int | None = None) -> None:
    """Show the next hint, or the one whose number you give: hint("10.2", 1)."""
    exercise = _find(exercise_id)
    if exercise is None:
        return
    count = len(exercise.hints)
    number = min(_given[exercise.id] + 1, count) if number is None else number
    if not isinstance(number, int) or not 1 <= number <= count:
        card("note", f"{exercise.id}: there are hints 1 to {count}", [])
        return
    _given[exercise.id] = number
    card("note", f"{exercise.id}, hint {number} of {count}", [exercise.hints[number - 1]])


def solution(exercise_id: str) -> None:
    """Show the reference solution and why it is one."""
    exercise = _find(exercise_id)
    if exercise is not None:
        card("note", f"{exercise.id}, a solution", [exercise.why])
        display(Code(solution_source(exercise), language="python"))


def solution_source(exercise: Exercise) -> str:
    """The reference solution as source: the function's own code, or the value."""
    return repr(exercise.solution) if exercise.cases is None else inspect.getsource(exercise.solution)


def _hints(exercise: Exercise) -> str:
    """The hints, one inside the other, each behind a disclosure triangle: no kernel and no mouse needed."""
    nested = ""
    for number, text in reversed(list(enumerate(exercise.hints, 1))):
        summary = f"<summary>Hint {number} of {len(exercise.hints)}</summary>"
        nested = f"<details>{summary}<div>{escape(text)}</div>{nested}</details>"
    return nested


def _keep(exercise: Exercise, state: str) -> None:
    """Right once stays right: a later trial of something else takes nothing away."""
    if progress.read(exercise.chapter)["exercises"].get(exercise.id) != grading.RIGHT:
        progress.note(exercise.chapter, "exercises", exercise.id, state)


def _find(exercise_id: str) -> Exercise | None:
    try:
        return exercises.find(exercise_id)
    except KeyError as error:
        card("bad", error.args[0], [])
        return None
