"""What the test cells of an assignment call: the visible check, and the hidden test that decides about the points.

nbgrader gives a test cell its points if it raises nothing and writes nothing to stderr. So both raise where the answer
is not right, and keep what an answer prints or warns out of the way.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import TextIOBase
from typing import Any

from course_utils import exercises
from course_utils.exercises import Exercise
from course_utils.exercises.fresh import with_fresh_cases
from course_utils.exercises.grading import RIGHT, Outcome, grade


class NotRight(AssertionError):
    """An answer that is not right. IPython shows its sentence alone: a traceback would show the hidden test."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class _Nowhere(TextIOBase):
    """A stream that forgets what is written to it."""

    def write(self, text: str) -> int:
        return len(text)


def visible(exercise_id: str, answer: Any) -> None:
    """Say that the answer is right on the exercise's own trials. Raises NotRight with the reason where it isn't."""
    exercise = exercises.find(exercise_id)
    with _undisturbed(hide_prints="NBGRADER_EXECUTION" in os.environ):
        outcome = grade(exercise, answer)
    _insist(exercise, outcome)
    print(f"{exercise.id} {exercise.title}: {outcome.state}. {outcome.message}")


def hidden(exercise_id: str, answer: Any, seed: int) -> None:
    """Try the answer on the exercise's own trials and on fresh ones. Raises NotRight where it isn't right on all."""
    exercise = exercises.find(exercise_id)
    with _undisturbed(hide_prints=True):
        outcome = grade(exercise if exercise.cases is None else with_fresh_cases(exercise, seed), answer)
    _insist(exercise, outcome)


def _insist(exercise: Exercise, outcome: Outcome) -> None:
    if outcome.state != RIGHT:
        raise NotRight(f"{exercise.id} {exercise.title}: {outcome.state}. {outcome.message}")


@contextmanager
def _undisturbed(hide_prints: bool) -> Iterator[None]:
    """Nothing on stderr, no warnings and, if asked, nothing on stdout: an answer may print as it likes."""
    with warnings.catch_warnings(), redirect_stderr(_Nowhere()):
        warnings.simplefilter("ignore")
        with redirect_stdout(_Nowhere() if hide_prints else sys.stdout):
            yield
