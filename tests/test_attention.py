"""Attention: against torch's scaled_dot_product_attention, and by properties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.science.attention import (
    attention,
    attention_scores,
    attention_weights,
    causal_mask,
    merge_heads,
    softmax,
    split_heads,
)

SIZES = st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 9), st.integers(1, 5))  # n, m, d_k, d_v


def qkv(n=4, m=5, d_k=8, d_v=3, seed=0, front=()):
    rng = np.random.default_rng(seed)
    shapes = ((n, d_k), (m, d_k), (m, d_v))
    return tuple(rng.standard_normal((*front, *shape)) for shape in shapes)


def torch_or_skip():
    return pytest.importorskip("torch", reason="torch is missing: python -m course_utils setup")


# ---- against torch ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "close"), [("bfloat16", 4e-2), ("float16", 4e-3), ("float32", 1e-6), ("float64", 1e-12)]
)
@pytest.mark.parametrize("kind", ["none", "causal", "random", "per text"])
@pytest.mark.parametrize(("n", "m"), [(6, 6), (3, 9), (1, 4)])
def test_it_is_torchs_scaled_dot_product_attention(n, m, kind, dtype, close):
    torch = torch_or_skip()
    q, k, v = (torch.from_numpy(x).to(getattr(torch, dtype)) for x in qkv(n, m, front=(2, 3)))
    rng = np.random.default_rng(1)
    mask = {
        "none": None,
        "causal": causal_mask(n, m),
        "random": rng.random((n, m)) < 0.6,
        "per text": rng.random((2, 1, n, m)) < 0.6,
    }[kind]
    theirs = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=None if mask is None else torch.from_numpy(mask)
    )
    ours = attention(q, k, v, mask)
    assert ours.dtype == q.dtype and ours.shape == (2, 3, n, 3)
    assert torch.allclose(ours, theirs, atol=close, rtol=close)


@pytest.mark.parametrize(("dtype", "close"), [("float16", 4e-3), ("float32", 1e-6), ("float64", 1e-12)])
def test_numpy_gives_what_torch_gives_and_keeps_its_dtype(dtype, close):
    torch = torch_or_skip()
    arrays = [x.astype(dtype) for x in qkv(front=(2,))]
    mask = causal_mask(4, 5)
    ours = attention(*arrays, mask)
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(x).double() for x in arrays), attn_mask=torch.from_numpy(mask)
    )
    assert ours.dtype == dtype and np.abs(ours - theirs.numpy()).max() < close


def test_the_causal_mask_is_torchs():
    torch = torch_or_skip()
    from torch.nn.attention.bias import causal_lower_right

    q, k, v = (torch.from_numpy(x) for x in qkv(5, 5, front=(1, 1)))
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(attention(q, k, v, causal_mask(5)), theirs)
    q = q[..., :2, :]  # the last two of five places
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(2, 5))
    assert torch.allclose(attention(q, k, v, causal_mask(2, 5)), theirs)


def test_a_query_that_may_look_nowhere_gets_zeros_as_in_torch():
    torch = torch_or_skip()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (torch.from_numpy(x) for x in qkv(d_v=8, front=(1, 2)))
    mask = torch.ones(4, 5, dtype=torch.bool)
    mask[1] = False
    ours = attention(q, k, v, mask)
    assert (ours[..., 1, :] == 0).all() and not ours.isnan().any()
    for kernel in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(kernel):
            theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        assert torch.allclose(theirs, ours)
    assert (attention_weights(q, k, mask)[..., 1, :] == 0).all()


def test_gradients_are_torchs():
    torch = torch_or_skip()
    ours = [torch.from_numpy(x).requires_grad_() for x in qkv()]
    theirs = [x.detach().clone().requires_grad_() for x in ours]
    attention(*ours, causal_mask(4, 5)).square().sum().backward()
    torch.nn.functional.scaled_dot_product_attention(
        *theirs, attn_mask=torch.from_numpy(causal_mask(4, 5))
    ).square().sum().backward()
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one.grad, other.grad)


def test_heads_are_those_of_multihead_attention():
    torch = torch_or_skip()
    layer = torch.nn.MultiheadAttention(12, 3, bias=False, batch_first=True, dtype=torch.float64)
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 5, 12)))
    q, k, v = (split_heads(x @ w.T, 3) for w in layer.in_proj_weight.chunk(3))
    mask = causal_mask(5)
    ours = merge_heads(attention(q, k, v, mask)) @ layer.out_proj.weight.T
    theirs, weights = layer(x, x, x, attn_mask=torch.from_numpy(~mask), average_attn_weights=False)
    assert torch.allclose(ours, theirs)
    assert torch.allclose(attention_weights(q, k, mask), weights)


# ---- properties ------------------------------------------------------------------------------------------------


@given(SIZES, st.integers(0, 99))
def test_it_is_the_formula(sizes, seed):
    q, k, v = qkv(*sizes, seed)
    for i, query in enumerate(q):
        shares = [math.exp(query @ key / math.sqrt(len(query))) for key in k]
        mixed = sum(share * value for share, value in zip(shares, v, strict=True)) / sum(shares)
        assert np.allclose(attention(q, k, v)[i], mixed)


@given(SIZES, st.integers(0, 99))
def test_rows_of_weights_are_shares(sizes, seed):
    q, k, _ = qkv(*sizes, seed)
    mask = np.random.default_rng(seed).random((len(q), len(k))) < 0.5
    weights = attention_weights(q, k, mask)
    assert (weights >= 0).all() and (weights[~mask] == 0).all()
    assert np.allclose(weights.sum(axis=1), mask.any(axis=1))


@given(SIZES, st.integers(0, 99))
def test_permuted_inputs_give_permuted_outputs(sizes, seed):
    n, _, d, _ = sizes
    x = np.random.default_rng(seed).standard_normal((n, d))
    order = np.random.default_rng(seed + 1).permutation(n)
    assert np.allclose(attention(x[order], x[order], x[order]), attention(x, x, x)[order])
    q, k, v = qkv(*sizes, seed)
    keys = np.random.default_rng(seed).permutation(len(k))
    assert np.allclose(attention(q, k[keys], v[keys]), attention(q, k, v))


@given(st.integers(2, 7), st.integers(1, 7))
def test_nothing_that_comes_later_is_seen(n, seen):
    seen = min(seen, n - 1)
    q, k, v = qkv(n, n)
    later = np.arange(n) >= seen
    k2, v2 = (np.where(later[:, None], x + 100, x) for x in (k, v))
    before, after = attention(q, k, v, causal_mask(n)), attention(q, k2, v2, causal_mask(n))
    assert (before[:seen] == after[:seen]).all() and not np.allclose(before[seen:], after[seen:])


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=6), st.floats(-50, 50))
def test_softmax_survives_every_size_and_ignores_a_common_shift(scores, shift):
    shares = softmax(np.array(scores))
    assert np.isfinite(shares).all() and math.isclose(shares.sum(), 1)
    small = np.array(scores) / 1e299
    assert np.allclose(softmax(small + shift), softmax(small))


def test_softmax_follows_its_axis():
    scores = np.log([[1.0, 3.0], [1.0, 1.0]])
    assert np.allclose(softmax(scores), [[0.25, 0.75], [0.5, 0.5]])
    assert np.allclose(softmax(scores, axis=0), [[0.5, 0.75], [0.5, 0.25]])


def test_nan_stays_nan():
    assert np.isnan(softmax(np.array([1.0, math.nan]))).all()


def test_an_empty_row_warns_of_nothing():
    with np.errstate(all="raise"):
        assert softmax(np.array([[-math.inf, -math.inf], [0.0, -math.inf]])).tolist() == [[0, 0], [1, 0]]


def test_the_causal_masks_are_written_out():
    assert causal_mask(3).astype(int).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert causal_mask(2, 4).astype(int).tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 3), st.sampled_from([(), (2,), (2, 3)]))
def test_merging_undoes_splitting(heads, n, d_h, front):
    x = np.random.default_rng(0).standard_normal((*front, n, heads * d_h))
    parts = split_heads(x, heads)
    assert parts.shape == (*front, heads, n, d_h)
    assert (parts[..., 0, :, :] == x[..., :d_h]).all()
    assert (merge_heads(parts) == x).all()


def test_scores_are_divided_by_the_root_of_the_dimensions():
    assert attention_scores(np.ones((1, 16)), np.ones((1, 16))).tolist() == [[4.0]]


# ---- refusals --------------------------------------------------------------------------------------------------

Q, K, V = qkv()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: attention(Q, K[:, :5], V), r"q has the shape \(4, 8\), k \(5, 5\): .* the same d_k"),
        (lambda: attention(Q, K, V[:4]), r"v has the shape \(4, 3\), k \(5, 8\): give one value"),
        (lambda: attention(Q[0], K, V), r"q has the shape \(8,\)"),
        (lambda: attention_weights(Q, K[:0]), "at least one key"),
        (lambda: attention_scores(Q[:, :0], K[:, :0]), "d_k of 1 or more"),
        (lambda: attention(Q, K, V, np.ones((5, 4), dtype=bool)), r"mask of shape \(5, 4\) doesn't fit .* \(4, 5\)"),
        (lambda: attention(Q, K, V, np.ones((2, 4, 5), dtype=bool)), r"mask of shape \(2, 4, 5\) doesn't fit"),
        (lambda: attention(Q, K, V, np.ones((4, 5))), "mask holds float64: give True where a query may look"),
        (lambda: attention(Q.astype(int), K, V), "q holds int64: give floating-point"),
        (lambda: attention(Q, K, V.tolist()), "v is of type list"),
        (lambda: softmax([1.0, 2.0]), "scores is of type list"),
        (lambda: causal_mask(0), "n = 0 queries"),
        (lambda: causal_mask(4, 3), "n = 4 queries and m = 3 keys"),
        (lambda: split_heads(Q, 3), r"\(4, 8\): its last axis has to be a multiple of heads = 3"),
        (lambda: split_heads(Q, 0), "heads = 0"),
        (lambda: split_heads(Q[0], 2), r"x has the shape \(8,\)"),
        (lambda: merge_heads(Q), r"x has the shape \(4, 8\): give \(..., heads, n, d_h\)"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_mixture_of_libraries_is_refused():
    torch = torch_or_skip()
    with pytest.raises(ValueError, match="q and k and v mix numpy arrays and torch tensors"):
        attention(torch.from_numpy(Q), K, V)
