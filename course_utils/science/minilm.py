"""all-MiniLM-L6-v2, a real encoder with a learned position table, run by a forward pass that reads like the papers.

A token's vector, the stream, has 384 numbers. At the input three rows are added and normed: the token's, its
position's, and one that all tokens of a first text share (Devlin et al. 2019, BERT, section 3). Then 6 blocks, with
the norm after each sum, as in Vaswani et al. 2017, section 3.1, and no mask: every token sees every other.

    x = norm(x + attention(x))      12 heads of 32 numbers
    x = norm(x + mlp(x))            384 -> 1536 -> 384, with GELU

    model = load_minilm()
    ids = model.encode("Dog bites man.")
    model.run(ids).stream, model.run(ids, positions=None).stream

The model: Wang et al. 2020, MiniLM; its tuning for sentences: the model card of all-MiniLM-L6-v2 (Apache-2.0).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors import safe_open

from course_utils.science import pretrained
from course_utils.science.attention import attention_weights, merge_heads, split_heads
from course_utils.science.pretrained import ModelMissing, checked, missing, package_folder

if TYPE_CHECKING:
    from torch import Tensor

LAYERS, HEADS, EPSILON = 6, 12, 1e-12
PARTS = ("query", "key", "value")
IN_ORDER = "in order"  # positions 0, 1, 2, ...


@dataclass(frozen=True)
class Pass:
    """What one pass over n tokens left.

    stream (n, 384): each token's vector after the last block. streams: all 7 stages, the first being the normed sum
    at the input. weights: each block's attention (heads, n, n), row i being token i's.
    """

    stream: "Tensor"
    streams: tuple["Tensor", ...]
    weights: tuple["Tensor", ...]


class MiniLM:
    """The model: tokenizer (of the library tokenizers), words (30522, 384), places (512, 384), the other tensors."""

    def __init__(self, tokenizer: Any, tensors: dict[str, "Tensor"]):
        self.tokenizer = tokenizer
        self.tensors = tensors
        self.words = tensors["embeddings.word_embeddings.weight"]
        self.places = tensors["embeddings.position_embeddings.weight"]

    def encode(self, text: str) -> list[int]:
        """The ids of a text's WordPiece tokens, between [CLS] and [SEP]. Case and accents are dropped."""
        return self.tokenizer.encode(text).ids

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The tokens' texts; a piece that goes on within a word starts with ##."""
        return [self.tokenizer.id_to_token(int(i)) for i in ids]

    def run(self, ids: Sequence[int], positions: ArrayLike | str | None = IN_ORDER) -> Pass:
        """Send n tokens through the model.

        positions: the position table's row for each token; "in order" is 0, 1, 2, ...; None adds no position.
        Raises ValueError for no ids, ids outside the table, and positions that are not n of its rows.
        """
        import torch

        ids = _rows("ids", ids, len(self.words))
        with torch.no_grad():
            x = self.words[ids] + self.tensors["embeddings.token_type_embeddings.weight"][0]  # (n, 384)
            if positions is not None:
                x = x + self.places[self._positions(positions, len(ids))]
            streams, all_weights = [self._norm(x, "embeddings.LayerNorm")], []
            for i in range(LAYERS):
                x, weights = self._block(streams[-1], f"encoder.layer.{i}")
                streams.append(x)
                all_weights.append(weights)
        return Pass(x, tuple(streams), tuple(all_weights))

    def _block(self, x: "Tensor", name: str) -> tuple["Tensor", "Tensor"]:
        """x (n, 384) -> x after the block, and the attention's weights (heads, n, n)."""
        import torch

        q, k, v = (split_heads(self._linear(x, f"{name}.attention.self.{part}"), HEADS) for part in PARTS)
        weights = attention_weights(q, k)  # (heads, n, n)
        mixed = self._linear(merge_heads(weights @ v), f"{name}.attention.output.dense")
        x = self._norm(x + mixed, f"{name}.attention.output.LayerNorm")
        hidden = torch.nn.functional.gelu(self._linear(x, f"{name}.intermediate.dense"))  # (n, 1536)
        return self._norm(x + self._linear(hidden, f"{name}.output.dense"), f"{name}.output.LayerNorm"), weights

    def _linear(self, x: "Tensor", name: str) -> "Tensor":
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def _norm(self, x: "Tensor", name: str) -> "Tensor":
        import torch

        gain, shift = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        return torch.nn.functional.layer_norm(x, x.shape[-1:], gain, shift, EPSILON)

    def _positions(self, positions: ArrayLike | str, n: int) -> NDArray[np.int64]:
        if isinstance(positions, str):
            if positions != IN_ORDER:
                raise ValueError(f"positions {positions!r}: give one row a token, {IN_ORDER!r}, or None for none")
            positions = np.arange(n)
        rows = _rows("positions", positions, len(self.places))
        if len(rows) != n:
            raise ValueError(f"{len(rows)} positions for {n} tokens: give one for each token")
        return rows


def _rows(name: str, numbers: ArrayLike, most: int) -> NDArray[np.int64]:
    rows = np.asarray(numbers)
    if rows.ndim != 1 or not rows.size or rows.dtype.kind not in "iu" or not 0 <= rows.min() <= rows.max() < most:
        raise ValueError(f"{name}: give one list of whole numbers from 0 to {most - 1:,}, at least one")
    return rows.astype(np.int64)


@cache
def load_minilm() -> MiniLM:
    """MiniLM, 91 MB of float32. Raises ModelMissing, in one line, where package or PyTorch is missing or damaged."""
    try:
        import torch  # noqa: F401
        from tokenizers import Tokenizer
    except (ImportError, OSError) as error:  # OSError: Windows without the Visual C++ runtime
        raise ModelMissing(
            f"MiniLM can't run here ({error}): run 'python -m course_utils setup' and restart the kernel"
        ) from error
    package = pretrained.MINILM_PACKAGE
    folder = package_folder(package) / "model"
    weights = checked(folder / "model.safetensors", pretrained.MINILM_SHA256, package)
    try:
        with safe_open(weights, framework="pt") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}
        tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
    except Exception as error:  # OSError, SafetensorError; of a damaged tokenizer.json no narrower one
        raise missing(package, f"can't be read ({error})") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return MiniLM(tokenizer, tensors)
