"""Training a small model on next-token loss: batches, AdamW, a learning rate that rises and falls. Nothing else.

Loshchilov and Hutter 2019, Decoupled Weight Decay Regularization: AdamW, algorithm 2. Warm-up and a cosine's fall as
in Radford et al. 2018 (GPT), section 4.1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

Batch = tuple[NDArray[np.int64], NDArray[np.int64]]  # ids (batch, seq) and the token that follows each (batch, seq)


@dataclass(frozen=True)
class Recipe:
    """How a model is trained. Raises ValueError for fewer than one step, batch or length."""

    steps: int = 400
    batch: int = 8  # texts a step
    length: int = 64  # L: tokens a text
    lr: float = 3e-3  # the learning rate at its highest
    warmup: int = 50  # steps until it is there
    beta1: float = 0.9  # of AdamW: how much of the running mean of gradients a step keeps
    beta2: float = 0.98  # and of their squares
    weight_decay: float = 0.1
    clip: float = 1.0  # the gradient's norm at most

    def __post_init__(self) -> None:
        if min(self.steps, self.batch, self.length) < 1:
            raise ValueError(f"steps, batch, length are {self.steps}, {self.batch}, {self.length}: each is 1 or more")

    def lr_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0: up in a straight line, then down along half a cosine to 0."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)  # 0 ... 1
        return self.lr * (1 + math.cos(math.pi * done)) / 2


class Training:
    """A run that can be stopped after any step and go on from its `state` as if nothing had happened.

    batch_of(rng) draws a step's batch. Its random numbers depend on seed and step alone, so step 300 sees the same
    texts whether or not the run was stopped at 200. losses: one a step, in nats.
    """

    def __init__(
        self, model: nn.Module, batch_of: Callable[[np.random.Generator], Batch], recipe: Recipe, seed: int = 0
    ):
        self.model, self.batch_of, self.recipe, self.seed = model, batch_of, recipe, seed
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=recipe.lr, betas=(recipe.beta1, recipe.beta2), weight_decay=recipe.weight_decay
        )
        self.losses: list[float] = []

    def step(self) -> float:
        """One step of training. Returns its loss in nats; raises ValueError where that is no finite number."""
        step, device = len(self.losses), next(self.model.parameters()).device
        ids, targets = (
            torch.as_tensor(a, device=device) for a in self.batch_of(np.random.default_rng([self.seed, step]))
        )
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.lr_at(step)
        loss = next_token_loss(self.model(ids), targets).mean()
        if not math.isfinite(loss.item()):
            raise ValueError(f"the loss is {loss.item()} at step {step}: try a smaller lr than {self.recipe.lr:g}")
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimizer.step()
        self.losses.append(loss.item())
        return self.losses[-1]

    @property
    def done(self) -> bool:
        """Whether all steps of the recipe are taken."""
        return len(self.losses) >= self.recipe.steps

    def state(self) -> dict[str, Any]:
        """All that a later run needs to go on from here."""
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "losses": self.losses}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.losses = list(state["losses"])


def train(
    model: nn.Module, batch_of: Callable[[np.random.Generator], Batch], recipe: Recipe, seed: int = 0
) -> list[float]:
    """All steps of the recipe at once. Returns the losses, one a step, in nats."""
    training = Training(model, batch_of, recipe, seed)
    while not training.done:
        training.step()
    return training.losses


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """-ln P of the token that came: logits (batch, seq, V), targets (batch, seq) -> (batch, seq), in nats."""
    return cross_entropy(logits.transpose(1, 2), targets, reduction="none")


def loss_by_position(model: nn.Module, texts: NDArray[np.int64], batch: int = 8) -> NDArray[np.float64]:
    """How well a model foresees what follows position 0, 1, 2, ...: texts (n, length + 1) -> (length,), in nats.

    The mean over n texts, a few at a time. Raises ValueError for texts that aren't (n, 2 or more).
    """
    if texts.ndim != 2 or not len(texts) or texts.shape[1] < 2:
        raise ValueError(f"texts have the shape {texts.shape}: give (n, length + 1), length 1 or more")
    device, total = next(model.parameters()).device, 0.0
    with torch.no_grad():
        for part in torch.as_tensor(texts, device=device).split(batch):
            total = total + next_token_loss(model(part[:, :-1]), part[:, 1:]).double().sum(0)  # (length,)
    return (total / len(texts)).cpu().numpy()
