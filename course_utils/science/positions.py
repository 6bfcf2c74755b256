"""Position schemes: where a token stands, written as numbers.

Notation: pos, m and n are positions, d is d_model (a row's numbers) or the head dimension. Pair i of a vector,
i = 0 ... d/2 - 1, turns by theta_i = base^(-2i/d) radians a position.

A layout says which numbers make a pair: "interleaved" the neighbours (2i, 2i + 1), as in both papers; "half-split"
i and i + d/2, as in transformers' Llama. They are the same up to a fixed order of the numbers.

- Vaswani et al. 2017, Attention Is All You Need, section 3.5: sinusoids.
- Su et al. 2021, RoFormer, section 3.2, equations 14 to 16; section 3.4.2, equation 34: RoPE. (The paper counts i
  from 1.)
- Press et al. 2022, Train Short, Test Long, section 3: ALiBi.
- Raffel et al. 2020, Exploring the Limits of Transfer Learning (T5), section 2.1: buckets of offsets.

A query stands at m, a key at n; the offset is m - n, positive where the key comes earlier. The distance is |m - n|.
"""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from course_utils.science.arrays import Array, cast, namespace

Layout = Literal["interleaved", "half-split"]


def sinusoids(
    positions: ArrayLike, d_model: int, base: float = 10_000.0, layout: Layout = "interleaved"
) -> NDArray[np.float64]:
    """The fixed table of the Transformer of 2017: positions (n,) -> (n, d_model).

    PE(pos, 2i) = sin(pos / base^(2i/d_model)), PE(pos, 2i + 1) = cos(the same): one hand of a clock a pair, from
    fast to slow. Positions may be fractional or negative. Raises ValueError for positions that are no finite
    numbers, an odd d_model, a base that isn't above 0, or an unknown layout.
    """
    _check_even("d_model", d_model)
    angles = rope_angles(positions, d_model, base)  # (n, d/2)
    return _join(np, np.sin(angles), np.cos(angles), layout)  # (n, d)


