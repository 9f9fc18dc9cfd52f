"""DER and DER++: what is kept are the outputs of before the step, and only they are asked for again."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.methods.der import distance
from skeleton_cgl.methods.der_pp import DERPlusPlus
from skeleton_cgl.scenarios.scenario import Samples, Scenario
from tests.learning.learners import (
    FLAT_BACKBONE,
    ORDER,
    answers_after_every_stage,
    assert_same_to_the_bit,
    learn_tasks,
    seed_for,
    small_learner,
)
from tests.methods.test_er import cross_entropy
from tests.scenarios.small import SETTINGS, lesson, scenario_of

NAMES = ("der", "der-pp")
AT_REST = {"learning_rate": 1e-30, "optimizer": "sgd"}
"""A rate so small that weights stay where they are."""


@pytest.fixture
def flat(tmp_path: Path) -> str:
    """A backbone without dropout and BatchNorm."""
    (tmp_path / "flat.py").write_text(FLAT_BACKBONE)
    return str(tmp_path / "flat.py")


def kept_in(learner: Learner, scenario: Scenario) -> Samples:
    memory = learner.method.memory
    return memory.at(torch.arange(len(memory)), lesson(scenario, *ORDER).training.pool)


def distance_of_memory(learner: Learner, scenario: Scenario) -> Tensor:
    """Return how far the memory's outputs are, as the learner answers now, from those that are kept."""
    with torch.no_grad():
        return distance(learner.outputs(learner.inputs(kept_in(learner, scenario))), learner.method.memory["outputs"])


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("training", [{}, {"batch_size": 4}, {"patience": 1}])
@pytest.mark.parametrize(("method", "strengths"), [("der", {"alpha": 0}), ("der-pp", {"alpha": 0, "beta": 0})])
def test_without_strength_der_is_bare_to_the_bit(
    small: Path, setting: str, training: dict, method: str, strengths: dict
) -> None:
    scenario = scenario_of(small, setting)
    found = answers_after_every_stage(small_learner(scenario, method, strengths, **training), scenario)
    bare = answers_after_every_stage(small_learner(scenario, **training), scenario)
    assert_same_to_the_bit(found, bare)


def test_der_plus_plus_without_labels_is_der_and_with_them_another(small: Path) -> None:
    scenario = scenario_of(small)
    der, without, whole = (
        answers_after_every_stage(small_learner(scenario, name, {"count": 9, **given}), scenario)
        for name, given in (("der", {}), ("der-pp", {"beta": 0}), ("der-pp", {}))
    )
    assert_same_to_the_bit(der, without)
    assert not torch.equal(der[-1], whole[-1])
    assert not torch.equal(der[-1], answers_after_every_stage(small_learner(scenario), scenario)[-1])


@pytest.mark.parametrize("passes", ["every", "first"])
@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_right_after_samples_are_kept_nothing_is_to_be_gained(
    small: Path, flat: str, setting: str, method: str, passes: str
) -> None:
    scenario = scenario_of(small, setting)
    learner = small_learner(scenario, method, {"count": 30, "passes": passes}, flat, **AT_REST)
    learn_tasks(learner, scenario, *ORDER)
    assert len(learner.method.memory) == 30
    assert distance_of_memory(learner, scenario) < 1e-12
    with torch.no_grad():
        learner.head.rows += 0.1
    assert distance_of_memory(learner, scenario) > 1e-3


@pytest.mark.parametrize("method", NAMES)
def test_a_wider_head_is_as_far_from_what_is_kept(small: Path, flat: str, method: str) -> None:
    """To the bit, and also where samples of earlier had fewer outputs; the rows of the new outputs have no gradient."""
    scenario = scenario_of(small)
    learner = learn_tasks(small_learner(scenario, method, {"count": 30}, flat), scenario, *ORDER[:2])
    kept = kept_in(learner, scenario)
    widths = (~learner.method.memory["outputs"].isnan()).sum(dim=1)
    assert set(widths.tolist()) == {len(ORDER[0]), len(ORDER[0]) + len(ORDER[1])}
    outputs = learner.outputs(learner.inputs(kept)).detach()
    before = distance(outputs, learner.method.memory["outputs"])
    wider = torch.cat([outputs, torch.full((30, 3), 1e6)], dim=1).requires_grad_()
    after = distance(wider, learner.method.memory["outputs"])
    after.backward()
    assert before > 0
    assert torch.equal(before, after.detach())
    assert not wider.grad[:, -3:].any()


