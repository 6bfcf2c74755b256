"""How near the sum experiment comes to its bare matrix products: CPU seconds and their ratio, for each size.

Run it on a quiet machine: python tests/bench_sum.py
"""

import time

import numpy as np

from course_utils.science.geometry import BLOCK, best_row

V, P, N = 50_257, 1_024, 2_000  # GPT-2's vocabulary and window; pairs of a word and a position
SIZES = (2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 100, 128, 256)


def products(vectors: np.ndarray, table: np.ndarray) -> None:
    """All scores (n, V) of vectors (n, d) with table (V, d), block by block into one buffer, and nothing else."""
    buffer = np.empty((BLOCK, len(table)), dtype=table.dtype)
    for start in range(0, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK]
        np.matmul(block, table.T, out=buffer[: len(block)])


def seconds(function, *arguments) -> float:
    """The least CPU time of three runs, in seconds over all threads."""
    times = []
    for _ in range(3):
        start = time.process_time()
        function(*arguments)
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print a line for each size, and the sum."""
    rng = np.random.default_rng(0)
    totals = np.zeros(2)
    for d in SIZES:
        words, positions = (rng.standard_normal((rows, d), dtype=np.float32) for rows in (V, P))
        sums = words[rng.integers(V, size=N)] + positions[rng.integers(P, size=N)]  # (N, d)
        found = seconds(best_row, sums, words) + seconds(best_row, sums, positions)
        bare = seconds(products, sums, words) + seconds(products, sums, positions)
        totals += found, bare
        print(f"d = {d:3}  search {found:5.2f} s  bare products {bare:5.2f} s  ratio {found / bare:4.1f}")
    print(f"all      search {totals[0]:5.2f} s  bare products {totals[1]:5.2f} s  ratio {totals[0] / totals[1]:4.1f}")


if __name__ == "__main__":
    main()
