"""Chapter 15, RoPE."""

import numpy as np

from course_utils.exercises import Exercise, Wrong

# ---- 15.1 rotate neighbours --------------------------------------------------------------------------------------


def rotate_neighbours(x, positions, base=10_000.0):
    """RoPE on x (..., n, d) at positions (n,), pair i being the numbers 2i and 2i + 1: (..., n, d)."""
    d = x.shape[-1]
    thetas = base ** (-np.arange(0, d, 2) / d)  # (d/2,)
    angles = np.asarray(positions)[:, None] * thetas  # (n, d/2)
    cos, sin = np.cos(angles), np.sin(angles)
    turned = np.empty(x.shape)
    turned[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    turned[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return turned


def _angles(positions, d, base, exponent=1.0):
    return np.asarray(positions)[:, None] * base ** (-exponent * np.arange(0, d, 2) / d)


def _woven(first, second):
    return np.stack([first, second], axis=-1).reshape(*first.shape[:-1], -1)


def rotate(x, positions, base=10_000.0):
    angles, half = _angles(positions, x.shape[-1], base), x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)


def rotate_backwards(x, positions, base=10_000.0):
    return rotate_neighbours(x, -np.asarray(positions), base)


def rotate_double_exponent(x, positions, base=10_000.0):
    angles = _angles(positions, x.shape[-1], base, exponent=2.0)
    a, b = x[..., 0::2], x[..., 1::2]
    return _woven(a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles))


def rotate_half_exponent(x, positions, base=10_000.0):
    angles = _angles(positions, x.shape[-1], base, exponent=0.5)
    a, b = x[..., 0::2], x[..., 1::2]
    return _woven(a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles))


def rotate_not_woven(x, positions, base=10_000.0):
    angles = _angles(positions, x.shape[-1], base)
    a, b = x[..., 0::2], x[..., 1::2]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)


def rotate_in_place(x, positions, base=10_000.0):
    angles, x = _angles(positions, x.shape[-1], base), np.array(x)
    x[..., 0::2] = x[..., 0::2] * np.cos(angles) - x[..., 1::2] * np.sin(angles)
    x[..., 1::2] = x[..., 0::2] * np.sin(angles) + x[..., 1::2] * np.cos(angles)
    return x


def rotate_along_heads(x, positions, base=10_000.0):
    if x.ndim < 3:
        return rotate_neighbours(x, positions, base)
    places = np.arange(x.shape[0])  # the head's number in place of the token's position
    return np.swapaxes(rotate_neighbours(np.swapaxes(x, 0, 1), places, base), 0, 1)


def _rotate_cases():
    rng = np.random.default_rng(150)
    shapes = ((5, 8), (3, 6, 8), (1, 2), (4, 7, 16))  # two of them with heads in front
    cases = [(rng.standard_normal(shape), rng.integers(0, 50, size=shape[-2])) for shape in shapes]
    return [*cases, (rng.standard_normal((4, 8)), np.array([3, 0, 900, 7]), 500.0)]


ROTATE = Exercise(
    id="15.1",
    title="Rotate neighbours",
    minutes=6,
    points=2,
    hints=(
        "x[..., 0::2] are the first numbers of all pairs, x[..., 1::2] the second: shape (..., n, d/2) each.",
        "The angles are positions[:, None] * thetas, shape (n, d/2). They broadcast over axes in front.",
        "Make a new array of x's shape and fill its two slices 0::2 and 1::2 as `turn` does it.",
    ),
    solution=rotate_neighbours,
    why="Both new numbers of a pair are made from both old ones. The slices 0::2 and 1::2 hold the two of all "
    "pairs, whatever axes stand in front.",
    wrong=(
        Wrong(
            rotate,
            "This pairs i with i + d/2, the layout of `rotate` in the chapter. The exercise asks for neighbours: "
            "0::2 and 1::2.",
        ),
        Wrong(
            rotate_backwards,
            "This turns the other way round: the minus sign belongs to the first number, x cos - y sin. (The shift "
            "test would not notice: scores still see the offset only, but with its sign turned round.)",
        ),
        Wrong(
            rotate_double_exponent,
            "The slow hands are too slow: the exponent is -2i/d. np.arange(0, d, 2) is 2i already; don't double it "
            "again.",
        ),
        Wrong(
            rotate_half_exponent,
            "The slow hands are too fast: the exponent is -2i/d, this has -i/d. Divide i by the number of pairs, "
            "d/2, or 2i by d.",
        ),
        Wrong(
            rotate_not_woven,
            "The numbers are right, their places are not: all first numbers stand in front, all second ones behind. "
            "Put them back at 0::2 and 1::2.",
        ),
        Wrong(
            rotate_in_place,
            "You write the first numbers back into x and then use them for the second: those need the OLD first "
            "number. Keep both before you write.",
        ),
        Wrong(
            rotate_along_heads,
            "With heads in front, (heads, n, d), this takes the head's number for the position. Tokens run along the "
            "last axis but one.",
        ),
    ),
    cases=_rotate_cases,
)

