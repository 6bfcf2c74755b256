"""A small Transformer in which one thing can be changed: how a token's place gets in.

    x = token rows, with or without positions           (batch, seq, d_model)
    x = x + attention(norm(x))                           in each block
    x = x + mlp(norm(x))
    logits = norm(x) times the output table              (batch, seq, vocab_size)

Causal it is a decoder, GPT-2's layout (Radford et al. 2019, section 2.3: norms before each part and after the last
block); without the mask an encoder. The attention is that of Vaswani et al. 2017, section 3.2.

Where each position scheme acts:

    none                   nowhere
    sinusoidal, learned    at the input: a row for the place is added to the token's row
    concat, index          at the input: some of the d_model numbers belong to the place, the others to the token
    alibi, t5              at the scores: a number is added for the offset between query and key
    rope                   at queries and keys: both are rotated by their places
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from course_utils.science.attention import attention_scores, causal_mask, merge_heads, split_heads
from course_utils.science.positions import alibi_bias, offsets, rotate, sinusoids, t5_buckets

Scheme = Literal["none", "sinusoidal", "learned", "concat", "index", "alibi", "t5", "rope"]
WITH_TABLE = ("learned", "concat")  # schemes that look a position's row up


@dataclass(frozen=True)
class Config:
    """The model's sizes and choices. Raises ValueError, naming the field, where they don't go together."""

    vocab_size: int  # V: rows of the token table
    d_model: int = 64  # numbers in a token's vector
    n_layers: int = 2
    n_heads: int = 4  # each of d_model / n_heads numbers
    scheme: Scheme = "rope"
    causal: bool = True  # nobody sees what comes later
    tied: bool = True  # the token table is also the output table
    max_len: int = 64  # learned, concat: rows of the position table
    position_std: float = 0.02  # learned, concat: spread of its rows at the start
    index_scale: float = 1.0  # index: the number written is position * index_scale
    base: float = 10_000.0  # sinusoidal, rope: theta_i = base^(-2i/d)
    n_buckets: int = 32  # t5: buckets of offsets
    max_distance: int = 128  # t5: offsets from here on share the last bucket

    def __post_init__(self) -> None:
        for name in ("vocab_size", "d_model", "n_layers", "n_heads", "max_len", "n_buckets", "max_distance"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value}: give a whole number, 1 or more")
        for name in ("position_std", "index_scale", "base"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}: give a finite number above 0")
        if self.scheme not in get_args(Scheme):
            raise ValueError(f"scheme {self.scheme!r}: use one of {', '.join(get_args(Scheme))}")
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model = {self.d_model} can't be cut into n_heads = {self.n_heads} equal pieces")
        pieces = {"rope": self.n_heads, "sinusoidal": 1, "concat": 1}.get(self.scheme, 0)
        if pieces and self.d_model // pieces % 2:
            raise ValueError(
                f"scheme {self.scheme!r} works on pairs: {self.d_model} / {pieces} numbers have to be even"
            )
        if self.tied and self.place_numbers:
            raise ValueError(f"scheme {self.scheme!r} leaves the token table narrower than d_model: set tied=False")

    @property
    def place_numbers(self) -> int:
        """How many of the d_model numbers at the input belong to the place alone."""
        return {"concat": self.d_model // 2, "index": 1}.get(self.scheme, 0)


class Trace(NamedTuple):
    """All that one pass computed: logits (batch, seq, V); streams, x before the first block and after each,
    (batch, seq, d); weights, each block's attention (batch, heads, seq, seq), row i being token i's shares."""

    logits: Tensor
    streams: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]


class Attention(nn.Module):
    """n_heads times softmax(q k^T / sqrt(head_dim) + bias) v, put side by side and mixed by `out`."""

    def __init__(self, config: Config):
        super().__init__()
        d = config.d_model
        self.config = config
        self.q, self.k, self.v, self.out = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x: Tensor, places: NDArray, bias: Tensor) -> tuple[Tensor, Tensor]:
        """x (batch, seq, d), places (seq,), bias (heads or 1, seq, seq) -> the same shape as x, and the weights."""
        n_heads, base = self.config.n_heads, self.config.base
        q, k, v = (split_heads(part(x), n_heads) for part in (self.q, self.k, self.v))  # (batch, heads, seq, head_dim)
        if self.config.scheme == "rope":
            q, k = rotate(q, places, base), rotate(k, places, base)
        weights = torch.softmax(attention_scores(q, k) + bias, -1)  # (batch, heads, seq, seq)
        return self.out(merge_heads(weights @ v)), weights  # (batch, seq, d)


class Block(nn.Module):
    """Attention lets tokens look at each other, the mlp works on each alone; both add to the stream x."""

    def __init__(self, config: Config):
        super().__init__()
        d = config.d_model
        self.norm1, self.attention = nn.LayerNorm(d), Attention(config)
        self.norm2, self.mlp = nn.LayerNorm(d), nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x: Tensor, places: NDArray, bias: Tensor) -> tuple[Tensor, Tensor]:
        """x (batch, seq, d) -> x after the block, and the attention's weights (batch, heads, seq, seq)."""
        mixed, weights = self.attention(self.norm1(x), places, bias)
        x = x + mixed
        return x + self.mlp(self.norm2(x)), weights


