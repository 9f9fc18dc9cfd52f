"""HAT: gates, their gradients and their penalty by hand; what open units rest on does not move, whoever learns."""

from math import cosh, exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from skeleton_cgl.backbones.gates import UnitGate
from skeleton_cgl.engine.trial import refuse_forgetting
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.hat import HAT
from skeleton_cgl.scenarios.scenario import Experience
from tests.learning.learners import FLAT_BACKBONE, seed_for, small_learner
from tests.methods.isolated import (
    CASES,
    CLIPS,
    NODES,
    Case,
    answers_to_known_tasks,
    assert_old_answers_stay,
    largest_change,
    learning,
)
from tests.scenarios.small import scenario_of

RECIPES: dict[str, dict[str, Any]] = {
    "weight decay": {"weight_decay": 0.1},
    "mini-batches": {"batch_size": 8, "weight_decay": 0.1},
    "plateau": {"epochs": 12, "plateau": {"patience": 1, "factor": 0.5}, "weight_decay": 0.1},
    "patience": {"epochs": 12, "patience": 2, "recalibrate": True},
    "sgd": {"optimizer": "sgd", "weight_decay": 0.1, "reset_optimizer": True},
    "score": {"epochs": 6, "patience": 2, "monitor": "score", "head_steps": "own"},
}


def gates_of(learner: Learner) -> dict[str, UnitGate]:
    return {name: gate for name, gate in learner.model.named_modules() if isinstance(gate, UnitGate)}


def embeddings_of(learner: Learner, task: int) -> Tensor:
    """Return e of all gates of a task that was learned."""
    own = learner.method.state()["own"][task]
    return torch.cat([value for name, value in own.items() if name.endswith(".embedding")])


class Binary(HAT):
    """Its gates become 0 or 1 when a task was learned, whatever they were."""

    def end_lesson(self, learner: Learner, experience: Experience) -> None:
        with torch.no_grad():
            for gate in gates_of(learner).values():
                gate.embedding.copy_(6 * gate.embedding.sign())
        super().end_lesson(learner, experience)


def binary_learner(case: Case, small: Path, **training: Any) -> Learner:
    learner = case.learner(small, "hat", **training)
    learner.method = Binary()
    return learner


@pytest.mark.parametrize("case", CASES, ids=str)
def test_with_gates_of_0_and_1_answers_to_a_task_stay_as_they_were_to_the_bit(case: Case, small: Path) -> None:
    learner = binary_learner(case, small, weight_decay=0.1)
    assert_old_answers_stay(answers_to_known_tasks(learner, case.scenario(small)))
    assert set(embeddings_of(learner, 0).tolist()) == {-6, 6}
    assert set(torch.cat(list(learner.method.taken(learner).values())).tolist()) <= {0, 1}


@pytest.mark.parametrize("case", [CLIPS, NODES], ids=str)
@pytest.mark.parametrize("recipe", RECIPES)
def test_they_stay_by_every_recipe(case: Case, recipe: str, small: Path) -> None:
    learner = binary_learner(case, small, **RECIPES[recipe])
    assert_old_answers_stay(answers_to_known_tasks(learner, case.scenario(small)))


def test_what_no_task_uses_moves_and_what_one_uses_does_not(small: Path) -> None:
    """By hand, for the second layer of the GCN: a weight stays where both of its units were open for a past task."""
    learner, scenario = binary_learner(CLIPS, small, weight_decay=0.1), CLIPS.scenario(small)
    weight = learner.backbone.layers[1].neighbours.weight
    before, opened = weight.detach().clone(), [torch.zeros(6), torch.zeros(6)]
    for step in learning(learner, scenario):
        stays = torch.outer(opened[1], opened[0]).bool()
        assert torch.equal(weight[stays], before[stays])
        assert (weight[~stays] != before[~stays]).any()
        own = learner.method.state()["own"][step]
        for layer in range(2):
            e = own[f"backbone.layers.{layer}.unit_gate.embedding"]
            opened[layer] = torch.maximum(opened[layer], (e > 0).float())
        before = weight.detach().clone()


@pytest.mark.parametrize("case", [CLIPS, NODES, CASES[10]], ids=str)
def test_trained_gates_keep_old_answers_where_those_of_begin_do_not(case: Case, small: Path) -> None:
    """Not to the bit: a gate may be left half open."""
    scenario = case.scenario(small)
    changed = {
        variant: largest_change(answers_to_known_tasks(case.learner(small, "hat", parameters, epochs=30), scenario))
        for variant, parameters in (("paper", {}), ("begin", {"variant": "begin"}))
    }
    assert changed["paper"] < 0.5 * changed["begin"]


