"""MiniLM: agrees with transformers' BERT at every stage; positions can be chosen or left out; says what is missing."""

import builtins

import numpy as np
import pytest

from course_utils.science import minilm, pretrained
from course_utils.science.minilm import load_minilm
from course_utils.science.pretrained import MINILM_PACKAGE, ModelMissing, available

torch = pytest.importorskip("torch", reason="torch is missing: python -m course_utils setup")
needs_minilm = pytest.mark.skipif(
    not available(), reason=f"{MINILM_PACKAGE} is not installed: python -m course_utils setup"
)
TEXT = "The dog bites the man, unbelievably: mèo đuổi chuột!"


@pytest.fixture(scope="module")
def model():
    return load_minilm()


@pytest.fixture
def fresh():
    """load_minilm as if it had not been called yet, before and after."""
    load_minilm.cache_clear()
    yield
    load_minilm.cache_clear()


@needs_minilm
def test_every_stage_and_every_weight_is_that_of_transformers(model):
    bert = pytest.importorskip("transformers", reason="transformers is missing: python -m course_utils test").BertModel
    theirs = bert.from_pretrained(
        pretrained.package_folder(MINILM_PACKAGE) / "model", attn_implementation="eager", local_files_only=True
    ).eval()
    ids = model.encode(TEXT)
    with torch.no_grad():
        expected = theirs(torch.tensor([ids]), output_hidden_states=True, output_attentions=True)
    ours = model.run(ids)
    assert len(ours.streams) == len(expected.hidden_states) == 7 and len(ours.weights) == 6
    for own, other in zip(ours.streams, expected.hidden_states, strict=True):
        torch.testing.assert_close(own, other[0], atol=2e-5, rtol=0)
    for own, other in zip(ours.weights, expected.attentions, strict=True):
        torch.testing.assert_close(own, other[0], atol=1e-5, rtol=0)
    assert ours.stream is ours.streams[-1]


@needs_minilm
def test_the_tokenizer_is_that_of_transformers(model):
    transformers = pytest.importorskip("transformers", reason="transformers is missing: python -m course_utils test")
    theirs = transformers.AutoTokenizer.from_pretrained(
        pretrained.package_folder(MINILM_PACKAGE) / "model", local_files_only=True
    )
    for text in (TEXT, "", "Ann owes Peter £40 — naïve?", "đá", "word " * 300):
        assert model.encode(text) == theirs(text)["input_ids"]
    assert model.tokens(model.encode("mèo")) == ["[CLS]", "me", "##o", "[SEP]"]


@needs_minilm
def test_without_positions_it_is_blind_to_order_and_with_them_it_is_not(model):
    ids = np.array(model.encode("dog bites man"))
    swap = [0, 3, 2, 1, 4]
    blind = model.run(ids[swap], None).stream - model.run(ids, None).stream[swap]
    assert blind.abs().max() < 1e-5
    assert (model.run(ids[swap]).stream - model.run(ids).stream[swap]).abs().max() > 0.1


@needs_minilm
def test_positions_are_rows_of_the_table(model):
    ids = model.encode("dog bites man")
    in_order = model.run(ids).stream
    assert (model.run(ids, range(5)).stream == in_order).all()
    assert (model.run(ids, [507, 508, 509, 510, 511]).stream - in_order).abs().max() > 0.1


@needs_minilm
@pytest.mark.parametrize(
    ("ids", "positions", "message"),
    [
        ([], None, "ids: give one list of whole numbers from 0 to 30,521"),
        ([30_522], None, "ids: give one list"),
        ([-1], None, "ids: give one list"),
        ([1.5], None, "ids: give one list"),
        ([[1, 2]], None, "ids: give one list"),
        ([1, 2], [0], "1 positions for 2 tokens"),
        ([1, 2], [0, 512], "positions: give one list of whole numbers from 0 to 511"),
        ([1, 2], [0, 0.5], "positions: give one list"),
        ([1, 2], "reversed", "positions 'reversed': give one row a token, 'in order', or None"),
        ([1] * 513, "in order", "positions: give one list of whole numbers from 0 to 511"),
    ],
)
def test_what_it_cannot_run_is_refused(model, ids, positions, message):
    with pytest.raises(ValueError, match=message):
        model.run(ids, positions)


def test_an_absent_package_is_named(monkeypatch, fresh):
    monkeypatch.setattr(pretrained, "MINILM_PACKAGE", "a_model_that_is_not_there")
    with pytest.raises(ModelMissing, match="a_model_that_is_not_there is not installed: run"):
        load_minilm()


@pytest.mark.parametrize("library", ["torch", "tokenizers"])
def test_an_absent_library_is_named(monkeypatch, fresh, library):
    def refuse(name, *rest, real=builtins.__import__, **more):
        if name == library:
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ModelMissing, match=f"MiniLM can't run here .*{library}.*: run 'python -m course_utils setup'"):
        load_minilm()


@needs_minilm
@pytest.mark.parametrize("tokenizer", [None, "not a tokenizer"])
def test_a_missing_or_damaged_tokenizer_is_named(tmp_path, monkeypatch, fresh, tokenizer):
    folder = tmp_path / "model"
    folder.mkdir()
    weights = pretrained.package_folder(MINILM_PACKAGE) / "model" / "model.safetensors"
    if tokenizer is not None:
        (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    monkeypatch.setattr(minilm, "package_folder", lambda name: tmp_path)
    monkeypatch.setattr(minilm, "checked", lambda *file_and_sha: weights)
    with pytest.raises(ModelMissing, match=f"{MINILM_PACKAGE} can't be read"):
        load_minilm()
