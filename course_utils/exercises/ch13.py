"""Chapter 13, tables that learn their places."""

import numpy as np

from course_utils.exercises import Exercise, Wrong

# ---- 13.1 a clear error -----------------------------------------------------------------------------------------


def position_rows(table, positions):
    """The rows of a table (n, d) for positions (m,): (m, d)."""
    for position in positions:
        if not 0 <= position < len(table):
            raise ValueError(f"position {position}: the table has {len(table)} rows, 0 to {len(table) - 1}")
    return table[positions]


def rows_unchecked(table, positions):
    return table[positions]


def rows_without_negatives(table, positions):
    if max(positions) >= len(table):
        raise ValueError
    return table[positions]


def rows_off_by_one(table, positions):
    if min(positions) < 0 or max(positions) > len(table):
        raise ValueError
    return table[positions]


def rows_clamped(table, positions):
    return table[np.clip(positions, 0, len(table) - 1)]


def rows_wrapped(table, positions):
    return table[np.asarray(positions) % len(table)]


def rows_by_slice(table, positions):
    return table[min(positions) : max(positions) + 1]


def rows_too_strict(table, positions):
    if min(positions) < 0 or max(positions) >= len(table) - 1:
        raise ValueError
    return table[positions]


def _some_rows(seed, n, d, positions):
    return np.random.default_rng(seed).standard_normal((n, d)), np.array(positions)


ROWS = Exercise(
    id="13.1",
    title="A clear error past the end",
    minutes=4,
    points=1,
    hints=(
        "The rows are 0 to len(table) - 1. Which numbers does numpy take besides?",
        "A negative number counts from the end: P[-1] is the last row. So check below as well as above.",
        "For each position: if not 0 <= position < len(table): raise ValueError(...). Then table[positions].",
    ),
    solution=position_rows,
    why="Two comparisons, and nobody searches for a day why the last row turns up at the start of a text.",
    wrong=(
        Wrong(
            rows_unchecked,
            "The rows are right, but the checks are numpy's: past the end it raises an IndexError, and a negative "
            "position it answers silently. Check both sides and raise a ValueError.",
        ),
        Wrong(
            rows_without_negatives,
            "Past the end you raise, but a negative position goes through: numpy counts it from the end of the table.",
        ),
        Wrong(
            rows_off_by_one,
            "Off by one: a table of n rows ends at row n - 1. Position n has no row, so test with >= and not with >.",
        ),
        Wrong(
            rows_clamped,
            "This clamps, as JAX does: places past the end all read the last row, in silence. Raise instead.",
        ),
        Wrong(
            rows_wrapped,
            "The modulo starts again at row 0 after the end: no error, and two places share a row. Raise instead.",
        ),
        Wrong(
            rows_by_slice,
            "A slice takes everything from the smallest to the largest position, in the table's order, and cuts at the "
            "table's end without a word. Use the positions themselves as the index.",
        ),
        Wrong(
            rows_too_strict,
            "Too strict: the last row, len(table) - 1, is a row like any other.",
        ),
    ),
    cases=lambda: [
        _some_rows(0, 8, 3, [0, 3, 5]),
        _some_rows(1, 6, 4, [5, 0, 5, 2]),
        _some_rows(2, 5, 2, [4, 1]),
    ],
    refuses=lambda: [
        _some_rows(3, 8, 3, [0, 8]),
        _some_rows(4, 8, 3, [2, 20]),
        _some_rows(5, 8, 3, [-1, 2]),
        _some_rows(6, 8, 3, [3, -9]),
    ],
)

# ---- 13.2 updates -----------------------------------------------------------------------------------------------


def updates(schedule, n_rows):
    """Steps that reached each row: (n_rows,). schedule: pairs (steps, length of the texts)."""
    counts = np.zeros(n_rows, dtype=int)
    for steps, length in schedule:
        counts[:length] += steps  # a text of that length stands at the places 0 to length - 1
    return counts


