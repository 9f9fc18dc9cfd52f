"""DeLoMe: gradients in closed form, rows that have those of real nodes, a loss that makes up for unequal classes."""

from math import log

import pytest
import torch
from torch.nn import functional

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner, Taught
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.methods.condensed import lowered
from skeleton_cgl.methods.delome import GradientMatching, gradients
from skeleton_cgl.scenarios.scenario import Experience
from tests.learning.learners import weights_of
from tests.methods.on_nodes import SMALL, learned, learner_of, lessons_of, nodes, propagated, unequal_graph
from tests.scenarios.graphs import node_graph


def by_autograd(
    features: torch.Tensor, first: torch.Tensor, second: torch.Tensor, target: int, create_graph: bool = False
) -> tuple[torch.Tensor, ...]:
    weights = [each.detach().requires_grad_() for each in (first, second)]
    loss = functional.cross_entropy((features @ weights[0]).relu() @ weights[1], torch.full((len(features),), target))
    return torch.autograd.grad(loss, weights, create_graph=create_graph)


@pytest.mark.parametrize("target", [0, 3])
def test_gradients_in_closed_form_are_those_of_autograd_and_can_be_differentiated_alike(target: int) -> None:
    random = torch.Generator().manual_seed(0)
    features, first, second = (
        torch.randn(*shape, generator=random, dtype=torch.float64) for shape in ((9, 7), (7, 5), (5, 4))
    )
    features.requires_grad_()
    found = gradients(features, first, second, target)
    expected = by_autograd(features, first, second, target, create_graph=True)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    further = [torch.autograd.grad(sum(each.pow(2).sum() for each in both), features)[0] for both in (found, expected)]
    torch.testing.assert_close(*further)


def test_the_first_step_is_down_the_distance_of_gradients_to_nodes_two_hops_wide() -> None:
    """Adam's first step is one rate in the direction of the gradient, which is computed here class by class."""
    graph = node_graph()
    scenario = nodes(graph=graph)
    learners = [
        learned(learner_of(scenario, "delome", {**SMALL["delome"], "steps": steps}), scenario, 1) for steps in (0, 1)
    ]
    (start, moved), labels = (
        [learner.state()["method"]["rows"][0] for learner in learners],
        learners[0].state()["method"]["labels"][0],
    )
    experience = lessons_of(scenario)[0]
    training = experience.training
    random = torch.Generator().manual_seed(learners[0].seed_of_lesson("condensation", experience))
    for label in training.labels.unique():
        torch.randperm(int((training.labels == label).sum()), generator=random)
    first, second = (
        torch.empty(shape).uniform_(-bound, bound, generator=random).double()
        for shape, bound in (((5, 8), 5**-0.5), ((8, 2), 8**-0.5))
    )
    rows, real = start.double().requires_grad_(), propagated(graph, 2)[training.ids].double()
    distance = torch.zeros((), dtype=torch.float64)
    for output, label in enumerate(training.labels.unique()):
        wanted = by_autograd(real[training.labels == label], first, second, output)
        found = by_autograd(rows[labels == label], first, second, output, create_graph=True)
        distance = distance + sum((one - other).pow(2).sum() for one, other in zip(wanted, found, strict=True))
    (gradient,) = torch.autograd.grad(distance, rows)
    felt = gradient.abs() > 1e-4
    assert felt.double().mean() > 0.9
    torch.testing.assert_close((moved - start)[felt], -1e-4 * gradient.sign().float()[felt], atol=1e-6, rtol=1e-2)


def test_condensing_brings_gradients_nearer_in_models_that_were_not_drawn() -> None:
    random = torch.Generator().manual_seed(0)
    real, labels = torch.randn(60, 12, generator=random), torch.arange(60) % 3
    start, of_rows = real[:6] + 1, labels[:6]
    made = lowered(GradientMatching(real, labels, of_rows, (16, 4), random).loss, start, steps=200, rate=0.01)
    before, after = (
        torch.stack([matching.loss(rows) for _ in range(20)]).mean()
        for rows, matching in (
            (each, GradientMatching(real, labels, of_rows, (16, 4), torch.Generator().manual_seed(9)))
            for each in (start, made)
        )
    )
    assert after < before / 2


