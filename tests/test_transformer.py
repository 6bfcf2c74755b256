"""The small Transformer: against torch's and transformers' own, and by what must hold whatever the weights are."""

import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is missing: python -m course_utils setup")

from course_utils.science.positions import alibi_bias, sinusoids  # noqa: E402
from course_utils.science.transformer import Config, Scheme, Transformer  # noqa: E402

SCHEMES = get_args(Scheme)
SMALL = Config(vocab_size=11, d_model=16, n_layers=2, n_heads=4, max_len=12, tied=False)
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]])
CLOSE = {"rtol": 0, "atol": 1e-12}
every_scheme = pytest.mark.parametrize("scheme", SCHEMES)


def transformers_or_skip():
    return pytest.importorskip("transformers", reason="transformers is missing: python -m course_utils setup")


def small(scheme="rope", seed=0, **choices):
    """A model in float64 whose weights are large enough for every part to matter."""
    torch.manual_seed(seed)
    model = Transformer(replace(SMALL, scheme=scheme, **choices)).double()
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(std=0.4)
    return model.requires_grad_(False)


def vectors(n=8, d=16, seed=1):
    return torch.randn(2, n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


# ---- against others --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [True, False])
def test_a_block_is_torchs_encoder_layer_with_norms_first(causal):
    block = small("none", causal=causal).blocks[0]
    theirs = torch.nn.TransformerEncoderLayer(
        16, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True, dtype=torch.float64
    )
    parts = block.attention
    theirs.self_attn.in_proj_weight.data = torch.cat([parts.q.weight, parts.k.weight, parts.v.weight])
    theirs.self_attn.in_proj_bias.data.zero_()
    theirs.self_attn.out_proj.weight.data = parts.out.weight
    theirs.self_attn.out_proj.bias.data.zero_()
    for own, other in [("norm1", "norm1"), ("norm2", "norm2")]:
        getattr(theirs, other).load_state_dict(getattr(block, own).state_dict())
    theirs.linear1.load_state_dict(block.mlp[0].state_dict())
    theirs.linear2.load_state_dict(block.mlp[2].state_dict())
    mask = torch.triu(torch.full((8, 8), -math.inf, dtype=torch.float64), 1) if causal else torch.zeros(8, 8).double()
    x = vectors()
    torch.testing.assert_close(block(x, np.arange(8), mask[None])[0], theirs(x, src_mask=mask), **CLOSE)


def test_with_learned_positions_it_is_gpt2():
    transformers = transformers_or_skip()
    model = small("learned", tied=True)
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=11, n_positions=12, n_embd=16, n_layer=2, n_head=4, activation_function="gelu",
            attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, bos_token_id=0, eos_token_id=0,
        )
    ).double().eval()  # fmt: skip
    body = theirs.transformer
    body.wte.weight.data, body.wpe.weight.data = model.tokens.weight, model.positions.weight
    for block, other in zip(model.blocks, body.h, strict=True):
        parts = block.attention
        qkv = torch.cat([parts.q.weight, parts.k.weight, parts.v.weight])
        for conv, weight in [(other.attn.c_attn, qkv), (other.attn.c_proj, parts.out.weight)]:
            conv.weight.data = weight.T.contiguous()  # GPT-2 stores (in, out)
            conv.bias.data.zero_()
        for conv, linear in [(other.mlp.c_fc, block.mlp[0]), (other.mlp.c_proj, block.mlp[2])]:
            conv.weight.data, conv.bias.data = linear.weight.T.contiguous(), linear.bias
        other.ln_1.load_state_dict(block.norm1.state_dict())
        other.ln_2.load_state_dict(block.norm2.state_dict())
    body.ln_f.load_state_dict(model.norm.state_dict())
    theirs.tie_weights()
    with torch.no_grad():
        torch.testing.assert_close(model(IDS), theirs(IDS).logits, **CLOSE)


def test_with_rope_its_attention_is_llamas():
    transformers = transformers_or_skip()
    from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

    model = small("rope")
    config = transformers.LlamaConfig(hidden_size=16, num_attention_heads=4, num_key_value_heads=4)
    config._attn_implementation = "eager"
    theirs, own = LlamaAttention(config, 0).double(), model.blocks[0].attention
    for name, part in [("q_proj", own.q), ("k_proj", own.k), ("v_proj", own.v), ("o_proj", own.out)]:
        getattr(theirs, name).weight.data = part.weight
    x, places = vectors(), torch.arange(3, 11)
    cos, sin = (table.double() for table in LlamaRotaryEmbedding(config)(x, places[None]))
    mask = model._score_bias(np.arange(8), x)
    with torch.no_grad():
        expected = theirs(x, position_embeddings=(cos, sin), attention_mask=mask[None])[0]
    got, _ = own(x, places.numpy(), mask)
    torch.testing.assert_close(got, expected, rtol=0, atol=2e-5)  # Llama's angles are float32


