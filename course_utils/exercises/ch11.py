"""Chapter 11, four terms in every score."""

import numpy as np

from course_utils.exercises import Exercise, Wrong

# ---- 11.1 a head that looks further back ------------------------------------------------------------------------


def looks_back(places, back):
    """The query matrix of the head: places (d, d), back 1 or more -> (d, d)."""
    return 100 * np.linalg.inv(places) @ np.eye(len(places), k=-back)


def looks_ahead(places, back):
    return 100 * np.linalg.inv(places) @ np.eye(len(places), k=back)


def always_one_back(places, back):
    return looks_back(places, 1)


def one_for_a_hundred(places, back):
    return looks_back(places, back) / 100


def first_places_wrap(places, back):
    return 100 * np.linalg.inv(places) @ np.roll(np.eye(len(places)), -back, axis=1)


def the_queries_themselves(places, back):
    return 100 * np.eye(len(places), k=-back)


def in_the_wrong_order(places, back):
    return 100 * np.eye(len(places), k=-back) @ np.linalg.inv(places)


def looks_at_itself(places, back):
    return 100 * np.linalg.inv(places)


def rows_not_undone(places, back):
    return 100 * places.T @ np.eye(len(places), k=-back)


def key_multiplied_twice(places, back):
    return looks_back(places, back) @ np.linalg.inv(places)


def _back_cases():
    cases = []
    for seed, (d, back) in enumerate(((5, 2), (4, 1), (7, 3))):
        cases.append((np.random.default_rng(seed).standard_normal((d, d)) + 3 * np.eye(d), back))
    return cases


BACK = Exercise(
    id="11.1",
    title="Build a head that looks further back",
    minutes=7,
    points=3,
    hints=(
        "Two steps: first make of place row i a list with a 1 at i, as the keys do. Then move the 1 to i - back.",
        "A table that sends list i to list i - back has its ones `back` below the diagonal: np.eye(d, k=-back).",
        "Rows are multiplied from the left, so the step that comes first stands first: inverse, then the move.",
    ),
    solution=looks_back,
    why="places @ inverse is a 1 at i for each place; the move takes it to i - back; and the key with its 1 there gets "
    "a score of 100 over the root of d.",
    wrong=(
        Wrong(looks_ahead, "This head looks AHEAD, at i + back: np.eye has its ones above the diagonal for k > 0."),
        Wrong(always_one_back, "This head looks one place back, whatever `back` is."),
        Wrong(one_for_a_hundred, "The 100 is missing. With a 1 the scores are so small that every place gets weight."),
        Wrong(
            first_places_wrap,
            "The first places look at the LAST ones: np.roll wraps around. They should ask with zeros.",
        ),
        Wrong(
            the_queries_themselves,
            "These are the queries. The matrix has to make them of place rows, which are no lists with a single 1: "
            "undo the rows first.",
        ),
        Wrong(
            in_the_wrong_order,
            "The two factors stand the wrong way round. A row meets the left one first: first undo, then move.",
        ),
        Wrong(looks_at_itself, "This head looks at its own place: the 1 is not moved."),
        Wrong(
            rows_not_undone,
            "places.T undoes the rows only if they are perpendicular and of length 1. In general it takes the inverse.",
        ),
        Wrong(
            key_multiplied_twice,
            "Up to the last factor this is right. The keys bring their own inverse; the query doesn't need it again.",
        ),
    ),
    cases=_back_cases,
)

# ---- 11.2 side by side to a sum ---------------------------------------------------------------------------------


def tables_for_a_sum(words, places, C):
    """words (V, a), places (P, b), C (a + b, d) -> two tables (V, d) and (P, d)."""
    a = words.shape[1]
    return words @ C[:a], places @ C[a:]


def cut_in_the_middle(words, places, C):
    half = len(C) // 2
    return words @ C[:half], places @ C[half:]


def place_first(words, places, C):
    b = places.shape[1]
    return words @ C[b:], places @ C[:b]


def the_matrices_themselves(words, places, C):
    a = words.shape[1]
    return C[:a], C[a:]


def all_pairs(words, places, C):
    a = words.shape[1]
    return (words @ C[:a])[:, None] + places @ C[a:]


def one_under_the_other(words, places, C):
    return np.vstack(tables_for_a_sum(words, places, C))


def columns_cut(words, places, C):
    a = words.shape[1]
    return words @ C[:, :a], places @ C[:, a:]