# ---- 15.2 one rotation instead of two ------------------------------------------------------------------------------


def score_from_offset(q, k, offset, base=10_000.0):
    """The RoPE score of q (d,) at m with k (d,) at n, where offset = m - n: one number."""
    half = len(q) // 2
    angles = offset * base ** (-np.arange(half) / half)  # (d/2,)
    a, b = q[:half], q[half:]
    turned = np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)])
    return turned @ k


def score_from_minus_offset(q, k, offset, base=10_000.0):
    return score_from_offset(q, k, -offset, base)


def score_from_distance(q, k, offset, base=10_000.0):
    return score_from_offset(q, k, abs(offset), base)


def score_both_turned(q, k, offset, base=10_000.0):
    turned_k = rotate(k[None, :], [offset], base)[0]
    return rotate(q[None, :], [offset], base)[0] @ turned_k


def score_divided(q, k, offset, base=10_000.0):
    return score_from_offset(q, k, offset, base) / np.sqrt(len(q))


def score_in_a_row(q, k, offset, base=10_000.0):
    return rotate(q[None, :], [offset], base) @ k  # (1,)


def score_in_a_table(q, k, offset, base=10_000.0):
    return rotate(q[None, :], [offset], base) @ k[:, None]  # (1, 1)


def _score_cases():
    rng = np.random.default_rng(151)
    offsets = ((8, 3), (8, -3), (64, 20), (2, 1), (16, -7))
    cases = [(rng.standard_normal(d), rng.standard_normal(d), offset) for d, offset in offsets]
    return [*cases, (rng.standard_normal(16), rng.standard_normal(16), -12, 500.0)]


SCORE = Exercise(
    id="15.2",
    title="One rotation instead of two",
    minutes=5,
    points=2,
    hints=(
        "The angle between the two hands grows by (m - n) theta. You may put all of it on one of them.",
        "Leave k where it is, as if it stood at position 0. Then the query stands at position m - n.",
        "Rotate q as the chapter's `rotate` does, at the position `offset`, and take the dot product with k.",
    ),
    solution=score_from_offset,
    why="Turning both by the same angle changes no dot product, so turn both back by n theta: k is at 0, q at m - n. "
    "That is equation 16 of the paper.",
    wrong=(
        Wrong(
            score_from_minus_offset,
            "The sign is turned round: with the key left at 0 the query stands at m - n, not at n - m.",
        ),
        Wrong(
            score_from_distance,
            "Right where the query looks back (m >= n), wrong where it looks ahead (m < n): the sign of the offset "
            "counts, so no abs.",
        ),
        Wrong(
            score_both_turned,
            "You turned q AND k by the offset. What both have in common cancels, so this is q·k without any position.",
        ),
        Wrong(
            score_in_a_row,
            "The number is right, but it is still in a row of one: `rotate` gives (1, d) for one query. "
            "Take [0] of it.",
        ),
        Wrong(
            score_in_a_table,
            "The number is right, but it is still in a table of one row and one column. Take [0] of the rotated "
            "query, or [0, 0] of the result.",
        ),
        Wrong(
            score_divided,
            "Right, then divided by sqrt(d). The exercise asks for the plain score.",
        ),
    ),
    cases=_score_cases,
)

# ---- 15.3 name the layout ------------------------------------------------------------------------------------------


rotate_interleaved = rotate_neighbours  # as the chapter calls them


def layout(q, k, scores):
    """The layout in which q (n, d) and k (n, d), at positions 0 ... n - 1, give these scores (n, n)."""
    places = np.arange(len(q))
    neighbours = np.allclose(rotate_interleaved(q, places) @ rotate_interleaved(k, places).T, scores)
    halves = np.allclose(rotate(q, places) @ rotate(k, places).T, scores)
    if neighbours == halves:
        raise ValueError("the scores fit both layouts equally" if halves else "the scores fit neither layout")
    return "interleaved" if neighbours else "half-split"


def _scores(q, k, way):
    places = np.arange(len(q))
    return way(q, places) @ way(k, places).T


def layout_always_interleaved(q, k, scores):
    return "interleaved"


def layout_always_halves(q, k, scores):
    return "half-split"


def layout_by_same_place(q, k, scores):
    fits = [np.allclose(np.diag(_scores(q, k, way)), np.diag(scores)) for way in (rotate_neighbours, rotate)]
    if fits[0] == fits[1]:
        raise ValueError
    return "interleaved" if fits[0] else "half-split"


def _first_that_fits(q, k, scores, ways):
    for name, way in ways:
        if np.allclose(_scores(q, k, way), scores):
            return name
    raise ValueError


def layout_interleaved_first(q, k, scores):
    return _first_that_fits(q, k, scores, (("interleaved", rotate_neighbours), ("half-split", rotate)))


def layout_halves_first(q, k, scores):
    return _first_that_fits(q, k, scores, (("half-split", rotate), ("interleaved", rotate_neighbours)))


def layout_swapped(q, k, scores):
    return {"interleaved": "half-split", "half-split": "interleaved"}[layout(q, k, scores)]