def updates_last_row_too(schedule, n_rows):
    counts = np.zeros(n_rows, dtype=int)
    for steps, length in schedule:
        counts[: length + 1] += steps
    return counts


def updates_all_rows(schedule, n_rows):
    return np.full(n_rows, sum(steps for steps, _ in schedule))


def updates_at_the_end(schedule, n_rows):
    counts = np.zeros(n_rows, dtype=int)
    for steps, length in schedule:
        if length <= n_rows:
            counts[length - 1] += steps
    return counts


def updates_overwritten(schedule, n_rows):
    counts = np.zeros(n_rows, dtype=int)
    for steps, length in schedule:
        counts[:length] = steps
    return counts


def updates_as_share(schedule, n_rows):
    return updates(schedule, n_rows) / sum(steps for steps, _ in schedule)


UPDATES = Exercise(
    id="13.2",
    title="Count the updates",
    minutes=5,
    points=2,
    hints=(
        "Start from a row of zeros, one a row of the table, and go through the schedule.",
        "A text of length 128 stands at the places 0 to 127. Each of its steps reaches exactly those rows.",
        "counts[:length] += steps for each pair. A slice past the end of counts does no harm here.",
    ),
    solution=updates,
    why="Early rows are in every text, late rows in long ones only: the tail of a table is its least trained part.",
    wrong=(
        Wrong(updates_last_row_too, "One row too many: a text of length 128 ends at place 127, so row 128 isn't read."),
        Wrong(updates_all_rows, "These are all steps for all rows. A step reaches only rows below its texts' length."),
        Wrong(
            updates_at_the_end,
            "This counts where texts end. A text reaches every row on the way there, from 0 on.",
        ),
        Wrong(
            updates_overwritten,
            "Each part of the schedule overwrites the one before: add the steps (+=), don't set them (=).",
        ),
        Wrong(updates_as_share, "These are shares of all steps. Return the number of steps."),
    ),
    cases=lambda: [
        ([(90_000, 128), (10_000, 512)], 512),
        ([(5, 3), (2, 7), (4, 1)], 10),
        ([(7, 12)], 8),
        ([(300, 4), (20, 2), (1, 6)], 6),
    ],
)

# ---- 13.3 never trained -----------------------------------------------------------------------------------------


def never_trained(before, after):
    """For each row of two tables (n, d): True if no text reached it, else False. (n,)"""
    dots = np.sum(before * after, axis=1)  # (n,)
    cosine = dots / np.linalg.norm(before, axis=1) / np.linalg.norm(after, axis=1)  # (n,)
    return cosine > 0.999


def never_if_equal(before, after):
    return np.all(before == after, axis=1)


def never_if_close(before, after):
    return np.all(np.isclose(before, after, rtol=1e-3), axis=1)


def never_if_shorter(before, after):
    return np.linalg.norm(after, axis=1) <= np.linalg.norm(before, axis=1)


def never_from_the_first(before, after):
    same = never_trained(before, after)
    return np.arange(len(same)) >= (np.argmax(same) if same.any() else len(same))


def trained_rows(before, after):
    return ~never_trained(before, after)


def never_as_places(before, after):
    return np.flatnonzero(never_trained(before, after))


def never_by_cosine_above_zero(before, after):
    dots = np.sum(before * after, axis=1)
    return dots > 0


def _cosine(before, after):
    return np.sum(before * after, axis=1) / np.linalg.norm(before, axis=1) / np.linalg.norm(after, axis=1)


def never_by_half(before, after):
    return _cosine(before, after) > 0.5


def never_by_line(before, after):
    return np.abs(_cosine(before, after)) > 0.999


def never_by_one_factor(before, after):
    factor = np.median(np.linalg.norm(after, axis=1) / np.linalg.norm(before, axis=1))
    return np.all(np.isclose(after, before * factor, rtol=0.01, atol=1e-4), axis=1)


