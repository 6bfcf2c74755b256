"""Chapter 11, four terms in every score."""

import numpy as np

from course_utils.exercises import Exercise, Wrong

# ---- 11.1 the four parts ----------------------------------------------------------------------------------------


def four_parts(t, p, W_q, W_k):
    """The parts of all scores: t, p (n, d), W_q, W_k (d, width) -> (4, n, n)."""
    queries = t @ W_q, p @ W_q  # each (n, width)
    keys = t @ W_k, p @ W_k
    return np.stack([q @ k.T for q in queries for k in keys]) / np.sqrt(W_q.shape[1])


def parts_not_divided(t, p, W_q, W_k):
    return four_parts(t, p, W_q, W_k) * np.sqrt(W_q.shape[1])


def parts_divided_by_input(t, p, W_q, W_k):
    return parts_not_divided(t, p, W_q, W_k) / np.sqrt(W_q.shape[0])


def parts_divided_by_width(t, p, W_q, W_k):
    return parts_not_divided(t, p, W_q, W_k) / W_q.shape[1]


def mixed_swapped(t, p, W_q, W_k):
    return four_parts(t, p, W_q, W_k)[[0, 2, 1, 3]]


def rows_are_keys(t, p, W_q, W_k):
    return four_parts(t, p, W_q, W_k).swapaxes(1, 2)


def one_matrix_for_both(t, p, W_q, W_k):
    return four_parts(t, p, W_q, W_q)


def two_parts_only(t, p, W_q, W_k):
    return four_parts(t, p, W_q, W_k)[[0, 3]]


def the_whole_score(t, p, W_q, W_k):
    return four_parts(t, p, W_q, W_k).sum(axis=0)


def _parts_cases():
    cases = []
    for seed, (n, d, width) in enumerate(((3, 8, 4), (5, 16, 16), (1, 6, 9))):
        rng = np.random.default_rng(seed)
        t, p = rng.standard_normal((2, n, d))
        W_q, W_k = rng.standard_normal((2, d, width))
        cases.append((t, p, W_q, W_k))
    return cases


PARTS = Exercise(
    id="11.1",
    title="Build the four parts",
    minutes=6,
    points=3,
    hints=(
        "Two halves of the queries, t @ W_q and p @ W_q; two halves of the keys. Every half meets every half.",
        "The scores of one half of the queries with one half of the keys: a @ b.T, of shape (n, n).",
        "np.stack of four such tables gives (4, n, n). The width is the number of W_q's columns.",
    ),
    solution=four_parts,
    why="(a + b)·(c + d) has four products, and a dot product multiplies out like any other.",
    wrong=(
        Wrong(parts_not_divided, "The division by the root of the query's width is missing."),
        Wrong(
            parts_divided_by_input,
            "You divide by the root of d, the width of a row. A score is a dot product of queries and keys: it is "
            "their width that counts, W_q.shape[1].",
        ),
        Wrong(parts_divided_by_width, "You divide by the width. It is its root: np.sqrt(W_q.shape[1])."),
        Wrong(
            mixed_swapped,
            "Word-place and place-word have changed places. Who ASKS stands first, and the query asks: word-place is "
            "t @ W_q with p @ W_k.",
        ),
        Wrong(rows_are_keys, "Each table is turned on its side: row i belongs to the place that asks."),
        Wrong(one_matrix_for_both, "You use W_q for the keys too. Keys have a matrix of their own, W_k."),
        Wrong(
            two_parts_only,
            "The two mixed parts are missing: words are asked by places, and places by words.",
        ),
        Wrong(the_whole_score, "That is their sum, the score itself. Asked for are the four parts, one after another."),
    ),
    cases=_parts_cases,
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
            "You cut C in the middle. A word has a numbers and a place b, and they need not be equal: cut after row a.",
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
        scores[5, places, places - 1] += 1.4  # a weaker one, that also looks from the first place to the last
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
        Wrong(anywhere_left, "You counted everything to the left, however far. Asked for is the neighbour alone."),
        Wrong(
            first_row_wraps,
            "Place 0 has no left neighbour. Its column -1 is the LAST place in numpy: leave row 0 out.",
        ),
        Wrong(counted_from_one, "The right head, but heads are counted from 0."),
        Wrong(the_weight, "That is how much weight the best head gives. Asked for is which head: argmax, not max."),
    ),
    cases=_head_cases,
)

