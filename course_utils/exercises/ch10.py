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


def decode_flat(sums, words):
    return (sums @ words.T).argmax()


def decode_by_cosine(sums, words):
    return (sums @ (words / np.linalg.norm(words, axis=1, keepdims=True)).T).argmax(axis=1)


def decode_by_distance(sums, words):
    return np.linalg.norm(sums[:, None] - words, axis=2).argmin(axis=1)


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
        Wrong(
            decode_flat,
            "One number for all sums: without axis= argmax numbers the whole table of scores as one long row. "
            "You want the best word of each sum: axis=1.",
        ),
        Wrong(
            decode_by_cosine,
            "This ranks by cosine. It finds more words, as the chapter shows, but the exercise asks for the plain dot "
            "product: don't divide by the norms.",
        ),
        Wrong(
            decode_by_distance,
            "This takes the nearest row by distance. It finds more words, but the exercise asks for the plain dot "
            "product.",
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


def three_scores(vector, words):
    return np.sort(words @ vector)[::-1][:3]


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
    why="You have to bring the 3: only the vector's length, about √(3d), hints at it. Their order is lost.",
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
            three_scores,
            "These are the three largest scores, not their words: argsort gives places, sort gives values.",
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
    """The d at which the right word's score, d, equals the largest of V wrong ones: sqrt(2 ln V) times sqrt(2 d)."""
    if not V >= 2:
        raise ValueError(f"V = {V}: a choice needs two words or more")
    return 4 * np.log(V)  # d = sqrt(2 ln V) sqrt(2 d), squared and divided by d


def dimensions_word_alone(V):
    if not V >= 2:
        raise ValueError
    return 2 * math.log(V)


def dimensions_log2(V):
    if not V >= 2:
        raise ValueError
    return 4 * math.log2(V)


def dimensions_log10(V):
    if not V >= 2:
        raise ValueError
    return 4 * math.log10(V)


def dimensions_rounded(V):
    if not V >= 2:
        raise ValueError
    return math.ceil(4 * math.log(V))


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
        "Solve d = sqrt(2 ln V) * sqrt(2 d) for d. np.log is the natural logarithm. A V below 2 gets a ValueError.",
    ),
    solution=dimensions_needed,
    why="The vocabulary comes in through its logarithm only: a thousand times more words, 28 dimensions more.",
    wrong=(
        Wrong(
            dimensions_word_alone,
            "Half of it. The vector is not the word's row but a sum of two rows, so its length is sqrt(2 d): "
            "that gives the second factor 2.",
        ),
        Wrong(
            dimensions_log2,
            "The largest of V normal numbers goes with the natural logarithm: np.log, not log2.",
        ),
        Wrong(
            dimensions_log10,
            "The largest of V normal numbers goes with the natural logarithm: np.log, not log10.",
        ),
        Wrong(
            dimensions_rounded,
            "Right, and then rounded. Return the number as the formula gives it.",
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
    rtol=1e-3,  # ln(V - 1) for ln V is as good
    cases=lambda: [(50_257,), (128_000,), (1_000,), (30_522,)],
    fresh=lambda rng: [(V,) for V in rng.integers(2_000, 300_000, size=4).tolist()],
    refuses=lambda: [(1,), (0,)],
)

# ---- 10.4 sqrt(d) -----------------------------------------------------------------------------------------------

SQRT = Exercise(
    id="10.4",
    title="What multiplying by √d does",
    minutes=5,
    points=2,
    hints=(
        "A row of d numbers of spread s has a length of about s times √d. Both rows have the same d.",
        "Before the multiplication the word's row is .02 / .01 = 2 times as long as the position's.",
        "Multiplying by √768 = 27.7 makes the word's row 27.7 times as long, and leaves the position's alone.",
    ),
    solution=2 * math.sqrt(768),
    why="2 : 1 becomes 55 : 1, and at 10 : 1 most positions were lost. The factor belongs to rows that start with the "
    "length 1 beside positions of length 16. Here it drowns the position.",
    wrong=(
        Wrong(2, "That is the ratio before the multiplication: .02 to .01."),
        Wrong(math.sqrt(768), "That is the factor. The ratio was 2 before it."),
        Wrong(1 / (2 * math.sqrt(768)), "Upside down: this is position over word."),
        Wrong(2 / math.sqrt(768), "The word's row is multiplied by √d, not divided by it."),
        Wrong(2 * 768, "This multiplies by d. The factor is √d."),
        Wrong(
            0.02 * 768,
            "This is the word's length after the multiplication, .02 √d √d. Divide by the position's, .01 √d.",
        ),
    ),
    rtol=0.01,
)

# ---- 10.5 a shared mean -----------------------------------------------------------------------------------------


def decode_centred(sums, words):
    """For each sum (n, d) the word id (n,), by dot product, when all rows share an unknown mean row."""
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
        "The sums carry a mean too: that of the words plus that of the positions. You have no positions to "
        "average, but many sums.",
    ),
    solution=decode_centred,
    why="A mean in the sums rewards every row that happens to lie along it, right or wrong. "
    "Out of the sums, it is gone. Centring the table too changes no winner, but keeps the scores readable.",
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
