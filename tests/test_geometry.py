"""The geometry of the sum: against torch, against counting, and by properties."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from course_utils.science.geometry import BLOCK, best_row, chance_found, cosine

torch = pytest.importorskip("torch", reason="torch is missing: python -m course_utils setup")

SIZES = st.tuples(st.integers(1, 2 * BLOCK + 3), st.integers(1, 40), st.integers(2, 9))  # d = 1 has ties


def tables(sizes, seed=0):
    n, V, d = sizes
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal((V, d))


@given(SIZES, st.integers(0, 99))
def test_best_rows_are_those_of_torch(sizes, seed):
    vectors, table = tables(sizes, seed)
    v, t = torch.from_numpy(vectors), torch.from_numpy(table)
    cosines = torch.nn.functional.cosine_similarity(v[:, None], t[None], dim=-1)
    assert (best_row(vectors, table) == (v @ t.T).argmax(dim=1).numpy()).all()
    assert (best_row(vectors, table, "cosine") == cosines.argmax(dim=1).numpy()).all()
    assert (best_row(vectors, table, "euclid") == torch.cdist(v, t).argmin(dim=1).numpy()).all()


@given(SIZES, st.floats(0.1, 10))
def test_cosine_ignores_length_and_dot_does_not_depend_on_the_vectors_length(sizes, factor):
    vectors, table = tables(sizes)
    stretched = table * np.linspace(1, factor, len(table))[:, None]
    assert (best_row(vectors, stretched, "cosine") == best_row(vectors, table, "cosine")).all()
    assert (best_row(vectors * factor, table) == best_row(vectors, table)).all()


@given(SIZES)
def test_relabelling_the_table_relabels_the_answer(sizes):
    vectors, table = tables(sizes)
    order = np.random.default_rng(1).permutation(len(table))
    for score in ("dot", "cosine", "euclid"):
        assert (order[best_row(vectors, table[order], score)] == best_row(vectors, table, score)).all()


def test_a_long_row_wins_by_dot_product_only():
    table = np.array([[1.0, 0.0], [30.0, 40.0]])
    vector = np.array([[1.0, 0.1]])
    assert best_row(vector, table).tolist() == [1]
    assert best_row(vector, table, "cosine").tolist() == [0]
    assert best_row(vector, table, "euclid").tolist() == [0]


def test_memory_does_not_grow_with_the_number_of_vectors():
    import tracemalloc

    table = np.ones((1_000, 4), dtype=np.float32)
    peaks = []
    for n in (BLOCK, 8 * BLOCK):
        vectors = np.ones((n, 4), dtype=np.float32)
        tracemalloc.start()
        best_row(vectors, table)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    scores_of_the_rest = 7 * BLOCK * 1_000 * 4
    assert peaks[1] - peaks[0] < scores_of_the_rest / 10


@given(arrays(float, (3, 5), elements=st.floats(-100, 100)), arrays(float, (3, 5), elements=st.floats(-100, 100)))
def test_cosine_is_torchs_or_refused(a, b):
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    if (lengths == 0).any():
        with pytest.raises(ValueError, match="not zero"):
            cosine(a, b)
    elif lengths.min() > 1e-6:
        ours = torch.nn.functional.cosine_similarity(torch.from_numpy(a), torch.from_numpy(b), dim=1).numpy()
        assert np.allclose(cosine(a, b), ours, atol=1e-12)


@pytest.mark.parametrize(("d", "V", "scale"), [(8, 300, 1.0), (32, 3_000, 1.0), (24, 1_000, 2.0), (16, 500, 0.5)])
def test_the_closed_form_says_what_counting_finds(d, V, scale):
    rng, tables = np.random.default_rng(1), 20_000 // V
    hits = 0
    for _ in range(tables):  # fresh tables, each word once: a short row is missed in every sum that holds it
        words = rng.standard_normal((V, d))
        sums = words + scale * rng.standard_normal((V, d))
        hits += np.sum(best_row(sums, words) == np.arange(V))
    tries = tables * V
    share = hits / tries
    assert abs(share - chance_found(d, V, scale)) < 5 * math.sqrt(share * (1 - share) / tries) + 0.005


def test_two_words_are_told_apart_as_often_as_the_normal_distribution_says():
    rng = np.random.default_rng(0)
    t, p = rng.standard_normal((2, 20_000, 6))
    z = ((t + p) * t).sum(axis=1) / np.linalg.norm(t + p, axis=1)
    expected = np.mean([NormalDist().cdf(value) for value in z])
    assert abs(chance_found(6, 2) - expected) < 0.005


@given(st.integers(1, 300), st.integers(1, 10**6), st.floats(0, 20))
def test_the_chance_is_one_and_falls_with_the_vocabulary(d, V, scale):
    few, many = chance_found(d, V, scale, draws=200), chance_found(d, 2 * V, scale, draws=200)
    assert 0 <= many <= few <= 1


def test_a_single_word_is_always_found():
    assert chance_found(1, 1) == 1.0


ROW = np.ones((1, 2))
NAN, ZERO, INFINITE = (np.array([[1.0, value], [1.0, 1.0]]) for value in (np.nan, 0.0, np.inf))
ZERO[0] = 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones(2), ROW), r"vectors has the shape \(2,\)"),
        ((np.ones((0, 2)), ROW), r"vectors has the shape \(0, 2\)"),
        ((ROW, np.ones((1, 3))), "vectors have 2 numbers a row, the table 3"),
        ((ROW, NAN), "table holds NaN or infinity"),
        ((INFINITE, ROW), "vectors holds NaN or infinity"),
        ((ROW, np.ones((1, 2), dtype=int)), "table holds int64: give floating-point"),
        ((ROW, ZERO, "cosine"), "row 0 of the table is zero"),
        ((ROW, ROW, "angle"), "score 'angle': use 'dot', 'cosine' or 'euclid'"),
    ],
)
def test_bad_tables_are_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        best_row(*arguments)


@pytest.mark.parametrize("arguments", [(0, 5), (3, 0), (3, 5, -1), (3, 5, math.nan), (3, 5, math.inf), (math.nan, 5)])
def test_impossible_sizes_are_refused(arguments):
    with pytest.raises(ValueError, match="d and V from 1 on"):
        chance_found(*arguments)


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0]])
def test_a_cosine_without_direction_is_refused(bad):
    with pytest.raises(ValueError, match="finite and not zero"):
        cosine(np.array(bad), np.ones(2))