# ---- 11.4 ignoring rows -----------------------------------------------------------------------------------------


def ignoring(W, rows):
    """W (d, width), rows (r, d) -> (d, width)."""
    _, strengths, directions = np.linalg.svd(rows, full_matrices=False)
    B = directions[strengths > 1e-9 * strengths[0]]  # (rank, d): perpendicular, of length 1
    return W - B.T @ (B @ W)


def rows_as_they_are(W, rows):
    return W - rows.T @ (rows @ W)


def rows_of_length_one(W, rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return W - unit.T @ (unit @ W)


def directions_by_qr(W, rows):
    B = np.linalg.qr(rows.T)[0].T
    return W - B.T @ (B @ W)


def all_directions(W, rows):
    B = np.linalg.svd(rows, full_matrices=False)[2]
    return W - B.T @ (B @ W)


def the_span_kept(W, rows):
    return W - ignoring(W, rows)


def mean_taken_off(W, rows):
    unit = rows.mean(axis=0) / np.linalg.norm(rows.mean(axis=0))
    return W - np.outer(unit, unit @ W)


def first_rows_zeroed(W, rows):
    changed = W.copy()
    changed[: len(rows)] = 0
    return changed


def everything_ignored(W, rows):
    return np.zeros_like(W)


def _ignoring_cases():
    cases = []
    for seed, (d, width, r) in enumerate(((8, 4, 3), (12, 12, 5), (6, 3, 1))):
        rng = np.random.default_rng(seed)
        rows = 2 * rng.standard_normal((r, d))
        if r > 2:
            rows = np.vstack([rows, rows[0] - 3 * rows[1]])  # a mixture of two others
        cases.append((rng.standard_normal((d, width)), rows))
    return cases


IGNORING = Exercise(
    id="11.4",
    title="A head that ignores some rows",
    minutes=7,
    points=3,
    hints=(
        "Take off from W what it does within the rows' span. For that you need perpendicular directions of length 1.",
        "np.linalg.svd(rows, full_matrices=False) gives them as its third result, with their strengths as the second. "
        "A direction of strength 0 is in no row: leave it out.",
        "With such directions B (rank, d), x @ B.T @ B is the part of x in the span. So W loses B.T @ (B @ W).",
    ),
    solution=ignoring,
    why="x @ W' = (x without its part in the span) @ W: zero for the rows, unchanged for whatever is perpendicular.",
    wrong=(
        Wrong(
            rows_as_they_are,
            "You project with the rows as they are. That works with perpendicular rows of length 1 only: get such "
            "directions from svd first.",
        ),
        Wrong(
            rows_of_length_one,
            "Your directions have length 1, but they are not perpendicular to each other: what two of them share is "
            "taken off twice. svd makes them perpendicular.",
        ),
        Wrong(
            all_directions,
            "Nearly. One of the rows is a mixture of others, so svd gives a direction of strength 0 besides, and you "
            "ignore that too. Keep directions whose strength is well above 0.",
        ),
        Wrong(
            directions_by_qr,
            "qr gives perpendicular directions of length 1, but as many as there are rows. One row is a mixture of "
            "others here, so one direction is too many, and no row lies in it. svd tells its strength: 0.",
        ),
        Wrong(the_span_kept, "The other way round: this one sees the rows' span and ignores all the rest."),
        Wrong(mean_taken_off, "This ignores the rows' mean only. Each row, and every mixture of them, has to go."),
        Wrong(
            first_rows_zeroed,
            "You set rows of W to zero: that ignores single numbers of x. The rows to be ignored fill all d numbers.",
        ),
        Wrong(everything_ignored, "A matrix of zeros ignores everything. What is perpendicular to the rows must stay."),
    ),
    cases=_ignoring_cases,
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
        Wrong(1.0, "After LayerNorm the whole sum has a fixed length. Most of it is the place's."),
    ),
    rtol=0.01,
)

EXERCISES = (PARTS, SUM, LEFT, IGNORING, SHARE)
