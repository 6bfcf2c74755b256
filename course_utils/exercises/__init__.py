"""The exercises' single source of truth: for each its hints, its solution and the wrong answers known by name.

A chapter's file (ch10.py) holds EXERCISES. Nothing here displays anything: classroom shows what grading finds.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Wrong:
    """An answer that people really give, and the sentence that tells them what it does."""

    answer: Any  # a function of the exercise's signature, or a value
    message: str


@dataclass(frozen=True)
class Exercise:
    """An exercise whose answer is a function (tried on cases) or a value (cases is None).

    cases() gives the arguments of each trial; the first is the one that a message about a wrong result quotes.
    rtol and atol are how close counts as right; refuses lists arguments on which a ValueError is the right answer.
    fresh gives further trials for the hidden test of an assignment. It is needed only where cases() draws nothing
    from np.random.default_rng: else cases() is called once more, with other seeds.
    """

    id: str  # "10.2": chapter and number
    title: str
    minutes: int
    points: int
    hints: Sequence[str]
    solution: Any
    why: str  # why the solution is right, shown with it
    wrong: Sequence[Wrong]
    cases: Callable[[], list[tuple]] | None = None
    refuses: Callable[[], list[tuple]] = list
    fresh: Callable[[Any], list[tuple]] | None = None  # of a numpy random generator
    rtol: float = 1e-5
    atol: float = 1e-6

    @property
    def chapter(self) -> str:
        """The chapter's two digits."""
        return self.id.split(".")[0]


def chapters() -> list[str]:
    """The chapters that have exercises, as two digits."""
    return sorted(name[2:] for _, name, _ in pkgutil.iter_modules(__path__) if name.startswith("ch"))


def of_chapter(chapter: str) -> list[Exercise]:
    """A chapter's exercises in order. KeyError where there is no such chapter."""
    if chapter not in chapters():
        raise KeyError(f"chapter {chapter} has no exercises: {', '.join(chapters())} have some")
    return list(importlib.import_module(f"{__name__}.ch{chapter}").EXERCISES)


def find(exercise_id: str) -> Exercise:
    """The exercise of that id. KeyError, naming the ids there are, where there is none."""
    chapter = str(exercise_id).split(".")[0]
    known = of_chapter(chapter) if chapter in chapters() else []
    for exercise in known:
        if exercise.id == exercise_id:
            return exercise
    ids = ", ".join(exercise.id for exercise in known) or f"chapters {', '.join(chapters())} have some"
    raise KeyError(f"no exercise is called {exercise_id!r}: {ids}")
