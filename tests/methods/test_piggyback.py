"""Piggyback: a backbone that never changes, a mask per task learned straight through, answers that stay to the bit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from skeleton_cgl.engine.trial import few, refuse_forgetting
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.masking import Masking
from skeleton_cgl.methods.piggyback import Piggyback
from skeleton_cgl.methods.pretraining import pretrain
from skeleton_cgl.scenarios.made_up import made_up_clips, made_up_graph
from skeleton_cgl.scenarios.scenario import Experience, Scenario
from tests.core.cases import CASES, Case, records_of, study_of
from tests.engine.studies import run, same_records
from tests.learning.learners import seed_for, small_learner
from tests.scenarios.graphs import label_scenario, node_scenario
from tests.scenarios.sets import prefixes
from tests.scenarios.small import scenario_of
from tests.scenarios.test_graph import graph_scenario, labelled
from tests.scenarios.test_link import link_scenario

KINDS = ("clips", "nodes", "own nodes", "node labels", "links", "graphs", "graph labels")
FELT = {"threshold": 0.001}
"""So low that masks change within a few steps."""


def scenario_called(kind: str, small: Path) -> Scenario:
    if kind == "clips":
        return scenario_of(small, "task-il")
    made: dict[str, Any] = {
        "nodes": lambda: node_scenario(setting="task-il"),
        "own nodes": lambda: node_scenario(setting="task-il", view="task", inter_task_edges=False),
        "node labels": lambda: label_scenario(setting="task-il"),
        "links": lambda: link_scenario(setting="task-il"),
        "graphs": lambda: graph_scenario(setting="task-il"),
        "graph labels": lambda: graph_scenario(labelled(), setting="task-il", classes_per_task=1),
    }
    scenario: Scenario = made[kind]()
    return scenario


def lessons_of(scenario: Scenario) -> list[Experience]:
    return [scenario.experience(prefix) for prefix in prefixes(scenario)]


def backbone_of(learner: Learner) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in learner.backbone.state_dict().items()}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


def method_of(learner: Learner) -> Piggyback:
    assert isinstance(learner.method, Piggyback)
    return learner.method


def off(masks: dict[str, Tensor]) -> int:
    return sum(int((~mask).sum()) for mask in masks.values())


@pytest.mark.parametrize("kind", KINDS)
def test_the_backbone_stays_and_old_answers_stay_to_the_bit(kind: str, small: Path) -> None:
    """With momentum that lives through lessons, and weight decay. Asked as of each task, whatever came since."""
    scenario = scenario_called(kind, small)
    learner = small_learner(scenario, "piggyback", FELT, weight_decay=0.1, epochs=6)
    first, asked, answered = backbone_of(learner), [], []
    for stage, prefix in enumerate(prefixes(scenario)):
        learner.learn(scenario.experience(prefix), seed_for(stage))
        if stage == 0:
            fixed = backbone_of(learner)
            assert any(not torch.equal(value, first[name]) for name, value in fixed.items())
        assert_same(backbone_of(learner), fixed)
        queries = scenario.queries(prefix)
        # The same queries ever after: a later view may have more nodes around them.
        asked.append((queries, queries.step == stage))
        assert asked[-1][1].any()
        answered.append(learner.answer(queries)[queries.step == stage])
        for (past, rows), expected in zip(asked, answered, strict=True):
            assert torch.equal(learner.answer(past)[rows], expected)
    assert not any(module._forward_pre_hooks for module in learner.backbone.modules())
    method = method_of(learner)
    assert len(method.masks) == len(asked) > 1
    assert all(off(masks) for masks in method.masks)
    assert any(not torch.equal(mask, method.masks[1][name]) for name, mask in method.masks[0].items())


@pytest.mark.parametrize("kind", ["clips", "nodes", "links", "graphs"])
def test_scores_of_old_tasks_do_not_change(kind: str, small: Path) -> None:
    scenario = scenario_called(kind, small)
    learner = small_learner(scenario, "piggyback", FELT)
    table = []
    for stage, prefix in enumerate(prefixes(scenario)):
        learner.learn(scenario.experience(prefix), seed_for(stage))
        test = scenario.score(learner.answer(scenario.queries(prefix)), prefix)[0]
        table.append([test.values[list(each.units)] for each in prefix])
    for stage, row in enumerate(table):
        for task, values in enumerate(row):
            assert np.array_equal(values, table[task][task]), (stage, task)


class Watched(Piggyback):
    """Notes, at the first step of every lesson, what the backbone is and gives."""

    def __init__(self, threshold: float = 0.001) -> None:
        super().__init__(threshold, pretraining=False)
        self.seen: list[tuple[dict[str, Tensor], Tensor]] = []

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        if len(self.seen) < len(learner.taught):
            with torch.no_grad():
                self.seen.append((backbone_of(learner), learner.outputs(batch.inputs)))
        return super().loss(learner, batch)


def test_every_mask_begins_with_all_weights_as_the_backbone_has_them(small: Path) -> None:
    scenario = scenario_called("clips", small)
    learner = small_learner(scenario, f"{__name__}:Watched")
    plain = small_learner(scenario, "bare")
    for stage, experience in enumerate(lessons_of(scenario)):
        learner.learn(experience, seed_for(stage))
        weights, outputs = learner.method.seen[stage]
        assert_same(weights, backbone_of(plain))
        plain.head.meet(experience.outputs)
        with torch.no_grad(), plain.answering():
            new = outputs[:, -len(experience.outputs) :]
            assert torch.equal(new, plain.outputs(plain.inputs(experience.training))[:, -len(experience.outputs) :])


@pytest.mark.parametrize("pretraining", [True, False])
def test_the_backbone_is_pre_trained_once_or_as_drawn(small: Path, pretraining: bool) -> None:
    scenario = scenario_called("nodes", small)
    learner, expected = small_learner(scenario, "piggyback", {"pretraining": pretraining}), small_learner(scenario)
    lessons = lessons_of(scenario)
    if pretraining:
        pretrain(expected, lessons[0])
    for stage, experience in enumerate(lessons):
        learner.learn(experience, seed_for(stage))
        assert_same(backbone_of(learner), backbone_of(expected))


def test_a_lesson_is_as_done_by_hand(small: Path) -> None:
    """∂m = W ⊙ ∂(W ⊙ [m ≥ τ]) in Adam written out; the head by plain gradient descent; BatchNorm as it is."""
    scenario = scenario_called("clips", small)
    threshold, rate, epochs = 0.02, 0.01, 8
    recipe = {"optimizer": "sgd", "learning_rate": rate, "epochs": epochs}
    learner = small_learner(scenario, "piggyback", {"threshold": threshold, "pretraining": False}, **recipe)
    plain = small_learner(scenario, "bare", **recipe)
    experience = lessons_of(scenario)[0]
    learner.learn(experience, seed_for(0))
    plain.head.meet(experience.outputs)
    plain.taught = learner.taught
    batch = plain.batch(experience.training)
    plain.backbone.eval()
    named = {name: value.detach() for name, value in plain.model.named_parameters()}
    masked = [name for name, value in named.items() if name.startswith("backbone") and value.ndim >= 2]
    m = {name: torch.full_like(named[name], 2 * threshold) for name in masked}
    first, second = ({name: torch.zeros_like(named[name]) for name in masked} for _ in range(2))
    head = named["head.rows"].clone()
    for step in range(1, epochs + 1):
        product = {name: (named[name] * (m[name] >= threshold).float()).requires_grad_() for name in masked}
        rows = head.clone().requires_grad_()
        loss = plain.loss_of(plain.outputs(batch.inputs, {**named, **product, "head.rows": rows}), batch)
        of_rows, *gradients = torch.autograd.grad(loss, [rows, *product.values()])
        head = head - rate * of_rows
        for name, gradient in zip(masked, gradients, strict=True):
            of_m = named[name] * gradient
            first[name] = 0.9 * first[name] + 0.1 * of_m
            second[name] = 0.999 * second[name] + 0.001 * of_m**2
            change = (first[name] / (1 - 0.9**step)) / ((second[name] / (1 - 0.999**step)).sqrt() + 1e-8)
            m[name] = m[name] - rate * change
    torch.testing.assert_close(learner.head.rows.detach(), head)
    expected = {name.removeprefix("backbone."): m[name] >= threshold for name in masked}
    assert expected.keys() == method_of(learner).masks[0].keys()
    assert 0 < off(expected) < sum(mask.numel() for mask in expected.values())
    for name, mask in method_of(learner).masks[0].items():
        # Where m ends at τ but for rounding, either may be.
        sure = (m[f"backbone.{name}"] - threshold).abs() > 1e-6
        assert torch.equal(mask[sure], expected[name][sure]), name


def test_answers_are_those_of_masked_weights_and_of_the_rows_the_task_left(small: Path) -> None:
    scenario = scenario_called("nodes", small)
    learner = small_learner(scenario, "piggyback", FELT)
    rows = []
    for stage, experience in enumerate(lessons_of(scenario)):
        learner.learn(experience, seed_for(stage))
        rows.append(learner.head.rows.detach().clone())
    queries = scenario.queries(prefixes(scenario)[-1])
    answers = learner.answer(queries)
    for step, masks in enumerate(method_of(learner).masks):
        weights = {f"backbone.{name}": learner.backbone.get_parameter(name) * mask for name, mask in masks.items()}
        grown = torch.cat([rows[step], learner.head.rows.detach()[len(rows[step]) :]])
        with torch.no_grad():
            expected = learner.outputs(learner.inputs(queries), {**weights, "head.rows": grown})
        asked, columns = queries.step == step, learner.columns_of(learner.taught[step])
        outputs = list(learner.taught[step].outputs)
        torch.testing.assert_close(answers[asked][:, outputs], expected[asked][:, columns])


def test_queries_that_reveal_nothing_are_answered_with_the_latest_mask(small: Path) -> None:
    scenario = scenario_called("clips", small)
    learner = small_learner(scenario, "piggyback", FELT)
    prefix = prefixes(scenario)[0]
    queries = scenario.queries(prefix)
    learner.head.meet(scenario.experience(prefix).outputs)
    before = learner.answer(queries)
    learner.learn(scenario.experience(prefix), 0)
    unrevealed = queries.step < 0
    assert unrevealed.any()
    answers = learner.answer(queries)[unrevealed][:, learner.head.outputs]
    assert answers.isfinite().all()
    assert not torch.equal(answers, before[unrevealed][:, learner.head.outputs])


@pytest.mark.parametrize("monitor", ["method", "task", "score"])
@pytest.mark.parametrize("stopping", [{"patience": 3}, {"plateau": {"patience": 1, "stop": False}}])
def test_early_stopping_goes_back_to_the_masks_of_the_best_epoch(
    small: Path, monitor: str, stopping: dict[str, Any]
) -> None:
    """The lesson ends as one that had only as many epochs as the best: mask, head and answers."""
    scenario = scenario_called("clips", small)
    training = {"learning_rate": 0.3, "monitor": monitor}
    parameters = {"threshold": 0.1, "pretraining": False}
    experience = lessons_of(scenario)[0]
    values: list[float] = []
    stopped = small_learner(scenario, "piggyback", parameters, epochs=14, **training, **stopping)
    _note_values(stopped, values)
    stopped.learn(experience, 0)
    best = int(np.argmin(values)) + 1
    assert best < len(values)
    # Within the same plateau: a rate that was cut is one of steps that are gone.
    short = small_learner(scenario, "piggyback", parameters, epochs=best, **training, **stopping)
    short.learn(experience, 0)
    longer = small_learner(scenario, "piggyback", parameters, epochs=len(values), **training)
    longer.learn(experience, 0)
    found, expected, last = (method_of(each).masks[0] for each in (stopped, short, longer))
    assert_same(found, expected)
    assert any(not torch.equal(mask, last[name]) for name, mask in found.items())
    assert torch.equal(method_of(stopped).rows[0], method_of(short).rows[0])
    queries = scenario.queries(prefixes(scenario)[0])
    assert torch.equal(stopped.answer(queries), short.answer(queries))


def _note_values(learner: Learner, values: list[float]) -> None:
    """Have what is monitored after every epoch of a learner noted."""
    usual = learner._best_epoch

    def noting(validation: Any) -> Any:
        best = usual(validation)
        value = best._monitor.value

        def noted() -> float:
            values.append(value())
            return values[-1]

        best._monitor.value = noted  # type: ignore[method-assign]
        return best

    learner._best_epoch = noting  # type: ignore[method-assign]


def test_the_rate_of_masks_is_cut_with_that_of_the_recipe(small: Path) -> None:
    scenario = scenario_called("clips", small)
    rates: list[tuple[float, float]] = []

    class Rated(Piggyback):
        def step_done(self, learner: Learner, batch: Batch) -> None:
            super().step_done(learner, batch)
            assert self._lesson is not None
            rates.append((self._lesson._adam.param_groups[0]["lr"], learner.optimizer.param_groups[0]["lr"]))

    training = {"learning_rate": 0.5, "plateau": {"patience": 0, "factor": 0.5, "floor": 0.01}, "epochs": 12}
    learner = small_learner(scenario, "piggyback", **training)
    learner.method = Rated(pretraining=False)
    learner.learn(lessons_of(scenario)[0], 0)
    assert all(own == recipe for own, recipe in rates)
    assert len(set(rates)) > 1


RECIPES: Sequence[dict[str, Any]] = (
    {},
    {"batch_size": 7},
    {"patience": 2},
    {"plateau": {"patience": 0}, "monitor": "task"},
    {"patience": 2, "patience_on": "seen"},
    {"reset_optimizer": True, "recalibrate": True},
    {"recalibrate": True, "patience": 2},
    {"head_steps": "own"},
    {"optimizer": "sgd"},
)


@pytest.mark.parametrize("training", RECIPES, ids=str)
def test_a_learner_goes_on_from_its_saved_state_as_if_it_had_never_stopped(
    small: Path, training: dict[str, Any]
) -> None:
    """Whatever the recipe; the backbone stays as well, statistics and all, and the state restored is left alone."""
    scenario = scenario_called("clips", small)
    first, second, *_ = lessons_of(scenario)
    learner = small_learner(scenario, "piggyback", FELT, **training)
    learner.learn(first, 0)
    fixed = backbone_of(learner)
    saved = to_bytes(learner.state())
    state = from_bytes(saved)
    for _ in range(2):
        again = small_learner(scenario, "piggyback", FELT, **training)
        again.restore(state)
        assert to_bytes(again.state()) == saved
        again.learn(second, 1)
        assert to_bytes(state) == saved
    learner.learn(second, 1)
    assert to_bytes(again.state()) == to_bytes(learner.state())
    assert_same(backbone_of(learner), fixed)
    queries = scenario.queries(prefixes(scenario)[1])
    assert torch.equal(again.answer(queries), learner.answer(queries))


@pytest.mark.parametrize("kind", ["nodes", "links", "graphs", "made-up clips", "made-up graph"])
def test_nothing_that_is_remembered_escapes_the_state(kind: str, small: Path) -> None:
    made = {"made-up clips": made_up_clips, "made-up graph": made_up_graph}
    scenario = made[kind]("task-il") if kind in made else scenario_called(kind, small)
    first, second, *_ = lessons_of(scenario)
    refuse_forgetting(lambda: small_learner(scenario, "piggyback", FELT, epochs=2), few(first, 16), few(second, 16))


@pytest.mark.parametrize("case", [case for case in CASES if "task-il" in str(case)], ids=str)
def test_the_tree_gives_the_records_of_every_order_run_alone(case: Case, tmp_path: Path) -> None:
    study = study_of(case, tmp_path, methods=[{"name": "piggyback", **FELT}])
    tree, alone = run(study, tmp_path / "tree.db"), run(study, tmp_path / "alone.db", tree=False)
    assert same_records(tree, alone)
    assert len(records_of(tree)) == case.stages


@pytest.mark.parametrize("backbone", ["gcn", "stgcn"])
def test_masks_are_truth_values_of_weights_and_of_no_bias(small: Path, backbone: str) -> None:
    """ST-GCN has biases of two axes, one row for every partition of the joints."""
    scenario = scenario_called("clips", small)
    learner = small_learner(scenario, "piggyback", FELT, backbone)
    learner.learn(lessons_of(scenario)[0], 0)
    (masks,) = learner.method.state()["masks"]
    tables = {name: value for name, value in learner.backbone.named_parameters() if value.ndim > 1}
    biases = [name for name in tables if name.endswith("bias")]
    assert bool(biases) == (backbone == "stgcn")
    assert masks.keys() == tables.keys() - set(biases)
    for name, mask in masks.items():
        assert mask.dtype == torch.bool
        assert mask.shape == tables[name].shape


def test_a_weight_counts_from_the_threshold_on(small: Path) -> None:
    learner = small_learner(scenario_of(small, "task-il"), "piggyback")
    before = {name: value.detach().clone() for name, value in learner.backbone.named_parameters()}
    masking = Masking(learner.backbone, 0.25)
    for real in masking._real.values():
        real.view(-1)[0::2], real.view(-1)[1::2] = 0.25, 0.2499
    masking.step(0.1)
    for name, mask in masking.end().items():
        assert mask.flatten()[0::2].all()
        assert mask.flatten()[1::2].equal(before[name].flatten()[1::2] == 0)


@pytest.mark.parametrize("threshold", [0, -0.01])
def test_a_threshold_that_is_not_positive_is_refused(threshold: float) -> None:
    with pytest.raises(InputError, match=f"'piggyback': threshold must be positive, found {threshold}"):
        make_method("piggyback", {"threshold": threshold})


@pytest.mark.parametrize("threshold", [True, "0.01"])
def test_a_threshold_that_is_no_number_is_refused(threshold: Any) -> None:
    with pytest.raises(InputError, match=f"'piggyback': threshold must be a finite number, found {threshold!r}"):
        make_method("piggyback", {"threshold": threshold})


def test_pretraining_is_true_or_false() -> None:
    with pytest.raises(InputError, match="'piggyback': pretraining must be true or false, found 'dgi'"):
        make_method("piggyback", {"pretraining": "dgi"})


def test_queries_that_reveal_no_task_are_refused_before_anything_is_learned(small: Path) -> None:
    for scenario in (scenario_of(small, "class-il"), node_scenario(setting="domain-il"), made_up_graph("class-il")):
        with pytest.raises(InputError, match="method Piggyback needs queries that reveal their task"):
            small_learner(scenario, "piggyback")
