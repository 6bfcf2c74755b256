"""The lab: training by one command, going on after a stop, and what a chapter reads back."""

import hashlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is missing: python -m course_utils setup")

from safetensors.torch import save_model  # noqa: E402

from course_utils.delivery import CourseError, train  # noqa: E402
from course_utils.delivery.cli import main  # noqa: E402
from course_utils.science import checkpoints  # noqa: E402
from course_utils.science.checkpoints import CheckpointMissing, load, plan, plans, record, run_of, untrained  # noqa: E402
from course_utils.science.text import shakespeare, windows  # noqa: E402
from course_utils.science.training import Training, loss_by_position  # noqa: E402

SHORTEST = "entrance_none"
TINY = """
[tiny]
about = "for a test"
model = { scheme = "learned", d_model = 8, n_layers = 1, n_heads = 2, max_len = 96 }
recipe = { steps = 120, batch = 2, length = 16 }
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A lab of one tiny model in a folder of its own."""
    (tmp_path / "lab.toml").write_text(TINY, encoding="utf-8")
    monkeypatch.setattr(checkpoints, "DATA", tmp_path)
    monkeypatch.setattr(checkpoints, "FOLDER", tmp_path / "checkpoints")
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    plans.cache_clear()
    yield tmp_path
    plans.cache_clear()
    torch.set_num_threads(threads)


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# ---- what lies in data/checkpoints -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", plans())
def test_each_model_of_the_plan_lies_there_in_three_seeds(name):
    assert list(record(name)["runs"]) == [str(seed) for seed in plan(name).seeds] == ["0", "1", "2"]
    assert record(name)["command"] == f"python3 -m course_utils train {name}"
    tables = [load(name, seed).tokens.weight for seed in plan(name).seeds]
    assert not torch.equal(tables[0], tables[1]) and not torch.equal(tables[1], tables[2])
    for seed in plan(name).seeds:
        assert checkpoints.weights_file(name, seed).stat().st_size < 400_000
        assert run_of(name, seed)["losses"][-1] < run_of(name, seed)["losses"][0]


def test_nothing_else_lies_there():
    known = {checkpoints.record_file(name) for name in plans()}
    known |= {checkpoints.weights_file(name, seed) for name in plans() for seed in plan(name).seeds}
    assert set(checkpoints.FOLDER.iterdir()) == known


@pytest.mark.parametrize("name", plans())
def test_a_recorded_loss_is_the_models(name):
    texts = windows(shakespeare().validation, train.LONGEST + 1, train.TEXTS, np.random.default_rng(0))[:, :65]
    losses = loss_by_position(load(name, 1), texts)
    # 5e-3: another machine adds in another order, and the weights may be measured on another torch
    assert losses[32:64].mean() == pytest.approx(run_of(name, 1)["validation"]["32-64"], abs=5e-3)


@pytest.mark.slow
def test_the_shortest_model_trained_again_is_the_one_that_lies_there():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    asked = plan(SHORTEST)
    training = Training(untrained(SHORTEST, 0), checkpoints.batches(asked.recipe), asked.recipe, 0)
    while not training.done:
        training.step()
    torch.set_num_threads(threads)
    kept = run_of(SHORTEST, 0)["losses"]
    losses = [float(part.mean()) for part in np.array_split(training.losses, len(kept))]
    # Sums in another order change a loss by some 1e-4 (seen between kernels); another seed changes it by .02 and more.
    np.testing.assert_allclose(losses, kept, atol=5e-3)
    assert np.abs(np.array(run_of(SHORTEST, 1)["losses"]) - kept).max() > 0.02
    there = load(SHORTEST, 0).tokens.weight
    assert torch.nn.functional.cosine_similarity(training.model.tokens.weight.flatten(), there.flatten(), 0) > 0.99


# ---- the command -----------------------------------------------------------------------------------------------


def test_training_writes_weights_and_a_record(lab, capsys):
    assert train.train_models(["tiny"], seeds=[4]) == 0
    assert re.search(r"tiny, seed 4: loss \d\.\d{3} at positions 32 to 63", capsys.readouterr().out)
    run = run_of("tiny", 4)
    assert list(run["validation"]) == ["0-32", "32-64", "64-72"] and len(run["losses"]) == 2
    assert run["versions"]["torch"] == torch.__version__ and run["device"] == "cpu"
    assert run["parameters"] == sum(p.numel() for p in load("tiny", 4).parameters())
    assert not list((lab / "cache" / "lab").iterdir())
    before = content(lab / "checkpoints")
    train.train_models(["tiny"], seeds=[4])
    assert "there already" in capsys.readouterr().out and content(lab / "checkpoints") == before


