"""Chapter 09, blind to order."""

import numpy as np

from course_utils.exercises import Exercise, Wrong

# ---- 09.1 a permutation as a matrix -----------------------------------------------------------------------------


def moving_matrix(order):
    """P (n, n) with P @ x == x[order] for each table x of n rows."""
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"{list(order)} doesn't name each of 0 to {len(order) - 1} once")
    return np.eye(len(order))[list(order)]


def moved_back(order):
    return moving_matrix(order).T


def nothing_moved(order):
    return np.eye(len(order))


def one_row_of_numbers(order):
    return np.asarray(order)


def on_a_fixed_table(order):
    return np.arange(len(order) ** 2).reshape(len(order), -1)[list(order)]


def unchecked(order):
    return np.eye(len(order))[list(order)]


MOVE = Exercise(
    id="09.1",
    title="A matrix that moves rows",
    minutes=4,
    points=2,
    hints=(
        "Write it for order = [1, 2, 0] on paper: new row 0 is old row 1. Which numbers in row 0 of P pick just that?",
        "Row i of P has a single 1, in column order[i]. The identity matrix holds all such rows, in the usual order.",
        "Look rows up in np.eye(n). For the check compare sorted(order) with list(range(n)).",
    ),
    solution=moving_matrix,
    why="Row i of P has its 1 in column order[i], so it picks old row order[i]. In this language section 1 says: "
    "attention(P x) = P attention(x).",
    wrong=(
        Wrong(
            moved_back,
            "This is the transposed matrix. It moves the rows BACK: old row i goes to place order[i]. With two swapped "
            "words you wouldn't notice, with [1, 2, 0] you do.",
        ),
        Wrong(nothing_moved, "The identity matrix leaves every row where it was."),
        Wrong(
            one_row_of_numbers, "This is the order itself, n numbers. Asked for is a matrix (n, n) of zeros and ones."
        ),
        Wrong(
            on_a_fixed_table,
            "You have moved the rows of one table of numbers. The matrix that does it for EVERY table holds zeros and "
            "ones.",
        ),
        Wrong(
            unchecked,
            "Right for every true order. But [0, 0, 2] names a row twice and loses another: raise a ValueError.",
        ),
    ),
    cases=lambda: [([1, 2, 0],), ([2, 0, 3, 1],), (np.array([3, 1, 0, 2, 4]),), ([0],), ([4, 0, 1, 2, 3],)],
    refuses=lambda: [([0, 0, 2],), ([1, 2, 3],)],
)

# ---- 09.2 testing a layer ---------------------------------------------------------------------------------------


def blind_to_order(layer, x):
    """Whether permuting the rows of x (n, d), in any way, only permutes the outputs: True or False."""
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(x)) for _ in range(20)]
    for i in range(len(x) - 1):  # and each swap of two neighbours: out of these every order can be made
        swap = np.arange(len(x))
        swap[[i, i + 1]] = i + 1, i
        orders.append(swap)
    return all(np.allclose(layer(x[order]), layer(x)[order]) for order in orders)


def _orders(n):
    rng = np.random.default_rng(1)
    return [rng.permutation(n) for _ in range(12)]


def outputs_must_stay(layer, x):
    return all(np.allclose(layer(x[order]), layer(x)) for order in _orders(len(x)))


def reversed_only(layer, x):
    return bool(np.allclose(layer(x[::-1]), layer(x)[::-1]))


def rotated_only(layer, x):
    return all(np.allclose(layer(np.roll(x, i, axis=0)), np.roll(layer(x), i, axis=0)) for i in range(len(x)))


def first_two_only(layer, x):
    order = [1, 0, *range(2, len(x))]
    return bool(np.allclose(layer(x[order]), layer(x)[order]))


def first_and_last_only(layer, x):
    order = [len(x) - 1, *range(1, len(x) - 1), 0]
    return bool(np.allclose(layer(x[order]), layer(x)[order]))