class Transformer(nn.Module):
    """The model. torch.manual_seed before it fixes the weights that it starts from.

    Calling it: ids (batch, seq), whole numbers from 0 to V - 1 -> logits (batch, seq, V). positions (seq,) are
    0, 1, 2, ... unless given. Raises ValueError for ids or positions that the model has no row for.
    """

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        d, width = config.d_model, config.d_model - config.place_numbers
        self.tokens = nn.Embedding(config.vocab_size, width)
        if config.scheme in WITH_TABLE:
            self.positions = nn.Embedding(config.max_len, config.place_numbers or d)
        if config.scheme == "t5":
            self.offset_bias = nn.Embedding(config.n_buckets, config.n_heads)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(d)
        self.output = nn.Linear(d, config.vocab_size, bias=False)
        self._start()

    def forward(self, ids: Tensor, positions: ArrayLike | None = None) -> Tensor:
        """Scores of what comes next after each token: (batch, seq) -> (batch, seq, V)."""
        return self.output(self.encode(ids, positions))

    def encode(self, ids: Tensor, positions: ArrayLike | None = None) -> Tensor:
        """Each token's vector after the last block and norm: (batch, seq) -> (batch, seq, d)."""
        streams, _ = self._run(ids, positions)
        return self.norm(streams[-1])

    def trace(self, ids: Tensor, positions: ArrayLike | None = None) -> Trace:
        """One pass with everything that it computed on the way."""
        streams, weights = self._run(ids, positions)
        return Trace(self.output(self.norm(streams[-1])), tuple(streams), tuple(weights))

    def embed(self, ids: Tensor, positions: ArrayLike | None = None) -> Tensor:
        """What enters the first block: (batch, seq) -> (batch, seq, d)."""
        return self._embed(ids, self._places(ids, positions))

    def _run(self, ids: Tensor, positions: ArrayLike | None) -> tuple[list[Tensor], list[Tensor]]:
        """The streams before the first block and after each, and each block's weights."""
        places = self._places(ids, positions)
        x = self._embed(ids, places)  # (batch, seq, d)
        bias = self._score_bias(places, x)
        streams, all_weights = [x], []
        for block in self.blocks:
            x, weights = block(x, places, bias)
            streams.append(x)
            all_weights.append(weights)
        return streams, all_weights

    def _embed(self, ids: Tensor, places: NDArray) -> Tensor:
        """Token rows, with what the scheme says of the places (seq,): (batch, seq, d)."""
        config = self.config
        rows = self.tokens(ids)  # (batch, seq, d - place_numbers)
        if config.scheme == "sinusoidal":  # Vaswani et al., section 3.4: rows times sqrt(d_model)
            return rows * math.sqrt(config.d_model) + _like(rows, sinusoids(places, config.d_model, config.base))
        if config.scheme == "learned":
            return rows + self._position_rows(places)
        if config.scheme == "concat":
            return _beside(rows, self._position_rows(places))
        if config.scheme == "index":
            return _beside(rows, _like(rows, places[:, None] * config.index_scale))
        return rows

    def _position_rows(self, places: NDArray) -> Tensor:
        """(seq,) -> (seq, d), from the learned table."""
        last = len(self.positions.weight) - 1
        for place in places[(places < 0) | (places > last) | (places != np.floor(places))][:1]:
            fault = f"past the table's last row {last}" if place > last else "no row of the table"
            raise ValueError(
                f"position {place:g} is {fault}: give whole numbers from 0 to {last}, or train a longer table"
            )
        return self.positions(torch.as_tensor(places, dtype=torch.long, device=self.positions.weight.device))

    def _score_bias(self, places: NDArray, x: Tensor) -> Tensor:
        """What is added to every score: -inf where a query may not look, and what the scheme says of the offset.

        (seq,) -> (heads, seq, seq), or (1, seq, seq) where all heads have the same.
        """
        config, n = self.config, len(places)
        allowed = causal_mask(n) if config.causal else np.ones((n, n), dtype=bool)
        bias = _like(x, np.where(allowed, 0.0, -np.inf))[None]  # (1, seq, seq)
        if config.scheme == "alibi":
            return bias + _like(x, alibi_bias(places, config.n_heads))  # (heads, seq, seq)
        if config.scheme == "t5":
            buckets = t5_buckets(offsets(places), config.n_buckets, config.max_distance, config.causal)  # (seq, seq)
            return bias + self.offset_bias(torch.as_tensor(buckets, device=x.device)).permute(2, 0, 1)
        return bias

    def _places(self, ids: Tensor, positions: ArrayLike | None) -> NDArray[np.float64]:
        """Checked positions (seq,), after a check of the ids."""
        V = self.config.vocab_size
        whole = isinstance(ids, Tensor) and ids.dtype in (torch.int64, torch.int32)
        if not whole or ids.ndim != 2 or not ids.numel() or not 0 <= ids.min() <= ids.max() < V:
            raise ValueError(f"ids: give a tensor of whole numbers from 0 to {V - 1}, (batch, seq), at least one")
        places = np.arange(ids.shape[1]) if positions is None else np.asarray(positions)
        if places.shape != (ids.shape[1],) or places.dtype.kind not in "iuf" or not np.isfinite(places).all():
            raise ValueError(
                f"positions of shape {places.shape}: give one finite number for each of {ids.shape[1]} tokens"
            )
        return places.astype(np.float64)

    def _start(self) -> None:
        """Tables from N(0, .02^2), as GPT-2's; sinusoidal: 1/d, so that sqrt(d_model) times a row has unit spread.

        Linear layers keep torch's start. A tied output table is the token table itself.
        """
        std = self.config.d_model**-0.5 if self.config.scheme == "sinusoidal" else 0.02
        nn.init.normal_(self.tokens.weight, std=std)
        nn.init.normal_(self.output.weight, std=0.02)
        if self.config.scheme in WITH_TABLE:
            nn.init.normal_(self.positions.weight, std=self.config.position_std)
        if self.config.scheme == "t5":
            nn.init.normal_(self.offset_bias.weight, std=0.02)
        if self.config.tied:
            self.output.weight = self.tokens.weight


def _like(x: Tensor, array: NDArray) -> Tensor:
    """A numpy array as a tensor of x's dtype and device."""
    return torch.as_tensor(array, dtype=x.dtype, device=x.device)


def _beside(rows: Tensor, places: Tensor) -> Tensor:
    """(batch, seq, a) and (seq, b) side by side: (batch, seq, a + b)."""
    return torch.cat([rows, places.expand(len(rows), -1, -1)], -1)