def test_what_is_taken_never_becomes_less_and_is_the_largest_of_all_tasks(small: Path) -> None:
    learner, scenario = CLIPS.learner(small, "hat", {"s_max": 5}), CLIPS.scenario(small)
    before = torch.zeros(1)
    for step in learning(learner, scenario):
        taken = torch.cat(list(learner.method.taken(learner).values()))
        assert (taken >= before).all()
        by_hand = [
            max(1 / (1 + exp(-5 * float(embeddings_of(learner, task)[unit]))) for task in range(step + 1))
            for unit in range(len(taken))
        ]
        np.testing.assert_allclose(taken.numpy(), by_hand, rtol=1e-5)
        assert step == 0 or (taken > before).any()
        before = taken


def test_of_a_half_taken_weight_half_of_a_step_is_taken(small: Path) -> None:
    """By SGD, whose step is the gradient: the share 1 − min(A_i, A_j) of it."""
    learner, scenario = NODES.learner(small, "hat", {"s_max": 2}, optimizer="sgd", epochs=1), NODES.scenario(small)
    prefix = scenario.lessons(scenario.default)
    learner.learn(scenario.experience(prefix[:1]), 0)
    first, second = learner.method.taken(learner).values()

    class Noting(HAT):
        def step_done(self, learner: Learner, batch: Batch) -> None:
            self.before = [before.clone() for before in self._before.values()]
            self.gradients = [layer.weight.grad.clone() for layer in learner.backbone.layers]
            super().step_done(learner, batch)

    method = Noting(s_max=2)
    method.restore(learner.method.state())
    learner.method = method
    learner.learn(scenario.experience(prefix[:2]), 1)
    shares = [1 - first.expand(5, 6), 1 - torch.minimum(first[:, None], second[None])]
    for layer, before, gradient, share in zip(
        learner.backbone.layers, method.before, method.gradients, shares, strict=True
    ):
        assert 0.05 < share.min() < share.max() < 0.95
        torch.testing.assert_close(layer.weight, before - 0.02 * share * gradient)


@pytest.mark.parametrize("case", [CLIPS, CASES[1], NODES], ids=str)
def test_a_larger_c_opens_fewer_gates(case: Case, small: Path) -> None:
    opened = []
    for c in (0.0, 0.75, 20.0):
        learner, scenario = case.learner(small, "hat", {"c": c}, epochs=40, learning_rate=0.05), case.scenario(small)
        learner.learn(scenario.experience(scenario.lessons(scenario.default)[:1]), 0)
        opened.append(int((embeddings_of(learner, 0) > 0).sum()))
    assert opened[0] >= opened[1] > opened[2]