def layout_nearest(q, k, scores):
    off = {
        name: np.abs(_scores(q, k, way) - scores).max()
        for name, way in (("interleaved", rotate_neighbours), ("half-split", rotate))
    }
    return min(off, key=off.get)


def _layout_cases():
    cases = []
    for seed, way in ((0, rotate), (1, rotate_neighbours), (2, rotate_neighbours), (3, rotate)):
        q, k = np.random.default_rng(152 + seed).standard_normal((2, 6 + seed, 16))
        cases.append((q, k, _scores(q, k, way)))
    return cases


def _no_layout():
    q, k = np.random.default_rng(158).standard_normal((2, 5, 16))
    return [(q, k, q @ k.T), (q[:1], k[:1], q[:1] @ k[:1].T)]  # no rotation at all; one token: fits both


LAYOUT = Exercise(
    id="15.3",
    title="Name the layout",
    minutes=8,
    points=3,
    hints=(
        "Compute the scores both ways, for all pairs of places, and see which ones are those you were given.",
        "np.allclose compares with a tolerance. The places are np.arange(len(q)); `rotate` and `rotate_interleaved` "
        "of the chapter do the rest.",
        "Two yes-or-no answers: one yes names the layout, two or none is a ValueError.",
    ),
    solution=layout,
    why="Where query and key share a place, every layout gives q·k. Only different places can tell, so compare all.",
    wrong=(
        Wrong(
            layout_always_interleaved,
            'This says "interleaved" every time, for half-split scores too. Do you compare different places? '
            "Where query and key share a place, such as position 0, every layout fits.",
        ),
        Wrong(
            layout_always_halves,
            'This says "half-split" every time, for interleaved scores too. Do you compare different places? '
            "Where query and key share a place, such as position 0, every layout fits.",
        ),
        Wrong(
            layout_by_same_place,
            "This finds both fitting, or neither, every time. If both: you compared only equal places (the diagonal), "
            "where every layout fits. If neither: is one score divided by sqrt(d), or a position off?",
        ),
        Wrong(
            layout_swapped,
            "The names are the wrong way round: interleaved pairs neighbours, half-split pairs i with i + d/2.",
        ),
        Wrong(
            layout_interleaved_first,
            "Right unless both fit: in a text of one token nothing is turned against anything, and the first "
            "layout you try is your answer. Try both, then decide.",
        ),
        Wrong(
            layout_halves_first,
            "Right unless both fit: in a text of one token both layouts give the same score, and this answers "
            '"half-split". Test both before you answer.',
        ),
        Wrong(
            layout_nearest,
            "Right for a model with RoPE, but the nearer of two is an answer even where neither fits: then raise a "
            "ValueError.",
        ),
    ),
    cases=_layout_cases,
    refuses=_no_layout,
)

# ---- 15.4 positions under left padding -----------------------------------------------------------------------------


def positions_of(real):
    """Positions (batch, n), whole numbers, for real (batch, n) of True and False, padding on the left."""
    return np.maximum(np.cumsum(real, axis=1) - 1, 0)


def positions_plain(real):
    return np.tile(np.arange(real.shape[1]), (len(real), 1))


def positions_from_one(real):
    return np.cumsum(real, axis=1)


def positions_negative(real):
    return np.cumsum(real, axis=1) - 1


def positions_down(real):
    return np.maximum(np.cumsum(real, axis=0) - 1, 0)


def _padding_cases():
    lengths, n = np.array([3, 5, 1, 4]), 5
    mixed = np.arange(n) >= n - lengths[:, None]  # (batch, n)
    rng = np.random.default_rng(154)
    other = np.arange(9) >= 9 - rng.integers(1, 10, size=6)[:, None]
    return [(mixed,), (other,), (np.ones((2, 4), dtype=bool),)]


PADDING = Exercise(
    id="15.4",
    title="Positions under left padding",
    minutes=5,
    points=1,
    hints=(
        "Count the real tokens from the left: np.cumsum treats True as 1.",
        "Which axis runs along a text? And what should the first real token get, 0 or 1?",
        "Padding comes out below 0: np.maximum(..., 0) puts it at 0.",
    ),
    solution=positions_of,
    why="RoPE in float32 would not mind a shift of the whole text. A position table would, and 16-bit angles too, and "
    "so would text that is continued later with other positions.",
    wrong=(
        Wrong(
            positions_plain,
            "These are the places in the batch: a text's first token gets another position, depending on how long its "
            "NEIGHBOURS are. Count real tokens only.",
        ),
        Wrong(
            positions_from_one,
            "One too many: the first real token stands at 0, so take 1 off, and keep padding at 0.",
        ),
        Wrong(
            positions_negative,
            "Right for real tokens, but padding stands at -1. In a numpy table that is the LAST row; the "
            "exercise asks for 0.",
        ),
        Wrong(
            positions_down,
            "This counts down the batch, across texts (axis 0). A text runs along axis 1.",
        ),
    ),
    cases=_padding_cases,
)

EXERCISES = (ROTATE, SCORE, LAYOUT, PADDING)
