"""EWC, MAS and TWP: importances and penalties against plain loops over named parameters."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner, Model
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.methods.importance import (
    _sum_one_by_one,
    _sum_over_rows,
    sample_fisher,
    squared_gradient_of_loss,
)
from skeleton_cgl.scenarios.scenario import Experience, Samples, Scenario, join
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from tests.graphs.planetoid_files import write_planetoid
from tests.learning.by_hand import HandMade, balanced_cross_entropy, inputs_of
from tests.learning.learners import FLAT_BACKBONE, ORDER, learn_tasks, seed_for, small_learner, weights_of
from tests.scenarios.graphs import citation_scenario
from tests.scenarios.small import LAYOUT, SETTINGS, lesson, scenario_of, write_small

Named = dict[str, Tensor]


def named(vector: Tensor, learner: Learner) -> Named:
    """Return a vector over the learner's parameters as one tensor per name."""
    parameters = dict(learner.model.named_parameters())
    parts = vector.split([parameter.numel() for parameter in parameters.values()])
    return {name: part.view_as(parameters[name]) for name, part in zip(parameters, parts, strict=True)}


def gradients_by_name(model: Model, value: Tensor) -> Named:
    parameters = dict(model.named_parameters())
    gradients = torch.autograd.grad(value, list(parameters.values()), allow_unused=True)
    return {
        name: torch.zeros_like(parameter) if gradient is None else gradient
        for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True)
    }


def allowed_columns(learner: Learner, step: int) -> list[int]:
    """Return the columns that a sample is answered among which reveals this step."""
    if step < 0:
        return list(range(len(learner.head.outputs)))
    return [learner.head.outputs.index(other) for other in learner.taught[step].outputs]


def in_training(learner: Learner) -> Model:
    """Return a copy of the model whose BatchNorms use the statistics of what passes through."""
    return copy.deepcopy(learner.model).train()


def batch_importance(learner: Learner, samples: Samples) -> Named:
    """The squared gradient of the class-balanced mean loss."""
    model = in_training(learner)
    outputs = model(inputs_of(samples, learner.backbone))
    columns = allowed_columns(learner, int(samples.step[0]))
    classes = [learner.head.outputs[column] for column in columns]
    loss = balanced_cross_entropy(outputs[:, columns], samples.labels, classes)
    return {name: gradient**2 for name, gradient in gradients_by_name(model, loss).items()}


def fisher_sample_by_sample(learner: Learner, samples: Samples) -> Named:
    learner.model.eval()
    total: Named = {}
    for row in range(len(samples)):
        one = samples.select(torch.tensor([row]))
        outputs = learner.model(inputs_of(one, learner.backbone))[0]
        column = learner.head.outputs.index(int(one.labels))
        likely = outputs[allowed_columns(learner, int(one.step))].logsumexp(dim=0)
        for name, gradient in gradients_by_name(learner.model, likely - outputs[column]).items():
            total[name] = total.get(name, 0) + gradient**2 / len(samples)
    return total


def output_importance(learner: Learner, experience: Experience, kind: Callable[[Tensor], Tensor]) -> Named:
    model, samples = in_training(learner), experience.training
    outputs = model(inputs_of(samples, learner.backbone))
    squares = [outputs[:, learner.head.outputs.index(label)] ** 2 for label in experience.outputs]
    return {name: kind(gradient) for name, gradient in gradients_by_name(model, torch.cat(squares).mean()).items()}


