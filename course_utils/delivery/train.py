"""The lab: training the small models of data/lab.toml into data/checkpoints, with a record of how it went.

A run keeps its state in the cache folder every 50 steps, so after an interruption the same command goes on from there,
and ends with the same weights as if nothing had happened.
"""

import hashlib
import json
import pickle
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_model
from tqdm import tqdm

from course_utils.delivery import CourseError
from course_utils.places import cache_folder, replacing
from course_utils.science import checkpoints
from course_utils.science.checkpoints import CheckpointMissing, Plan
from course_utils.science.pretrained import ModelMissing
from course_utils.science.text import shakespeare, windows
from course_utils.science.training import Training, loss_by_position
from course_utils.science.transformer import WITH_TABLE, Transformer

KEEP_EVERY = 50  # steps between two kept states, and over which a recorded loss is averaged
SPANS = ((0, 32), (32, 64), (64, 72), (64, 128), (128, 256), (256, 512))  # positions whose loss is recorded
TEXTS, LONGEST = 128, 512  # held-out windows, and their length


def train_models(names: Sequence[str], seeds: Sequence[int] = (), device: str = "cpu", again: bool = False) -> int:
    """Train what is missing of these models (of all, if none is named), or everything `again`. Returns 0.

    seeds: those of the plan unless given. Raises CourseError for an unknown model or device, or without the text.
    """
    torch.set_num_threads(1)  # so small a model gains nothing from a second core, and one adds in one order
    where = _device(device)
    for plan in [_plan(name) for name in names or checkpoints.plans()]:
        for seed in seeds or plan.seeds:
            if not again and is_there(plan.name, seed):
                print(f"{plan.name}, seed {seed}: there already", flush=True)
            else:
                print(
                    f"{plan.name}, seed {seed}: loss {_train(plan, seed, where):.3f} at positions 32 to 63", flush=True
                )
    return 0


def is_there(name: str, seed: int) -> bool:
    """Whether a seed's weights lie there, whole and made by today's plan."""
    try:
        checkpoints.load(name, seed)
    except CheckpointMissing:
        return False
    return True


def _plan(name: str) -> Plan:
    try:
        return checkpoints.plan(name)
    except KeyError as error:
        raise CourseError(error.args[0]) from error


def _device(name: str) -> torch.device:
    try:
        torch.zeros(1, device=name)
        return torch.device(name)
    except (RuntimeError, AssertionError) as error:  # torch raises either where the hardware or its build is missing
        raise CourseError(
            f"PyTorch can't compute on {name!r} here: try --device cpu. ({str(error).splitlines()[0]})"
        ) from error


def _train(plan: Plan, seed: int, device: torch.device) -> float:
    """Train one seed, or go on with it, and write weights and record. Returns its loss at positions 32 to 63."""
    try:
        draw, model = checkpoints.batches(plan.recipe), checkpoints.untrained(plan.name, seed).to(device)
    except ModelMissing as error:
        raise CourseError(str(error)) from error
    training, kept = Training(model, draw, plan.recipe, seed), _kept_state(plan, seed)
    seconds = _resume(training, kept)
    bar = tqdm(
        total=plan.recipe.steps,
        initial=len(training.losses),
        desc=f"{plan.name}, seed {seed}",
        leave=False,
        disable=None,
    )
    start = time.process_time() - seconds
    with bar:
        while not training.done:
            bar.set_postfix(loss=f"{training.step():.2f}", refresh=False)
            bar.update()
            if len(training.losses) % KEEP_EVERY == 0:
                _keep(kept, training, time.process_time() - start)
    losses = _finish(plan, seed, training, device, time.process_time() - start)
    kept.unlink(missing_ok=True)
    return losses["32-64"]


def _kept_state(plan: Plan, seed: int) -> Path:
    """Where an unfinished run keeps its state; another plan has another file."""
    asked = hashlib.sha256(json.dumps(plan.asked, sort_keys=True).encode()).hexdigest()[:12]
    return cache_folder() / "lab" / f"{plan.name}-{seed}-{asked}.pt"


def _keep(file: Path, training: Training, seconds: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as new:
        torch.save({"training": training.state(), "seconds": seconds}, new)


def _resume(training: Training, file: Path) -> float:
    """Put a kept state back where there is a sound one. Returns the CPU seconds that went into it."""
    with suppress(OSError, RuntimeError, EOFError, KeyError, ValueError, pickle.UnpicklingError):
        state = torch.load(file, weights_only=True)
        training.restore(state["training"])
        return state["seconds"]
    return 0.0


def _finish(plan: Plan, seed: int, training: Training, device: torch.device, seconds: float) -> dict[str, float]:
    """Round the weights to 16 bits, measure them, write both. Returns the losses on held-out plays by span."""
    model = training.model.cpu().half().float().eval()
    validation = losses_by_span(model)
    checkpoints.FOLDER.mkdir(parents=True, exist_ok=True)
    file = checkpoints.weights_file(plan.name, seed)
    with replacing(file) as new:
        save_model(model.half(), new)
    losses = np.asarray(training.losses)
    run = {
        "cpu_seconds": round(seconds, 1),
        "device": device.type,
        "losses": [round(float(part.mean()), 4) for part in np.array_split(losses, max(1, len(losses) // KEEP_EVERY))],
        "parameters": sum(p.numel() for p in model.parameters()),
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "validation": validation,
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    }
    _write_record(plan, seed, run)
    return validation


def losses_by_span(model: Transformer) -> dict[str, float]:
    """The model's loss in nats on the held-out plays, by span of positions, as far as it has rows for them."""
    limit = model.config.max_len if model.config.scheme in WITH_TABLE else LONGEST
    length = min(limit, LONGEST)
    texts = windows(shakespeare().validation, LONGEST + 1, TEXTS, np.random.default_rng(0))[:, : length + 1]
    losses = loss_by_position(model, texts)  # (length,)
    return {f"{a}-{b}": round(float(losses[a:b].mean()), 4) for a, b in SPANS if b <= length}


def _write_record(plan: Plan, seed: int, run: dict[str, Any]) -> None:
    """Add a seed's run to the model's record; runs of another plan go."""
    try:
        runs = checkpoints.record(plan.name)["runs"]
    except CheckpointMissing:
        runs = {}
    content = {
        "name": plan.name,
        "command": f"python3 -m course_utils train {plan.name}",
        "asked": plan.asked,
        "runs": dict(sorted({**runs, str(seed): run}.items(), key=lambda item: int(item[0]))),
    }
    with replacing(checkpoints.record_file(plan.name)) as new:
        new.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8", newline="\n")