@pytest.mark.parametrize("causal", [True, False])
def test_with_buckets_its_attention_is_t5s(causal):
    transformers = transformers_or_skip()
    from transformers.models.t5.modeling_t5 import T5Attention

    model = small("t5", causal=causal, n_buckets=8, max_distance=6)
    config = transformers.T5Config(
        d_model=16, d_kv=4, num_heads=4, dropout_rate=0.0, is_decoder=causal,
        relative_attention_num_buckets=8, relative_attention_max_distance=6,
    )  # fmt: skip
    config._attn_implementation = "eager"
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).double().eval()
    own = model.blocks[0].attention
    theirs.q.weight.data = own.q.weight / math.sqrt(4)  # T5 leaves 1/sqrt(head_dim) to its weights
    for name, part in [("k", own.k), ("v", own.v), ("o", own.out)]:
        getattr(theirs, name).weight.data = part.weight
    theirs.relative_attention_bias.weight.data = model.offset_bias.weight
    x, places = vectors(), np.arange(8)
    bias = theirs.compute_bias(8, 8)
    if causal:
        bias = bias + torch.triu(torch.full((8, 8), -math.inf, dtype=torch.float64), 1)
    with torch.no_grad():
        expected = theirs(x, position_bias=bias)[0]
    torch.testing.assert_close(own(x, places, model._score_bias(places, x))[0], expected, **CLOSE)


@pytest.mark.parametrize("n_heads", [4, 8, 16])
def test_with_alibi_its_weights_are_blooms(n_heads):
    transformers_or_skip()
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    model = small("alibi", n_heads=n_heads)
    own, x = model.blocks[0].attention, vectors()
    _, weights = own(x, np.arange(8), model._score_bias(np.arange(8), x))
    q, k = (part(x).reshape(2, 8, n_heads, -1).transpose(1, 2) for part in (own.q, own.k))
    theirs = build_alibi_tensor(torch.ones(1, 8), n_heads, torch.float64)[None]  # (1, heads, 1, seq): a number a key
    scores = q @ k.mT / math.sqrt(16 // n_heads) + theirs + torch.triu(torch.full((8, 8), -math.inf), 1)
    torch.testing.assert_close(weights, scores.softmax(-1), rtol=0, atol=1e-6)  # BLOOM's slopes are float32


def test_the_input_of_each_scheme_that_acts_there():
    ids, places = IDS[:, :5], np.array([0, 1, 4, 7, 11])
    for scheme in ("none", "rope", "alibi", "t5"):
        model = small(scheme)
        torch.testing.assert_close(model.embed(ids, places), model.tokens.weight[ids], **CLOSE)
    model = small("sinusoidal")
    expected = 4 * model.tokens.weight[ids] + torch.as_tensor(sinusoids(places, 16))  # sqrt(16)
    torch.testing.assert_close(model.embed(ids, places), expected, **CLOSE)
    model = small("learned")
    expected = model.tokens.weight[ids] + model.positions.weight[places]
    torch.testing.assert_close(model.embed(ids, places), expected, **CLOSE)
    model = small("concat")
    torch.testing.assert_close(model.embed(ids, places)[..., :8], model.tokens.weight[ids], **CLOSE)
    torch.testing.assert_close(model.embed(ids, places)[1, :, 8:], model.positions.weight[places], **CLOSE)
    model = small("index", index_scale=0.5)
    torch.testing.assert_close(model.embed(ids, places)[..., :15], model.tokens.weight[ids], **CLOSE)
    assert model.embed(ids, places)[1, :, 15].tolist() == [0, 0.5, 2, 3.5, 5.5]


# ---- properties ------------------------------------------------------------------------------------------------


@every_scheme
def test_a_later_token_changes_nothing_earlier(scheme):
    model, changed = small(scheme), IDS.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 11
    before, after = model(IDS), model(changed)
    torch.testing.assert_close(after[:, :5], before[:, :5], **CLOSE)
    assert (after[:, 5:] - before[:, 5:]).abs().amax(-1).min() > 1e-3


@every_scheme
def test_without_the_mask_a_later_token_is_seen(scheme):
    model, changed = small(scheme, causal=False), IDS.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 11
    assert (model(changed) - model(IDS))[:, :5].abs().amax(-1).min() > 1e-4


@every_scheme
def test_an_encoder_without_positions_is_equivariant_and_no_other_is(scheme):
    model, order = small(scheme, causal=False), torch.tensor([3, 0, 7, 1, 2, 6, 5, 4])
    gap = (model(IDS[:, order]) - model(IDS)[:, order]).abs().max()
    assert gap < 1e-12 if scheme == "none" else gap > 1e-3
    # what moves with its position is the same text, whatever the scheme
    moved = model(IDS[:, order], positions=np.arange(8)[order]) - model(IDS)[:, order]
    assert moved.abs().max() < 1e-12


@every_scheme
def test_which_schemes_see_offsets_alone(scheme):
    model = small(scheme)
    gap = (model(IDS, np.arange(8) + 3) - model(IDS)).abs().max()
    assert gap < 1e-11 if scheme in ("none", "alibi", "t5", "rope") else gap > 1e-3


@every_scheme
def test_a_trace_holds_the_parts_that_add_up(scheme):
    model = small(scheme)
    trace = model.trace(IDS)
    assert len(trace.streams) == 3 and len(trace.weights) == 2
    torch.testing.assert_close(trace.streams[0], model.embed(IDS), **CLOSE)
    for weights in trace.weights:
        assert weights.shape == (2, 4, 8, 8) and not weights.triu(1).any()
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 8).double(), **CLOSE)
    torch.testing.assert_close(model.encode(IDS), model.norm(trace.streams[-1]), **CLOSE)
    torch.testing.assert_close(model.encode(IDS) @ model.output.weight.T, model(IDS), **CLOSE)