def mapped_but_swapped(words, places, C):
    new_words, new_places = tables_for_a_sum(words, places, C)
    return new_places, new_words


def _sum_cases():
    cases = []
    # as many places as words: then a list of two tables has the shape of a tuple of two, and is as good
    for seed, (n, a, b, d) in enumerate(((5, 6, 2, 8), (7, 4, 4, 4), (3, 1, 5, 6))):
        rng = np.random.default_rng(seed)
        cases.append((rng.standard_normal((n, a)), rng.standard_normal((n, b)), rng.standard_normal((a + b, d))))
    return cases


SUM = Exercise(
    id="11.2",
    title="From side by side to a sum",
    minutes=6,
    points=3,
    hints=(
        "Write [t, p] @ C for a = 2 and b = 1 on paper. Which rows of C does a number of t ever meet?",
        "The word's numbers come first, so they meet the first a rows of C. a is words.shape[1].",
        "Return two arrays: words times the upper rows of C, places times the rest.",
    ),
    solution=tables_for_a_sum,
    why="Both tables are computed once, before any text is read. After that the model only adds.",
    wrong=(
        Wrong(
            cut_in_the_middle,
            "You cut C at the wrong row. A word has a numbers and a place b, and they need not be equal: cut after row "
            "a, the number of a word's columns.",
        ),
        Wrong(place_first, "You gave the place the upper rows of C. The word stands first, so they are the word's."),
        Wrong(
            the_matrices_themselves,
            "These are A and B, the two pieces of C. One step is left: the tables are words @ A and places @ B.",
        ),
        Wrong(
            all_pairs,
            "These are all V x P sums. Asked for are the two tables, so that any sum can be made when it is needed.",
        ),
        Wrong(
            one_under_the_other,
            "The numbers are right, but this is one array. Return two: the words' table, the places' table.",
        ),
        Wrong(columns_cut, "You cut C's columns. A row of numbers times C meets C's ROWS: cut those."),
        Wrong(mapped_but_swapped, "The right tables in the wrong order: words first."),
    ),
    cases=_sum_cases,
)

# ---- 11.3 the head that looks left ------------------------------------------------------------------------------


def left_head(weights):
    """The head that looks left: weights (heads, n, n) -> its number, counted from 0."""
    n = weights.shape[-1]
    to_the_left = weights[:, np.arange(1, n), np.arange(n - 1)]  # (heads, n - 1)
    return int(to_the_left.mean(axis=1).argmax())


def right_head(weights):
    n = weights.shape[-1]
    return int(weights[:, np.arange(n - 1), np.arange(1, n)].mean(axis=1).argmax())


def self_head(weights):
    n = weights.shape[-1]
    return int(weights[:, np.arange(n), np.arange(n)].mean(axis=1).argmax())


def largest_once(weights):
    n = weights.shape[-1]
    return int(weights[:, np.arange(1, n), np.arange(n - 1)].max(axis=1).argmax())


def anywhere_left(weights):
    return int((weights * np.tri(weights.shape[-1], k=-1)).sum(axis=(1, 2)).argmax())


def first_row_wraps(weights):
    n = weights.shape[-1]
    return int(weights[:, np.arange(n), np.arange(n) - 1].mean(axis=1).argmax())


def axes_not_named(weights):
    return int(np.diagonal(weights, offset=-1).mean(axis=1).argmax())


def counted_from_one(weights):
    return left_head(weights) + 1


def the_weight(weights):
    n = weights.shape[-1]
    return float(weights[:, np.arange(1, n), np.arange(n - 1)].mean(axis=1).max())


def _head_cases():
    """Weights whose heads look left, right, at themselves, far left, left just once, and at the last place from 0."""
    cases = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n = 6 + seed
        places = np.arange(n)
        scores = rng.standard_normal((6, n, n))
        for head, back in enumerate((1, -1, 0)):
            scores[head, places, np.clip(places - back, 0, n - 1)] += (2.0, 8.0, 8.0)[head]
        scores[3, places, 0] += 9.0  # all look at the first word
        scores[4, 2, 1] += 12.0  # once for certain
        scores[5, places, places - 1] += 1.7  # a weaker one, that also looks from the first place to the last
        scores[5, 0, n - 1] += 12.0
        order = rng.permutation(6)
        e = np.exp(scores[order])
        cases.append((e / e.sum(axis=-1, keepdims=True),))
    return cases


