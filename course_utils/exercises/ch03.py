"""Chapter 03, gather, not one-hot."""

import numpy as np

from course_utils.exercises import Exercise, Wrong

# ---- 03.1 three ways --------------------------------------------------------------------------------------------


def three_ways(table, ids):
    """The rows of table (V, d) for ids (n,): by indexing, by np.take, by one-hot product. Three arrays (n, d)."""
    one_hot = np.zeros((len(ids), len(table)))  # (n, V)
    one_hot[np.arange(len(ids)), ids] = 1
    return table[ids], np.take(table, ids, axis=0), one_hot @ table


def take_without_axis(table, ids):
    one_hot = np.zeros((len(ids), len(table)))
    one_hot[np.arange(len(ids)), ids] = 1
    return table[ids], np.take(table, ids), one_hot @ table


def ones_in_every_row(table, ids):
    one_hot = np.zeros((len(ids), len(table)))
    one_hot[:, ids] = 1
    return table[ids], np.take(table, ids, axis=0), one_hot @ table


def one_hot_on_its_side(table, ids):
    one_hot = np.zeros((len(table), len(ids)))
    one_hot[ids, np.arange(len(ids))] = 1
    return table[ids], np.take(table, ids, axis=0), table.T @ one_hot


def columns(table, ids):
    ids = ids % table.shape[1]
    one_hot = np.eye(table.shape[1])[:, ids]
    return table[:, ids], np.take(table, ids, axis=1), table @ one_hot


def _three_cases():
    cases = []
    for seed, V, d, n in ((0, 7, 3, 4), (1, 40, 16, 25), (2, 5, 5, 1)):
        rng = np.random.default_rng(seed)
        cases.append((rng.standard_normal((V, d)), rng.permutation(np.arange(n) % (V - 2))))
    return cases


THREE = Exercise(
    id="03.1",
    title="Three ways to a row",
    minutes=5,
    points=1,
    hints=(
        "The first is what the chapter prints before its warm-up, E[ids]. The second takes the table, the ids, and the "
        "axis along which they count.",
        "For the third start from np.zeros((len(ids), len(table))), and put one 1 into each of its rows.",
        "one_hot[np.arange(len(ids)), ids] = 1 pairs row 0 with ids[0], row 1 with ids[1]. Then one_hot @ table.",
    ),
    solution=three_ways,
    why="All three are the same rows to the last digit. The first two copy n rows; the third multiplies by V - 1 zeros "
    "for each. (The check looks at the rows, so it can't tell by which way you got them.)",
    wrong=(
        Wrong(
            take_without_axis,
            "np.take without axis=0 counts through the flattened table: it gives single numbers, not rows.",
        ),
        Wrong(
            ones_in_every_row,
            "one_hot[:, ids] = 1 sets the columns of ALL ids in EVERY row, so each token gets the sum of the rows of "
            "all the ids. Pair each row with its own id: one_hot[np.arange(len(ids)), ids].",
        ),
        Wrong(
            one_hot_on_its_side,
            "The third result is on its side, (d, n): the one-hot has one row a token, (n, V), and stands on the left.",
        ),
        Wrong(
            columns,
            "This picks columns of the table. An id is the number of a row: the first axis.",
        ),
    ),
    cases=_three_cases,
)

# ---- 03.2 a lookup that refuses ---------------------------------------------------------------------------------


def lookup(table, ids):
    """The rows of table (V, d) for an array of ids of any shape (...): (..., d). ValueError for what is no id."""
    ids = np.asarray(ids)
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"ids are of type {ids.dtype}: an id is a whole number of an integer type")
    if ids.size and not 0 <= ids.min() <= ids.max() < len(table):
        raise ValueError(f"ids run from {ids.min()} to {ids.max()}: the table has rows 0 to {len(table) - 1}")
    return table[ids]


def lookup_unchecked(table, ids):
    return table[ids]


def lookup_cast(table, ids):
    ids = np.asarray(ids).astype(int)
    if ids.size and (ids.min() < 0 or ids.max() >= len(table)):
        raise ValueError
    return table[ids]


def lookup_no_lower_bound(table, ids):
    ids = np.asarray(ids)
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError
    if ids.size and ids.max() >= len(table):
        raise ValueError
    return table[ids]


