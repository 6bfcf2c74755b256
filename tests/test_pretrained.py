"""Real models' tables: the published weights, read without importing the package; what is amiss is said in words."""

import hashlib
import shutil
import sys

import numpy as np
import pytest

from course_utils.science import pretrained
from course_utils.science.pretrained import MINILM_PACKAGE, ModelMissing, available, minilm_tables

needs_minilm = pytest.mark.skipif(
    not available(), reason=f"{MINILM_PACKAGE} is not installed: python -m course_utils setup"
)


@needs_minilm
def test_the_tables_are_those_that_were_published():
    tables = minilm_tables()
    assert (tables.words.shape, tables.positions.shape) == ((30_522, 384), (512, 384))
    assert tables.words.dtype == tables.positions.dtype == np.float32
    assert len(tables.tokens) == 30_522
    assert (tables.tokens[101], tables.tokens[2_924]) == ("[CLS]", "bank")  # ids of BERT's uncased vocabulary
    assert MINILM_PACKAGE not in sys.modules


@needs_minilm
def test_the_tables_are_those_that_torch_reads():
    torch_files = pytest.importorskip("safetensors.torch", reason="torch is missing: python -m course_utils setup")
    weights = torch_files.load_file(pretrained.package_folder(MINILM_PACKAGE) / "model" / "model.safetensors")
    assert (weights["embeddings.word_embeddings.weight"].numpy() == minilm_tables().words).all()
    assert (weights["embeddings.position_embeddings.weight"].numpy() == minilm_tables().positions).all()


def test_an_absent_package_is_named(monkeypatch):
    monkeypatch.setattr(pretrained, "MINILM_PACKAGE", "a_model_that_is_not_there")
    with pytest.raises(
        ModelMissing, match="a_model_that_is_not_there is not installed: run 'python -m course_utils setup'"
    ):
        minilm_tables()


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A small package of the same layout, first on the path."""
    model = tmp_path / "some_model" / "model"
    model.mkdir(parents=True)
    (tmp_path / "some_model" / "__init__.py").write_text("raise RuntimeError('never imported')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(pretrained, "MINILM_PACKAGE", "some_model")
    return model


def test_damaged_weights_are_refused(copied):
    (copied / "model.safetensors").write_bytes(b"not the published weights")
    with pytest.raises(ModelMissing, match="some_model is damaged: sha256 of model.safetensors is"):
        minilm_tables()


def test_missing_weights_are_named(copied):
    with pytest.raises(ModelMissing, match="some_model can't be read"):
        minilm_tables()


def test_weights_of_the_right_hash_but_no_tables_are_refused(copied, monkeypatch):
    content = b"a file that is no safetensors"
    (copied / "model.safetensors").write_bytes(content)
    monkeypatch.setattr(pretrained, "MINILM_SHA256", hashlib.sha256(content).hexdigest())
    with pytest.raises(ModelMissing, match="some_model can't be read"):
        minilm_tables()


@needs_minilm
def test_a_missing_vocabulary_is_named(copied):
    source = pretrained.package_folder(MINILM_PACKAGE) / "model" / "model.safetensors"
    shutil.copyfile(source, copied / "model.safetensors")
    with pytest.raises(ModelMissing, match="some_model can't be read"):
        minilm_tables()
