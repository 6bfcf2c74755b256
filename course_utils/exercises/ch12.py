"""Chapter 12, sinusoids."""

import math

import numpy as np

from course_utils.exercises import Exercise, Wrong

# ---- 12.1 whose number ------------------------------------------------------------------------------------------

WAVELENGTH = Exercise(
    id="12.1",
    title="Whose number is it",
    minutes=3,
    points=1,
    hints=(
        "Two numbers share a hand: 0 and 1 are hand 0, 2 and 3 are hand 1. Which hand do places 100 and 101 share?",
        "It is hand 50, so the exponent 2i/d is 100/512.",
        "A full turn takes 2π times as long as one radian: multiply base^(2i/d) by 2 * np.pi.",
    ),
    solution=2 * math.pi * 10_000 ** (100 / 512),
    why="i is 50: the place in the row is 2i already, and 2π x 10,000^(100/512) positions make a full turn.",
    wrong=(
        Wrong(
            2 * math.pi * 10_000 ** (200 / 512),
            "The exponent is twice too large. Place 100 belongs to hand i = 50, so 2i = 100, and that is divided by "
            "d = 512, not by the number of hands.",
        ),
        Wrong(
            10_000 ** (100 / 512),
            "In that many positions the hand turns by one radian. A full turn is 2π radians.",
        ),
        Wrong(
            2 * math.pi * 10_000 ** (50 / 512),
            "The exponent is 2i/d, and i is 50: the 2 is missing.",
        ),
        Wrong(
            10_000 ** (-100 / 512),
            "That is how far the hand turns in one position, in radians. Give the positions that a turn takes.",
        ),
        Wrong(
            2 * math.pi * 10_000 ** (101 / 512),
            "The exponent is a little too large. Places 100 and 101 are one hand and share one exponent: 2i = 100.",
        ),
        Wrong(2 * math.pi * 10_000, "That is the limit for the very last hand. This one is far from the end."),
    ),
    rtol=0.005,
)

# ---- 12.2 the other layout --------------------------------------------------------------------------------------


