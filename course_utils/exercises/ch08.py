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
    why="Reshape never moves a number, it only sets new borders. To bring heads before words, numbers have to move: "
    "that is swapaxes.",
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
            "Your head takes every so-manieth number. A piece is a run of neighbours: the first d/heads numbers, the "
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

# ---- 08.3 causal mask -------------------------------------------------------------------------------------------


def may_look(n):
    """(n, n): row i says which keys query i may look at."""
    return np.tri(n, dtype=bool)


def strictly_lower(n):
    return np.tri(n, k=-1, dtype=bool)


def upper(n):
    return ~np.tri(n, k=-1, dtype=bool)


def strictly_upper(n):
    return ~np.tri(n, dtype=bool)


def one_too_far(n):
    return np.tri(n, k=1, dtype=bool)


def diagonal(n):
    return np.eye(n, dtype=bool)


def added(n):
    return np.where(np.tri(n, dtype=bool), 0, -np.inf)


MASK = Exercise(
    id="08.3",
    title="Who may look where",
    minutes=4,
    points=1,
    hints=(
        "Write the three rows for n = 3 on paper. The first word sees one key, the second two, the third three.",
        "Query i may look at key j if j <= i. np.arange(n) as a column and as a row can be compared at once.",
        "numpy also has it ready made: look up np.tri and np.tril.",
    ),
    solution=may_look,
    why="Row i has i + 1 Trues: itself and all before. The diagonal has to be in, or the first word has nothing.",
    wrong=(
        Wrong(strictly_lower, "The diagonal is missing: the first word may look nowhere, and its output becomes NaN."),
        Wrong(upper, "This is the other triangle: each word sees itself and what comes AFTER it."),
        Wrong(
            strictly_upper, "These are the forbidden places, as torch's MultiheadAttention wants them. Turn them round."
        ),
        Wrong(one_too_far, "One too far: each word also sees the next one, which it is to guess."),
        Wrong(diagonal, "Each word sees itself alone. It may also look at what came before."),
        Wrong(added, "This is the mask to ADD to scores, 0 and -∞. Asked for is True and False."),
    ),
    cases=lambda: [(3,), (1,), (6,)],
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


def _looks_at(allowed):
    """A layer that averages over the rows that `allowed` (n, n) names, softly."""

    def layer(x):
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
    allowed[1, 2] = True
    return allowed


def _late_leak(n):
    allowed = np.tri(n, dtype=bool)
    allowed[-2, -1] = True
    return allowed


def _per_word(x):
    return np.tanh(x)


def _centred_over_words(x):
    return x - x.mean(axis=0)


def _layer_cases():
    x = np.random.default_rng(0).standard_normal((6, 4))
    attentions = [_looks_at(allowed) for allowed in (_all, _causal, _early_leak, _late_leak)]
    return [(layer, x) for layer in (*attentions, _per_word, _centred_over_words)]


CHEAT = Exercise(
    id="08.4",
    title="Catch a layer that cheats",
    minutes=8,
    points=3,
    hints=(
        "Run the layer twice: on x, and on a copy in which some words are different. Which outputs must not move?",
        "If you change the words from place t on, the outputs before t have to stay. np.allclose compares.",
        "Do it for every t from 1 to n - 1. A leak from place 2 to place 1 doesn't show when only the last word moves.",
    ),
    solution=sees_later,
    why="Change the future, watch the past: the one test that needs no look inside. It catches masks that are off by "
    "one, and averages over a whole text.",
    wrong=(
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
    title="Half the work",
    minutes=3,
    points=1,
    hints=(
        "The first word has 1 open score, the second 2, the last 1,000. Add them up.",
        "First and last together make 1,001, second and last but one too. How many such couples are there?",
    ),
    solution=1_000 * 1_001 // 2,
    why="n(n + 1)/2 = 500,500: half of the square and half of the diagonal. It grows like n² all the same.",
    wrong=(
        Wrong(1_000 * 999 // 2, "Without the diagonal: each word may also look at itself. That adds 1,000."),
        Wrong(1_000 * 1_000, "That is every pair, without any mask."),
        Wrong(500_000, "Half of the square, but the diagonal isn't cut in half: it stays whole."),
    ),
    rtol=1e-9,
)

EXERCISES = (ATTENTION, HEADS, MASK, CHEAT, COUNT)
