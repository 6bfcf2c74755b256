"""Chapter 00, start here."""

from course_utils.exercises import Exercise, Wrong


def pairs(n):
    """How many different pairs there are among n people: 3 for n = 3."""
    return n * (n - 1) // 2


def pairs_twice(n):
    return n * (n - 1)


def pairs_with_oneself(n):
    return n * n


def pairs_of_neighbours(n):
    return n - 1


def pairs_holding_hands(n):
    return n // 2


PAIRS = Exercise(
    id="00.1",
    title="Count the pairs",
    minutes=2,
    points=1,
    hints=(
        "Each of the n people can be paired with n - 1 others.",
        "That counts Ann with Bo and Bo with Ann. They are one pair.",
    ),
    solution=pairs,
    why="23 people make 253 pairs. That is why a shared birthday is so likely: not one chance, but 253 of them.",
    wrong=(
        Wrong(
            pairs_twice,
            "Twice too many: this counts Ann with Bo and Bo with Ann as two pairs.",
        ),
        Wrong(
            pairs_with_oneself,
            "This pairs everybody with everybody, themselves included, and each pair twice.",
        ),
        Wrong(
            pairs_of_neighbours,
            "This counts neighbours in a row. Any two people are a pair.",
        ),
        Wrong(
            pairs_holding_hands,
            "This is how many couples can hold hands at one time. Any two people are a pair.",
        ),
    ),
    cases=lambda: [(23,), (3,), (2,), (50,), (365,)],
    fresh=lambda rng: [(n,) for n in rng.integers(400, 5_000, size=4).tolist()],
)

EXERCISES = (PAIRS,)
