"""Grading: try an answer beside the reference solution, and beside each wrong answer that is known by name."""

import copy
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_utils.exercises import Exercise

NOT_ATTEMPTED, RIGHT, WRONG, ERROR = "not attempted", "right", "wrong", "error"
LONGEST = 200  # characters of a value that a message quotes
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # differs from run to run, and tells a learner nothing


@dataclass(frozen=True)
class Outcome:
    """What grading found: one of the four states, and one sentence that says why."""

    state: str
    message: str


@dataclass(frozen=True)
class _Raised:
    """Stands for the result of a trial that raised."""

    error: BaseException


def grade(exercise: Exercise, answer: Any) -> Outcome:
    """Grade an answer. Never raises, whatever the answer does, short of stopping the interpreter."""
    if answer is None or answer is ...:
        return Outcome(NOT_ATTEMPTED, "Fill in the cell above, run it, then run this cell again.")
    if exercise.cases is None:
        return _grade_value(exercise, answer)
    if not callable(answer):
        return Outcome(WRONG, f"The answer is a function; this is {_quote(answer)}. Pass its name without parentheses.")
    return _grade_function(exercise, answer)


def _grade_value(exercise: Exercise, answer: Any) -> Outcome:
    if _same(exercise, answer, exercise.solution):
        return Outcome(RIGHT, f"{_quote(answer)}. {exercise.why}")
    for wrong in exercise.wrong:
        if _same(exercise, answer, wrong.answer):
            return Outcome(WRONG, wrong.message)
    if isinstance(answer, str) and not isinstance(exercise.solution, str):
        return Outcome(WRONG, f"{_quote(answer)} is text. Give a number, without quotes.")
    if isinstance(answer, list | tuple | np.ndarray) and np.ndim(exercise.solution) == 0:
        return Outcome(WRONG, "This is a row of values. Give one number.")
    return Outcome(WRONG, f"{_quote(answer)} is not it. Open a hint below.")


def _grade_function(exercise: Exercise, answer: Any) -> Outcome:
    results = list(_trials(answer, exercise.cases()))
    if all(result is None or result is ... for result in results):
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet: write its body and run its cell.")
    rights = list(_trials(exercise.solution, exercise.cases()))
    if not all(map(lambda a, b: _same(exercise, a, b), results, rights)):
        return _explain(exercise, results, rights)
    for case, result in zip(exercise.refuses(), _trials(answer, exercise.refuses()), strict=True):
        if not (isinstance(result, _Raised) and isinstance(result.error, ValueError)):
            return _named(exercise, answer) or Outcome(
                WRONG, f"{_call(exercise, case)} {_did(result)}; it should raise a ValueError."
            )
    return Outcome(RIGHT, f"It agrees with the reference in all {len(rights)} trials. {exercise.why}")


def _explain(exercise: Exercise, results: list, rights: list) -> Outcome:
    for wrong in exercise.wrong:
        known = list(_trials(wrong.answer, exercise.cases()))
        if _alike(exercise, results, known):
            return Outcome(WRONG, wrong.message)
    case, result, right = next(
        trial for trial in zip(exercise.cases(), results, rights, strict=True) if not _same(exercise, *trial[1:])
    )
    if isinstance(result, _Raised):
        return Outcome(
            ERROR, f"{_call(exercise, case)} raised {type(result.error).__name__}: {_clip(str(result.error))}"
        )
    return Outcome(WRONG, f"{_call(exercise, case)} gives {_difference(result, right)}.")


def _named(exercise: Exercise, answer: Any) -> Outcome | None:
    """The message of a known wrong answer that fails on refused arguments in the same way."""
    refused = exercise.refuses()
    results = list(_trials(answer, refused))
    for wrong in exercise.wrong:
        right_elsewhere = _alike(
            exercise, list(_trials(wrong.answer, exercise.cases())), list(_trials(exercise.solution, exercise.cases()))
        )
        if right_elsewhere and _alike(exercise, results, list(_trials(wrong.answer, refused))):
            return Outcome(WRONG, wrong.message)
    return None


def _trials(function: Any, cases: list[tuple]) -> Iterator[Any]:
    """The function's result on a copy of each case; what it raises is a result too."""
    for case in cases:
        try:
            with np.errstate(all="ignore"):
                yield function(*copy.deepcopy(case))
        except (Exception, SystemExit) as error:
            yield _Raised(error)


def _alike(exercise: Exercise, results: list, known: list) -> bool:
    return all(_same(exercise, one, other) for one, other in zip(results, known, strict=True))


def _same(exercise: Exercise, one: Any, other: Any) -> bool:
    if isinstance(one, _Raised) or isinstance(other, _Raised):
        return isinstance(one, _Raised) and isinstance(other, _Raised) and type(one.error) is type(other.error)
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one.strip().lower() == other.strip().lower()
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_same(exercise, *pair) for pair in zip(one, other, strict=True))
    try:
        one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    except (TypeError, ValueError, RuntimeError):
        return False
    return one.shape == other.shape and np.allclose(one, other, exercise.rtol, exercise.atol, equal_nan=True)


def _call(exercise: Exercise, case: tuple) -> str:
    """The function, given sums of shape (3, 64) and V = 50257,"""
    named = zip(inspect.signature(exercise.solution).parameters, case, strict=False)
    return f"The function, given {' and '.join(_argument(*pair) for pair in named)},"


def _argument(name: str, value: Any) -> str:
    return f"{name} of shape {value.shape}" if isinstance(value, np.ndarray) else f"{name} = {_quote(value)}"


def _difference(result: Any, right: Any) -> str:
    """What came out and what should have: for two arrays of one shape the first place where they differ."""
    if isinstance(result, list) and isinstance(right, np.ndarray):
        result = np.asarray(result)
    arrays = isinstance(result, np.ndarray) and isinstance(right, np.ndarray) and result.dtype != object
    if arrays and result.shape != right.shape:
        return f"an array of shape {result.shape}; it should have the shape {right.shape}"
    if arrays and right.size > 1:
        places = np.argwhere(~np.isclose(result, right, equal_nan=True))
        first = tuple(int(index) for index in places[0])
        where = ", ".join(map(str, first))
        there = f"{_quote(result[first])} at [{where}]; it should be {_quote(right[first])} there"
        return f"{there}. {len(places)} of {right.size} differ"
    return f"{_quote(result)}; it should be {_quote(right)}"


def _did(result: Any) -> str:
    return f"raises {type(result.error).__name__}" if isinstance(result, _Raised) else f"gives {_quote(result)}"


def _quote(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"an array of shape {value.shape}"
    if callable(value):
        return "a function"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, np.generic):
        value = value.item()
    text = np.array2string(value, precision=4) if isinstance(value, np.ndarray) else repr(value)
    return _clip(ADDRESS.sub("", text))


def _clip(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + " ..."