def rope_frequencies(head_dim: int, base: float = 10_000.0) -> NDArray[np.float64]:
    """theta_i = base^(-2i/d), i = 0 ... d/2 - 1, in radians a position: shape (head_dim/2,).

    Raises ValueError for an odd head_dim or a base that isn't above 0.
    """
    _check_even("head_dim", head_dim)
    if not 0 < base < math.inf:
        raise ValueError(
            f"base is {base}: it sets how far the wavelengths reach, a finite number above 0 (usually 10,000)"
        )
    return float(base) ** (-2 * np.arange(head_dim // 2) / head_dim)


def rope_angles(positions: ArrayLike, head_dim: int, base: float = 10_000.0) -> NDArray[np.float64]:
    """How far each pair has turned at each position, m theta_i, in radians: positions (n,) -> (n, head_dim/2).

    In float64 whatever was given: at position 100,000 a float32 angle is off by some thousandths of a radian (.002
    at head_dim 64, .005 at 128), a bfloat16 one by more than a hundred. Raises as `rope_frequencies`, and for
    positions that are no finite numbers.
    """
    return _numbers(positions)[..., None] * rope_frequencies(head_dim, base)


def rotate(x: Array, positions: ArrayLike, base: float = 10_000.0, layout: Layout = "half-split") -> Array:
    """RoPE: turn each pair (a, b) of the vector at position m by the angle m theta_i.

    a' = a cos(m theta_i) - b sin(m theta_i),  b' = a sin(m theta_i) + b cos(m theta_i)

    x (..., n, d) holds queries or keys (never values), as a numpy array or a torch tensor; the result is of the same
    kind, shape and dtype. positions (n,), or one set for each text of a batch, such as (batch, 1, n) for x
    (batch, heads, n, d). The angles are float64, the arithmetic is float32 or wider. Raises ValueError for an odd d,
    positions that don't fit x or are no finite numbers, a base that isn't above 0, an unknown layout, or integers.
    """
    xp = namespace(x=x)
    if x.ndim < 1 or x.shape[-1] < 2:
        raise ValueError(f"x has the shape {tuple(x.shape)}: its last axis holds the vector's d numbers, 2 or more")
    angles = rope_angles(positions, x.shape[-1], base)  # (n, d/2)
    _check_fit(tuple(x.shape), angles.shape)
    wide = xp.promote_types(x.dtype, xp.float32)
    cos = xp.asarray(np.cos(angles), dtype=wide, device=x.device)
    sin = xp.asarray(np.sin(angles), dtype=wide, device=x.device)
    a, b = _pairs(x, layout)  # each (..., n, d/2)
    turned = _join(xp, a * cos - b * sin, a * sin + b * cos, layout)  # (..., n, d)
    return cast(turned, x.dtype)


def half_split_order(d: int) -> NDArray[np.int64]:
    """[0, 2, 4, ..., 1, 3, 5, ...]: x[..., half_split_order(d)] turns an interleaved vector into a half-split one.

    Raises ValueError for an odd d.
    """
    _check_even("d", d)
    return np.arange(d).reshape(d // 2, 2).T.reshape(d)


def interleaved_order(d: int) -> NDArray[np.int64]:
    """[0, d/2, 1, d/2 + 1, ...], the inverse of `half_split_order`: half-split vectors to interleaved ones.

    Raises ValueError for an odd d.
    """
    _check_even("d", d)
    return np.arange(d).reshape(2, d // 2).T.reshape(d)


def alibi_slopes(n_heads: int) -> NDArray[np.float64]:
    """How steeply each head's penalty grows, 2^(-8h/H) for h = 1 ... H heads: (n_heads,), from steep to flat.

    Where H is no power of two: the slopes of the next smaller power of two, then every other one of those for twice
    as many heads, as in the authors' code. Raises ValueError for n_heads below 1.
    """
    _check_count("n_heads", n_heads)
    power = 2 ** (int(n_heads).bit_length() - 1)  # the largest power of two up to n_heads
    heads = np.arange(1, power + 1)
    between = np.arange(1, 2 * (n_heads - power), 2)
    return np.concatenate([2.0 ** (-8 * heads / power), 2.0 ** (-8 * between / (2 * power))])


def alibi_bias(positions: ArrayLike, n_heads: int) -> NDArray[np.float64]:
    """What ALiBi adds to the score of the query at m and the key at n: -slope |m - n|. (n,) -> (n_heads, n, n).

    In a causal model keys come earlier, so |m - n| is the offset m - n. Without the mask the penalty is the same to
    both sides. Raises ValueError for n_heads below 1 or positions that are no finite numbers.
    """
    distances = np.abs(offsets(positions))  # (n, n)
    return -alibi_slopes(n_heads)[:, None, None] * distances


def t5_buckets(
    offsets: ArrayLike, n_buckets: int = 32, max_distance: int = 128, causal: bool = True
) -> NDArray[np.int64]:
    """T5's number for an offset m - n: one each while keys are near, then ever wider ones. Shape as given.

    Of B buckets the first B/2 hold the offsets 0 ... B/2 - 1, one each; the others grow by a constant factor up to
    max_distance, and the last holds all beyond. Not causal: the first half of the buckets for keys up to the query,
    the second half for keys after it. Raises ValueError for n_buckets not a multiple of 4, a max_distance that the
    single buckets reach, or offsets that are no finite numbers.
    """
    side = n_buckets if causal else n_buckets // 2
    single = side // 2
    if n_buckets < 4 or n_buckets % 4 or max_distance <= single:
        raise ValueError(
            f"n_buckets = {n_buckets}, max_distance = {max_distance}: give a multiple of 4, and a distance above the "
            f"{single} that have a bucket each"
        )
    offsets = _numbers(offsets)
    later = np.where(offsets < 0, 0 if causal else side, 0)
    distances = np.maximum(offsets, 0) if causal else np.abs(offsets)
    grown = np.log(np.maximum(distances, single) / single) / math.log(max_distance / single)  # 0 ... 1
    wide = np.minimum(single + np.floor(grown * (side - single)), side - 1)
    return (later + np.where(distances < single, np.floor(distances), wide)).astype(np.int64)


def offsets(positions: ArrayLike) -> NDArray[np.float64]:
    """m - n for each query's position m (rows) and each key's position n (columns): (n,) -> (n, n).

    Raises ValueError for positions that are no finite numbers.
    """
    places = _numbers(positions)
    return places[:, None] - places[None, :]


def _pairs(x: Array, layout: Layout) -> tuple[Array, Array]:
    """The first and the second number of each pair: (..., d) -> two of (..., d/2)."""
    half = x.shape[-1] // 2
    if layout == "interleaved":
        return x[..., 0::2], x[..., 1::2]
    if layout == "half-split":
        return x[..., :half], x[..., half:]
    raise ValueError(f"layout {layout!r}: use 'interleaved' or 'half-split'")


def _join(xp: Any, first: Array, second: Array, layout: Layout) -> Array:
    """The inverse of `_pairs`: two of (..., d/2) -> (..., d)."""
    if layout == "interleaved":
        return xp.stack((first, second), -1).reshape(*first.shape[:-1], 2 * first.shape[-1])
    if layout == "half-split":
        return xp.concatenate((first, second), -1)
    raise ValueError(f"layout {layout!r}: use 'interleaved' or 'half-split'")


def _check_even(name: str, d: int) -> None:
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 2 or d % 2:
        raise ValueError(f"{name} is {d}: the numbers go in pairs, so give an even whole number, 2 or more")


def _check_count(name: str, n: int) -> None:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"{name} is {n}: give a whole number, 1 or more")


def _check_fit(shape: tuple[int, ...], angles: tuple[int, ...]) -> None:
    places, given = shape[:-1], angles[:-1]  # (..., n)
    try:
        fits = np.broadcast_shapes(places, given) == places
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"positions of shape {given} don't fit x of shape {shape}: give one for each of the "
            f"{places[-1] if places else 1} vectors along its last axis but one"
        )


def _numbers(positions: ArrayLike) -> NDArray[np.float64]:
    if hasattr(positions, "detach"):  # a torch tensor, on whatever device, of whatever dtype
        positions = positions.detach().cpu().double().numpy()
    array = np.asarray(positions)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"positions hold {array.dtype}: give numbers, such as range(8)")
    if not np.isfinite(array).all():
        raise ValueError("positions hold NaN or infinity: each has to be a finite number")
    return array.astype(np.float64)