def topology_importance(learner: Learner, samples: Samples) -> Named:
    """Edge by edge: e_ij = LeakyReLU₀.₂(Σ_d (h_j W)_d tanh((h_i W)_d)), softmax over the in-edges of i, the 2-norm."""
    model = in_training(learner)
    into = {joint: [joint] for joint in range(len(LAYOUT))}
    for joint, parent in LAYOUT.bones:
        into[joint].append(parent)
        into[parent].append(joint)
    squares = []
    hidden = inputs_of(samples, learner.backbone).content[0]
    for layer in model.backbone.layers:
        weight = layer.neighbours.weight
        for skeleton in hidden:
            projected = [weight @ node for node in skeleton]
            for target, sources in into.items():
                scores = []
                for source in sources:
                    score = sum(projected[source][d] * torch.tanh(projected[target][d]) for d in range(len(weight)))
                    scores.append(score if score > 0 else 0.2 * score)
                weights = [torch.exp(score) for score in scores]
                squares += [(one / sum(weights)) ** 2 for one in weights]
        summed = torch.stack([sum(hidden[:, source] for source in into[joint]) for joint in into], dim=1)
        hidden = layer(hidden, summed)
    norm = torch.stack(squares).sum().sqrt()
    return {name: gradient**2 for name, gradient in gradients_by_name(model, norm).items()}


def assert_named_close(found: Named, expected: Named, tolerance: float = 1e-4) -> None:
    assert found.keys() == expected.keys()
    largest = max(value.abs().max() for value in expected.values())
    assert largest > 0
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=tolerance, atol=float(tolerance * largest), msg=name)


def after(scenario: Scenario, order: tuple, method: str = "bare", **choices: Any) -> Learner:
    return learn_tasks(small_learner(scenario, method, **choices), scenario, *order)