def one_random_order(layer, x):
    order = np.random.default_rng(0).permutation(len(x))
    return bool(np.allclose(layer(x[order]), layer(x)[order]))


def shift_and_swap(layer, x):
    orders = [np.roll(np.arange(len(x)), 1), [1, 0, *range(2, len(x))]]
    return all(np.allclose(layer(x[order]), layer(x)[order]) for order in orders)


def to_the_last_digit(layer, x):
    return all(np.array_equal(layer(x[order]), layer(x)[order]) for order in _orders(len(x)))


def average_only(layer, x):
    return all(np.allclose(layer(x[order]).mean(axis=0), layer(x).mean(axis=0)) for order in _orders(len(x)))


def always_blind(layer, x):
    return True


def never_blind(layer, x):
    return False


def _looks_at(allowed):
    """Soft averages over the rows that `allowed` (n, n) names for each row."""

    def layer(x):
        scores = np.where(allowed(len(x)), x @ x.T / np.sqrt(x.shape[1]), -np.inf)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True) @ x

    return layer


def _apart(n):
    return np.abs(np.arange(n)[:, None] - np.arange(n))


def _all(n):
    return np.ones((n, n), dtype=bool)


def _causal(n):
    return np.tri(n, dtype=bool)


def _band(n):
    return _apart(n) <= 1


def _ring(n):
    return (_apart(n) <= 1) | (_apart(n) == n - 1)


def _others(n):
    return _apart(n) > 0


def _places_added(x):
    return _looks_at(_all)(x + np.arange(len(x))[:, None] / 3)


def _last_place_marked(x):
    y = _looks_at(_all)(x)
    y[-1] = y[-1] + 1
    return y


def _marked_if_before(one, other):
    """Soft averages, and a mark for all if one word (its row (d,)) stands before another."""

    def layer(x):
        places = [np.isclose(x, word).all(axis=1).argmax() for word in (one, other)]
        return _looks_at(_all)(x) + (places[0] < places[1])

    return layer


def _average_for_all(x):
    return np.repeat(x.mean(axis=0, keepdims=True), len(x), axis=0)


def _reversing(x):
    return x[::-1].copy()


def _layer_cases():
    x = np.random.default_rng(0).standard_normal((6, 4))
    attentions = [_looks_at(allowed) for allowed in (_all, _causal, _ring, _band, _others)]
    layers = [*attentions, _places_added, _last_place_marked, np.tanh, _average_for_all, _reversing]
    # A random order leaves each of these marks with chance 1/2, and notices all five only when it is the reversal.
    layers += [_marked_if_before(x[i], x[i + 1]) for i in range(5)]
    return [*((layer, x) for layer in layers), (_looks_at(_all), x[:4])]


