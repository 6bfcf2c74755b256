"""Training: the learning rate, a run that is stopped and goes on, and losses against torch and by counting."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is missing: python -m course_utils setup")

from course_utils.science.training import Recipe, Training, loss_by_position, next_token_loss, train  # noqa: E402
from course_utils.science.transformer import Config, Transformer  # noqa: E402

RECIPE = Recipe(steps=12, batch=4, length=6, warmup=3)


def counting(rng):
    """Texts that count upwards modulo 7: the next token is always known."""
    ids = (rng.integers(7, size=(4, 1)) + np.arange(7)) % 7
    return ids[:, :-1], ids[:, 1:]


def model(seed=0, **choices):
    torch.manual_seed(seed)
    return Transformer(Config(7, d_model=16, n_layers=1, n_heads=2, **choices))


def test_the_learning_rate_rises_and_falls_along_a_cosine():
    recipe = Recipe(steps=400, lr=2.0, warmup=50)
    rates = [recipe.lr_at(step) for step in range(400)]
    assert rates[0] == pytest.approx(2 / 50) and rates[49] == rates[50] == 2
    assert (np.diff(rates[:50]) > 0).all() and (np.diff(rates[50:]) < 0).all()
    assert rates[225] == pytest.approx(1.0) and 0 < rates[-1] < 1e-3
    torch_optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=2.0)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(torch_optimizer, T_max=350)
    for step in range(50, 400):
        assert cosine.get_last_lr()[0] == pytest.approx(rates[step], abs=1e-9)
        torch_optimizer.step()
        cosine.step()


def test_it_learns_what_can_be_learned():
    losses = train(model(), counting, Recipe(steps=150, batch=4, length=6, lr=1e-2, warmup=5))
    assert losses[0] == pytest.approx(math.log(7), abs=0.1) and np.mean(losses[-10:]) < 0.05


def test_one_step_is_torchs_adamw():
    own, twin = model(), model()
    training = Training(own, counting, RECIPE, seed=3)
    training.step()
    optimizer = torch.optim.AdamW(twin.parameters(), lr=3e-3 / 3, betas=(0.9, 0.98), weight_decay=0.1)
    ids, targets = (torch.as_tensor(a) for a in counting(np.random.default_rng([3, 0])))
    loss = torch.nn.functional.cross_entropy(twin(ids).flatten(0, 1), targets.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
    optimizer.step()
    assert training.losses == [pytest.approx(loss.item(), abs=1e-6)]
    for one, other in zip(own.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_a_stopped_run_ends_with_the_same_weights(tmp_path):
    whole = Training(model(), counting, RECIPE)
    while not whole.done:
        whole.step()
    first = Training(model(), counting, RECIPE)
    for _ in range(5):
        first.step()
    torch.save(first.state(), tmp_path / "state")
    second = Training(model(seed=9), counting, RECIPE)
    second.restore(torch.load(tmp_path / "state", weights_only=True))
    while not second.done:
        second.step()
    assert second.losses == whole.losses and len(whole.losses) == 12
    for one, other in zip(second.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_another_seed_draws_other_texts():
    assert train(model(), counting, RECIPE, seed=0) != train(model(), counting, RECIPE, seed=1)


def test_a_loss_that_explodes_is_told():
    broken = model()
    with torch.no_grad():
        broken.tokens.weight[0, 0] = math.nan
    with pytest.raises(ValueError, match="the loss is nan at step 0: try a smaller lr than 0.003"):
        Training(broken, counting, RECIPE).step()


def test_the_loss_of_guessing_is_log_v_at_every_position():
    texts = np.random.default_rng(0).integers(7, size=(5, 9))
    flat = model()
    with torch.no_grad():
        flat.tokens.weight.zero_()
    np.testing.assert_allclose(loss_by_position(flat, texts, batch=2), math.log(7), atol=1e-6)


def test_loss_by_position_is_the_mean_over_texts():
    texts = np.random.default_rng(0).integers(7, size=(5, 9))
    own, ids = model(), torch.as_tensor(texts)
    with torch.no_grad():
        losses = next_token_loss(own(ids[:, :-1]), ids[:, 1:])
        theirs = torch.nn.functional.cross_entropy(own(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    np.testing.assert_allclose(loss_by_position(own, texts, batch=2), losses.mean(0).numpy(), atol=1e-6)
    assert losses.mean().item() == pytest.approx(theirs.item(), abs=1e-6)


@pytest.mark.parametrize("shape", [(0, 4), (3, 1), (3,)])
def test_texts_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match="length 1 or more"):
        loss_by_position(model(), np.zeros(shape, dtype=np.int64))


@pytest.mark.parametrize("choice", [{"steps": 0}, {"batch": 0}, {"length": -1}])
def test_recipes_of_nothing_are_refused(choice):
    with pytest.raises(ValueError, match="each is 1 or more"):
        Recipe(**choice)
