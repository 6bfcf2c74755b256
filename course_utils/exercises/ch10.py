"""Chapter 10, what a sum keeps."""

import math

import numpy as np

from course_utils.exercises import Exercise, Wrong

# ---- 10.1 decode ------------------------------------------------------------------------------------------------


def decode(sums, words):
    """For each sum (n, d) the id of the word row (V, d) with the largest dot product: (n,)."""
    scores = sums @ words.T  # (n, V)
    return scores.argmax(axis=1)  # (n,)


def decode_wrong_axis(sums, words):
    return (sums @ words.T).argmax(axis=0)


def decode_smallest(sums, words):
    return (sums @ words.T).argmin(axis=1)


def decode_scores(sums, words):
    return (sums @ words.T).max(axis=1)


def _sums(seed, n, V, d):
    rng = np.random.default_rng(seed)
    words = rng.standard_normal((V, d))
    return words[rng.integers(V, size=n)] + rng.standard_normal((n, d)), words


def _decode_cases():
    return [_sums(0, 3, 40, 64), _sums(1, 40, 40, 16), _sums(2, 1, 7, 128)]


DECODE = Exercise(
    id="10.1",
    title="Take a sum apart",
    minutes=4,
    points=1,
    hints=(
        "All scores at once are one matrix product: sums is (n, d), words is (V, d), and the scores should be (n, V).",
        "scores = sums @ words.T. Row i of it holds the scores of sum i against every word.",
        "You want a place, not a value, and one for each row: argmax along the axis of the words.",
    ),
    solution=decode,
    why="The word that you put in has the largest dot product, as long as d is large enough for your V.",
    wrong=(
        Wrong(
            decode_wrong_axis,
            "This takes the argmax along the wrong axis: it says which sum fits each word best. Axis 0 runs "
            "over sums, axis 1 over words.",
        ),
        Wrong(
            decode_smallest,
            "This takes the smallest score, the row that points away most. Dot products are no distances: "
            "more is closer, so argmax.",
        ),
        Wrong(
            decode_scores,
            "These are the largest scores themselves. An id is the place of the largest: argmax, not max.",
        ),
    ),
    cases=_decode_cases,
)

# ---- 10.2 three words -------------------------------------------------------------------------------------------


def decode_three(vector, words):
    """The ids of the three word rows (V, d) with the largest dot products with one vector (d,), best first: (3,)."""
    scores = words @ vector  # (V,)
    return np.argsort(-scores)[:3]  # (3,)


def three_smallest(vector, words):
    return np.argsort(words @ vector)[:3]


def three_worst_first(vector, words):
    return np.argsort(words @ vector)[-3:]


def one_three_times(vector, words):
    return np.repeat(np.argmax(words @ vector), 3)


def three_by_size(vector, words):
    return np.argsort(-np.abs(words @ vector))[:3]


def _three_cases():
    cases = []
    for seed, V, d in ((0, 60, 200), (1, 500, 64), (2, 30, 4)):
        rng = np.random.default_rng(seed)
        words = rng.standard_normal((V, d))
        cases.append((words[rng.choice(V, 3, replace=False)].sum(axis=0), words))
    return cases


THREE = Exercise(
    id="10.2",
    title="Three words in one vector",
    minutes=6,
    points=2,
    hints=(
        "One vector against all rows gives one score a word: words @ vector has the shape (V,).",
        "np.argsort gives the places in rising order of the values. You want falling order.",
        "Sort the negative scores and keep the first three places.",
    ),
    solution=decode_three,
    why="Nothing in the vector says that there are three. You have to bring the 3, and the order in the sum is lost.",
    wrong=(
        Wrong(
            three_smallest,
            "argsort rises: the first three places belong to the three LOWEST scores.",
        ),
        Wrong(
            three_worst_first,
            "The right three, but the best stands last. The exercise asks for best first: sort the negative "
            "scores, or turn the three round.",
        ),
        Wrong(
            one_three_times,
            "This is the best word three times. The other two are the next best, not copies.",
        ),
        Wrong(
            three_by_size,
            "This ranks by the size of the score without its sign. A row with a large NEGATIVE dot product "
            "points away from the sum: it is not in it.",
        ),
    ),
    cases=_three_cases,
)

# ---- 10.3 dimensions for a vocabulary ---------------------------------------------------------------------------


def dimensions_needed(V):
    """The d at which the right word's score d equals the largest of V wrong ones, sqrt(2 ln V) spreads of sqrt(2 d)."""
    if not V >= 2:
        raise ValueError(f"V = {V}: a choice needs two words or more")
    return 4 * math.log(V)  # d = sqrt(2 ln V) sqrt(2 d), squared and divided by d


def dimensions_word_alone(V):
    if not V >= 2:
        raise ValueError
    return 2 * math.log(V)


def dimensions_log2(V):
    if not V >= 2:
        raise ValueError
    return 4 * math.log2(V)


def dimensions_like_V(V):
    if not V >= 2:
        raise ValueError
    return math.sqrt(V)


def dimensions_unchecked(V):
    return 4 * math.log(V) if V > 0 else -math.inf