def test_samples_count_equally_however_many_outputs_they_had() -> None:
    random = np.random.default_rng(0)
    found, wanted, widths = random.normal(size=(5, 4)), np.full((5, 3), np.nan), [1, 3, 2, 3, 1]
    for row, width in enumerate(widths):
        wanted[row, :width] = random.normal(size=width)
    each = [np.mean((found[row, :width] - wanted[row, :width]) ** 2) for row, width in enumerate(widths)]
    assert float(distance(torch.from_numpy(found), torch.from_numpy(wanted))) == pytest.approx(np.mean(each))


@pytest.mark.parametrize("method", NAMES)
def test_outputs_are_kept_as_they_were_before_the_step(small: Path, method: str) -> None:
    scenario = scenario_of(small)
    learner, before = (small_learner(scenario, name, epochs=1, learning_rate=0.5) for name in (method, "bare"))
    experience = lesson(scenario, ORDER[0])
    learner.learn(experience, seed_for(0))
    before.head.meet(experience.outputs)
    with before.observing(), torch.no_grad():
        expected = before.outputs(before.inputs(experience.training))
    assert torch.equal(learner.method.memory["outputs"], expected)
    with learner.observing(), torch.no_grad():
        assert not torch.allclose(learner.outputs(learner.inputs(experience.training)), expected, atol=0.1)


@pytest.mark.parametrize(("passes", "times"), [("every", 3), ("first", 1)])
def test_the_memory_is_offered_samples_in_every_epoch_or_in_the_first(small: Path, passes: str, times: int) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, "der", {"count": 500, "passes": passes}, epochs=3, batch_size=4)
    learn_tasks(learner, scenario, *ORDER)
    training = [len(lesson(scenario, *ORDER[: stage + 1]).training) for stage in range(len(ORDER))]
    assert learner.method.memory.seen == learner.method.samples_kept() == times * sum(training)


class WatchedDER(DERPlusPlus):
    """DER++ that writes down every loss with the outputs it is of, and what was wanted of the first draw."""

    def __init__(self, alpha: float, beta: float) -> None:
        super().__init__(alpha, beta, count=10)
        self.losses: list[tuple[Batch, np.ndarray, Tensor | None, float]] = []

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        with learner.statistics_kept(), torch.no_grad():
            outputs = learner.outputs(batch.inputs).numpy()
        loss = super().loss(learner, batch)
        self.losses.append((batch, outputs, self._wanted, loss.item()))
        return loss


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.5), (2.0, 0.0), (0.0, 0.7)])
def test_the_loss_is_that_of_the_formula(small: Path, setting: str, alpha: float, beta: float) -> None:
    scenario = scenario_of(small, setting)
    learner = small_learner(scenario, f"{__name__}:WatchedDER", {"alpha": alpha, "beta": beta}, batch_size=6)
    learn_tasks(learner, scenario, *ORDER)
    for step, (batch, outputs, wanted, found) in enumerate(learner.method.losses):
        sizes = batch.sizes or (len(batch),)
        assert len(sizes) == (1 if not step else 1 + (alpha > 0) + (beta > 0))
        parts = np.split(np.arange(len(batch)), np.cumsum(sizes)[:-1].astype(int))
        tables = outputs, batch.targets.numpy(), batch.among.numpy()
        expected = cross_entropy(*(table[parts[0]] for table in tables))
        if step and alpha:
            apart = (outputs[parts[1], : wanted.shape[1]] - wanted.numpy()) ** 2
            expected += alpha * np.nanmean(apart, axis=1).mean()
        if step and beta:
            expected += beta * cross_entropy(*(table[parts[-1]] for table in tables))
        assert found == pytest.approx(expected, rel=1e-4)


def test_the_two_draws_are_independent(small: Path) -> None:
    """Of ten kept, four are drawn twice: 1.6 in common on average, and neither none nor all every time."""
    scenario = scenario_of(small)
    learner = learn_tasks(small_learner(scenario, "der-pp", {"count": 10, "passes": "first"}), scenario, ORDER[0])
    samples = lesson(scenario, ORDER[0]).training.select(torch.arange(4))
    common = []
    for _ in range(300):
        chosen = learner.method.step_samples(learner, samples)
        assert chosen.sizes == (4, 4, 4)
        common.append(len(set(chosen.ids[4:8].tolist()) & set(chosen.ids[8:].tolist())))
    assert np.mean(common) == pytest.approx(1.6, abs=0.2)