def half_split_table(n, d):
    """Sinusoids of positions 0 ... n - 1, sines first, then cosines: (n, d). ValueError for an odd d."""
    if d % 2:
        raise ValueError(f"d is {d}: a hand takes two numbers, so d has to be even")
    angles = np.arange(n)[:, None] / 10_000.0 ** (2 * np.arange(d // 2) / d)  # (n, d/2)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)  # (n, d)


def _angles(n, d, exponent=2.0, start=0):
    if d % 2:
        raise ValueError
    return np.arange(start, start + n)[:, None] / 10_000.0 ** (exponent * np.arange(d // 2) / d)


def _halves(first, second):
    return np.concatenate([first, second], axis=1)


def table_interleaved(n, d):
    angles = _angles(n, d)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, d)


def table_4i(n, d):
    angles = _angles(n, d, exponent=4.0)
    return _halves(np.sin(angles), np.cos(angles))


def table_1i(n, d):
    angles = _angles(n, d, exponent=1.0)
    return _halves(np.sin(angles), np.cos(angles))


def table_sin_twice(n, d):
    angles = _angles(n, d)
    return _halves(np.sin(angles), np.sin(angles))


def table_cosines_first(n, d):
    angles = _angles(n, d)
    return _halves(np.cos(angles), np.sin(angles))


def table_from_one(n, d):
    angles = _angles(n, d, start=1)
    return _halves(np.sin(angles), np.cos(angles))


def table_d_hands(n, d):
    if d % 2:
        raise ValueError
    angles = np.arange(n)[:, None] / 10_000.0 ** (2 * np.arange(d) / d)
    return _halves(np.sin(angles), np.cos(angles))


def table_column_by_column(n, d):
    if d % 2:
        raise ValueError
    angles = np.arange(n)[:, None] / 10_000.0 ** (2 * np.arange(d) / d)
    return _halves(np.sin(angles[:, : d // 2]), np.cos(angles[:, d // 2 :]))


def table_turned(n, d):
    angles = _angles(n, d)
    return _halves(np.sin(angles), np.cos(angles)).T


def table_multiplied(n, d):
    if d % 2:
        raise ValueError
    angles = np.arange(n)[:, None] * 10_000.0 ** (2 * np.arange(d // 2) / d)
    return _halves(np.sin(angles), np.cos(angles))


def table_of_2017(n, d):
    if d % 2:
        raise ValueError
    exponents = np.arange(d // 2) / max(d // 2 - 1, 1)
    angles = np.arange(n)[:, None] / 10_000.0**exponents
    return _halves(np.sin(angles), np.cos(angles))


def table_unchecked(n, d):
    angles = np.arange(n)[:, None] / 10_000.0 ** (2 * np.arange(d // 2) / d)
    return _halves(np.sin(angles), np.cos(angles))


HALF_SPLIT = Exercise(
    id="12.2",
    title="The other layout",
    minutes=6,
    points=2,
    hints=(
        "Start with the angles, one row a position, one column a HAND: the shape is (n, d/2).",
        "np.arange(n)[:, None] is a column of positions: divide it by 10_000.0 ** (2 * i / d), i = np.arange(d // 2).",
        "Two tables of (n, d/2) side by side: np.concatenate([first, second], axis=1). Test d % 2 before all that.",
    ),
    solution=half_split_table,
    why="Same hands, same numbers as the chapter's table. Only their places in the row are others.",
    wrong=(
        Wrong(
            table_interleaved,
            "Right numbers in the chapter's order, sine beside cosine. Here all sines come first, then all cosines.",
        ),
        Wrong(
            table_4i,
            "The exponent is 4i/d here, so the hands slow down twice as fast. If you step through 0, 2, 4 ... you hold "
            "2i already: don't double it again.",
        ),
        Wrong(table_1i, "The exponent is i/d here: the 2 of 2i/d is missing, and the slowest hand is far too fast."),
        Wrong(table_sin_twice, "Both halves hold sines. The second half is the cosines of the same angles."),
        Wrong(table_cosines_first, "The halves have changed places: sines come first."),
        Wrong(table_from_one, "The first row belongs to position 0, where all sines are 0 and all cosines 1."),
        Wrong(
            table_d_hands,
            "There are d/2 hands, not d: this table has 2d columns. i runs over np.arange(d // 2).",
        ),
        Wrong(
            table_column_by_column,
            "Here each of the d columns has a speed of its own, so no cosine belongs to a sine. A hand's two numbers "
            "share one angle: d/2 angles, each used twice.",
        ),
        Wrong(table_turned, "The table lies on its side: a row is a position, so the shape is (n, d)."),
        Wrong(table_multiplied, "The angle is the position DIVIDED by base^(2i/d): later hands turn more slowly."),
        Wrong(
            table_of_2017,
            "That is the published code of 2017, whose exponents end at 1: it divides i by d/2 - 1. The chapter's "
            "formula divides i by d/2.",
        ),
        Wrong(
            table_unchecked,
            "Right for even d. For an odd d it returns d - 1 columns without a word: raise a ValueError.",
        ),
    ),
    cases=lambda: [(6, 8), (50, 64), (3, 4), (1, 16)],  # d = 2 would divide by 0 in the code of 2017
    refuses=lambda: [(4, 7), (1, 1)],
)

# ---- 12.3 a batch -----------------------------------------------------------------------------------------------


def add_positions(batch, rows):
    """The batch (texts, words, d) with each word's position row out of rows (n, d) added: (texts, words, d)."""
    words = batch.shape[1]
    return batch + rows[:words]  # (texts, words, d) + (words, d)


def add_along_texts(batch, rows):
    return batch + rows[: len(batch)][:, None, :]


def add_as_many_rows_as_texts(batch, rows):
    return batch + rows[: len(batch)]


def add_as_many_rows_as_numbers(batch, rows):
    return batch + rows[: batch.shape[-1]]


def add_from_row_one(batch, rows):
    return batch + rows[1 : batch.shape[1] + 1]


def add_own_sinusoids(batch, rows):
    words, d = batch.shape[1:]
    angles = np.arange(words)[:, None] / 10_000.0 ** (2 * np.arange(d // 2) / d)
    return batch + np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(words, d)


def add_first_row(batch, rows):
    return batch + rows[0]


def add_all_rows(batch, rows):
    return batch + rows


def add_running_on(batch, rows):
    texts, words, d = batch.shape
    return batch + rows[: texts * words].reshape(texts, words, d)


def add_last_rows(batch, rows):
    return batch + rows[-batch.shape[1] :]


def add_rows_alone(batch, rows):
    return np.broadcast_to(rows[: batch.shape[1]], batch.shape)


def _batch_cases():
    cases = []
    for seed, texts, words, d, n in ((0, 3, 5, 4, 40), (1, 2, 7, 7, 20), (2, 1, 4, 8, 12), (3, 6, 6, 2, 36)):
        rng = np.random.default_rng(seed)
        cases.append((rng.standard_normal((texts, words, d)), rng.standard_normal((n, d))))
    return cases


BATCH = Exercise(
    id="12.3",
    title="Add it to a batch",
    minutes=5,
    points=2,
    hints=(
        "All texts get the same position rows: the text's number plays no part.",
        "How many rows do you need? As many as a text has words: batch.shape[1].",
        "numpy lines shapes up from the right: (texts, words, d) + (words, d) adds the second to every text.",
    ),
    solution=add_positions,
    why="Broadcasting repeats the (words, d) rows for each text.",
    wrong=(
        Wrong(
            add_along_texts,
            "The rows run along the batch axis here: every word of a text gets the same row, and the text's number "
            "decides which. The place within the text should.",
        ),
        Wrong(
            add_as_many_rows_as_texts,
            "len(batch) counts the texts, and rows[:len(batch)] takes as many rows. The words of a text are "
            "batch.shape[1].",
        ),
        Wrong(
            add_as_many_rows_as_numbers,
            "This takes d rows, as many as a word has numbers. Take as many as a text has words: batch.shape[1].",
        ),
        Wrong(add_from_row_one, "This starts with row 1. A text's first word stands at place 0."),
        Wrong(
            add_own_sinusoids,
            "These are sinusoids that you built. Add the rows that the function is given: they may be a learned table.",
        ),
        Wrong(add_first_row, "Every word gets row 0. Each place has a row of its own."),
        Wrong(
            add_all_rows,
            "This adds all n rows, and they don't fit: the table is longer than a text. Take as many rows as there are "
            "words.",
        ),
        Wrong(add_running_on, "The places run on from one text to the next. Every text starts at place 0 again."),
        Wrong(add_last_rows, "These are the last rows of the table. A text's first word stands at place 0."),
        Wrong(add_rows_alone, "Only the positions are left: the words are gone. Add the two."),
    ),
    cases=_batch_cases,
)

# ---- 12.4 looking back ------------------------------------------------------------------------------------------


def back(d, k):
    """The matrix (d, d) that takes the half-split row of position m to that of m - k, base 10,000."""
    half = d // 2
    a = k / 10_000.0 ** (2 * np.arange(half) / d)  # (d/2,) how far each hand turns in k positions
    cos, sin = np.diag(np.cos(a)), np.diag(np.sin(a))  # (d/2, d/2)
    return np.block([[cos, -sin], [sin, cos]])  # (d, d)


def _turn(d, k, sign, exponent=2.0):
    a = k / 10_000.0 ** (exponent * np.arange(d // 2) / d)
    cos, sin = np.diag(np.cos(a)), sign * np.diag(np.sin(a))
    return np.block([[cos, sin], [-sin, cos]])


def back_forward(d, k):
    return _turn(d, k, 1)


def back_interleaved(d, k):
    matrix = np.zeros((d, d))
    for i in range(d // 2):
        a = -k / 10_000.0 ** (2 * i / d)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
    return matrix


def forward_interleaved(d, k):
    return back_interleaved(d, -k)


def back_rows_only(d, k):
    order = np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)])
    return back_interleaved(d, k)[order]


def back_columns_only(d, k):
    order = np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)])
    return back_interleaved(d, k)[:, order]


def back_one_angle(d, k):
    cos, sin = np.cos(k) * np.eye(d // 2), np.sin(k) * np.eye(d // 2)
    return np.block([[cos, -sin], [sin, cos]])


def back_4i(d, k):
    return _turn(d, k, -1, exponent=4.0)


def back_one_step(d, k):
    return _turn(d, 1, -1)


def back_roll(d, k):
    return np.roll(np.eye(d), k, axis=0)


def back_no_minus(d, k):
    a = k / 10_000.0 ** (2 * np.arange(d // 2) / d)
    cos, sin = np.diag(np.cos(a)), np.diag(np.sin(a))
    return np.block([[cos, sin], [sin, cos]])


BACK = Exercise(
    id="12.4",
    title="Looking back",
    minutes=8,
    points=3,
    hints=(
        "Back by k is on by -k. What does a minus sign in the angle do to the cosine, and what to the sine?",
        "Half-split, hand i has its sine at place i and its cosine at place d/2 + i. So the four numbers of its block "
        "stand at the crossings of these two rows and columns.",
        "sin(b - a) = sin b cos a - cos b sin a: so row i holds cos a at column i and -sin a at column d/2 + i.",
    ),
    solution=back,
    why="Each hand is turned back by k / base^(2i/d). As matrix it is the transpose of the one that goes on by k.",
    wrong=(
        Wrong(
            back_forward,
            "This goes k places ON. (It would also go back if a row stood on its left, row @ matrix; here it "
            "is back @ row.) The minus belongs to the other sine.",
        ),
        Wrong(
            back_interleaved,
            "Right for interleaved rows. In half-split ones the cosine stands d/2 places behind its sine.",
        ),
        Wrong(
            forward_interleaved,
            "This is section 3's matrix: interleaved, and k places on. Yours is for half-split rows, and goes back.",
        ),
        Wrong(
            back_rows_only,
            "The rows of the matrix are in the half-split order here, its columns are interleaved still. Order the "
            "columns too: they meet the numbers of the row that comes in.",
        ),
        Wrong(
            back_columns_only,
            "The columns of the matrix are in the half-split order here, its rows are interleaved still: so is the row "
            "that comes out. Order the rows too.",
        ),
        Wrong(back_one_angle, "All hands turn by the same angle here. Hand i turns by k / base^(2i/d)."),
        Wrong(back_4i, "The exponent is 4i/d here: i counts hands, so it is 2i/d."),
        Wrong(back_one_step, "This goes back one place whatever k is."),
        Wrong(
            back_roll,
            "This moves the numbers of a row to other places. The row of another position has other numbers: turn each "
            "hand.",
        ),
        Wrong(
            back_no_minus,
            "Both sines have the same sign here: that is no rotation. One of the two carries the minus.",
        ),
    ),
    cases=lambda: [(4, 1), (8, 7), (32, 100), (2, 3), (6, 0)],
)

# ---- 12.5 read the position back --------------------------------------------------------------------------------


def positions_of(vectors, n):
    """For each noisy interleaved row (m, d) its position, one of 0 ... n - 1, as a whole number: (m,)."""
    d = vectors.shape[1]
    angles = np.arange(n)[:, None] / 10_000.0 ** (2 * np.arange(d // 2) / d)  # (n, d/2)
    rows = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, d)  # (n, d)
    return (vectors @ rows.T).argmax(axis=1)  # (m,)


def _interleaved(n, d):
    angles = np.arange(n)[:, None] / 10_000.0 ** (2 * np.arange(d // 2) / d)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, d)


def positions_first_hand(vectors, n):
    angle = np.arctan2(vectors[:, 0], vectors[:, 1]) % (2 * np.pi)
    return np.round(angle).astype(int)


def positions_last_hand(vectors, n):
    d = vectors.shape[1]
    angle = np.arctan2(vectors[:, -2], vectors[:, -1])
    return np.round(angle * 10_000.0 ** (1 - 2 / d)).astype(int)


def positions_half_split(vectors, n):
    d = vectors.shape[1]
    angles = np.arange(n)[:, None] / 10_000.0 ** (2 * np.arange(d // 2) / d)
    return (vectors @ np.concatenate([np.sin(angles), np.cos(angles)], axis=1).T).argmax(axis=1)


def positions_wrong_axis(vectors, n):
    return (vectors @ _interleaved(n, vectors.shape[1]).T).argmax(axis=0)


def positions_scores(vectors, n):
    return (vectors @ _interleaved(n, vectors.shape[1]).T).max(axis=1)


def positions_smallest(vectors, n):
    return (vectors @ _interleaved(n, vectors.shape[1]).T).argmin(axis=1)


def positions_from_one(vectors, n):
    return (vectors @ _interleaved(n, vectors.shape[1]).T).argmax(axis=1) + 1


def positions_flat(vectors, n):
    return (vectors @ _interleaved(n, vectors.shape[1]).T).argmax()


def _noisy_cases():
    cases = []
    for seed, m, d, n in ((0, 5, 32, 100), (1, 40, 64, 2_000), (2, 30, 128, 500), (3, 1, 16, 50)):
        rng = np.random.default_rng(seed)
        p = rng.integers(10, n, size=m)
        cases.append((_interleaved(n, d)[p] + 0.02 * rng.standard_normal((m, d)), n))
    return cases


READ_BACK = Exercise(
    id="12.5",
    title="Read the position back",
    minutes=6,
    points=3,
    hints=(
        "No formula has to be turned round: you can build all n rows that it might be.",
        "Compare: the vectors are (m, d), the n rows (n, d), so one matrix product gives scores of shape (m, n).",
        "All rows have the same length, so the highest dot product is also the nearest row. argmax along which axis?",
    ),
    solution=positions_of,
    why="All hands vote. The fast ones alone are ambiguous, the slow ones alone are drowned by a little noise.",
    wrong=(
        Wrong(
            positions_first_hand,
            "This reads hand 0 alone. It comes round every 6.28 positions, so every answer lies between 0 and 6.",
        ),
        Wrong(
            positions_last_hand,
            "This reads the slowest hand alone. It takes thousands of positions to turn by one radian, so a noise of "
            ".02 shifts the answer by dozens of positions.",
        ),
        Wrong(
            positions_half_split,
            "The rows that you compare with are half-split. The vectors are interleaved: sine, cosine, sine, cosine.",
        ),
        Wrong(
            positions_wrong_axis,
            "This says which vector fits each position best. You need the best position of each vector: axis=1.",
        ),
        Wrong(positions_scores, "These are the highest scores. Return where they stand: argmax, not max."),
        Wrong(positions_smallest, "These are the rows that fit worst. More is nearer: argmax."),
        Wrong(positions_from_one, "Each is one too many: positions count from 0."),
        Wrong(positions_flat, "One number for all vectors: argmax needs the axis along which it searches."),
    ),
    cases=_noisy_cases,
)

EXERCISES = (WAVELENGTH, HALF_SPLIT, BATCH, BACK, READ_BACK)