def test_a_stopped_run_goes_on_and_ends_with_the_same_weights(lab, monkeypatch):
    train.train_models(["tiny"], seeds=[0])
    whole = load("tiny", 0).state_dict()
    checkpoints.weights_file("tiny", 0).unlink()
    step = Training.step

    def stop_at_70(training):
        if len(training.losses) == 70:
            raise KeyboardInterrupt
        return step(training)

    monkeypatch.setattr(Training, "step", stop_at_70)
    with pytest.raises(KeyboardInterrupt):
        train.train_models(["tiny"], seeds=[0])
    taken = []
    monkeypatch.setattr(Training, "step", lambda training: (taken.append(1), step(training))[1])
    train.train_models(["tiny"], seeds=[0])
    assert len(taken) == 70  # of 120: it went on from the state kept after 50
    assert all(torch.equal(weights, whole[name]) for name, weights in load("tiny", 0).state_dict().items())


@pytest.mark.parametrize("damage", [b"", b"not a state"])
def test_a_damaged_state_is_started_again(lab, damage):
    kept = train._kept_state(plan("tiny"), 0)
    kept.parent.mkdir(parents=True)
    kept.write_bytes(damage)
    train.train_models(["tiny"], seeds=[0])
    assert load("tiny", 0)


def test_seeds_are_added_to_the_record(lab):
    train.train_models(["tiny"], seeds=[1])
    train.train_models(["tiny"], seeds=[0])
    assert list(record("tiny")["runs"]) == ["0", "1"]
    assert checkpoints.validation_losses("tiny", "0-32") == [run_of("tiny", s)["validation"]["0-32"] for s in (0, 1)]
    with pytest.raises(KeyError, match="tiny has no loss for '9-10': there are 0-32, 32-64"):
        checkpoints.validation_losses("tiny", "9-10")


def test_what_is_unknown_is_one_sentence(lab, capsys, monkeypatch):
    monkeypatch.setenv("COURSE_VENV", sys.prefix)
    assert main(["train", "nobody"]) == 1
    said = capsys.readouterr().err
    assert said == "course: no model is called 'nobody': there are tiny\n"
    with pytest.raises(CourseError, match="PyTorch can't compute on 'abacus' here: try --device cpu"):
        train.train_models(["tiny"], device="abacus")


# ---- what a chapter reads --------------------------------------------------------------------------------------

COMMAND = r"run 'python3 -m course_utils train tiny' and run the cell again$"


def test_a_model_that_was_not_trained_names_the_command(lab):
    with pytest.raises(CheckpointMissing, match=f"the model tiny was not trained yet: {COMMAND}"):
        load("tiny")


def break_weights(lab):
    file = checkpoints.weights_file("tiny", 0)
    file.write_bytes(file.read_bytes()[:-3])
    return "is not the file that its record describes"


def remove_weights(lab):
    checkpoints.weights_file("tiny", 0).unlink()
    return "can't be read"


def break_record(lab):
    checkpoints.record_file("tiny").write_text('{"asked": 1}', encoding="utf-8")
    return "has a damaged record"


def cut_record(lab):
    checkpoints.record_file("tiny").write_text('{"asked": {', encoding="utf-8")
    return "has a damaged record"


def change_plan(lab):
    (lab / "lab.toml").write_text(TINY.replace("120", "121"), encoding="utf-8")
    plans.cache_clear()
    return "was trained by another plan than data/lab.toml has now"


def swap_weights(lab):
    """Weights of another shape, with a record that vouches for them."""
    file, entry = checkpoints.weights_file("tiny", 0), checkpoints.record_file("tiny")
    save_model(checkpoints.Transformer(replace(plan("tiny").config, d_model=4)), file)
    found = json.loads(entry.read_text(encoding="utf-8"))
    found["runs"]["0"]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    entry.write_text(json.dumps(found), encoding="utf-8")
    return "does not fit its plan"


@pytest.mark.parametrize("damage", [break_weights, remove_weights, swap_weights, break_record, cut_record, change_plan])
def test_what_does_not_match_is_one_line_and_is_trained_again(lab, damage):
    train.train_models(["tiny"], seeds=[0])
    says = damage(lab)
    with pytest.raises(CheckpointMissing, match=f"the model tiny.* {says}.*{COMMAND}") as caught:
        load("tiny", 0)
    assert "\n" not in str(caught.value)
    train.train_models(["tiny"], seeds=[0])
    assert load("tiny", 0)


def test_a_record_from_before_a_new_choice_still_counts(lab):
    train.train_models(["tiny"], seeds=[0])
    found = json.loads(checkpoints.record_file("tiny").read_text(encoding="utf-8"))
    del found["asked"]["config"]["n_buckets"]  # as if Config had got the field later
    checkpoints.record_file("tiny").write_text(json.dumps(found), encoding="utf-8")
    assert load("tiny", 0)


def test_untrained_is_the_start_and_leaves_the_random_numbers_alone(lab):
    state = torch.random.get_rng_state()
    one, other = untrained("tiny", 3), untrained("tiny", 3)
    assert torch.equal(torch.random.get_rng_state(), state)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    torch.manual_seed(3)
    assert torch.equal(one.tokens.weight, checkpoints.Transformer(plan("tiny").config).tokens.weight)


def test_what_is_loaded_has_no_gradients(lab):
    train.train_models(["tiny"], seeds=[0])
    assert not any(weights.requires_grad for weights in load("tiny", 0).parameters())
