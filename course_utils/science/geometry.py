"""The geometry of many directions: which row of a table lies in a vector, and how often chance finds the right one.

Notation: V rows (vocab_size) of d numbers (d_model). t is a word's row, p a position's row, s = t + p their sum.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Score = Literal["dot", "cosine", "euclid"]
Floats = NDArray[np.floating]
BLOCK = 128  # vectors scored at a time: 128 x 50,257 float32 scores are 26 MB


def best_row(vectors: Floats, table: Floats, score: Score = "dot") -> NDArray[np.int64]:
    """For each vector the id of the table's row that fits it best.

    vectors (n, d), table (V, d) -> ids (n,). The score is the dot product s.t; or the cosine; or the Euclidean
    distance, whose smallest |s - t|^2 = |s|^2 - 2 (s.t - |t|^2 / 2) is the largest s.t - |t|^2 / 2.
    Blocks of vectors share one buffer, so the memory needed does not grow with n.
    Raises ValueError for shapes that don't match, values that are not finite, an unknown score, or a zero row
    under cosine.
    """
    vectors, table = _table("vectors", vectors), _table("table", table)
    if vectors.shape[1] != table.shape[1]:
        raise ValueError(f"vectors have {vectors.shape[1]} numbers a row, the table {table.shape[1]}: they must agree")
    square_norms = np.einsum("vd,vd->v", table, table)  # (V,)
    if score == "cosine" and not (square_norms > 0).all():
        raise ValueError(f"row {int(square_norms.argmin())} of the table is zero and has no direction: leave it out")
    if score not in ("dot", "cosine", "euclid"):
        raise ValueError(f"score {score!r}: use 'dot', 'cosine' or 'euclid'")
    best = np.empty(len(vectors), dtype=np.int64)
    buffer = np.empty((min(BLOCK, len(vectors)), len(table)), np.result_type(vectors, table))
    for start in range(0, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK]  # (b, d)
        scores = np.matmul(block, table.T, out=buffer[: len(block)])  # (b, V)
        if score == "cosine":
            scores /= np.sqrt(square_norms)
        elif score == "euclid":
            scores -= square_norms / 2
        best[start : start + BLOCK] = scores.argmax(axis=1)
    return best


def cosine(a: Floats, b: Floats) -> Floats:
    """The cosine of the angle between a and b along their last axis: (..., d), (..., d) -> (...).

    Raises ValueError where a vector is zero or not finite: it has no direction.
    """
    a, b = np.asarray(a), np.asarray(b)
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    if not (np.isfinite(norms) & (norms > 0)).all():
        raise ValueError("the cosine needs vectors that are finite and not zero: leave the others out")
    return np.sum(a * b, axis=-1) / norms


def chance_found(d: int, V: int, position_scale: float = 1.0, draws: int = 20_000, seed: int = 0) -> float:
    """The chance that the right word has the largest dot product with the sum s = t + p, without building any table.

    Rows are standard normal in d dimensions, positions a = position_scale times as long. Given s, a wrong word's score
    is normal with mean 0 and spread |s|, so all V - 1 wrong words stay below the right one's score s.t with the chance
    Phi(z)^(V - 1), z = s.t / |s|. Given s, the word's row t is s / (1 + a^2) and a noise of spread a / sqrt(1 + a^2),
    and |s| is sqrt(1 + a^2) times the length chi of a standard normal row. So z = (chi + a g) / sqrt(1 + a^2) with one
    standard normal g. The function averages over draws of chi and g.
    Raises ValueError for d < 1, V < 1, or a scale that is negative or not finite.
    """
    if not (d >= 1 and V >= 1 and 0 <= position_scale < math.inf):
        raise ValueError(f"d = {d}, V = {V}, position_scale = {position_scale}: d and V from 1 on, the scale 0 or more")
    rng = np.random.default_rng(seed)
    chi, g = np.sqrt(rng.chisquare(d, draws)), rng.standard_normal(draws)  # (draws,)
    z = (chi + position_scale * g) / math.sqrt(1 + position_scale**2)
    log_below = np.log1p(-_upper_tail(z))  # log Phi(z): log1p keeps the tiny tails that V multiplies
    return float(np.exp((V - 1) * log_below).mean())


_upper_tail = np.vectorize(lambda z: math.erfc(z / math.sqrt(2)) / 2, otypes=[float])


def _table(name: str, values: Floats) -> Floats:
    array = np.asarray(values)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} has the shape {array.shape}: give one row a vector, (n, d), neither of them 0")
    if not np.issubdtype(array.dtype, np.floating):
        raise ValueError(f"{name} holds {array.dtype}: give floating-point numbers")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity: mend or leave out those rows first")
    return array
