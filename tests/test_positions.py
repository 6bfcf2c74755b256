"""Sinusoids and RoPE: against transformers' Llama and GPT-J, against complex numbers, and by properties."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.places import ROOT
from course_utils.science.positions import (
    alibi_bias,
    alibi_slopes,
    half_split_order,
    interleaved_order,
    rope_angles,
    rope_frequencies,
    rotate,
    sinusoids,
    t5_buckets,
)

LAYOUTS = ("half-split", "interleaved")
DIMENSIONS = st.integers(1, 40).map(lambda pairs: 2 * pairs)
PLACES = st.lists(st.floats(-5_000, 5_000), min_size=1, max_size=6)
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def vectors(d, n=1, seed=0, front=()):
    return np.random.default_rng(seed).standard_normal((*front, n, d))


def torch_or_skip():
    return pytest.importorskip("torch", reason="torch is missing: python -m course_utils setup")


def transformers_or_skip():
    torch_or_skip()
    return pytest.importorskip("transformers", reason="transformers is missing: python -m course_utils setup")


# ---- against others --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [10_000.0, 100_000.0])
@pytest.mark.parametrize("d", [2, 64, 128])
def test_half_split_is_what_llama_does(d, base):
    transformers, torch = transformers_or_skip(), torch_or_skip()
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = transformers.LlamaConfig(
        hidden_size=2 * d,
        num_attention_heads=2,
        head_dim=d,
        max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": base},
    )
    q, k = torch.randn(2, 1, 2, 7, d, generator=torch.Generator().manual_seed(0)).unbind(0)
    for start in (0, 5, 50):
        places = torch.arange(start, start + 7)
        cos, sin = LlamaRotaryEmbedding(config)(q, places[None])
        for ours, theirs in zip((q, k), apply_rotary_pos_emb(q, k, cos, sin), strict=True):
            assert torch.allclose(rotate(ours, places, base), theirs, atol=2e-5)


@pytest.mark.parametrize("d", [2, 16, 64])
def test_interleaved_is_what_gptj_does(d):
    transformers_or_skip()
    torch = torch_or_skip()
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb, create_sinusoidal_positions

    x = torch.randn(1, 9, 3, d, generator=torch.Generator().manual_seed(0))  # GPT-J: (batch, n, heads, d)
    sin, cos = create_sinusoidal_positions(9, d)[None].chunk(2, dim=-1)
    theirs = apply_rotary_pos_emb(x, sin, cos).transpose(1, 2)
    assert torch.allclose(rotate(x.transpose(1, 2), range(9), layout="interleaved"), theirs, atol=2e-6)


@given(DIMENSIONS, PLACES, st.integers(0, 99))
def test_interleaved_is_a_product_of_complex_numbers(d, places, seed):
    x = vectors(d, len(places), seed)
    hands = x[:, 0::2] + 1j * x[:, 1::2]
    angles = np.array([[m * 10_000 ** (-2 * i / d) for i in range(d // 2)] for m in places])
    turned = hands * np.exp(1j * angles)
    ours = rotate(x, places, layout="interleaved")
    assert np.allclose(ours[:, 0::2], turned.real, atol=1e-9)
    assert np.allclose(ours[:, 1::2], turned.imag, atol=1e-9)


def test_sinusoids_are_those_of_the_paper():
    table = sinusoids(range(50), 6)
    for pos in range(50):
        for i in range(3):
            assert math.isclose(table[pos, 2 * i], math.sin(pos / 10_000 ** (2 * i / 6)), abs_tol=1e-12)
            assert math.isclose(table[pos, 2 * i + 1], math.cos(pos / 10_000 ** (2 * i / 6)), abs_tol=1e-12)


def test_frequencies_run_from_one_radian_to_almost_one_over_the_base():
    assert rope_frequencies(4).tolist() == [1.0, 0.01]
    assert rope_frequencies(2).tolist() == [1.0]
    wavelengths = 2 * math.pi / rope_frequencies(64, 500_000)
    assert math.isclose(wavelengths[0], 2 * math.pi) and round(wavelengths[-1]) == 2_084_765
    assert rope_angles([0, -1, 2.5], 4).tolist() == [[0, 0], [-1, -0.01], [2.5, 0.025]]


@pytest.mark.parametrize(("d", "off"), [(64, 0.002), (128, 0.005)])
def test_float32_angles_would_be_off_by_thousandths_of_a_radian(d, off):
    narrow = np.float32(100_000) * rope_frequencies(d).astype(np.float32)
    assert narrow.dtype == np.float32
    assert round(np.abs(narrow - rope_angles([100_000], d)).max(), 3) == off


# ---- properties ------------------------------------------------------------------------------------------------


@given(DIMENSIONS, st.sampled_from(LAYOUTS), st.floats(-900, 900), st.floats(-900, 900), st.floats(-900, 900))
def test_a_score_stays_under_a_common_shift(d, layout, m, n, shift):
    q, k = vectors(d, 2)[:, None]
    at_home = rotate(q, [m], layout=layout) @ rotate(k, [n], layout=layout).T
    moved = rotate(q, [m + shift], layout=layout) @ rotate(k, [n + shift], layout=layout).T
    assert np.allclose(moved, at_home, atol=1e-9)


@layouts
@pytest.mark.parametrize("m", [0, 2, 5])
@pytest.mark.parametrize("n", [0, 3, 5])
def test_a_score_knows_the_offsets_sign(m, n, layout):
    q, k = np.eye(2)[:, None]
    score = (rotate(q, [m], layout=layout) @ rotate(k, [n], layout=layout).T).item()
    assert math.isclose(score, math.sin(m - n), abs_tol=1e-12)


@given(DIMENSIONS, PLACES, st.sampled_from(LAYOUTS), st.floats(1, 1e6))
def test_lengths_stay_and_turning_back_undoes_it(d, places, layout, base):
    x = vectors(d, len(places))
    turned = rotate(x, places, base, layout)
    assert np.allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(x, axis=1))
    assert np.allclose(rotate(turned, -np.array(places), base, layout), x, atol=1e-9)


@given(DIMENSIONS, PLACES, st.sampled_from(LAYOUTS), st.floats(-3, 3))
def test_rotating_is_linear_and_place_zero_does_nothing(d, places, layout, factor):
    x, y = vectors(d, 2 * len(places)).reshape(2, len(places), d)
    together = rotate(x + factor * y, places, layout=layout)
    assert np.allclose(together, rotate(x, places, layout=layout) + factor * rotate(y, places, layout=layout))
    assert (rotate(x, [0] * len(places), layout=layout) == x).all()


@given(DIMENSIONS, PLACES)
def test_the_layouts_differ_by_a_fixed_order_only(d, places):
    order, back = half_split_order(d), interleaved_order(d)
    assert (order[back] == np.arange(d)).all() and (back[order] == np.arange(d)).all()
    x = vectors(d, len(places))
    assert np.allclose(rotate(x, places, layout="interleaved")[:, order], rotate(x[:, order], places), atol=1e-12)
    assert np.allclose(rotate(x, places)[:, back], rotate(x[:, back], places, layout="interleaved"), atol=1e-12)
    assert (sinusoids(places, d)[:, order] == sinusoids(places, d, layout="half-split")).all()


def test_the_orders_are_written_out():
    assert half_split_order(6).tolist() == [0, 2, 4, 1, 3, 5]
    assert interleaved_order(6).tolist() == [0, 3, 1, 4, 2, 5]


def test_the_wrong_layout_passes_at_place_zero_only():
    q, k = vectors(16, 2)[:, None]
    mixed = [rotate(q, [m]) @ rotate(k, [0], layout="interleaved").T - q @ k.T for m in (0, 3)]
    assert mixed[0] == 0 and abs(mixed[1]) > 0.1


@given(st.integers(2, 40).map(lambda pairs: 2 * pairs), st.floats(-300, 300), st.floats(-300, 300))
def test_the_dot_product_of_two_sinusoids_depends_on_the_offset_only(d, m, n):
    first, second, zero, apart = sinusoids([m, n, 0, m - n], d)
    assert math.isclose(first @ second, zero @ apart, abs_tol=1e-9)
    assert math.isclose(first @ first, d / 2, rel_tol=1e-12)


# ---- kinds of arrays -------------------------------------------------------------------------------------------


@layouts
@pytest.mark.parametrize(("dtype", "close"), [("float16", 4e-3), ("float32", 1e-6), ("float64", 1e-12)])
def test_numpy_keeps_its_dtype(dtype, close, layout):
    x = vectors(32, 5)
    places = [0, 1, -2, 0.5, 1_000]
    turned = rotate(x.astype(dtype), places, layout=layout)
    assert turned.dtype == dtype and turned.shape == x.shape
    assert np.abs(turned - rotate(x, places, layout=layout)).max() < close


@layouts
@pytest.mark.parametrize(
    ("dtype", "close"), [("bfloat16", 4e-2), ("float16", 4e-3), ("float32", 1e-6), ("float64", 1e-12)]
)
def test_torch_gives_what_numpy_gives_in_every_dtype(dtype, close, layout):
    torch = torch_or_skip()
    x, places = vectors(32, 5, front=(2, 3)), [0, 1, -2, 0.5, 1_000_000]
    given = torch.from_numpy(x).to(getattr(torch, dtype))
    turned = rotate(given, torch.tensor(places, dtype=torch.float64), layout=layout)
    assert turned.dtype == given.dtype and turned.shape == given.shape
    assert (turned.double() - torch.from_numpy(rotate(x, places, layout=layout))).abs().max() < close


def test_gradients_turn_back():
    torch = torch_or_skip()
    x = torch.randn(4, 8, dtype=torch.float64, requires_grad=True)
    pull = torch.randn(4, 8, dtype=torch.float64)
    (rotate(x, range(4)) * pull).sum().backward()
    assert torch.allclose(x.grad, rotate(pull, [0, -1, -2, -3]))


@layouts
def test_each_text_of_a_batch_may_have_its_own_places(layout):
    x = vectors(8, 5, front=(3, 2))  # (batch, heads, n, d)
    places = np.array([range(5), range(-2, 3), range(100, 105)])  # (batch, n)
    turned = rotate(x, places[:, None], layout=layout)
    for b in range(3):
        for head in range(2):
            assert (turned[b, head] == rotate(x[b, head], places[b], layout=layout)).all()
    assert (rotate(x[0, 0, 1], 1, layout=layout) == turned[0, 0, 1]).all()  # one vector, one place


def test_the_argument_is_left_alone():
    x = vectors(8, 3)
    before = x.copy()
    rotate(x, range(3))
    assert (x == before).all()


def test_importing_loads_no_torch():
    code = "import course_utils.science.positions, course_utils.science.attention, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ---- refusals --------------------------------------------------------------------------------------------------

X = np.ones((3, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rotate(np.ones((3, 5)), range(3)), "head_dim is 5: .* even whole number"),
        (lambda: rotate(X, range(4)), r"positions of shape \(4,\) don't fit x of shape \(3, 4\): .* each of the 3"),
        (lambda: rotate(X, [[0, 1, 2]]), r"positions of shape \(1, 3\) don't fit"),  # would add an axis
        (lambda: rotate(X[0], range(3)), r"positions of shape \(3,\) don't fit x of shape \(4,\): .* each of the 1"),
        (lambda: rotate(np.ones(()), 0), r"x has the shape \(\)"),
        (lambda: rotate(np.ones((3, 0)), range(3)), r"x has the shape \(3, 0\)"),
        (lambda: rotate(X, [0, 1, math.nan]), "positions hold NaN or infinity"),
        (lambda: rotate(X, [0, 1, -math.inf]), "positions hold NaN or infinity"),
        (lambda: rotate(X, ["a", "b", "c"]), "positions hold <U1: give numbers"),
        (lambda: rotate(X, range(3), layout="split"), "layout 'split': use 'interleaved' or 'half-split'"),
        (lambda: rotate(X, range(3), base=0), "base is 0: it sets how far the wavelengths reach, .* above 0"),
        (lambda: rotate(X, range(3), base=-2.0), "base is -2.0"),
        (lambda: rotate(X, range(3), base=math.nan), "base is nan"),
        (lambda: rotate(X, range(3), base=math.inf), "base is inf"),
        (lambda: rotate(np.ones((3, 4), dtype=int), range(3)), "x holds int64: give floating-point"),
        (lambda: rotate([[1.0, 2.0]], [0]), "x is of type list: give a numpy array or a torch tensor"),
        (lambda: sinusoids(range(3), 7), "d_model is 7"),
        (lambda: sinusoids(range(3), 8, layout="halves"), "layout 'halves'"),
        (lambda: sinusoids([True, False], 8), "positions hold bool: give numbers"),
        (lambda: rope_frequencies(0), "head_dim is 0"),
        (lambda: rope_frequencies(4.0), "head_dim is 4.0"),
        (lambda: half_split_order(3), "d is 3"),
        (lambda: interleaved_order(-2), "d is -2"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- ALiBi and T5 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_heads", [1, 2, 3, 6, 8, 12, 16, 20, 71])
def test_slopes_are_blooms(n_heads):
    transformers_or_skip()
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    theirs = build_alibi_tensor(torch_or_skip().ones(1, 2), n_heads, torch_or_skip().float32)[:, 0, 1]
    np.testing.assert_allclose(alibi_slopes(n_heads), theirs.numpy(), rtol=1e-6)


def test_slopes_of_the_paper():
    assert alibi_slopes(8).tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


@given(st.integers(1, 128))
def test_slopes_are_one_a_head_and_differ(n_heads):
    slopes = alibi_slopes(n_heads)
    assert slopes.shape == (n_heads,) and len(set(slopes)) == n_heads
    assert (slopes > 0).all() and (slopes < 1).all()


@given(PLACES, st.floats(-100, 100), st.integers(1, 9))
def test_alibi_sees_distances_alone(places, shift, n_heads):
    bias = alibi_bias(places, n_heads)
    assert bias.shape == (n_heads, len(places), len(places)) and (bias <= 0).all()
    np.testing.assert_allclose(bias, alibi_bias(np.array(places) + shift, n_heads), atol=1e-8)
    assert (np.diagonal(bias, axis1=1, axis2=2) == 0).all()


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (32, 24), (8, 20), (64, 1_000)])
def test_buckets_are_t5s(n_buckets, max_distance, causal):
    transformers_or_skip()
    torch = torch_or_skip()
    from transformers.models.t5.modeling_t5 import T5Attention

    offsets = np.arange(-1_500, 1_501)  # T5 counts the other way round: key minus query
    theirs = T5Attention._relative_position_bucket(torch.tensor(-offsets), not causal, n_buckets, max_distance)
    ours = t5_buckets(offsets, n_buckets, max_distance, causal)
    differ = offsets[ours != theirs.numpy()]
    # theirs rounds a logarithm in float32: at the exact edge of a bucket that may fall to either side
    assert len(differ) <= 4 and np.abs(ours - theirs.numpy()).max() <= 1


@given(st.lists(st.integers(-2_000, 2_000), min_size=1), st.booleans())
def test_buckets_are_in_range_and_grow_with_the_distance(offsets, causal):
    buckets = t5_buckets(sorted(offsets), causal=causal)
    assert (0 <= buckets).all() and (buckets < 32).all()
    earlier = t5_buckets(sorted(abs(o) for o in offsets), causal=causal)
    assert (np.diff(earlier) >= 0).all()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: alibi_slopes(0), "n_heads is 0"),
        (lambda: alibi_slopes(2.5), "n_heads is 2.5"),
        (lambda: alibi_bias([0, math.nan], 2), "NaN or infinity"),
        (lambda: t5_buckets([1], 6), "multiple of 4"),
        (lambda: t5_buckets([1], 32, 16), "above the 16"),
        (lambda: t5_buckets([math.inf]), "NaN or infinity"),
    ],
)
def test_schemes_for_scores_refuse_what_they_cannot_use(call, says):
    with pytest.raises(ValueError, match=says):
        call()