def lookup_int64_only(table, ids):
    ids = np.asarray(ids)
    if ids.dtype != np.int64 or (ids.size and not 0 <= ids.min() <= ids.max() < len(table)):
        raise ValueError
    return table[ids]


def lookup_python_ints_only(table, ids):
    ids = np.asarray(ids)
    if not all(isinstance(i, int) and 0 <= i < len(table) for i in ids.ravel()):
        raise ValueError
    return table[ids]


def lookup_refuses_float64_only(table, ids):
    ids = np.asarray(ids)
    if ids.dtype == float or (ids.size and not 0 <= ids.min() <= ids.max() < len(table)):
        raise ValueError
    return table[ids.astype(int)]


def lookup_clipped(table, ids):
    return table[np.clip(np.asarray(ids).astype(int), 0, len(table) - 1)]


def lookup_last_row_refused(table, ids):
    ids = np.asarray(ids)
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError
    if ids.size and not 0 <= ids.min() <= ids.max() < len(table) - 1:
        raise ValueError
    return table[ids]


def _lookup_cases():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((9, 4))
    return [
        (table, np.array([8, 0, 3, 0])),
        (table, rng.integers(9, size=(2, 3, 5))),
        (table, np.array(7)),
        (table, np.array([], dtype=int)),
        (table, np.array([1, 2], dtype=np.uint8)),
    ]


def _no_ids():
    table = np.random.default_rng(1).standard_normal((9, 4))
    bad = [np.array(ids) for ids in ([0, -1], [0, 9], [-9, 3], [0.0, 1.0], [2.7])]
    return [(table, ids) for ids in (*bad, np.array([0, 1], dtype=np.float32))]


LOOKUP = Exercise(
    id="03.2",
    title="A gather that says no",
    minutes=7,
    points=2,
    hints=(
        "Two checks, then the plain table[ids]. Look at the ids' type first: ids.dtype.",
        "np.issubdtype(ids.dtype, np.integer) is True for int64, int32, uint8 and their like, False for floats.",
        "One smallest and one largest id decide for all: ids.min() and ids.max(). An empty array has neither, so ask "
        "ids.size before.",
    ),
    solution=lookup,
    why="numpy counts negative numbers from the end, so a wrong id comes back as a plausible row; nn.Embedding "
    "refuses it (a torch tensor indexed by -1 counts from the end as numpy does). A check costs "
    "two passes over the ids, which is nothing beside the rows.",
    wrong=(
        Wrong(
            lookup_unchecked,
            "Plain indexing: -1 gives the last row without a word, and what it does refuse ends in an IndexError.",
        ),
        Wrong(
            lookup_cast,
            "astype(int) turns 2.7 into 2 without a word: look at the dtype instead of changing it.",
        ),
        Wrong(
            lookup_no_lower_bound,
            "The upper end is checked, the lower isn't: -1 still gives the last row.",
        ),
        Wrong(
            lookup_python_ints_only,
            "isinstance(i, int) is False for numpy's own integers, so this refuses good ids. Ask the array: ids.dtype.",
        ),
        Wrong(
            lookup_int64_only,
            "This refuses good ids of another integer type: int32 and uint8 hold whole numbers as int64 does.",
        ),
        Wrong(
            lookup_refuses_float64_only,
            "float64 is refused, but other types that are no integers, such as float32, get through.",
        ),
        Wrong(
            lookup_clipped,
            "Clipping gives SOME row for every id: a wrong id then looks like a right one. Raise instead.",
        ),
        Wrong(
            lookup_last_row_refused,
            "One off: the last row has the id V - 1 and is a good id.",
        ),
    ),
    cases=_lookup_cases,
    refuses=_no_ids,
)

# ---- 03.3 what fits ---------------------------------------------------------------------------------------------