TEST = Exercise(
    id="09.2",
    title="Does it know the order?",
    minutes=6,
    points=3,
    hints=(
        "Run the layer on x and on x[order]. If the layer is blind, how does the second result follow from the first?",
        "layer(x[order]) against layer(x)[order], by np.allclose: sums in another order differ in the last digit.",
        "One order isn't enough: a ring of neighbours survives every rotation, a window survives reversing. Try a "
        "dozen random orders, rng.permutation(len(x)).",
    ),
    solution=blind_to_order,
    why="Blind is: permute, then run, gives what run, then permute does. A layer can pass for some orders and fail for "
    "others, so many have to be tried.",
    wrong=(
        Wrong(always_blind, "You call every layer blind. One of those tried adds places, one has a causal mask."),
        Wrong(never_blind, "You call no layer blind. Attention without a mask is, and so is tanh."),
        Wrong(
            outputs_must_stay,
            "You call even attention without a mask no blind layer. The outputs of a blind layer don't stay where they "
            "are (that would be INVARIANT); they move along with the words, and the same way, without argsort: compare "
            "with layer(x)[order].",
        ),
        Wrong(
            reversed_only,
            "You only turn the text round. A window of neighbours, the same to the left as to the right, survives that "
            "and still knows who stands beside whom.",
        ),
        Wrong(
            rotated_only,
            "You only rotate the text. A layer that looks at its two neighbours in a ring survives every rotation, and "
            "knows the order very well.",
        ),
        Wrong(
            first_two_only,
            "You swap the first two words only. One of the layers marks the LAST place: try more orders.",
        ),
        Wrong(
            first_and_last_only,
            "You swap the first and the last word only. A layer that reverses its text survives that, and so does one "
            "that marks which of two words of the middle stands first.",
        ),
        Wrong(
            one_random_order,
            "You try one order only. A layer that marks whether one word stands before another survives every order "
            "that keeps it so: try a dozen.",
        ),
        Wrong(
            shift_and_swap,
            "You try a shift and a swap. Repeated, they make every order, but then each has to be tried on what the "
            "other has made. From x alone, two words of the middle never change sides: try a dozen random orders.",
        ),
        Wrong(
            to_the_last_digit,
            "You compare to the last digit. A sum in another order differs there, blind or not: np.allclose.",
        ),
        Wrong(
            average_only,
            "You compare averages. Reversing the outputs changes no average, and yet that layer knows the order. "
            "Compare row by row.",
        ),
    ),
    cases=_layer_cases,
)

# ---- 09.3 masks -------------------------------------------------------------------------------------------------


def stays_blind(mask):
    """Whether attention under this mask (n, n) still moves its outputs along with any change of order."""
    itself = np.diag(mask)
    others = mask[~np.eye(len(mask), dtype=bool)]
    return bool((itself == itself[0]).all() and (others == others[0]).all())


def everything_open(mask):
    return bool(mask.all())


def symmetric(mask):
    return bool((mask == mask.T).all())


def same_number_each(mask):
    return len(set(mask.sum(axis=1))) == 1


def symmetric_and_same_number(mask):
    return symmetric(mask) and same_number_each(mask)


def all_or_only_itself(mask):
    return everything_open(mask) or bool((mask == np.eye(len(mask), dtype=bool)).all())


def all_or_only_others(mask):
    return everything_open(mask) or bool((mask == ~np.eye(len(mask), dtype=bool)).all())


def same_number_both_ways(mask):
    return same_number_each(mask) and same_number_each(mask.T)


def same_reversed(mask):
    return bool((mask == mask[::-1, ::-1]).all())


def same_rotated(mask):
    return bool((mask == np.roll(mask, (1, 1), axis=(0, 1))).all())


def not_causal(mask):
    return not (mask == np.tri(len(mask), dtype=bool)).all()


def any_mask_breaks(mask):
    return False


def no_mask_breaks(mask):
    return True


def diagonal_forgotten(mask):
    others = mask[~np.eye(len(mask), dtype=bool)]
    return bool((others == others[0]).all())


def _mask_cases():
    n = 5
    one_closed = np.ones((n, n), dtype=bool)
    one_closed[0, n - 1] = False
    first_not_itself = np.ones((n, n), dtype=bool)
    first_not_itself[0, 0] = False
    first_only = np.zeros((n, n), dtype=bool)
    first_only[:, 0] = True
    next_only = np.roll(np.eye(n, dtype=bool), 1, axis=1)
    two_halves = np.kron(np.eye(2, dtype=bool), np.ones((3, 3), dtype=bool))
    known = [_all(n), _causal(n), np.eye(n, dtype=bool), _others(n), _band(n), _ring(n), _causal(n).T]
    return [(mask,) for mask in (*known, one_closed, first_not_itself, first_only, next_only, two_halves, _others(3))]


