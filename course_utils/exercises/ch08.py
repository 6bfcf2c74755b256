"""Chapter 08, attention by hand."""

import numpy as np

from course_utils.exercises import Exercise, Wrong

# ---- 08.1 attention ---------------------------------------------------------------------------------------------


def my_attention(q, k, v, mask):
    """What each query gets: (n, d_v). Don't call the chapter's functions."""
    scores = q @ k.T / np.sqrt(q.shape[-1])  # (n, m)
    scores = np.where(mask, scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)  # each row adds up to 1
    return weights @ v  # (n, d_v)


def _shares(scores, axis=-1):
    e = np.exp(scores - np.nanmax(scores, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def over_queries(q, k, v, mask):
    return _shares(np.where(mask, q @ k.T / np.sqrt(q.shape[-1]), -np.inf), axis=0) @ v


def not_divided(q, k, v, mask):
    return _shares(np.where(mask, q @ k.T, -np.inf)) @ v


def divided_by_d(q, k, v, mask):
    return _shares(np.where(mask, q @ k.T / q.shape[-1], -np.inf)) @ v


def divided_by_keys(q, k, v, mask):
    return _shares(np.where(mask, q @ k.T / np.sqrt(k.shape[0]), -np.inf)) @ v


def divided_by_values(q, k, v, mask):
    return _shares(np.where(mask, q @ k.T / np.sqrt(v.shape[-1]), -np.inf)) @ v


def masked_after(q, k, v, mask):
    return (_shares(q @ k.T / np.sqrt(q.shape[-1])) * mask) @ v


def masked_with_zeros(q, k, v, mask):
    return _shares(np.where(mask, q @ k.T / np.sqrt(q.shape[-1]), 0)) @ v


def mask_upside_down(q, k, v, mask):
    return _shares(np.where(mask, -np.inf, q @ k.T / np.sqrt(q.shape[-1]))) @ v


def mask_ignored(q, k, v, mask):
    return _shares(q @ k.T / np.sqrt(q.shape[-1])) @ v


def weights_only(q, k, v, mask):
    return _shares(np.where(mask, q @ k.T / np.sqrt(q.shape[-1]), -np.inf))


def _attention_cases():
    cases = []
    for seed, (n, m, d, d_v) in enumerate(((4, 4, 8, 3), (3, 6, 2, 2), (5, 5, 64, 4))):
        rng = np.random.default_rng(seed)
        q, k, v = rng.standard_normal((n, d)), rng.standard_normal((m, d)), rng.standard_normal((m, d_v))
        cases.append((q, k, v, np.tri(n, m, m - n, dtype=bool)))
    return cases


ATTENTION = Exercise(
    id="08.1",
    title="Attention in numpy",
    minutes=6,
    points=3,
    hints=(
        "Three lines: all scores at once as one matrix product; shares by exp and division; shares @ v.",
        "d is the last number of q's shape. Where the mask is False, put -np.inf into the scores, with np.where.",
        "Divide by the total along the keys: axis=-1, with keepdims=True, so that (n, m) / (n, 1) works row by row.",
    ),
    solution=my_attention,
    why="Each query has one unit of attention, divided among the keys that it may look at.",
    wrong=(
        Wrong(
            over_queries,
            "Your softmax runs over the wrong axis: it divides each KEY among the queries. A query's shares, one row, "
            "have to add up to 1: axis=-1.",
        ),
        Wrong(not_divided, "The division by √d is missing. Your shares are harder than they should be."),
        Wrong(divided_by_d, "You divide by d. The spread of a dot product grows like √d, so divide by np.sqrt(d)."),
        Wrong(
            divided_by_keys,
            "You divide by the root of the number of keys. It is d, the number of products in each score, whose root "
            "you need: q.shape[-1].",
        ),
        Wrong(
            divided_by_values,
            "You divide by the root of the values' width. A score never meets a value: d is the width of q and k.",
        ),
        Wrong(
            masked_after,
            "You mask after the softmax: the forbidden scores have already taken their share of the total, so the rest "
            "adds up to less than 1. Put -np.inf into the scores before.",
        ),
        Wrong(
            masked_with_zeros,
            "A score of 0 is no ban: e to the power of 0 is 1, often more than the others get. It takes -np.inf.",
        ),
        Wrong(mask_upside_down, "Your mask is upside down: here True means that the query MAY look."),
        Wrong(mask_ignored, "The mask is not used: every query looks at every key."),
        Wrong(weights_only, "These are the weights (n, m). One step is left: mix the values with them, weights @ v."),
    ),
    cases=_attention_cases,
)

# ---- 08.2 heads -------------------------------------------------------------------------------------------------


def to_heads(x, heads):
    """(n, d) -> (heads, n, d/heads): piece h of every word in table h."""
    n, d = x.shape
    if d % heads:
        raise ValueError(f"d = {d} is not a multiple of heads = {heads}")
    return x.reshape(n, heads, d // heads).swapaxes(0, 1)


def reshaped_at_once(x, heads):
    n, d = x.shape
    if d % heads:
        raise ValueError("no multiple")
    return x.reshape(heads, n, d // heads)


def heads_in_the_middle(x, heads):
    n, d = x.shape
    if d % heads:
        raise ValueError("no multiple")
    return x.reshape(n, heads, d // heads)


def every_hth_number(x, heads):
    n, d = x.shape
    if d % heads:
        raise ValueError("no multiple")
    return np.stack([x[:, h::heads] for h in range(heads)])


def rest_dropped(x, heads):
    piece = x.shape[1] // heads
    return np.stack([x[:, h * piece : (h + 1) * piece] for h in range(heads)])


def _heads_cases():
    rng = np.random.default_rng(0)
    return [(rng.standard_normal((n, d)), heads) for n, d, heads in ((3, 8, 2), (5, 12, 4), (2, 6, 3), (4, 8, 1))]


HEADS = Exercise(
    id="08.2",
    title="Into heads",
    minutes=5,
    points=2,
    hints=(
        "Two steps: first cut the last axis in two axes (which piece, which number in it), then bring an axis forward.",
        "x.reshape(n, heads, d // heads) keeps every word's numbers together. Which axis is the head now?",
        "swapaxes(0, 1) exchanges words and heads. numpy's reshape itself raises the ValueError, if d // heads times "
        "heads isn't d.",
    ),
    solution=to_heads,
    why="reshape keeps the order of reading and only sets new borders. The heads' numbers don't follow each other in "
    "that order, so it has to change: that is swapaxes. (numpy moves nothing for it, it reads in other steps.)",
    wrong=(
        Wrong(
            reshaped_at_once,
            "The shape is right, the numbers aren't: reshape fills head 0 with the first WORDS. Cut the last axis "
            "first, then swap the axes.",
        ),
        Wrong(
            heads_in_the_middle, "Nearly: this is (n, heads, d/heads). Bring the heads in front with swapaxes(0, 1)."
        ),
        Wrong(
            every_hth_number,
            "Your head takes every heads-th number, not a run of neighbours. A piece is the first d/heads numbers, the "
            "next, and so on.",
        ),
        Wrong(
            rest_dropped,
            "Right where d divides, but else you drop the rest of each row in silence: raise a ValueError.",
        ),
    ),
    cases=_heads_cases,
    refuses=lambda: [(np.ones((2, 6)), 4), (np.ones((3, 5)), 2)],
)

# ---- 08.3 a causal mask with a window ---------------------------------------------------------------------------


def may_look(n, window):
    """(n, n): row i says which keys query i may look at."""
    back = np.arange(n)[:, None] - np.arange(n)  # (n, n): how many places key j stands before query i
    return (back >= 0) & (back <= window)


def _back(n):
    return np.arange(n)[:, None] - np.arange(n)


def causal_only(n, window):
    return np.tri(n, dtype=bool)


def both_sides(n, window):
    return np.abs(_back(n)) <= window


def itself_counted(n, window):
    return (_back(n) >= 0) & (_back(n) < window)


def one_too_many(n, window):
    return (_back(n) >= 0) & (_back(n) <= window + 1)


def strictly_lower(n, window):
    return (_back(n) > 0) & (_back(n) <= window)


def upper(n, window):
    return may_look(n, window).T


def beyond_the_window(n, window):
    return _back(n) >= window


def forbidden(n, window):
    return ~may_look(n, window)


def added(n, window):
    return np.where(may_look(n, window), 0, -np.inf)


MASK = Exercise(
    id="08.3",
    title="A short memory",
    minutes=4,
    points=2,
    hints=(
        "Write the rows for n = 4 and window = 1 on paper: one True, then two in each row. Where do they stand?",
        "How far back is key j from query i? i - j places: 0 is the word itself, a negative number comes later.",
        "np.arange(n)[:, None] - np.arange(n) holds all i - j at once. Two comparisons, joined by &.",
    ),
    solution=may_look,
    why="i - j has to be between 0 and window. The lower bound is the causal mask; the diagonal has to be in, or the "
    "first word has nothing.",
    wrong=(
        Wrong(causal_only, "Causal, but without an end: a word may look at most `window` places back."),
        Wrong(both_sides, "Your window opens to both sides. It has to be causal: nobody sees what comes later."),
        Wrong(
            itself_counted,
            "One too few: you count the word itself as one of the window. It may look at itself AND `window` places "
            "back.",
        ),
        Wrong(one_too_many, "One too many: your words look window + 1 places back."),
        Wrong(strictly_lower, "The diagonal is missing: the first word may look nowhere, and its output becomes NaN."),
        Wrong(upper, "Mirrored: each word sees itself and what comes AFTER it. Rows are queries, columns keys."),
        Wrong(beyond_the_window, "You leave open what lies beyond the window, and close what lies in it."),
        Wrong(forbidden, "These are the forbidden places, as torch's MultiheadAttention wants them. Turn them round."),
        Wrong(added, "This is the mask to ADD to scores, 0 and -∞. Asked for is True and False."),
    ),
    cases=lambda: [(5, 2), (1, 3), (6, 0), (4, 9), (9, 4)],
    fresh=lambda rng: [(int(n), int(n // 3)) for n in rng.integers(10, 40, size=4)],
)

# ---- 08.4 a layer that cheats -----------------------------------------------------------------------------------


def sees_later(layer, x):
    """Whether an output of layer(x) depends on a later row of x (n, d): True or False."""
    before = layer(x)
    for t in range(1, len(x)):
        y = x.copy()
        y[t:] = y[t:] + np.random.default_rng(t).standard_normal(y[t:].shape)  # other words from place t on
        if not np.allclose(layer(y)[:t], before[:t]):
            return True
    return False


def compares_everything(layer, x):
    y = x.copy()
    y[-1] = y[-1] + 1.5
    return not np.allclose(layer(y), layer(x))


def changes_the_first(layer, x):
    y = x.copy()
    y[0] = y[0] + 1.5
    return not np.allclose(layer(y)[1:], layer(x)[1:])


def last_word_only(layer, x):
    y = x.copy()
    y[-1] = y[-1] + np.random.default_rng(0).standard_normal(y[-1].shape)
    return not np.allclose(layer(y)[:-1], layer(x)[:-1])


def first_output_only(layer, x):
    y = x.copy()
    y[1:] = y[1:] + np.random.default_rng(0).standard_normal(y[1:].shape)
    return not np.allclose(layer(y)[0], layer(x)[0])


def always_a_cheat(layer, x):
    return True


def never_a_cheat(layer, x):
    return False


def changes_pile_up(layer, x):
    before = layer(x)
    for t in range(1, len(x)):
        x[t:] = x[t:] + np.random.default_rng(t).standard_normal(x[t:].shape)
        if not np.allclose(layer(x)[:t], before[:t]):
            return True
    return False


def _looks_at(allowed):
    """A layer that averages over the rows that `allowed` (n, n) names, softly; a text may be cut down to nothing."""

    def layer(x):
        if not len(x):
            return x
        scores = np.where(allowed(len(x)), x @ x.T / np.sqrt(x.shape[1]), -np.inf)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True) @ x

    return layer


def _causal(n):
    return np.tri(n, dtype=bool)


def _all(n):
    return np.ones((n, n), dtype=bool)


def _early_leak(n):
    allowed = np.tri(n, dtype=bool)
    if n > 2:
        allowed[1, 2] = True
    return allowed


def _late_leak(n):
    allowed = np.tri(n, dtype=bool)
    if n > 1:
        allowed[-2, -1] = True
    return allowed


def _per_word(x):
    return np.tanh(x)


def _centred_over_words(x):
    return x - x.mean(axis=0) if len(x) else x


def _same_for_all(x):
    return np.ones_like(x)


def _layer_cases():
    x = np.random.default_rng(0).standard_normal((6, 4))
    attentions = [_looks_at(allowed) for allowed in (_all, _causal, _early_leak, _late_leak)]
    layers = [(layer, x) for layer in (*attentions, _per_word, _centred_over_words, _same_for_all)]
    return [*layers, (_looks_at(_causal), x[:2])]


CHEAT = Exercise(
    id="08.4",
    title="Catch a layer that cheats",
    minutes=7,
    points=3,
    hints=(
        "Run the layer twice: on x, and on a copy in which some words are different. Which outputs must not move?",
        "If you change the words from place t on, the outputs before t have to stay. np.allclose compares.",
        "Do it for every t from 1 to n - 1. A leak from place 2 to place 1 doesn't show when only the last word moves.",
    ),
    solution=sees_later,
    why="Change the future, watch the past: a test that needs no look inside. (Cutting the future off is another.) It "
    "catches masks that are off by one, and averages over a whole text.",
    wrong=(
        Wrong(
            always_a_cheat, "You call an honest layer a cheat: among the layers tried are some that never look ahead."
        ),
        Wrong(never_a_cheat, "You let every cheat through: an average over the whole text is one."),
        Wrong(
            changes_pile_up,
            "Your changes pile up: start from a fresh copy each time. Else an earlier change is still there, and the "
            "outputs before t move in an honest layer too.",
        ),
        Wrong(
            compares_everything,
            "You compare all outputs. The changed word's own output moves in every layer, causal or not: compare only "
            "the outputs BEFORE it.",
        ),
        Wrong(
            changes_the_first,
            "You change an early word and watch later ones. They are allowed to notice: that is what attention is for. "
            "Turn it round.",
        ),
        Wrong(
            last_word_only,
            "Right idea, but you change the last word only. A layer whose place 1 peeks at place 2 gets away with it: "
            "try every place.",
        ),
        Wrong(
            first_output_only,
            "You watch the first output only. A leak may begin further on: compare all outputs before the change, for "
            "every place of the change.",
        ),
    ),
    cases=_layer_cases,
)

# ---- 08.5 counting ----------------------------------------------------------------------------------------------

COUNT = Exercise(
    id="08.5",
    title="What a short memory costs",
    minutes=3,
    points=2,
    hints=(
        "How many keys does word 500 see? And word 0, 1, 2? From which word on is the number the same?",
        "Itself and 100 before make 101, from place 100 on: 900 words. The first hundred see 1, 2, ... 100.",
        "1 + 2 + ... + 100 is 100 · 101 / 2. The rest is a product.",
    ),
    solution=100 * 101 // 2 + 900 * 101,
    why="5,050 in the first hundred rows, 900 times 101 in the rest: 95,950. Twice as many words make about twice as "
    "many pairs, where the causal mask alone would make four times as many.",
    wrong=(
        Wrong(1_000 * 101, "The first hundred words have fewer than 100 before them: word 0 sees itself alone."),
        Wrong(1_000 * 100, "Each word also sees itself, and the first hundred have fewer than 100 before them."),
        Wrong(100 * 99 // 2 + 900 * 100, "Without the diagonal: each word may also look at itself. That adds 1,000."),
        Wrong(
            100 * 101 // 2 + 900 * 100,
            "From place 100 on a word sees itself AND 100 before it: 101 keys, not 100.",
        ),
        Wrong(1_000 * 1_001 // 2, "That is the causal mask without a window."),
        Wrong(1_000 * 201 - 100 * 101, "Your window opens to both sides. The mask is causal too."),
        Wrong(1_000 * 1_000, "That is every pair, without any mask."),
    ),
    rtol=1e-9,
)

EXERCISES = (ATTENTION, HEADS, MASK, CHEAT, COUNT)