def test_of_every_class_as_many_nodes_are_kept_as_asked_for_or_as_it_has() -> None:
    scenario = nodes(graph=unequal_graph())
    learner = learned(learner_of(scenario, "delome", {"count": 30, "steps": 0}), scenario, 3)
    kept = learner.method.memory.samples()
    sizes = torch.cat([experience.training.labels for experience in lessons_of(scenario)]).bincount()
    assert (sizes < 30).any()
    assert torch.equal(kept.labels.bincount(), sizes.clamp(max=30))
    rows = torch.cat(learner.state()["method"]["rows"])
    assert len(rows.unique(dim=0)) == len(rows) == learner.method.samples_kept()


@pytest.mark.parametrize("setting", ["class-il", "task-il"])
def test_where_classes_are_equally_many_the_loss_is_plain_cross_entropy(setting: str) -> None:
    """All classes of the graph have 48 training nodes, and all of them are kept."""
    equal = nodes(setting)
    assert len(torch.cat([each.training.labels for each in lessons_of(equal)]).bincount().unique()) == 1
    unequal = nodes(setting, unequal_graph())
    same = []
    for scenario in (equal, unequal):
        plain, adjusted = (
            weights_of(learned(learner_of(scenario, "delome", {"steps": 1, "adjustment": each}), scenario, 2))
            for each in (0, 1)
        )
        same.append(torch.allclose(plain, adjusted, atol=1e-4))
    assert same == [True, False]


def test_the_loss_is_that_of_the_task_and_of_every_past_one_with_outputs_raised_by_the_share_of_classes() -> None:
    graph = unequal_graph()
    scenario = nodes(graph=graph, balanced=False)
    learner = learned(learner_of(scenario, "delome", {"count": 9, "steps": 2, "adjustment": 0.5}), scenario, 2)
    experience = lessons_of(scenario)[2]
    learner.method.begin_lesson(told(learner, experience), experience)
    learner.backbone.train()
    batch = learner.batch(experience.training)
    counts = [9, 9, 9, 9, *experience.training.labels.bincount()[4:].tolist()]
    shift = torch.tensor([0.5 * log(count / sum(counts)) for count in counts])
    state = learner.state()["method"]
    expected = functional.cross_entropy(learner.outputs(batch.inputs) + shift, experience.training.labels)
    hidden = torch.cat(state["rows"])
    for number, layer in enumerate(learner.backbone.layers):
        # Of a node without neighbours but itself the weighted sum is itself; statistics are of all that is remembered.
        norm = learner.backbone.norms[number]
        hidden = functional.batch_norm(hidden @ layer.weight, None, None, norm.weight, norm.bias, training=True).relu()
    outputs = (learner.head(hidden) + shift).split([len(labels) for labels in state["labels"]])
    for found, labels in zip(outputs, state["labels"], strict=True):
        expected = expected + functional.cross_entropy(found, labels)
    torch.testing.assert_close(learner.method.loss(learner, batch), expected)
    learner.backbone.eval()
    validated = functional.cross_entropy(learner.outputs(batch.inputs) + shift, experience.training.labels)
    torch.testing.assert_close(learner.method.loss(learner, batch), validated)


def told(learner: Learner, experience: Experience) -> Learner:
    """Return the learner as it is at the beginning of a lesson: told of it, with its outputs in the head."""
    learner.taught.append(Taught(experience.keys, experience.outputs))
    learner.head.meet(experience.outputs)
    return learner


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"count": 0}, "count 0 is not a whole number of at least 1"),
        ({"steps": 1.5}, "steps 1.5 is not"),
        ({"width": 0}, "width 0 is not"),
        ({"rate": -1}, "rate must be positive"),
        ({"adjustment": -1}, "adjustment must not be negative"),
    ],
)
def test_parameters_without_meaning_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_method("delome", parameters)


def test_one_remembered_row_is_learned_and_the_memory_leaves_no_trace_in_running_statistics() -> None:
    scenario = nodes(classes_per_task=1)
    learned(learner_of(scenario, "delome", {**SMALL["delome"], "count": 1}), scenario, 3)
    first, second = lessons_of(nodes())[:2]
    learner = learner_of(nodes(), "delome", SMALL["delome"])
    learner.learn(first, 0)
    learner.learn(second, 1)
    # A step of training each, of the lesson's own nodes alone.
    assert {int(norm.num_batches_tracked) for norm in learner.backbone.norms} == {2 * learner.training.epochs}