class Watched(HAT):
    """Notes scales, losses, and gradients of e before and after they are compensated."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.scales: list[float] = []
        self.gradients: list[tuple[float, Tensor, Tensor, Tensor]] = []
        self.penalties: list[tuple[float, float]] = []

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        found = super().loss(learner, batch)
        plain = learner.task_loss(batch)
        self.penalties.append(((found - plain).item(), self._penalty_by_hand(learner)))
        return found

    def _penalty_by_hand(self, learner: Learner) -> float:
        taken, total, weights = self.taken(learner), 0.0, 0.0
        for name, gate in gates_of(learner).items():
            for e, largest in zip(gate.embedding.tolist(), taken[name].tolist(), strict=True):
                total += (1 - largest) / (1 + exp(-gate.scale * e))
                weights += 1 - largest
        return self.c * total / weights

    def gradients_ready(self, learner: Learner) -> None:
        gate = next(iter(gates_of(learner).values()))
        self.scales.append(gate.scale)
        before = gate.embedding.grad.clone()
        super().gradients_ready(learner)
        self.gradients.append((gate.scale, gate.embedding.detach().clone(), before, gate.embedding.grad.clone()))


def watched(case: Case, small: Path, lessons: int = 2, **training: Any) -> Watched:
    learner, scenario = case.learner(small, "hat", **training), case.scenario(small)
    learner.method = Watched(s_max=50)
    for step in learning(learner, scenario):
        if step + 1 == lessons:
            break
    return learner.method


def test_s_grows_over_the_epochs_where_a_step_has_all_samples(small: Path) -> None:
    method = watched(NODES, small, lessons=1, epochs=5)
    np.testing.assert_allclose(method.scales, [1 / 50 + (50 - 1 / 50) * epoch / 5 for epoch in range(5)])


def test_s_grows_over_the_samples_of_every_epoch_where_there_are_batches(small: Path) -> None:
    scenario = NODES.scenario(small)
    samples = len(scenario.experience(scenario.lessons(scenario.default)[:1]).training)
    method = watched(NODES, small, lessons=1, epochs=3, batch_size=20)
    starts = [start for start in range(0, samples, 20) if samples - start > 1]
    np.testing.assert_allclose(method.scales, [1 / 50 + (50 - 1 / 50) * start / samples for start in starts] * 3)


def test_the_gradient_of_e_is_compensated_and_e_stays_within_6(small: Path) -> None:
    method = watched(NODES, small, epochs=6, learning_rate=3.0)
    largest = 0.0
    for scale, e, before, after in method.gradients:
        factors = [50 / scale * (cosh(max(-50, min(50, scale * each))) + 1) / (cosh(each) + 1) for each in e.tolist()]
        np.testing.assert_allclose(after.numpy(), before.numpy() * np.array(factors), rtol=1e-4)
        largest = max(largest, float(e.abs().max()))
    assert largest == 6


def test_gradients_are_clipped_to_a_norm_of_1e4(small: Path) -> None:
    learner = NODES.learner(small, "hat")
    with torch.no_grad():
        for parameter in learner.parameters():
            parameter.grad = torch.full_like(parameter, 1e6)
    learner.method.gradients_ready(learner)
    torch.testing.assert_close(learner.gradient_vector().norm(), torch.tensor(1e4))


def test_the_penalty_is_the_share_of_free_units_that_are_open(small: Path) -> None:
    method = watched(CLIPS, small, epochs=4)
    found, by_hand = zip(*method.penalties, strict=True)
    np.testing.assert_allclose(found, by_hand, rtol=1e-3, atol=1e-5)
    assert min(by_hand) > 0


def test_closed_gates_let_nothing_pass_and_open_ones_all(small: Path) -> None:
    for case in CASES:
        learner, scenario = case.learner(small, "bare"), case.scenario(small)
        experience = scenario.experience(scenario.lessons(scenario.default)[:1])
        learner.learn(experience, 0)
        inputs = learner.batch(experience.training).inputs
        with torch.no_grad(), learner.answering():
            plain = learner.outputs(inputs)
            gates = {f"{name}.embedding": gate.width for name, gate in gates_of(learner).items()}
            opened = learner.outputs(inputs, {name: torch.full((width,), 200.0) for name, width in gates.items()})
            closed = learner.outputs(inputs, {name: torch.full((width,), -200.0) for name, width in gates.items()})
        torch.testing.assert_close(opened, plain)
        torch.testing.assert_close(closed, learner.head.rows[:, -1].detach().expand_as(closed))


def test_every_weight_but_those_of_attention_and_importance_is_between_gates(small: Path) -> None:
    beside = ("of_source", "of_target", "importance", "spatial.bias")
    for case in CASES:
        learner = case.learner(small, "hat")
        on_wires = {id(wire.weight) for wire in learner.backbone.gated()}
        for name, weight in learner.backbone.named_parameters():
            if (
                weight.ndim > 1
                and not name.endswith(beside)
                and not (case.kind == "measured edges" and "edges.0" in name)
            ):
                assert id(weight) in on_wires, (str(case), name)


def test_tasks_not_yet_taught_are_answered_by_the_latest_gates(small: Path) -> None:
    learner, scenario = CLIPS.learner(small, "hat"), CLIPS.scenario(small)
    prefix = scenario.lessons(scenario.default)[:1]
    learner.learn(scenario.experience(prefix), 0)
    queries = scenario.queries(prefix)
    rows = (queries.step == -1).nonzero()[:, 0]
    assert len(rows)
    found = learner.answer(queries)[rows][:, learner.head.outputs]
    own = learner.method.state()["own"][0]
    by_hand = CLIPS.learner(small, "bare")
    by_hand.head.meet(learner.taught[0].outputs)
    by_hand.model.load_state_dict(learner.model.state_dict())
    for name, gate in gates_of(by_hand).items():
        gate.embedding, gate.hardest = torch.nn.Parameter(own[f"{name}.embedding"]), 400
    with torch.no_grad():
        wanted = by_hand.model.eval()(by_hand.inputs(queries).rows(rows))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("parameters", [{}, {"variant": "begin"}], ids=["paper", "begin"])
@pytest.mark.parametrize("case", [CLIPS, NODES, CASES[8], CASES[10]], ids=str)
def test_a_learner_goes_on_from_a_saved_state_as_if_it_had_never_stopped(
    case: Case, parameters: dict[str, Any], small: Path
) -> None:
    scenario = case.scenario(small)
    prefix = scenario.lessons(scenario.default)
    straight, resumed = (case.learner(small, "hat", parameters, patience=2, epochs=4) for _ in range(2))
    saved = b""
    for step in learning(straight, scenario):
        if step == 1:
            saved = to_bytes(straight.state())
    resumed.restore(from_bytes(saved))
    queries = scenario.queries(prefix[:2])
    assert resumed.answer(queries).isfinite().any()
    resumed.learn(scenario.experience(prefix[:3]), seed_for(2))
    assert to_bytes(resumed.state()) == to_bytes(straight.state())
    queries = scenario.queries(prefix)
    assert torch.equal(straight.answer(queries), resumed.answer(queries))


@pytest.mark.parametrize("parameters", [{}, {"variant": "begin"}], ids=["paper", "begin"])
def test_nothing_that_is_remembered_escapes_the_state(parameters: dict[str, Any], small: Path) -> None:
    scenario = CLIPS.scenario(small)
    prefix = scenario.lessons(scenario.default)
    refuse_forgetting(
        lambda: CLIPS.learner(small, "hat", parameters, batch_size=8),
        *(scenario.experience(prefix[: step + 1]) for step in range(2)),
    )


def test_a_task_goes_back_to_the_gates_of_its_best_epoch(small: Path) -> None:
    """Of one epoch that is better than all later ones, the gates are those, as are the weights."""
    scenario = CLIPS.scenario(small)
    prefix = scenario.lessons(scenario.default)[:1]
    learners = [CLIPS.learner(small, "hat", epochs=12, learning_rate=1.0, **more) for more in ({"patience": 12}, {})]

    class Noting(HAT):
        def __init__(self) -> None:
            super().__init__()
            self.gates: list[Tensor] = []

        def step_done(self, learner: Learner, batch: Batch) -> None:
            super().step_done(learner, batch)
            self.gates.append(torch.cat([gate.embedding.detach() for gate in gates_of(learner).values()]))

    for learner in learners:
        learner.method = Noting()
        learner.learn(scenario.experience(prefix), 0)
    patient, other = learners
    best = [step for step, e in enumerate(patient.method.gates) if torch.equal(e, embeddings_of(patient, 0))]
    assert best
    assert best[-1] < 11
    assert torch.equal(embeddings_of(other, 0), other.method.gates[-1])


def test_as_in_begin_gates_stay_as_drawn_and_the_latest_task_alone_is_spared(small: Path) -> None:
    learner, scenario = CLIPS.learner(small, "hat", {"variant": "begin"}), CLIPS.scenario(small)
    prefix = scenario.lessons(scenario.default)
    for step in learning(learner, scenario):
        random = torch.Generator().manual_seed(learner.seed_of_lesson("gates", scenario.experience(prefix[: step + 1])))
        drawn = torch.cat([torch.randn(gate.width, generator=random) for gate in gates_of(learner).values()])
        assert torch.equal(embeddings_of(learner, step), drawn)
        taken = torch.cat(list(learner.method.taken(learner).values()))
        torch.testing.assert_close(taken, torch.sigmoid(400 * drawn))


def test_it_learns(small: Path) -> None:
    learner, scenario = CLIPS.learner(small, "hat", epochs=40, learning_rate=0.05), CLIPS.scenario(small)
    for _ in learning(learner, scenario):
        pass
    prefix = scenario.lessons(scenario.default)
    measures = scenario.score(learner.answer(scenario.queries(prefix)), prefix)
    accuracy = next(measure for measure in measures if measure.part == "test" and measure.metric == "accuracy")
    assert np.nanmean(accuracy.values) > 0.7


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"s_max": 0.5}, "s_max must be at least 1, found 0.5"),
        ({"c": -1}, "c -1 is negative"),
        ({"variant": "begins"}, "unknown variant 'begins'; did you mean 'begin'"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_method("hat", parameters)


def test_queries_that_do_not_reveal_their_task_are_refused(small: Path) -> None:
    with pytest.raises(InputError, match="HAT needs queries that reveal their task"):
        small_learner(scenario_of(small, "class-il"), "hat")


def test_a_backbone_without_gates_is_refused(small: Path, tmp_path: Path) -> None:
    (tmp_path / "flat.py").write_text(FLAT_BACKBONE)
    with pytest.raises(InputError) as refused:
        small_learner(scenario_of(small, "task-il"), "hat", backbone=str(tmp_path / "flat.py"))
    assert str(refused.value) == "method HAT needs a backbone with `gated()`; Flat has none"