@pytest.mark.parametrize("backbone", ["gcn", "stgcn"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_batch_importance_is_the_squared_gradient_of_the_mean_loss(small: Path, setting: str, backbone: str) -> None:
    scenario = scenario_of(small, setting)
    learner = after(scenario, ORDER, backbone=backbone)
    samples = lesson(scenario, *ORDER).training
    found = squared_gradient_of_loss(learner, samples)
    assert_named_close(named(found, learner), batch_importance(learner, samples))


@pytest.mark.parametrize("backbone", ["gcn", "stgcn"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_sample_fisher_is_the_mean_over_single_samples(small: Path, setting: str, backbone: str) -> None:
    """Also for more samples than are taken at once."""
    scenario = scenario_of(small, setting)
    learner = after(scenario, ((0, 3), (1, 2, 4, 5)), backbone=backbone)
    samples = join([lesson(scenario, (0, 3)).training, lesson(scenario, (0, 3), (1, 2, 4, 5)).training])
    assert len(samples) > 64
    found = sample_fisher(learner, samples)
    assert_named_close(named(found, learner), fisher_sample_by_sample(learner, samples))


@pytest.mark.parametrize("setting", SETTINGS)
def test_on_the_nodes_of_a_graph_the_sample_fisher_is_the_mean_over_single_nodes(tmp_path: Path, setting: str) -> None:
    """Node by node, each asked about alone; nodes share the graph they pass through the backbone with."""
    scenario = citation_scenario(write_planetoid(tmp_path), setting=setting)
    learner = after(scenario, ((0, 3), (1, 2)))
    samples = join([lesson(scenario, (0, 3)).training, lesson(scenario, (0, 3), (1, 2)).training])
    assert_named_close(named(sample_fisher(learner, samples), learner), fisher_sample_by_sample(learner, samples))


def test_both_ways_to_the_sample_fisher_are_one_formula(small: Path) -> None:
    """Many clips at once, and one loss after the other as on graphs."""
    scenario = scenario_of(small)
    learner = after(scenario, ((0, 3), (1, 2)))
    batch = learner.batch(lesson(scenario, (0, 3), (1, 2)).training)
    with learner.answering():
        for magnitude in (torch.square, torch.abs):
            at_once, one_by_one = (
                summed(learner, batch, learner.problem.losses, magnitude)
                for summed in (_sum_over_rows, _sum_one_by_one)
            )
            assert_named_close(named(one_by_one, learner), named(at_once, learner))


@pytest.mark.parametrize("importance", ["batch", "sample"])
def test_ewc_learns_nodes_and_holds_on_to_what_they_need(tmp_path: Path, importance: str) -> None:
    scenario = citation_scenario(write_planetoid(tmp_path))
    moved = []
    for strength in (0.0, 1e5):
        learner = small_learner(scenario, "ewc", {"strength": strength, "importance": importance}, epochs=8)
        learn_tasks(learner, scenario, (0, 1))
        (anchor,) = learner.method.anchors
        assert (anchor.importance > 0).any()
        learner.learn(lesson(scenario, (0, 1), (2, 3)), 1)
        distance = weights_of(learner)[: len(anchor.parameters)] - anchor.parameters
        moved.append(float((anchor.importance * distance.square()).sum() / anchor.importance.sum()))
    assert moved[1] < 0.5 * moved[0]


def test_the_two_importances_differ(small: Path) -> None:
    scenario = scenario_of(small)
    learner = after(scenario, ((0, 1),))
    samples = lesson(scenario, (0, 1)).training
    assert sample_fisher(learner, samples).sum() > 1.1 * squared_gradient_of_loss(learner, samples).sum()


def test_computing_importances_changes_nothing(small: Path) -> None:
    scenario = scenario_of(small)
    learner = after(scenario, ((0, 1),), "twp")
    buffers = {name: buffer.clone() for name, buffer in learner.model.named_buffers()}
    weights = weights_of(learner)
    samples = lesson(scenario, (0, 1)).training
    for training in (True, False):
        learner.backbone.train(training)
        for importance in (sample_fisher, squared_gradient_of_loss, learner.method.loss_and_topology):
            importance(learner, samples)
        assert learner.backbone.training == training
    assert torch.equal(weights_of(learner), weights)
    assert all(torch.equal(buffer, buffers[name]) for name, buffer in learner.model.named_buffers())


def penalty_by_hand(learner: Learner, anchors: list[tuple[Named, Named]]) -> tuple[float, Named]:
    """Return Σ_τ Σᵢ Fᵢ(θᵢ−θ*ᵢ)² and its gradient, number by number; head rows without an anchor are free."""
    value, gradient = 0.0, {}
    for name, parameter in learner.model.named_parameters():
        gradient[name] = torch.zeros_like(parameter)
        for weights, importance in anchors:
            known = len(weights[name]) if weights[name].ndim else None
            difference = parameter.detach()[:known] - weights[name]
            for where in torch.cartesian_prod(*[torch.arange(size) for size in difference.shape]).view(
                -1, difference.ndim
            ):
                place = tuple(where.tolist())
                value += float(importance[name][place]) * float(difference[place]) ** 2
                gradient[name][place] += 2 * float(importance[name][place]) * float(difference[place])
    return value, gradient


def weights_by_name(learner: Learner) -> Named:
    return {name: parameter.detach().clone() for name, parameter in learner.model.named_parameters()}


def combined(*weighted: tuple[float, Named]) -> Named:
    return {name: sum(weight * part[name] for weight, part in weighted) for name in weighted[0][1]}


IMPORTANCES = {
    ("ewc", "batch"): lambda learner, experience: batch_importance(learner, experience.training),
    ("ewc", "sample"): lambda learner, experience: fisher_sample_by_sample(learner, experience.training),
    ("twp", None): lambda learner, experience: combined(
        (3.0, batch_importance(learner, experience.training)),
        (50.0, topology_importance(learner, experience.training)),
    ),
}


@pytest.mark.parametrize(("method", "importance"), list(IMPORTANCES))
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_penalty_has_an_anchor_per_task_and_leaves_later_classes_free(
    small: Path, setting: str, method: str, importance: str | None
) -> None:
    """Value and gradient of the loss of EWC and TWP against loops, two tasks and new classes after the first anchor."""
    scenario = scenario_of(small, setting)
    parameters = {"strength": 20.0, "importance": importance}
    if method == "twp":
        parameters = {"lambda_l": 3.0, "lambda_t": 50.0, "beta": 0}
    learner = small_learner(scenario, method, parameters, epochs=2, learning_rate=0.05)
    strength = parameters.get("strength", 1)
    anchors = []
    order = ((0, 1), (2, 3), (4,))
    for stage in range(2):
        experience = lesson(scenario, *order[: stage + 1])
        learner.learn(experience, seed_for(stage))
        anchors.append((weights_by_name(learner), IMPORTANCES[method, importance](learner, experience)))
    last = lesson(scenario, *order)
    found = {}

    def look(epoch: int, _: float) -> None:
        if epoch == 1:
            batch = learner.batch(last.training)
            with learner.answering():
                found["loss"] = learner.method.loss(learner, batch) - learner.task_loss(batch)
            found["gradient"] = gradients_by_name(learner.model, found["loss"])
            found["expected"] = penalty_by_hand(learner, anchors)

    learner.learn(last, seed_for(2), look)
    value, gradient = found["expected"]
    torch.testing.assert_close(found["loss"].item(), strength * value, rtol=2e-3, atol=1e-6)
    assert_named_close(found["gradient"], {name: strength * part for name, part in gradient.items()}, 1e-3)
    assert not found["gradient"]["head.rows"][4:].any()
    assert found["gradient"]["head.rows"][:4].any()


def output_importance_sample_by_sample(learner: Learner, experience: Experience) -> Named:
    """The mean of |∂ mean_c z_c² / ∂θ| over single samples, as queries are answered."""
    model, samples = copy.deepcopy(learner.model).eval(), experience.training
    columns = [learner.head.outputs.index(label) for label in experience.outputs]
    total: Named = {}
    for row in range(len(samples)):
        (outputs,) = model(inputs_of(samples.select(torch.tensor([row])), learner.backbone))
        value = sum(outputs[column] ** 2 for column in columns) / len(columns)
        for name, gradient in gradients_by_name(model, value).items():
            total[name] = total.get(name, 0) + gradient.abs() / len(samples)
    return total


MAS_IMPORTANCES = {
    "squared": lambda learner, experience: output_importance(learner, experience, torch.square),
    "absolute-mean": lambda learner, experience: output_importance(learner, experience, torch.abs),
    "absolute": lambda learner, experience: output_importance(learner, experience, torch.abs),
    "absolute-samples": output_importance_sample_by_sample,
}


@pytest.mark.parametrize("kind", MAS_IMPORTANCES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_mas_keeps_one_anchor_and_a_mean_importance_weighted_by_samples(small: Path, setting: str, kind: str) -> None:
    scenario = scenario_of(small, setting)
    parameters = {"strength": 20.0, "importance": kind}
    learner = small_learner(scenario, "mas", parameters, epochs=2, learning_rate=0.05)
    importances, counts = [], []
    order = ((0,), (2, 3, 5), (4,))
    for stage in range(2):
        experience = lesson(scenario, *order[: stage + 1])
        learner.learn(experience, seed_for(stage))
        importances.append(MAS_IMPORTANCES[kind](learner, experience))
        counts.append(len(experience.training))
    assert counts[0] < counts[1] / 2
    grown = importances[0]["head.rows"]
    importances[0]["head.rows"] = functional.pad(grown, (0, 0, 0, 3))
    mean = combined(*zip([count / sum(counts) for count in counts], importances, strict=True))
    anchor = weights_by_name(learner), mean
    last, found = lesson(scenario, *order), {}

    def look(epoch: int, _: float) -> None:
        if epoch == 1:
            batch = learner.batch(last.training)
            with learner.answering():
                found["loss"] = learner.method.loss(learner, batch) - learner.task_loss(batch)
            found["gradient"] = gradients_by_name(learner.model, found["loss"])
            found["expected"] = penalty_by_hand(learner, [anchor])

    learner.learn(last, seed_for(2), look)
    value, gradient = found["expected"]
    torch.testing.assert_close(found["loss"].item(), 20 * value, rtol=2e-3, atol=1e-6)
    assert_named_close(found["gradient"], {name: 20 * part for name, part in gradient.items()}, 1e-3)
    assert not found["gradient"]["head.rows"][4:].any()


@pytest.mark.parametrize("actors", [1, 2])
def test_the_topology_importance_is_that_of_explicit_edges(tmp_path: Path, actors: int) -> None:
    scenario = SkeletonScenario(write_small(tmp_path / "few.h5", fewest=4, actors=actors))
    learner = after(scenario, ((0, 1),), "twp")
    learner.method.lambda_l, learner.method.lambda_t = 0, 1
    samples = lesson(scenario, (0, 1)).training
    found = named(learner.method.loss_and_topology(learner, samples), learner)
    assert_named_close(found, topology_importance(learner, samples))
    assert not found["head.rows"].any()


@pytest.mark.parametrize("backbone", ["gcn", "stgcn"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_gradient_norm_of_twp_is_felt_and_its_gradient_is_right(small: Path, setting: str, backbone: str) -> None:
    """L + β‖∇L‖₁ and its directional derivatives against finite differences, in double precision."""
    scenario = scenario_of(small, setting)
    parameters = {"lambda_l": 0, "lambda_t": 0, "beta": 0.3}
    learner = small_learner(scenario, "twp", parameters, backbone)
    learn_tasks(learner, scenario, (0, 1, 2), (3, 4))
    learner.model.double().train()
    batch = learner.batch(lesson(scenario, (0, 1, 2), (3, 4)).training)
    parts = batch.inputs.parts
    doubled = tuple(part.double() for part in parts) if isinstance(parts, tuple) else parts.double()
    batch = replace(batch, inputs=replace(batch.inputs, parts=doubled))
    start = weights_of(learner)

    def at(weights: Tensor) -> Tensor:
        torch.nn.utils.vector_to_parameters(weights, learner.parameters())
        return learner.method.loss(learner, batch)

    value = at(start)
    by_hand = gradients_by_name(learner.model, learner.task_loss(batch))
    norm = sum(float(gradient.abs().sum()) for gradient in by_hand.values())
    torch.testing.assert_close(value.item(), learner.task_loss(batch).item() + 0.3 * norm)
    gradient = learner.gradient_of(value)
    plain = learner.gradient_of(learner.task_loss(batch))
    random = torch.Generator().manual_seed(0)
    for _ in range(4):
        direction = torch.randn(len(start), generator=random, dtype=torch.float64)
        step = 1e-6
        difference = (at(start + step * direction).item() - at(start - step * direction).item()) / (2 * step)
        torch.testing.assert_close((gradient @ direction).item(), difference, rtol=1e-4, atol=1e-5)
        assert abs((plain @ direction).item() - difference) > 1e-2


def test_twp_passes_a_batch_through_the_backbone_once(small: Path) -> None:
    """BatchNorm's running statistics are those of one pass per step, as without β."""
    scenario = scenario_of(small)
    learner = after(scenario, ((0, 1), (2,)), "twp", epochs=4)
    assert learner.backbone.predictor[-1].num_batches_tracked == 8


def test_importance_comes_from_the_task_just_learned(small: Path) -> None:
    """What EWC remembers of a task depends on the state it is learned from, and on that task's data alone."""
    scenario = scenario_of(small)
    learner = after(scenario, ((0, 1), (2, 3)), "ewc", parameters={"strength": 1.0})
    last = learner.method.anchors[-1]
    assert torch.equal(last.parameters, weights_of(learner))
    assert torch.equal(last.importance, squared_gradient_of_loss(learner, lesson(scenario, (0, 1), (2, 3)).training))
    assert not torch.equal(last.importance, squared_gradient_of_loss(learner, lesson(scenario, (0, 1)).training))
    assert [len(anchor.parameters) for anchor in learner.method.anchors] == [
        len(weights_of(learner)) - 2 * (learner.head.width + 1),
        len(weights_of(learner)),
    ]


def test_ewc_by_hand_through_a_whole_run(small: Path) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, "ewc", {"strength": 5.0}, optimizer="sgd", learning_rate=0.05)
    hand = HandMade(scenario)
    anchors: list[tuple[dict, dict]] = []
    for stage, task in enumerate(ORDER):
        learner.learn(lesson(scenario, *ORDER[: stage + 1]), seed_for(stage))
        hand.meet(task)
        samples, seen = lesson(scenario, task).training, list(hand.rows)

        def loss(hand=hand, samples=samples, seen=seen, anchors=anchors) -> Tensor:
            total = balanced_cross_entropy(hand.outputs(samples, seen), samples.labels, seen)
            for weights, importance in anchors:
                for name, value in weights.items():
                    total = total + 5 * (importance[name] * (hand.parameters()[name] - value) ** 2).sum()
            return total

        hand.train(loss)
        names, left = list(hand.parameters()), copy.deepcopy(hand.backbone.state_dict())
        hand.backbone.train()
        mean = balanced_cross_entropy(hand.outputs(samples, seen), samples.labels, seen)
        gradients = torch.autograd.grad(mean, list(hand.parameters().values()))
        hand.backbone.load_state_dict(left)
        weights = {name: value.detach().clone() for name, value in hand.parameters().items()}
        anchors.append((weights, dict(zip(names, [gradient**2 for gradient in gradients], strict=True))))
    hand.assert_same_as(learner, 1e-4)


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        ("ewc", {"strength": -1}, "strength -1 is negative"),
        ("mas", {"strength": -0.5}, "strength -0.5 is negative"),
        ("twp", {"beta": -1}, "must not be negative"),
        ("twp", {"lambda_t": -1}, "must not be negative"),
        ("ewc", {"importance": "batches"}, "importance 'batches'; did you mean 'batch'"),
        ("mas", {"importance": "absolut"}, "importance 'absolut'; did you mean 'absolute-mean'"),
        ("twp", {"lambda": 1}, "unknown parameter 'lambda'; did you mean 'lambda_"),
        ("ewc", {"strength": "high"}, "'ewc'"),
    ],
)
def test_wrong_parameters_are_refused(method: str, parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_method(method, parameters)


@pytest.mark.parametrize("actors", [1, 2])
def test_twp_is_refused_for_a_backbone_without_edges(tmp_path: Path, actors: int) -> None:
    (tmp_path / "flat.py").write_text(FLAT_BACKBONE)
    scenario = SkeletonScenario(write_small(tmp_path / "some.h5", actors=actors))
    with pytest.raises(InputError, match=r"TWP needs a backbone with `edge_attention\(inputs\)`; \w+ has none"):
        small_learner(scenario, "twp", backbone=str(tmp_path / "flat.py"))


def test_parameters_without_a_gradient_do_not_disturb(small: Path, tmp_path: Path) -> None:
    """A backbone may hold parameters the outputs do not depend on, whatever the method."""
    (tmp_path / "spare.py").write_text(
        "from torch import nn\n"
        "from skeleton_cgl.backbones.clips.gcn import GCN\n"
        "class Spare(GCN):\n"
        "    def __init__(self, features, layout, width=6):\n"
        "        super().__init__(features, layout, width)\n"
        "        self.spare = nn.Linear(2, 2)\n"
    )
    scenario = scenario_of(small)
    for method in ("bare", "ewc", "mas", "twp", "lwf", "gem"):
        learner = after(scenario, ((0, 1), (2, 3)), method, backbone=str(tmp_path / "spare.py"))
        assert weights_of(learner).isfinite().all()
    fisher = small_learner(scenario, "ewc", {"importance": "sample"}, backbone=str(tmp_path / "spare.py"))
    fisher.learn(lesson(scenario, (0, 1)), 0)
    assert not named(fisher.method.anchors[0].importance, fisher)["backbone.spare.weight"].any()