def _trained_table(seed, n, d, untrained, shrink, turned=()):
    """A table before and after, as 16-bit numbers hold it: untrained rows shrink, others move too, some turn round."""
    rng = np.random.default_rng(seed)
    before = rng.normal(0, 0.02, size=(n, d))
    moves = rng.normal(0, 1, size=(n, d)) * rng.choice([0.02, 0.05, 0.1], size=(n, 1))
    moves[untrained] = 0
    turn = np.where(np.isin(np.arange(n), turned), -1, 1)[:, None]
    moves[list(turned)] = 0
    after = (before * shrink * turn + moves).astype(np.float16).astype(float)
    return before, after


NEVER = Exercise(
    id="13.3",
    title="Which rows were never trained",
    minutes=7,
    points=3,
    hints=(
        "The decay multiplies a whole row by one factor. What about a row does that leave as it was?",
        "Its direction. Compare the direction of each row with its own direction before, by the cosine.",
        "sum(before * after, axis=1) divided by both lengths, larger than .999. 16-bit numbers cost less than .0001.",
    ),
    solution=never_trained,
    why="A factor changes the length and leaves the direction. Only a gradient can turn a row.",
    wrong=(
        Wrong(
            never_if_equal,
            "This finds no untrained row in any trial. Equal numbers are not to be had: the decay shrinks untrained "
            "rows too, and storing has rounded them. Nor does a factor read off the whole table help: trained rows "
            "have a say in it. Compare each row with its own start.",
        ),
        Wrong(
            never_if_close,
            "This asks for nearly equal numbers. The decay has shrunk untrained rows by a factor that you don't know.",
        ),
        Wrong(
            never_if_shorter,
            "A shorter row may well have been trained, and without decay an untrained one keeps its length. Look at "
            "what a factor can't change.",
        ),
        Wrong(
            never_from_the_first,
            "This takes everything after the first untrained row. Untrained rows may stand anywhere, also at the "
            "start: test each by itself.",
        ),
        Wrong(trained_rows, "The other way round: True is for rows that were NOT trained."),
        Wrong(never_as_places, "These are the places of untrained rows. Return True or False for every row: (n,)."),
        Wrong(
            never_by_cosine_above_zero,
            "This asks only for a positive dot product. Many trained rows have one too: an untrained row points "
            "EXACTLY where it did.",
        ),
        Wrong(
            never_by_half,
            "The right idea, but too generous: a trained row may have kept part of its direction. Ask for a cosine of "
            "nearly 1; rounding costs less than .0001.",
        ),
        Wrong(
            never_by_line,
            "A cosine of -1 counts as untrained here. No factor of a decay turns a row round: leave out the abs.",
        ),
        Wrong(
            never_by_one_factor,
            "This takes one factor from the whole table. Trained rows have a say in that, and where they are the "
            "majority it is wrong. Compare each row with its own start: what of it does a factor leave as it was?",
        ),
    ),
    cases=lambda: [
        _trained_table(0, 24, 16, [0, 1, 20, 21, 22, 23], 0.835),
        _trained_table(1, 40, 32, [*range(25, 40)], 0.6),
        _trained_table(2, 12, 64, [3], 1.0),
        _trained_table(3, 10, 48, [], 0.9),
        _trained_table(4, 20, 24, [*range(4, 20)], 0.7),
        _trained_table(5, 16, 32, [0, 5, 6], 0.9, turned=[2, 9]),
    ],
)

# ---- 13.4 stretch -----------------------------------------------------------------------------------------------


def stretch(table, rows):
    """A table (n, d) drawn out to `rows` rows: (rows, d), rows 2 or more."""
    places = np.linspace(0, len(table) - 1, rows)  # (rows,): where each new row lies among the old ones
    below = np.minimum(places.astype(int), len(table) - 2)  # (rows,)
    near = (places - below)[:, None]  # (rows, 1): 0 at the row below, 1 at the next
    return (1 - near) * table[below] + near * table[below + 1]


def stretch_by_repeating(table, rows):
    return table[np.round(np.linspace(0, len(table) - 1, rows)).astype(int)]