FITS = Exercise(
    id="03.3",
    title="The largest one-hot that fits",
    minutes=4,
    points=2,
    hints=(
        "How many numbers does the one-hot of a single token have? How many bytes is that?",
        "The type is the trap: section 5 printed what torch's one_hot gives, and how many bytes a number of it takes.",
        "Divide the bytes that are free by the bytes of one token, and keep the whole part: // does both.",
    ),
    solution=1953,
    why="128,000 numbers of 8 bytes are 1.024 MB a token. Converting to float32 for the product takes another 512,000 "
    "bytes a token on top while both are there.",
    wrong=(
        Wrong(3906, "That is for float32, 4 bytes a number. torch's one_hot gives int64: 8 bytes."),
        Wrong(2097, "That is for 2**31 bytes, which is 2 GiB. 2 GB are 2 x 10**9 bytes, 7% less."),
        Wrong(250_000_000, "That is how many int64 NUMBERS fit. One token alone takes V of them."),
        Wrong(15_625, "That is 1 byte a number. An int64 takes 8."),
        Wrong(1953.125, "A token fits or doesn't: the whole part, by // instead of /."),
        Wrong(1954, "Rounded up: 1,954 tokens take 2.0009 GB."),
        Wrong(1302, "That leaves room for a float32 copy too, as the product needs. Asked is one_hot's result alone."),
    ),
)

# ---- 03.4 the gradient ------------------------------------------------------------------------------------------


def table_gradient(ids, grad, V):
    """The gradient (V, d) of a table of V rows, from the gradients grad (n, d) of the rows of ids (n,)."""
    gradient = np.zeros((V, grad.shape[1]))
    np.add.at(gradient, ids, grad)  # unlike gradient[ids] += grad, adds once for each time that an id occurs
    return gradient


def gradient_overwritten(ids, grad, V):
    gradient = np.zeros((V, grad.shape[1]))
    gradient[ids] += grad
    return gradient


def gradient_mean(ids, grad, V):
    gradient = np.zeros((V, grad.shape[1]))
    np.add.at(gradient, ids, grad)
    return gradient / np.maximum(np.bincount(ids, minlength=V), 1)[:, None]


def gradient_over_n(ids, grad, V):
    gradient = np.zeros((V, grad.shape[1]))
    np.add.at(gradient, ids, grad)
    return gradient / len(ids)


def gradient_of_used_rows(ids, grad, V):
    used, place = np.unique(ids, return_inverse=True)
    gradient = np.zeros((len(used), grad.shape[1]))
    np.add.at(gradient, place, grad)
    return gradient


def gradient_by_token(ids, grad, V):
    return grad


def _gradient_cases():
    cases = []
    for seed, V, d, n in ((0, 6, 2, 9), (1, 50, 8, 30), (2, 4, 3, 200)):
        rng = np.random.default_rng(seed)
        ids = rng.integers(V - 1, size=n)
        ids[-1] = ids[0]  # one id at least occurs twice
        cases.append((ids, rng.standard_normal((n, d)), V))
    return cases


GRADIENT = Exercise(
    id="03.4",
    title="The way back",
    minutes=8,
    points=3,
    hints=(
        "Start from zeros of the table's shape, V rows as wide as grad.",
        "gradient[ids] += grad reads all rows, adds, writes all back: of an id that occurs twice one addition is lost.",
        "numpy's functions for element-wise work, such as np.add, have a method at(array, places, values), which "
        "repeats where a place repeats.",
    ),
    solution=table_gradient,
    why="Forward, a gather copies rows; backward, its mirror image adds into them, which is called scatter-add. The "
    "one-hot of section 4, turned, gives the same and passes too; it costs V numbers a token.",
    wrong=(
        Wrong(
            gradient_overwritten,
            "gradient[ids] += grad (or = grad) keeps only the LAST gradient of an id that occurs more than once. It is "
            "a read, one addition and a write, not one addition for each token.",
        ),
        Wrong(
            gradient_mean,
            "This is the mean over a row's tokens. Each of them changes the loss on its own account: sum (section 4).",
        ),
        Wrong(
            gradient_over_n,
            "This divides by the number of tokens. If the loss is a mean, grad has that factor in it already.",
        ),
        Wrong(
            gradient_of_used_rows,
            "The right sums, for the rows in use only, and without saying which they are. The table's gradient has a "
            "row for each of the V ids, zeros included.",
        ),
        Wrong(
            gradient_by_token,
            "That is one gradient a token, (n, d). The table has V rows, and tokens with one id share a row.",
        ),
    ),
    cases=_gradient_cases,
)

EXERCISES = (THREE, LOOKUP, FITS, GRADIENT)