MASKS = Exercise(
    id="09.3",
    title="Masks that keep it blind",
    minutes=6,
    points=3,
    hints=(
        "If words change places, what has to be true of the mask so that each still looks at the same words?",
        "Take 'every word may look at all others, not at itself'. Say it without naming a place: is it blind?",
        "Any pair (i, j) can be moved to any other pair. So all pairs of two different places have to be alike, and "
        "all pairs (i, i) have to be alike.",
    ),
    solution=stays_blind,
    why="A rule survives every change of order only if it names no place. Of a pair it can ask one thing: is it a word "
    "with itself, or with another? That leaves three masks that let anybody look: all open, "
    "only itself, only the others.",
    wrong=(
        Wrong(
            everything_open,
            "A mask with nothing closed is blind, but not alone. 'Only itself' names no place either: every word then "
            "gets its own value, wherever it stands.",
        ),
        Wrong(
            symmetric,
            "Symmetric isn't enough. 'Neighbours only' is symmetric, and tells every word who stands beside it.",
        ),
        Wrong(
            same_number_each,
            "That each word sees as many others stops the clock. But in a ring of neighbours each sees three, and "
            "WHICH three depends on the order.",
        ),
        Wrong(
            symmetric_and_same_number,
            "Symmetric, and each word sees as many: a ring of neighbours is that too. Swap two of its words: "
            "others stand beside them now.",
        ),
        Wrong(
            same_number_both_ways,
            "Each word sees as many, and is seen by as many. When each looks at its right neighbour only, both hold, "
            "and the order is all that such a mask knows: row i is open at i + 1, and nowhere else.",
        ),
        Wrong(
            all_or_only_itself,
            "Two of the three. There is one more rule without a place in it: every word looks at all OTHERS.",
        ),
        Wrong(
            all_or_only_others,
            "Two of the three. There is one more rule without a place in it: every word looks at ITSELF alone.",
        ),
        Wrong(
            same_reversed,
            "You try one change of order, the reversal. A window of neighbours survives it and is not blind.",
        ),
        Wrong(
            same_rotated,
            "You try rotations. A ring of neighbours survives all of them, and swapping two words breaks it.",
        ),
        Wrong(not_causal, "The causal mask is not the only one that breaks it: closing a single pair is enough."),
        Wrong(any_mask_breaks, "Some masks leave it blind: with everything open there is no mask at all."),
        Wrong(no_mask_breaks, "The causal mask breaks it: section 1 measured that."),
        Wrong(
            diagonal_forgotten,
            "You look at pairs of different words only. If the first word alone may not look at itself, that marks it.",
        ),
    ),
    cases=_mask_cases,
)

# ---- 09.4 a lopsided test ---------------------------------------------------------------------------------------

SHARE = Exercise(
    id="09.4",
    title="A lopsided test",
    minutes=4,
    points=2,
    hints=(
        "How many of the 200 twin sentences are right? You don't need to know what the encoder says about them.",
        "One of both twins, 100 times. The other 50 sentences have no twins: there the answers count as they are.",
        "Right ones together, divided by all 250.",
    ),
    solution=(100 + 30) / 250,
    why="100 of the 200 twins, whatever it says, and 30 of the 50: 130 of 250. A blind model can be above one half, "
    "but only where the test itself is lopsided: it has learned words, not order.",
    wrong=(
        Wrong(
            (0.5 + 0.6) / 2,
            "That is the average of two shares, .5 and .6. It counts the 50 like the 200: count sentences instead.",
        ),
        Wrong(0.5, "Exactly half holds for the twins alone. The 50 others come without a twin that would be wrong."),
        Wrong((100 + 20) / 250, "NO NEWS is the right answer for all 50, and it gives it 30 times, not 20."),
        Wrong(30 / 50, "That is the share of the 50. The 200 twins count too."),
        Wrong(130, "That is how many are right. Asked for is the share of all 250."),
        Wrong(130 / 200, "You divide by the 200 twins. There are 250 sentences."),
        Wrong(100 / 250, "You have the twins. Of the other 50 some are right as well."),
        Wrong(52, "In per cent, yes. Give the share, a number between 0 and 1."),
    ),
    rtol=1e-6,
)

EXERCISES = (MOVE, TEST, MASKS, SHARE)
