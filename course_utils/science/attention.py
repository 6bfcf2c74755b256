"""Attention, readable as its formula: softmax(q k^T / sqrt(d_k)) v, for numpy arrays and torch tensors alike.

Notation of Vaswani et al. 2017, Attention Is All You Need, section 3.2: n queries q (n, d_k) look at m keys k (m, d_k)
and mix the m values v (m, d_v). Axes in front (batch, heads) are written as ..., and stay.

A mask is boolean, (n, m) or (..., n, m): True where query i MAY look at key j, as in torch's
scaled_dot_product_attention. (torch's MultiheadAttention means the opposite by True.)
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course_utils.science.arrays import Array, namespace


def attention(q: Array, k: Array, v: Array, mask: Any = None) -> Array:
    """softmax(q k^T / sqrt(d_k)) v: for each query the average of the values, weighted by how well its key fits.

    q (..., n, d_k), k (..., m, d_k), v (..., m, d_v), mask (..., n, m) or None -> (..., n, d_v).
    A query that may look at no key gets 0 everywhere. (So does torch 2.13's scaled_dot_product_attention, with each
    of its kernels on a CPU. The bare formula, softmax over -inf alone, gives NaN; so does MultiheadAttention where
    it returns weights.)
    Raises ValueError for shapes that don't match, a mask that isn't boolean, integers, or numpy mixed with torch.
    """
    namespace(q=q, k=k, v=v)
    if v.ndim < 2 or v.shape[-2] != k.shape[-2]:
        raise ValueError(f"v has the shape {tuple(v.shape)}, k {tuple(k.shape)}: give one value (m, d_v) for each key")
    return attention_weights(q, k, mask) @ v


def attention_weights(q: Array, k: Array, mask: Any = None) -> Array:
    """softmax(q k^T / sqrt(d_k)): row i says how query i divides its attention among the keys, in shares of 1.

    q (..., n, d_k), k (..., m, d_k), mask (..., n, m) or None -> (..., n, m). A row that may look nowhere is 0.
    Raises ValueError as `attention`.
    """
    scores = attention_scores(q, k)  # (..., n, m)
    if mask is not None:
        xp = namespace(q=q)
        scores = xp.where(_as_mask(xp, mask, scores), scores, -math.inf)
    return softmax(scores)


def attention_scores(q: Array, k: Array) -> Array:
    """q k^T / sqrt(d_k): how well each query fits each key, before the softmax.

    q (..., n, d_k), k (..., m, d_k) -> (..., n, m).
    Raises ValueError for shapes that don't match, integers, or numpy mixed with torch.
    """
    namespace(q=q, k=k)
    if q.ndim < 2 or k.ndim < 2 or q.shape[-1] != k.shape[-1] or 0 in (q.shape[-1], k.shape[-2]):
        raise ValueError(
            f"q has the shape {tuple(q.shape)}, k {tuple(k.shape)}: give (..., n, d_k) and (..., m, d_k), the same d_k "
            "of 1 or more, and at least one key"
        )
    return q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])


def softmax(scores: Array, axis: int = -1) -> Array:
    """exp(s_j) / sum over j of exp(s_j) along an axis: positive shares that add up to 1. The shape stays.

    The largest score is taken off first: that changes no share, and exp can't overflow. A score of -inf gets 0;
    where all are -inf, all get 0. Raises ValueError for integers.
    """
    xp = namespace(scores=scores)
    largest = xp.amax(scores, axis, keepdims=True)
    shares = xp.exp(scores - xp.where(largest == -math.inf, 0.0, largest))
    total = shares.sum(axis, keepdims=True)
    return shares / xp.where(total == 0, 1.0, total)


def causal_mask(n: int, m: int | None = None) -> NDArray[np.bool_]:
    """Who may look where when nobody sees what comes later: (n, m), True for key j at or before query i's place.

    n queries and as many keys (m left out): the lower triangle, diagonal included. With m > n keys the queries are
    the LAST n of the m places, as when a text goes on and earlier keys were kept; torch's is_causal=True lines up the
    first places instead. Raises ValueError for n < 1 or m < n.
    """
    m = n if m is None else m
    if n < 1 or m < n:
        raise ValueError(f"n = {n} queries and m = {m} keys: give n of 1 or more, and m of n or more")
    return np.tri(n, m, m - n, dtype=bool)


def split_heads(x: Array, heads: int) -> Array:
    """Cut each vector into `heads` pieces and bring the heads in front: (..., n, d) -> (..., heads, n, d/heads).

    Raises ValueError where d is not a multiple of `heads`.
    """
    if x.ndim < 2 or heads < 1 or x.shape[-1] % heads:
        raise ValueError(f"x has the shape {tuple(x.shape)}: its last axis has to be a multiple of heads = {heads}")
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).swapaxes(-2, -3)


def merge_heads(x: Array) -> Array:
    """Put the heads' pieces side by side again: (..., heads, n, d_h) -> (..., n, heads d_h). Undoes `split_heads`.

    Raises ValueError for fewer than three axes.
    """
    if x.ndim < 3:
        raise ValueError(f"x has the shape {tuple(x.shape)}: give (..., heads, n, d_h)")
    *front, heads, n, d_h = x.shape
    return x.swapaxes(-2, -3).reshape(*front, n, heads * d_h)


def _as_mask(xp: Any, mask: Any, scores: Any) -> Any:
    mask = xp.asarray(mask, device=scores.device)
    if mask.dtype != xp.bool:
        raise ValueError(f"the mask holds {mask.dtype}: give True where a query may look and False where not")
    try:
        fits = np.broadcast_shapes(tuple(mask.shape), tuple(scores.shape)) == tuple(scores.shape)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"a mask of shape {tuple(mask.shape)} doesn't fit scores of shape {tuple(scores.shape)}")
    return mask
