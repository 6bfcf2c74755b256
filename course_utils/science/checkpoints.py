"""Small models that were trained once, three seeds each, and lie in data/checkpoints for the chapters to read.

data/lab.toml says what each is (its plan); `python3 -m course_utils train NAME` makes it; NAME.json beside the weights
records how that went. Weights are stored, and were measured, as 16-bit floats.
"""

import hashlib
import json
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_model

from course_utils.places import DATA
from course_utils.science.pretrained import ModelMissing
from course_utils.science.text import SHA256, VOCAB_SIZE, shakespeare, windows
from course_utils.science.training import Batch, Recipe
from course_utils.science.transformer import Config, Transformer

FOLDER = DATA / "checkpoints"


class CheckpointMissing(ModelMissing):
    """A trained model is not there, damaged, or not what its plan says. The message names the command that makes it."""


@dataclass(frozen=True)
class Plan:
    """What a model is and how it is trained: the text is Shakespeare's plays, a token is a byte."""

    name: str
    about: str
    config: Config
    recipe: Recipe
    seeds: tuple[int, ...] = (0, 1, 2)

    @property
    def asked(self) -> dict[str, Any]:
        """All that decides what comes out, as the record keeps it."""
        return {"config": asdict(self.config), "recipe": asdict(self.recipe), "text": SHA256}

    def is_that_of(self, asked: dict[str, Any]) -> bool:
        """Whether a record's `asked` is this plan. What the record doesn't name counts as its usual value."""
        found = Config(**asked["config"]), Recipe(**asked["recipe"]), asked["text"]
        return found == (self.config, self.recipe, SHA256)


@cache
def plans() -> dict[str, Plan]:
    """All models of the lab, by name."""
    with (DATA / "lab.toml").open("rb") as file:
        return {name: _plan(name, **entry) for name, entry in tomllib.load(file).items()}


def plan(name: str) -> Plan:
    """A model's plan. KeyError, naming those there are, where there is none."""
    if name not in plans():
        raise KeyError(f"no model is called {name!r}: there are {', '.join(plans())}")
    return plans()[name]


def untrained(name: str, seed: int = 0) -> Transformer:
    """The model as its training started: the same random weights."""
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model = Transformer(plan(name).config)
    torch.random.set_rng_state(state)
    return model


def load(name: str, seed: int = 0) -> Transformer:
    """The model after its training, for reading, without gradients.

    Raises CheckpointMissing, or KeyError for an unknown name.
    """
    entry, file = run_of(name, seed), weights_file(name, seed)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise _missing(name, seed, f"can't be read ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise _missing(name, seed, "is not the file that its record describes")
    model = untrained(name, seed)
    try:
        load_model(model, file)
    except (SafetensorError, RuntimeError) as error:
        raise _missing(name, seed, f"does not fit its plan ({str(error).splitlines()[0]})") from error
    return model.requires_grad_(False).eval()


def record(name: str) -> dict[str, Any]:
    """How a model's training went: what was asked, and for each seed its losses, seconds and versions.

    Raises CheckpointMissing where there is no record, or one of another plan.
    """
    try:
        found = json.loads(record_file(name).read_text(encoding="utf-8"))
        same, _ = plan(name).is_that_of(found["asked"]), found["runs"]
    except FileNotFoundError as error:
        raise _missing(name, None, "was not trained yet") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _missing(name, None, f"has a damaged record ({error})") from error
    if not same:
        raise _missing(name, None, "was trained by another plan than data/lab.toml has now")
    return found


def run_of(name: str, seed: int) -> dict[str, Any]:
    """One seed's entry of the record: losses, validation, sha256 and so on. Raises CheckpointMissing."""
    runs = record(name)["runs"]
    if str(seed) not in runs:
        raise _missing(name, seed, "was not trained yet")
    return runs[str(seed)]


def validation_losses(name: str, span: str) -> list[float]:
    """Each seed's loss on plays that were held out, in nats, over a span of positions such as "32-64".

    Raises CheckpointMissing, and KeyError, naming the spans there are, for another span.
    """
    runs = record(name)["runs"].values()
    for run in runs:
        if span not in run["validation"]:
            raise KeyError(f"{name} has no loss for {span!r}: there are {', '.join(run['validation'])}")
    return [run["validation"][span] for run in runs]


def batches(recipe: Recipe) -> Callable[[np.random.Generator], Batch]:
    """What training draws each step: windows of the plays, and the same one byte later. Raises ModelMissing."""
    text = shakespeare().train

    def draw(rng: np.random.Generator) -> Batch:
        ids = windows(text, recipe.length + 1, recipe.batch, rng)  # (batch, length + 1)
        return ids[:, :-1], ids[:, 1:]

    return draw


def weights_file(name: str, seed: int) -> Path:
    """Where a seed's weights lie."""
    return FOLDER / f"{name}-{seed}.safetensors"


def record_file(name: str) -> Path:
    """Where a model's record lies."""
    return FOLDER / f"{name}.json"


def _plan(name: str, about: str, model: dict[str, Any], recipe: dict[str, Any]) -> Plan:
    return Plan(name, about, Config(vocab_size=VOCAB_SIZE, **model), Recipe(**recipe))


def _missing(name: str, seed: int | None, why: str) -> CheckpointMissing:
    which = f"the model {name}" + ("" if seed is None else f", seed {seed},")
    return CheckpointMissing(f"{which} {why}: run 'python3 -m course_utils train {name}' and run the cell again")
