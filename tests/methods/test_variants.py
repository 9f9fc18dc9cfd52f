"""What public code does instead of EWC, MAS, GEM and TWP: each variant against that arithmetic, done by hand."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.engine.study import Component
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.gem import GEM, project
from skeleton_cgl.methods.importance import squared_gradients_of_batches
from skeleton_cgl.registry import METHODS as KNOWN
from skeleton_cgl.scenarios.scenario import Samples, Scenario
from tests.engine.studies import contents, run, small_study
from tests.engine.test_trial import attempt
from tests.learning.by_hand import HandMade, balanced_cross_entropy, inputs_of
from tests.learning.learners import (
    METHODS,
    ORDER,
    answers_after_every_stage,
    learn_tasks,
    seed_for,
    small_learner,
    weights_of,
)
from tests.scenarios.small import LAYOUT, SETTINGS, lesson, scenario_of

Named = dict[Any, Tensor]

VARIED = [(method, variant) for method in ("ewc", "mas", "gem", "twp") for variant in ("cglb", "begin")]
FELT = {
    "ewc": {"strength": 100.0},
    "mas": {"strength": 10.0},
    "gem": METHODS["gem"],
    "twp": METHODS["twp"],
}
LONG = ((5, 2), (0,), (4, 1), (3,))


class ByHand(HandMade):
    """Learning by hand, with what the public code of these methods is made of."""

    def loss(self, samples: Samples) -> Tensor:
        """Return the loss of samples among all classes met."""
        return balanced_cross_entropy(self.outputs(samples, list(self.rows)), samples.labels, list(self.rows))

    def gradients(self, value: Tensor) -> Named:
        parameters = self.parameters()
        found = torch.autograd.grad(value, list(parameters.values()), allow_unused=True, retain_graph=True)
        pairs = zip(parameters.items(), found, strict=True)
        return {name: torch.zeros_like(own) if gradient is None else gradient for (name, own), gradient in pairs}

    def weights(self) -> Named:
        return {name: value.detach().clone() for name, value in self.parameters().items()}

    def penalty(self, anchors: list[tuple[Named, Named]]) -> Tensor:
        """Return Σ_τ Σᵢ Fᵢ (θᵢ − θ*ᵢ)² over the parameters that each anchor has."""
        now = self.parameters()
        parts = [
            (importance[name] * (now[name] - value) ** 2).sum()
            for weights, importance in anchors
            for name, value in weights.items()
        ]
        return sum(parts, torch.tensor(0.0))

    @contextmanager
    def as_in_training(self) -> Iterator[None]:
        """Within: BatchNorm on what passes; afterwards as if nothing had passed."""
        left = copy.deepcopy(self.backbone.state_dict())
        self.backbone.train()
        yield
        self.backbone.load_state_dict(left)
        self.backbone.eval()

    def norm_of_attention(self, samples: Samples) -> Tensor:
        """Return the 2-norm of the attention of all edges in the first layer."""
        joints = len(LAYOUT)
        edges = torch.eye(joints, dtype=torch.bool)
        for joint, parent in LAYOUT.bones:
            edges[joint, parent] = edges[parent, joint] = True
        clips = inputs_of(samples, self.backbone).content[0]
        projected = clips @ self.backbone.layers[0].neighbours.weight.T
        scores = functional.leaky_relu(torch.einsum("nid,njd->nij", projected.tanh(), projected), 0.2)
        return scores.masked_fill(~edges, -torch.inf).softmax(dim=2).norm()

    def step(self, gradient: Named) -> None:
        with torch.no_grad():
            for name, value in self.parameters().items():
                value -= self.rate * gradient[name]


def whole_run(
    scenario: Scenario, method: str, parameters: dict[str, Any], order: tuple = ORDER
) -> Iterator[tuple[ByHand, Samples, Learner, int]]:
    """Yield every lesson to be learned by hand as well; in the end both have to have come to the same."""
    learner = small_learner(scenario, method, parameters, optimizer="sgd", learning_rate=0.05)
    hand = ByHand(scenario)
    for stage, task in enumerate(order):
        learner.learn(lesson(scenario, *order[: stage + 1]), seed_for(stage))
        hand.meet(task)
        yield hand, lesson(scenario, *order[: stage + 1]).training, learner, stage
        hand.assert_same_as(learner, 1e-4)


def test_the_variant_of_ewc_that_is_cglbs_is_the_default(small: Path) -> None:
    scenario = scenario_of(small)
    default, cglb = (
        learn_tasks(small_learner(scenario, "ewc", {"strength": 50.0, **more}), scenario, *ORDER)
        for more in ({}, {"variant": "cglb"})
    )
    assert to_bytes(default.state()) == to_bytes(cglb.state())


def test_ewc_of_begin_by_hand_through_a_whole_run(small: Path) -> None:
    """The squared gradient with running statistics, which differs much from that of a step of training."""
    anchors: list[tuple[Named, Named]] = []
    for hand, samples, _, _ in whole_run(scenario_of(small), "ewc", {"strength": 5.0, "variant": "begin"}):
        hand.train(lambda hand=hand, samples=samples: hand.loss(samples) + 5 * hand.penalty(anchors))
        importance = {name: gradient**2 for name, gradient in hand.gradients(hand.loss(samples)).items()}
        anchors.append((hand.weights(), importance))


@pytest.mark.parametrize("size", [7, 10, None])
@pytest.mark.parametrize("setting", SETTINGS)
def test_importances_of_begin_are_means_over_batches_as_drawn_in_training(
    small: Path, setting: str, size: int | None
) -> None:
    """Σ_b n_b (∇L_b)² / n of batches in random order, a rest of one sample in the batch before it."""
    scenario = scenario_of(small, setting)
    learner = learn_tasks(small_learner(scenario, batch_size=size), scenario, (0, 3), (1, 2))
    samples = lesson(scenario, (0, 3), (1, 2)).training.select(torch.arange(22))
    model = copy.deepcopy(learner.model).eval()
    classes = [1, 2] if setting == "task-il" else learner.head.outputs
    columns = [learner.head.outputs.index(label) for label in classes]
    torch.manual_seed(5)
    shuffled = torch.arange(22) if size is None else torch.randperm(22)
    sizes = {7: [7, 7, 8], 10: [10, 10, 2], None: [22]}[size]
    expected = torch.zeros_like(weights_of(learner))
    for rows in shuffled.split(sizes):
        batch = samples.select(rows)
        loss = balanced_cross_entropy(model(inputs_of(batch, model.backbone))[:, columns], batch.labels, classes)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        expected += len(rows) / 22 * torch.cat([gradient.flatten() for gradient in gradients]) ** 2
    torch.manual_seed(5)
    torch.testing.assert_close(squared_gradients_of_batches(learner, samples), expected, rtol=1e-3, atol=1e-7)


def test_mas_of_cglb_by_hand_through_a_whole_run(small: Path) -> None:
    """Importances of the old outputs for the new samples, n added instead of multiplied, a head of all classes."""
    omega: Named = {}
    anchors: list[tuple[Named, Named]] = []
    seen = 0
    for hand, samples, _, stage in whole_run(scenario_of(small), "mas", {"strength": 2.0, "variant": "cglb"}, LONG):
        if stage:
            with hand.as_in_training():
                found = hand.gradients(hand.outputs(samples, list(LONG[stage - 1])).square().mean())
            squared = {name: found[name] ** 2 if name in found else torch.zeros(65) for name in {*found, *range(6)}}
            count = len(samples)
            if stage == 1:
                omega = squared
            else:
                omega = {name: (seen * omega[name] + new + count) / (seen + count) for name, new in squared.items()}
            seen += count
            anchors[:] = [(hand.weights(), omega)]
        hand.train(lambda hand=hand, samples=samples: hand.loss(samples) + 2 * hand.penalty(anchors))
    assert min(float(value.min()) for value in omega.values()) > 0.3


def test_mas_of_begin_by_hand_through_a_whole_run(small: Path) -> None:
    """A sum over tasks of |∇ mean ‖z‖²|, of all outputs met, with running statistics."""
    omega: Named = {}
    anchors: list[tuple[Named, Named]] = []
    for hand, samples, _, _ in whole_run(scenario_of(small), "mas", {"strength": 0.5, "variant": "begin"}):
        hand.train(lambda hand=hand, samples=samples: hand.loss(samples) + 0.5 * hand.penalty(anchors))
        squares = hand.outputs(samples, list(hand.rows)).square().sum(dim=1)
        new = {name: gradient.abs() for name, gradient in hand.gradients(squares.mean()).items()}
        omega = {name: omega.get(name, 0) + value for name, value in new.items()}
        anchors[:] = [(hand.weights(), omega)]


@pytest.mark.parametrize("setting", SETTINGS)
def test_mas_of_begin_takes_the_outputs_that_a_sample_is_answered_among(small: Path, setting: str) -> None:
    scenario = scenario_of(small, setting)
    learner = learn_tasks(small_learner(scenario, "mas", {"variant": "begin"}), scenario, (0, 3))
    expected = functional.pad(learner.method.anchor.importance, (0, 2 * (learner.head.width + 1)))
    learner.learn(lesson(scenario, (0, 3), (1, 2)), 1)
    outputs = learner.model(inputs_of(lesson(scenario, (0, 3), (1, 2)).training, learner.backbone))
    among = outputs if setting == "class-il" else outputs[:, 2:]
    gradients = torch.autograd.grad((among**2).sum() / len(among), list(learner.model.parameters()))
    expected += torch.cat([gradient.abs().flatten() for gradient in gradients])
    torch.testing.assert_close(learner.method.anchor.importance, expected, rtol=1e-3, atol=1e-5)


def test_twp_of_cglb_by_hand_through_a_whole_run(small: Path) -> None:
    """Gradients that are never set to zero within a task, and both importances from what lies there."""
    anchors: list[tuple[Named, Named]] = []
    parameters = {"lambda_l": 3.0, "lambda_t": 2.0, "beta": 0.7, "variant": "cglb"}
    lying: Named = {}
    for hand, samples, _, _ in whole_run(scenario_of(small), "twp", parameters):
        hand.backbone.train()
        for _ in range(3):
            loss = hand.loss(samples)
            for value in (loss, loss + hand.penalty(anchors)):
                for name, gradient in hand.gradients(value).items():
                    lying[name] = lying.get(name, 0) + gradient
            hand.step(lying)
        hand.backbone.eval()
        with hand.as_in_training():
            of_loss = hand.gradients(hand.loss(samples))
            of_norm = hand.gradients(hand.norm_of_attention(samples))
        lying = {name: gradient + of_norm[name] for name, gradient in of_loss.items()}
        importance = {name: 3 * of_loss[name] ** 2 + 2 * lying[name] ** 2 for name in lying}
        anchors.append((hand.weights(), importance))


def test_twp_of_begin_by_hand_through_a_whole_run(small: Path) -> None:
    """Two gradients of the loss to a step; the importance of topology from both gradients, with running statistics."""
    anchors: list[tuple[Named, Named]] = []
    parameters = {"lambda_l": 3.0, "lambda_t": 2.0, "beta": 0.7, "variant": "begin"}
    for hand, samples, _, _ in whole_run(scenario_of(small), "twp", parameters):
        hand.train(lambda hand=hand, samples=samples: 2 * hand.loss(samples) + hand.penalty(anchors))
        of_loss = hand.gradients(hand.loss(samples))
        of_norm = hand.gradients(hand.norm_of_attention(samples))
        importance = {name: 3 * of_loss[name] ** 2 + 2 * (of_loss[name] + of_norm[name]) ** 2 for name in of_loss}
        anchors.append((hand.weights(), importance))


def nearest(g: np.ndarray, rows: np.ndarray, margin: float, ridge: float) -> np.ndarray:
    """Return g + Gᵀv, v the lowest of ½vᵀ(GGᵀ + εI)v + (Gg)ᵀv among all ways to have some entries at the margin."""
    quadratic, linear = rows @ rows.T + ridge * np.eye(len(rows)), rows @ g
    found = []
    for size in range(len(rows) + 1):
        for free in map(list, combinations(range(len(rows)), size)):
            v = np.full(len(rows), margin)
            held = [place for place in range(len(rows)) if place not in free]
            bound = linear[free] + quadratic[np.ix_(free, held)] @ v[held]
            v[free] = np.linalg.solve(quadratic[np.ix_(free, free)], -bound)
            if (v >= margin - 1e-12).all():
                found.append((v @ quadratic @ v / 2 + linear @ v, v))
    return g + min(found, key=lambda pair: pair[0])[1] @ rows


@pytest.mark.parametrize("size", [1e-3, 0.01, 1, 100])
@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_the_ridge_of_public_code_does_not_grow_with_the_gradients(size: float, margin: float) -> None:
    random = np.random.default_rng(0)
    felt = 0
    for _ in range(20):
        g, rows = size * random.normal(size=12), size * random.normal(size=(3, 12))
        if (rows @ g >= 0).all():
            continue
        own, public = (project(torch.tensor(g), torch.tensor(rows), margin, ridge).numpy() for ridge in (0, 1e-3))
        np.testing.assert_allclose(public / size, nearest(g, rows, margin, 1e-3) / size, atol=1e-6)
        np.testing.assert_allclose(own / size, nearest(g, rows, margin, 1e-9 * size**2) / size, atol=1e-6)
        felt += np.abs(public - own).max() > 0.05 * size
    assert (felt > 0) == (size < 1)


@pytest.mark.parametrize(("variant", "ridge"), [("own", 1e-12), ("cglb", 1e-3), ("begin", 1e-3)])
def test_gem_projects_small_gradients_with_the_ridge_of_its_variant(small: Path, variant: str, ridge: float) -> None:
    learner = small_learner(scenario_of(small), f"{__name__}:{Told.__name__}", {"variant": variant})
    experience = lesson(scenario_of(small), (0, 1))
    learner.learn(experience, 0)
    learner.method.begin_lesson(learner, experience)
    random = torch.Generator().manual_seed(0)
    g, *rows = 1e-3 * torch.randn(3, len(weights_of(learner)), generator=random)
    rows[0] -= 2 * g
    learner.method.told = torch.stack(rows)
    learner.set_gradient(g)
    learner.method.step_samples(learner, experience.training)
    learner.method.gradients_ready(learner)
    expected = nearest(g.double().numpy(), torch.stack(rows).double().numpy(), 0.1, ridge)
    np.testing.assert_allclose(learner.gradient_vector().numpy() / 1e-3, expected / 1e-3, atol=1e-4)


class Told(GEM):
    """GEM that is told the gradients of its memories."""

    def __init__(self, variant: str) -> None:
        super().__init__(margin=0.1, variant=variant)
        self.told = torch.zeros(0)

    def gradients_of_memories(self, learner: Learner) -> Tensor:  # noqa: ARG002
        return self.told


def flat(named: Named) -> np.ndarray:
    return torch.cat([value.flatten() for value in named.values()]).double().numpy()


def gem_step(hand: ByHand, samples: Samples, memories: list[Callable[[], Tensor]], margin: float) -> bool:
    """Take a step of GEM as public code does: memories pass first, and leave their trace in the running statistics."""
    rows = [flat(hand.gradients(loss())) for loss in memories]
    named = hand.gradients(hand.loss(samples))
    g = flat(named)
    violated = bool(rows) and bool((np.array(rows) @ g < 0).any())
    if violated:
        g = nearest(g, np.array(rows), margin, 1e-3)
    parts = torch.from_numpy(g).float().split([value.numel() for value in named.values()])
    hand.step({name: part.view_as(named[name]) for name, part in zip(named, parts, strict=True)})
    return violated


def test_gem_of_begin_by_hand_through_a_whole_run(small: Path) -> None:
    violated = 0
    parameters = {"count": 6, "margin": 0.2, "variant": "begin"}
    for hand, samples, learner, stage in whole_run(scenario_of(small), "gem", parameters):
        kept = learner.method.memory.of_tasks(samples.pool)[:stage]
        assert [len(each) for each in kept] == [6] * stage
        hand.backbone.train()
        for _ in range(3):
            losses = [lambda hand=hand, each=each: hand.loss(each) for each in kept]
            violated += gem_step(hand, samples, losses, 0.2)
        hand.backbone.eval()
    assert violated > 1


@pytest.mark.parametrize(("memory", "share"), [({"fraction": 0.4}, 0.4), ({"count": 5}, None), ({"count": 99}, 1)])
def test_gem_of_cglb_by_hand_through_a_whole_run(small: Path, memory: dict, share: float | None) -> None:
    """Other samples in every epoch; the whole task passes, weighs the classes, and knows those up to its own."""
    scenario, violated = scenario_of(small), 0
    for hand, samples, _, stage in whole_run(scenario, "gem", {**memory, "margin": 0.2, "variant": "cglb"}):
        past = [lesson(scenario, *ORDER[: step + 1]).training for step in range(stage)]

        def loss_of(step: int, hand: ByHand = hand, past: list[Samples] = past) -> Tensor:
            task = past[step]
            known = [label for part in ORDER[: step + 1] for label in part]
            drawn = torch.randperm(len(task))[: 5 if share is None else round(share * len(task))]
            outputs = hand.outputs(task, known)[drawn]
            targets = torch.tensor([known.index(label) for label in task.labels.tolist()])
            weights = 1 / torch.bincount(targets, minlength=len(known)).clamp(min=1)
            return functional.cross_entropy(outputs, targets[drawn], weight=weights)

        torch.manual_seed(seed_for(stage))
        hand.backbone.train()
        for _ in range(3):
            losses = [lambda step=step: loss_of(step) for step in range(stage)]
            violated += gem_step(hand, samples, losses, 0.2)
        hand.backbone.eval()
    assert violated > 1


class CountingGEM(GEM):
    """GEM that counts how often the gradients of its memories are asked for."""

    def __init__(self, variant: str) -> None:
        super().__init__(count=4, variant=variant)
        self.asked = 0

    def gradients_of_memories(self, learner: Learner) -> Tensor:
        self.asked += 1
        return super().gradients_of_memories(learner)


@pytest.mark.parametrize(("variant", "asked"), [("own", 9), ("begin", 9), ("cglb", 3)])
def test_cglb_asks_its_memories_once_in_an_epoch_others_at_every_step(small: Path, variant: str, asked: int) -> None:
    scenario = scenario_of(small)
    name = f"{__name__}:{CountingGEM.__name__}"
    learner = small_learner(scenario, name, {"variant": variant}, batch_size=10)
    learn_tasks(learner, scenario, (0, 1), (2, 3))
    assert 20 < len(lesson(scenario, (0, 1), (2, 3)).training) <= 30
    assert learner.method.asked == asked


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("method", "variant"), VARIED)
def test_learning_on_from_a_saved_state_is_as_never_having_stopped(
    small: Path, method: str, variant: str, setting: str
) -> None:
    scenario = scenario_of(small, setting)
    experiences = [lesson(scenario, *LONG[: stage + 1]) for stage in range(len(LONG))]
    parameters = {**FELT[method], "variant": variant}
    for recipe in ({}, {"batch_size": 6}, {"patience": 1, "epochs": 4, "batch_size": 9}):
        recipe = {"epochs": 2, **recipe}
        straight = small_learner(scenario, method, parameters, **recipe)
        for stage, experience in enumerate(experiences):
            resumed = small_learner(scenario, method, parameters, **recipe)
            saved = to_bytes(straight.state())
            resumed.restore(from_bytes(saved))
            assert to_bytes(resumed.state()) == saved
            for learner in (straight, resumed):
                learner.learn(experience, seed_for(stage))
            assert to_bytes(resumed.state()) == to_bytes(straight.state())


@pytest.mark.parametrize(("method", "variant"), VARIED)
def test_a_trial_finds_that_a_variant_saves_what_it_remembers(method: str, variant: str) -> None:
    attempt(method, variant=variant)


def test_the_tree_gives_the_records_of_every_order_run_alone(tmp_path: Path) -> None:
    methods = [{"name": method, **FELT[method], "variant": variant} for method, variant in VARIED]
    study = small_study(tmp_path, methods=methods)
    tree, alone = (run(study, tmp_path / f"{tree}.db", tree=tree) for tree in (True, False))
    assert contents(tree) == contents(alone)
    assert len(contents(tree)) == 8 * len(VARIED)


@pytest.mark.parametrize(("method", "variant"), [pair for pair in VARIED if pair != ("ewc", "cglb")])
def test_a_variant_is_felt_and_not_by_default(small: Path, method: str, variant: str) -> None:
    scenario = scenario_of(small)
    default, own, varied = (
        answers_after_every_stage(small_learner(scenario, method, {**FELT[method], **more}), scenario)[-1]
        for more in ({}, {"variant": "own"}, {"variant": variant})
    )
    assert torch.equal(default, own)
    assert not torch.allclose(default, varied, atol=1e-2)


def parameters_of(name: str, **parameters: Any) -> dict[str, Any]:
    found: dict[str, Any] = Component(name=name, parameters=parameters).identity(KNOWN)["parameters"]
    return found


def test_keys_are_what_they_were_before_there_were_variants() -> None:
    assert parameters_of("ewc") == {"strength": 1e6, "importance": "batch"}
    assert parameters_of("ewc", importance="sample") == {"strength": 1e6, "importance": "sample"}
    assert parameters_of("mas", importance="absolute-mean") == {"strength": 100, "importance": "absolute"}
    assert parameters_of("gem") == {"margin": 5, "fraction": 0.2, "count": None}
    assert parameters_of("gem", count=3) == {"margin": 5, "fraction": None, "count": 3}
    assert parameters_of("twp") == {"lambda_l": 1e4, "lambda_t": 1e4, "beta": 0.01}
    for method in FELT:
        assert parameters_of(method, variant="own") == parameters_of(method)


def test_one_meaning_has_one_key_and_two_have_two() -> None:
    assert parameters_of("ewc", variant="cglb") == parameters_of("ewc")
    for method, variant in VARIED:
        if (method, variant) != ("ewc", "cglb"):
            assert parameters_of(method, variant=variant)["variant"] == variant
    for variant in ("cglb", "begin"):
        assert parameters_of("twp", variant=variant) == parameters_of("twp", variant=variant, beta=0.5)
        assert parameters_of("twp", variant=variant) != parameters_of("twp", variant=variant, lambda_t=0.5)


@pytest.mark.parametrize("method", ["EWC", "MAS", "GEM", "TWP"])
def test_keys_of_methods_that_derive_from_these_are_what_they_were(tmp_path: Path, method: str) -> None:
    """With the parameters of what they derive from, and with their own."""
    head = f"from skeleton_cgl.methods.{method.lower()} import {method}\nclass Own({method}):\n"
    (tmp_path / "same.py").write_text(f"{head}    pass\n")
    (tmp_path / "other.py").write_text(f"{head}    def __init__(self, more=3):\n        super().__init__()\n")
    assert "variant" not in parameters_of(str(tmp_path / "same.py"))
    assert parameters_of(str(tmp_path / "other.py")) == {"more": 3}


@pytest.mark.parametrize("method", list(FELT))
def test_unknown_variants_are_refused(method: str) -> None:
    with pytest.raises(InputError, match=f"method '{method}': unknown variant 'cglp'; did you mean 'cglb'?"):
        make_method(method, {"variant": "cglp"})
    with pytest.raises(InputError, match="unknown variant 3; known: begin, cglb, own"):
        make_method(method, {"variant": 3})


@pytest.mark.parametrize(
    ("method", "importance"), [("ewc", "sample"), ("mas", "absolute"), ("mas", "absolute-samples")]
)
@pytest.mark.parametrize("variant", ["cglb", "begin"])
def test_an_importance_that_a_variant_does_not_take_is_refused(method: str, importance: str, variant: str) -> None:
    with pytest.raises(InputError, match=f"variant '{variant}' .*'{importance}'"):
        make_method(method, {"variant": variant, "importance": importance})