def stretch_floor(table, rows):
    return table[np.arange(rows) * len(table) // rows]


def stretch_past_the_end(table, rows):
    places = np.arange(rows) * len(table) / rows
    return np.stack([np.interp(places, np.arange(len(table)), column) for column in table.T], axis=1)


def stretch_beyond_the_end(table, rows):
    places = np.arange(rows) * len(table) / rows
    below = np.minimum(places.astype(int), len(table) - 2)
    near = (places - below)[:, None]
    return (1 - near) * table[below] + near * table[below + 1]


def stretch_without_a_next_row(table, rows):
    places = np.linspace(0, len(table) - 1, rows)
    below = places.astype(int)
    near = (places - below)[:, None]
    return (1 - near) * table[below] + near * table[below + 1]


def stretch_swapped(table, rows):
    places = np.linspace(0, len(table) - 1, rows)
    below = np.minimum(places.astype(int), len(table) - 2)
    near = (places - below)[:, None]
    return near * table[below] + (1 - near) * table[below + 1]


def stretch_sideways(table, rows):
    places = np.linspace(0, table.shape[1] - 1, rows)
    return np.stack([np.interp(places, np.arange(table.shape[1]), row) for row in table])


def stretch_tiled(table, rows):
    return table[np.arange(rows) % len(table)]


def stretch_padded(table, rows):
    return table[np.minimum(np.arange(rows), len(table) - 1)]


STRETCH = Exercise(
    id="13.4",
    title="Stretch a table",
    minutes=7,
    points=3,
    hints=(
        "First find, for each new row, where it lies among the old ones: a number from 0 to n - 1, rarely a whole one.",
        "np.linspace(0, n - 1, rows) gives those numbers. The old row below is its whole part, the next is one more.",
        "(1 - near) * table[below] + near * table[below + 1]. Keep below at n - 2 at most: the next row has to exist.",
    ),
    solution=stretch,
    why="Position interpolation (chapter 17) is the same idea: squeeze new places in between trained ones.",
    wrong=(
        Wrong(
            stretch_by_repeating,
            "This takes the nearest old row, so several places share one. A row in between is a mixture of both "
            "neighbours.",
        ),
        Wrong(
            stretch_floor,
            "This repeats old rows, and never mixes two. A row in between is a mixture of both neighbours.",
        ),
        Wrong(
            stretch_past_the_end,
            "The steps are n / rows wide, so the last row isn't reached at the right place. n rows have n - 1 gaps: "
            "the last new row has to lie at n - 1.",
        ),
        Wrong(
            stretch_beyond_the_end,
            "The steps are n / rows wide, so the last old row does not stay last. n rows have n - 1 gaps and the new "
            "table has rows - 1: the steps are (n - 1) / (rows - 1) wide.",
        ),
        Wrong(
            stretch_without_a_next_row,
            "IndexError: a new row that lies at n - 1 or later has no old row after it. The last new row has to lie at "
            "n - 1 exactly, and there `below` may be n - 2 at most, with all the weight on the row after it.",
        ),
        Wrong(
            stretch_swapped,
            "The two weights are swapped: a quarter of the way from row 3 to row 4 is ¾ of row 3 and ¼ of row 4.",
        ),
        Wrong(
            stretch_sideways,
            "This stretches each row's numbers, along d. Stretch along the places: axis 0.",
        ),
        Wrong(
            stretch_tiled,
            "This starts again at row 0 after the end. Draw the table out, so that the last old row comes last.",
        ),
        Wrong(
            stretch_padded,
            "This repeats the last row past the end: a clamp. Draw the table out over all new places.",
        ),
    ),
    cases=lambda: [
        (np.random.default_rng(0).standard_normal((4, 3)), 7),
        (np.random.default_rng(1).standard_normal((64, 8)), 128),
        (np.random.default_rng(2).standard_normal((5, 2)), 12),
        (np.random.default_rng(3).standard_normal((2, 3)), 5),
    ],
)

EXERCISES = (ROWS, UPDATES, NEVER, STRETCH)
