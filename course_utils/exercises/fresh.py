"""Trials that nobody has seen: a hidden test adds them to an exercise's own, so that no table of results passes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from course_utils.exercises import Exercise


def with_fresh_cases(exercise: Exercise, seed: int) -> Exercise:
    """The exercise with its own trials and, after them, fresh ones."""
    cases = [*exercise.cases(), *fresh_cases(exercise, seed)]
    return replace(exercise, cases=lambda: cases)


def fresh_cases(exercise: Exercise, seed: int) -> list[tuple]:
    """Trials of the same kind from another seed: by `fresh` where the exercise has it, else its cases, seeded anew.

    Empty where the exercise's cases draw nothing at random.
    """
    if exercise.fresh is not None:
        return exercise.fresh(np.random.default_rng(seed))
    with _other_seeds(seed) as drawn:
        cases = exercise.cases()
    return [case for case in cases if _accepted(exercise, case)] if drawn else []


@contextmanager
def _other_seeds(seed: int) -> Iterator[list]:
    """Within it np.random.default_rng(s) is seeded by s and seed together. Gives the list of the s asked for."""
    plain, drawn = np.random.default_rng, []

    def seeded(s: Any = 0) -> np.random.Generator:
        drawn.append(s)
        return plain([*np.atleast_1d(s).tolist(), seed])

    np.random.default_rng = seeded
    try:
        yield drawn
    finally:
        np.random.default_rng = plain


def _accepted(exercise: Exercise, case: tuple) -> bool:
    """A case that the reference refuses is none: its author chose seeds that work."""
    try:
        exercise.solution(*case)
    except Exception:
        return False
    return True