LEFT = Exercise(
    id="11.3",
    title="Find the head that looks left",
    minutes=5,
    points=2,
    hints=(
        "Row i is who looks, column j is whom at. The left neighbour of place i stands at j = i - 1.",
        "Those weights stand just below the diagonal: weights[:, 1, 0], weights[:, 2, 1], and so on.",
        "np.diagonal(weights, offset=-1, axis1=1, axis2=2) has them all: (heads, n - 1). Then mean, then argmax.",
    ),
    solution=left_head,
    why="The diagonal below the main one holds what each place gives its left neighbour. The first place has none.",
    wrong=(
        Wrong(
            right_head,
            "That head looks RIGHT: you took the weights above the diagonal. Row i looks, column i - 1 "
            "is its left neighbour.",
        ),
        Wrong(self_head, "That head looks at itself: you took the diagonal. The left neighbour is one column before."),
        Wrong(
            largest_once, "You took the largest single weight. A head can look left once by accident: take the mean."
        ),
        Wrong(
            anywhere_left,
            "That head looks far to the left. You counted all columns before i, or always the first one. Asked for is "
            "the neighbour alone, column i - 1 of row i.",
        ),
        Wrong(
            axes_not_named,
            "np.diagonal takes the first two axes unless told otherwise: heads and rows. Name axis1=1, axis2=2.",
        ),
        Wrong(
            first_row_wraps,
            "Place 0 has no left neighbour. Its column -1 is the LAST place in numpy: leave row 0 out.",
        ),
        Wrong(counted_from_one, "The right head, but heads are counted from 0."),
        Wrong(the_weight, "That is how much weight the best head gives. Asked for is which head: argmax, not max."),
    ),
    cases=_head_cases,
)

# ---- 11.4 what blindness leaves ---------------------------------------------------------------------------------

LEAVES = Exercise(
    id="11.4",
    title="What blindness leaves",
    minutes=4,
    points=2,
    hints=(
        "How much of a place row's squared length is left when 192 of 256 dimensions are projected out?",
        "How much shorter does that make a half of a query? And a half of a key?",
        "A score is a product of the two: each is √(1 - r/d) times as long. With 100 words that is 156/256 = .61.",
    ),
    solution=0.25,
    why="Query and key both keep 64 of 256 dimensions: each is √.25 = .5 times as long, their products .25 times.",
    wrong=(
        Wrong(0.75, "That is what goes: 192 of 256 dimensions. Asked for is what stays."),
        Wrong(
            0.5,
            "That is how much shorter the query's half gets, √(64/256). The key's half gets shorter too, and the score "
            "is a product of both.",
        ),
        Wrong(0.0625, "That is the variance. The spread is its root."),
        Wrong(0.0, "So it would be with 256 words. 192 words leave 64 dimensions, and places reach into all of them."),
        Wrong(1.0, "Only words are ignored, but a place's row lies partly in the words' span, and loses that part."),
        Wrong(25.0, "That is in per cent. Give a share of 1."),
        Wrong(64.0, "That is the number of dimensions left. What share of the spread is it?"),
    ),
    rtol=0.02,
)

# ---- 11.5 after LayerNorm ---------------------------------------------------------------------------------------

SHARE = Exercise(
    id="11.5",
    title="After LayerNorm",
    minutes=3,
    points=1,
    hints=(
        "What does LayerNorm divide by? Is it the same number for the word's half and for the place's?",
        "The share is what it was before. Squared lengths: 1 for the word, 4² for the place.",
        "Random rows are nearly perpendicular, so the squared length of the sum is 1 + 16.",
    ),
    solution=1 / 17,
    why="LayerNorm divides both halves by the spread of their sum. 1 : 16 before is 1 : 16 after.",
    wrong=(
        Wrong(0.5, "LayerNorm does not balance: it divides both halves by ONE number, so the ratio stays."),
        Wrong(0.2, "That is the share of lengths, 1 in 1 + 4. Asked for is the share of SQUARED length."),
        Wrong(0.25, "That is the ratio of lengths, word to place. Asked for is a share of the squared length."),
        Wrong(1 / 16, "That is word to place. The word's share is of the whole: 1 in 1 + 16."),
        Wrong(16 / 17, "That is the place's share."),
        Wrong(0.06, "Nearly: that is rounded too far. Give three decimals, or the expression."),
        Wrong(100 / 17, "That is in per cent. Give a share of 1."),
        Wrong(1.0, "After LayerNorm the whole sum has a fixed length. Most of it is the place's."),
    ),
    rtol=0.01,
)

EXERCISES = (BACK, SUM, LEFT, LEAVES, SHARE)