DIMENSIONS = Exercise(
    id="10.3",
    title="How many dimensions for your vocabulary",
    minutes=6,
    points=3,
    hints=(
        "Write both sides as a function of d. Right word: d. Largest wrong one: the spread of one score times "
        "sqrt(2 ln V).",
        "A wrong word's score spreads by |t + p|, and t + p is the sum of two rows: about sqrt(2 d), not sqrt(d).",
        "Solve d = sqrt(2 ln V) * sqrt(2 d) for d. math.log is the natural logarithm. A V below 2 gets a ValueError.",
    ),
    solution=dimensions_needed,
    why="V stands inside a logarithm: a vocabulary a thousand times larger asks for 28 more dimensions.",
    wrong=(
        Wrong(
            dimensions_word_alone,
            "Half of it. The vector is not the word's row but a sum of two rows, so its length is sqrt(2 d): "
            "that gives the second factor 2.",
        ),
        Wrong(
            dimensions_log2,
            "The largest of V normal numbers goes with the natural logarithm: math.log, not log2.",
        ),
        Wrong(
            dimensions_like_V,
            "This grows like a root of V. The largest of V random numbers grows like sqrt(2 ln V): that is "
            "why so few dimensions do for so many words.",
        ),
        Wrong(
            dimensions_unchecked,
            "Right for real vocabularies, but V = 1 or less is no choice: raise a ValueError.",
        ),
    ),
    cases=lambda: [(50_257,), (128_000,), (2,), (30_522,)],
    refuses=lambda: [(1,), (0,)],
)

# ---- 10.4 sqrt(d) -----------------------------------------------------------------------------------------------

SQRT = Exercise(
    id="10.4",
    title="What multiplying by √d does",
    minutes=5,
    points=2,
    hints=(
        "A row of d numbers, each of variance 1/d, has a squared length of about d times 1/d.",
        "The position's row is 256 pairs (sin, cos), each of length 1: its squared length is 256.",
        "After the multiplication the word's row is sqrt(512) times as long as before: 22.6. Divide by 16.",
    ),
    solution=math.sqrt(2),
    why="1 : 16 becomes 22.6 : 16 = 1.41. The factor sets the word's scale beside the position's; it has nothing to do "
    "with attention's division by sqrt(d_k).",
    wrong=(
        Wrong(
            1 / 16,
            "That is the ratio before the multiplication: a word row of length 1 beside a position row of 16.",
        ),
        Wrong(
            math.sqrt(512),
            "That is the word's length after the multiplication. Divide it by the position's: 16.",
        ),
        Wrong(
            1 / math.sqrt(2),
            "Upside down: this is position over word.",
        ),
        Wrong(
            math.sqrt(512) / 512,
            "The word's row is multiplied by sqrt(d), not divided by it; that division belongs to attention's scores.",
        ),
    ),
    rtol=0.01,
)

# ---- 10.5 a shared mean -----------------------------------------------------------------------------------------


def decode_centred(sums, words):
    """Decode sums (n, d) by dot product when all rows share an unknown mean: centre the sums and the table first."""
    sums = sums - sums.mean(axis=0)  # (n, d)
    words = words - words.mean(axis=0)  # (V, d)
    return (sums @ words.T).argmax(axis=1)  # (n,)


def not_centred(sums, words):
    return (sums @ words.T).argmax(axis=1)


def centred_half(sums, words):
    mean = words.mean(axis=0)
    return ((sums - mean) @ (words - mean).T).argmax(axis=1)


def centred_by_row(sums, words):
    sums = sums - sums.mean(axis=1, keepdims=True)
    words = words - words.mean(axis=1, keepdims=True)
    return (sums @ words.T).argmax(axis=1)


def _centred_cases():
    cases = []
    for seed, n, V, d, m in ((0, 200, 3_000, 128, 2.5), (1, 300, 3_000, 96, 3.0), (2, 150, 2_000, 160, 2.0)):
        rng = np.random.default_rng(seed)
        mean = m * rng.standard_normal(d)  # (d,) a direction of its own, not the same number everywhere
        words = mean + rng.standard_normal((V, d))  # (V, d)
        positions = mean + rng.standard_normal((n, d))  # (n, d)
        cases.append((words[rng.integers(V, size=n)] + positions, words))
    return cases


CENTRED = Exercise(
    id="10.5",
    title="Repair a decoder that a shared mean has blinded",
    minutes=8,
    points=3,
    hints=(
        "A mean that all rows share says nothing about which row it is. Take it out before you compare.",
        "The table's mean row is words.mean(axis=0): one number a dimension, over all words.",
        "The sums carry a mean too, that of words plus positions. You can't see the positions, but you see many sums.",
    ),
    solution=decode_centred,
    why="A mean in the sums rewards every row that happens to lie along it, right or wrong. Out of the sums, it is gone; "
    "centring the table too changes no winner, but keeps the scores readable.",
    wrong=(
        Wrong(
            not_centred,
            "The sums still carry the mean. (Centring the table alone can't help: it takes the same number "
            "off every score of a sum, so the winner stays.)",
        ),
        Wrong(
            centred_half,
            "Half of it: the words' mean is out, but the sums hold the positions' mean too. Take off what the "
            "SUMS have in common: sums.mean(axis=0).",
        ),
        Wrong(
            centred_by_row,
            "axis=1 takes the mean over a row's own numbers. The shared mean is a row: the average over all "
            "rows, axis=0.",
        ),
    ),
    cases=_centred_cases,
)

EXERCISES = (DECODE, THREE, DIMENSIONS, SQRT, CENTRED)