@every_scheme
def test_every_weight_gets_a_gradient(scheme):
    torch.manual_seed(0)
    model = Transformer(replace(SMALL, scheme=scheme))
    model(IDS).logsumexp(-1).sum().backward()
    for name, weights in model.named_parameters():
        assert weights.grad is not None and weights.grad.abs().max() > 0, name


def test_tied_is_one_table_and_untied_two():
    tied, untied = small(tied=True), small(tied=False)
    assert tied.output.weight is tied.tokens.weight
    assert untied.output.weight is not untied.tokens.weight
    assert sum(p.numel() for p in untied.parameters()) - sum(p.numel() for p in tied.parameters()) == 11 * 16


def test_the_seed_fixes_the_start_and_the_tables_start_as_gpt2s():
    models = []
    for _ in range(2):
        torch.manual_seed(5)
        models.append(Transformer(Config(2_000, scheme="learned", max_len=500, position_std=0.01)))
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(one, other)
    assert models[0].tokens.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert models[0].positions.weight.std().item() == pytest.approx(0.01, rel=0.03)


def test_alibis_penalty_stands_in_the_scores():
    model = small("alibi", causal=False)
    bias = model._score_bias(np.arange(8), vectors())
    np.testing.assert_allclose(bias.numpy(), alibi_bias(range(8), 4))


# ---- what it refuses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["learned", "concat"])
def test_past_the_table_it_says_where_the_table_ends(scheme):
    model = small(scheme)
    with pytest.raises(
        ValueError, match="position 12 is past the table's last row 11: give whole numbers from 0 to 11"
    ):
        model(torch.zeros(1, 13, dtype=torch.long))
    for place in (-1, 0.5):
        with pytest.raises(ValueError, match=f"position {place} is no row of the table"):
            model(IDS[:, :1], [place])


@pytest.mark.parametrize("ids", [[[11]], [[-1]], [[]], [1, 2], [[0.5]], [[True]]])
def test_ids_without_a_row_are_refused(ids):
    for given in (torch.tensor(ids), np.array(ids), ids):
        with pytest.raises(ValueError, match="ids: give a tensor of whole numbers from 0 to 10"):
            small()(given)


@pytest.mark.parametrize("positions", [range(7), [math.nan] * 8, [math.inf] * 8, ["0"] * 8])
def test_positions_that_are_no_numbers_are_refused(positions):
    with pytest.raises(ValueError, match="one finite number for each of 8 tokens"):
        small()(IDS, positions)


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"vocab_size": 0}, "vocab_size is 0"),
        ({"n_layers": 0}, "n_layers is 0"),
        ({"max_len": -1}, "max_len is -1"),
        ({"n_heads": 2.0}, "n_heads is 2.0"),
        ({"base": math.nan}, "base is nan: give a finite number above 0"),
        ({"position_std": 0}, "position_std is 0"),
        ({"index_scale": math.inf}, "index_scale is inf"),
        ({"n_heads": 16}, "'rope' works on pairs: 16 / 16"),
        ({"scheme": "sinusoidal", "d_model": 15, "n_heads": 3}, "'sinusoidal' works on pairs: 15 / 1"),
        ({"n_heads": 3}, "d_model = 16 can't be cut into n_heads = 3"),
        ({"scheme": "clock"}, "scheme 'clock': use one of none, sinusoidal"),
        ({"scheme": "concat", "tied": True}, "tied=False"),
        ({"scheme": "index", "tied": True}, "tied=False"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(choices, says):
    with pytest.raises(ValueError, match=says):
        replace(SMALL, **choices)
