"""ER-GNN: which nodes are kept, how they are weighed against the task, and in which surroundings they are learned."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.trial import refuse_forgetting
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.learning.training import Training
from skeleton_cgl.methods.er_gnn import ERGNN
from skeleton_cgl.methods.influence import conjugate_gradients, self_influence
from skeleton_cgl.methods.representatives import distances_to_mean, others_within
from skeleton_cgl.scenarios.scenario import Samples, Scenario
from tests.learning.learners import seed_for, small_learner, weights_of
from tests.scenarios.graphs import CLASSES, DOMAINS, PERIODS, label_scenario, node_scenario
from tests.scenarios.small import scenario_of

SETTINGS = {
    "class-il": {"setting": "class-il"},
    "task-il": {"setting": "task-il"},
    "domain-il": {"setting": "domain-il", "domains": "domain"},
    "time-il": {"setting": "time-il"},
    "own view": {"setting": "class-il", "view": "task"},
    "so far": {"setting": "task-il", "view": "task", "inter_task_edges": True},
}
CHOICES = [
    {"selection": "cm", "space": "features"},
    {"selection": "cm", "space": "embeddings", "distance": 0.3},
    {"selection": "mf", "topology": "isolated"},
    {"selection": "mf", "space": "embeddings", "weighting": "inverse"},
    {"selection": "im", "topology": "isolated", "weighting": "inverse"},
    {"selection": "random"},
]


def taught(learner: Learner, scenario: Scenario, lessons: int | None = None) -> Learner:
    """Teach a learner the first lessons of the default order."""
    prefix = scenario.lessons(scenario.default)[:lessons]
    for stage in range(len(learner.taught), len(prefix)):
        learner.learn(scenario.experience(prefix[: stage + 1]), seed_for(stage))
    return learner


def training_of(scenario: Scenario, lesson: int) -> Samples:
    return scenario.experience(scenario.lessons(scenario.default)[: lesson + 1]).training


def ids_and_labels(samples: Samples) -> set[tuple[int, int]]:
    return set(zip(samples.ids.tolist(), samples.labels.tolist(), strict=True))


@pytest.mark.parametrize("fields", SETTINGS.values(), ids=SETTINGS)
def test_so_many_nodes_of_every_class_of_a_lesson_are_kept_of_those_it_was_learned_from(fields: dict) -> None:
    scenario = node_scenario(**fields)
    learner = small_learner(scenario, "er-gnn", {"per_class": 2}, epochs=1)
    before: set[tuple[int, int]] = set()
    for stage in range(len(scenario.default)):
        training = training_of(scenario, stage)
        taught(learner, scenario, stage + 1)
        kept = ids_and_labels(learner.method.memory.of(training.pool))
        assert before < kept
        assert kept - before <= ids_and_labels(training)
        expected = torch.bincount(training.labels, minlength=CLASSES).clamp(max=2)
        found = torch.bincount(torch.tensor([label for _, label in kept - before]), minlength=CLASSES)
        assert torch.equal(found, expected)
        assert len(kept) == len(learner.method.memory) == learner.method.samples_kept()
        before = kept
    lessons_of_a_class = {"domain-il": DOMAINS, "time-il": PERIODS}.get(fields["setting"], 1)
    assert len(before) <= 2 * CLASSES * lessons_of_a_class


@pytest.mark.parametrize(("count", "kept"), [(6, 1), (11, 1), (12, 2), (10_000, None)])
def test_a_count_is_shared_out_among_all_classes_to_come(count: int, kept: int | None) -> None:
    scenario = node_scenario()
    learner = taught(small_learner(scenario, "er-gnn", {"count": count, "selection": "mf"}, epochs=1), scenario)
    every = [training_of(scenario, lesson) for lesson in range(len(scenario.default))]
    expected = sum(map(len, every)) if kept is None else kept * CLASSES
    assert len(learner.method.memory) == expected


def test_a_count_that_leaves_nothing_for_a_class_is_refused_before_anything_is_learned() -> None:
    with pytest.raises(InputError, match="count 5 is less than one node for each of 6 classes"):
        small_learner(node_scenario(), "er-gnn", {"count": CLASSES - 1})


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("training", [{}, {"batch_size": 8}, {"patience": 1}], ids=str)
def test_the_first_task_is_learned_as_bare_learns_it(choice: dict, training: dict) -> None:
    scenario = node_scenario()
    bare, own = (
        taught(small_learner(scenario, *each, **training), scenario, 1) for each in (("bare",), ("er-gnn", choice))
    )
    states = [{**learner.state(), "method": None} for learner in (bare, own)]
    assert to_bytes(states[0]) == to_bytes(states[1])


class Watched(ERGNN):
    """Notes the loss of every step, and what it was of."""

    def __init__(self, weighting: str = "proportional", topology: str = "in place", per_class: int = 3) -> None:
        super().__init__(weighting=weighting, topology=topology, per_class=per_class)
        self.noted: list[tuple[Tensor, Batch, Tensor]] = []

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        with learner.statistics_kept(), torch.no_grad():
            outputs = learner.outputs(batch.inputs)
        loss = super().loss(learner, batch)
        self.noted.append((outputs, batch, loss.detach()))
        return loss


WATCHED = f"{__name__}:Watched"


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("weighting", ["proportional", "inverse"])
@pytest.mark.parametrize("batch_size", [None, 8])
def test_task_and_memory_weigh_in_as_they_should(weighting: str, balanced: bool, batch_size: int | None) -> None:
    scenario = node_scenario(balanced=balanced)
    parameters = {"per_class": 3, "weighting": weighting}
    learner = taught(small_learner(scenario, WATCHED, parameters, batch_size=batch_size), scenario, 2)
    memory = learner.method.memory.of(training_of(scenario, 2).pool)
    new = training_of(scenario, 2)
    learner.method.noted.clear()
    taught(learner, scenario, 3)
    beta = len(memory) / (len(memory) + len(new))
    of_memory = beta if weighting == "proportional" else 1 - beta
    seen = []
    for outputs, batch, loss in learner.method.noted:
        ids = batch.inputs.at[:, 0].tolist()
        assert ids[-len(memory) :] == memory.ids.tolist()
        seen += ids[: -len(memory)]
        by_class = functional.cross_entropy(outputs, batch.targets, reduction="none")
        parts = []
        for rows in (slice(0, -len(memory)), slice(-len(memory), None)):
            losses, targets = by_class[rows], batch.targets[rows]
            means = [losses[targets == target].mean() for target in targets.unique()]
            parts.append(sum(means) / len(means) if balanced else losses.mean())
        torch.testing.assert_close(loss, (1 - of_memory) * parts[0] + of_memory * parts[1])
        if weighting == "proportional" and not balanced and batch_size is None:
            torch.testing.assert_close(loss, by_class.mean())
    assert sorted(seen) == sorted(new.ids.tolist() * 3)


def learner_without_batch_norm(scenario: Scenario, **parameters: Any) -> Learner:
    recipe = Training(epochs=3, learning_rate=0.01, device="cpu")
    return make_learner(scenario, "gcn", WATCHED, recipe, 0, {"width": 6, "batch_norm": False}, parameters)


def test_isolated_nodes_are_learned_from_their_own_features_alone() -> None:
    scenario = node_scenario(balanced=False)
    learner = taught(learner_without_batch_norm(scenario, topology="isolated", per_class=2), scenario, 2)
    new = training_of(scenario, 2)
    memory = learner.method.memory.of(new.pool)
    learner.method.noted.clear()
    prefix = scenario.lessons(scenario.default)[:3]
    weights = []

    def note(_: int, __: float) -> None:
        weights.append(
            [*(layer.weight.detach().clone() for layer in learner.backbone.layers), learner.head.rows.detach().clone()]
        )

    learner.learn(scenario.experience(prefix), 5, note)
    features = new.pool.whole().features[memory.ids]
    beta = len(memory) / (len(memory) + len(new))
    # The first step is taken from weights that no epoch tells of.
    for (outputs, batch, loss), (first, second, rows) in zip(learner.method.noted[1:], weights, strict=False):
        hidden = ((features @ first).relu() @ second).relu()
        answers = hidden @ rows[:, :-1].T + rows[:, -1]
        of_memory = functional.cross_entropy(answers, learner.head.columns(memory.labels))
        of_task = functional.cross_entropy(outputs, batch.targets)
        assert len(batch) == len(new)
        torch.testing.assert_close(loss, (1 - beta) * of_task + beta * of_memory)
    assert len(learner.method.noted) == 3


def test_isolated_nodes_leave_no_trace_in_running_statistics() -> None:
    """The first step of the second task meets them with the weights that Bare has then."""
    scenario = node_scenario()
    bare = taught(small_learner(scenario, "bare", epochs=1), scenario, 2)
    own = taught(small_learner(scenario, "er-gnn", {"topology": "isolated"}, epochs=1), scenario, 2)
    assert not torch.equal(weights_of(bare), weights_of(own))
    buffers = list(zip(bare.backbone.named_buffers(), own.backbone.named_buffers(), strict=True))
    assert buffers
    for (name, one), (_, other) in buffers:
        assert torch.equal(one, other), name


def test_one_isolated_node_passes_through_batch_norm() -> None:
    scenario = node_scenario()
    learner = small_learner(scenario, "er-gnn", {"topology": "isolated", "per_class": 1})
    prefix = scenario.lessons(((0,), (1, 2)))
    learner.learn(scenario.experience(prefix[:1]), 0)
    assert len(learner.method.memory) == 1
    learner.learn(scenario.experience(prefix), 1)
    assert len(learner.method.memory) == 3


def test_validation_samples_are_looked_at_without_the_memory() -> None:
    scenario = node_scenario()
    for topology in ("in place", "isolated"):
        learner = taught(small_learner(scenario, WATCHED, {"topology": topology}, patience=5), scenario, 1)
        learner.method.noted.clear()
        watched = []
        prefix = scenario.lessons(scenario.default)[:2]
        experience = scenario.experience(prefix)

        def note(
            _: int, __: float, learner: Learner = learner, watched: list = watched, experience: Any = experience
        ) -> None:
            with learner.answering(), torch.no_grad():
                batch = learner.batch(experience.validation)
                watched.append((learner.method.loss(learner, batch), learner.task_loss(batch)))

        learner.learn(experience, 1, note)
        assert all(torch.equal(*pair) for pair in watched)
        assert len(watched) == 3


def lowest(scores: np.ndarray, labels: np.ndarray, chosen: np.ndarray, number: int) -> None:
    """Assert that those chosen of every class have its lowest scores; of equals any may be."""
    for label in np.unique(labels):
        own = scores[labels == label]
        np.testing.assert_allclose(np.sort(scores[chosen & (labels == label)]), np.sort(own)[:number], rtol=1e-5)


def chosen_points(learner: Learner, scenario: Scenario, space: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, labels and whether they were kept, of the lesson that was learned last."""
    training = training_of(scenario, 0)
    if space == "features":
        points = training.pool.whole().features[training.ids].numpy()
    else:
        with learner.answering(), torch.no_grad():
            points = learner.model.embed(learner.inputs(training)).numpy()
    kept = np.isin(training.ids.numpy(), learner.method.memory.ids.numpy())
    return points.astype(np.float64), training.labels.numpy(), kept


@pytest.mark.parametrize("space", ["features", "embeddings"])
def test_mean_of_features_keeps_those_nearest_to_the_mean_of_their_class(space: str) -> None:
    scenario = node_scenario()
    learner = taught(
        small_learner(scenario, "er-gnn", {"selection": "mf", "space": space, "per_class": 3}), scenario, 1
    )
    points, labels, kept = chosen_points(learner, scenario, space)
    means = {label: points[labels == label].mean(axis=0) for label in np.unique(labels)}
    scores = np.array([np.linalg.norm(p - means[label]) for p, label in zip(points, labels, strict=True)])
    assert kept.sum() == 6
    lowest(scores, labels, kept, 3)


@pytest.mark.parametrize(("space", "distance"), [("features", 2.5), ("embeddings", 0.6)])
def test_coverage_keeps_those_with_the_fewest_others_near_them(space: str, distance: float) -> None:
    scenario = node_scenario()
    parameters = {"selection": "cm", "space": space, "distance": distance, "per_class": 4}
    learner = taught(small_learner(scenario, "er-gnn", parameters), scenario, 1)
    points, labels, kept = chosen_points(learner, scenario, space)
    scores = np.zeros(len(points))
    for one, point in enumerate(points):
        for other, further in enumerate(points):
            scores[one] += labels[one] != labels[other] and np.sqrt(((point - further) ** 2).sum()) < distance
    assert len(np.unique(scores)) > 4
    assert kept.sum() == 8
    lowest(scores, labels, kept, 4)


def test_ranks_of_many_points_are_those_of_a_loop() -> None:
    """More than are compared at once; a class of its own has no others."""
    random = np.random.default_rng(0)
    points, labels = random.normal(size=(1300, 2)), random.integers(3, size=1300)
    near = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2)) < 0.4
    expected = (near & (labels[:, None] != labels)).sum(axis=1)
    given = torch.from_numpy(points), torch.from_numpy(labels)
    np.testing.assert_array_equal(others_within(0.4, *given), expected)
    assert not others_within(0.4, given[0], torch.zeros_like(given[1])).any()
    means = np.array([points[labels == label].mean(axis=0) for label in range(3)])
    np.testing.assert_allclose(distances_to_mean(*given), np.linalg.norm(points - means[labels], axis=1))


def test_of_equals_the_seed_of_the_learner_draws() -> None:
    """Every node is within this distance of all others."""
    scenario = node_scenario()
    kept = []
    for seed in (0, 0, 1):
        learner = small_learner(scenario, "er-gnn", {"distance": 1e9, "per_class": 3}, seed=seed, epochs=1)
        kept.append(taught(learner, scenario, 1).method.memory.ids.tolist())
    assert kept[0] == kept[1] != kept[2]


def by_hand(learner: Learner, samples: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return embeddings with a 1 for the bias, probabilities (N, K) and targets (N, K) of a softmax head."""
    with learner.answering(), torch.no_grad():
        batch = learner.batch(samples)
        embeddings = learner.model.embed(batch.inputs).double().numpy()
    points = np.concatenate([embeddings, np.ones((len(embeddings), 1))], axis=1)
    scores = np.where(batch.among.numpy(), points @ learner.head.rows.detach().double().numpy().T, -np.inf)
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    return points, likely / likely.sum(axis=1, keepdims=True), np.eye(scores.shape[1])[batch.targets.numpy()]


@pytest.mark.parametrize("setting", ["class-il", "task-il"])
def test_influence_is_that_of_the_exact_inverse_of_the_hessian(setting: str) -> None:
    """Of softmax regression, H = Σᵢ wᵢ (diag pᵢ − pᵢpᵢᵀ) ⊗ xᵢxᵢᵀ and gᵢ = (pᵢ − yᵢ) ⊗ xᵢ."""
    scenario = node_scenario(setting=setting)
    learner = taught(small_learner(scenario), scenario, 2)
    samples = training_of(scenario, 1)
    # One class with more samples than the other: they weigh less, each.
    samples = samples.select(samples.labels.argsort(stable=True)[:-15])
    points, likely, wanted = by_hand(learner, samples)
    weights = learner.batch(samples).weights.double().numpy()
    hessian = sum(
        weight * np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x))
        for weight, p, x in zip(weights, likely, points, strict=True)
    )
    gradients = np.stack([np.kron(p - y, x) for p, y, x in zip(likely, wanted, points, strict=True)])
    for damping in (0.01, 1.0):
        inverse = np.linalg.inv(hessian + damping * np.eye(len(hessian)))
        expected = np.einsum("ni,ij,nj->n", gradients, inverse, gradients)
        np.testing.assert_allclose(self_influence(learner, samples, damping), expected, rtol=1e-4)


def test_influence_foretells_what_training_without_a_sample_does_to_its_loss() -> None:
    """The head is brought to its optimum by Newton's steps, with the damping as its weight decay."""
    scenario = node_scenario(balanced=False)
    learner = taught(small_learner(scenario), scenario, 1)
    samples, damping = training_of(scenario, 0), 0.05
    points, _, wanted = by_hand(learner, samples)

    def trained(used: np.ndarray, rows: np.ndarray, steps: int) -> np.ndarray:
        for _ in range(steps):
            likely = softmax(points @ rows.T)
            slope = ((likely - wanted) * used[:, None]).T @ points / len(points) + damping * rows
            bent = used[:, None, None] * (
                likely[:, :, None] * np.eye(likely.shape[1]) - likely[:, :, None] * likely[:, None]
            )
            curve = np.einsum("nab,ni,nj->aibj", bent, points, points, optimize=True).reshape(rows.size, rows.size)
            step = np.linalg.solve(curve / len(points) + damping * np.eye(rows.size), slope.flatten())
            rows = rows - step.reshape(rows.shape)
        return rows

    def losses(rows: np.ndarray) -> np.ndarray:
        return -np.log((softmax(points @ rows.T) * wanted).sum(axis=1))

    best = trained(np.ones(len(points)), np.zeros((wanted.shape[1], points.shape[1])), 30)
    learner.head.rows = torch.nn.Parameter(torch.from_numpy(best).float())
    foretold = self_influence(learner, samples, damping).numpy() / len(points)
    left_out = np.ones((len(points), len(points))) - np.eye(len(points))
    rise = np.array([losses(trained(used, best, 5))[row] for row, used in enumerate(left_out)]) - losses(best)
    assert np.corrcoef(foretold, rise)[0, 1] > 0.98
    np.testing.assert_allclose(foretold, rise, rtol=0.5)


def softmax(scores: np.ndarray) -> np.ndarray:
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    return likely / likely.sum(axis=1, keepdims=True)


def test_influence_maximisation_keeps_the_most_influential() -> None:
    scenario = node_scenario()
    learner = taught(small_learner(scenario, "er-gnn", {"selection": "im", "per_class": 3}), scenario, 1)
    _, labels, kept = chosen_points(learner, scenario, "features")
    assert kept.sum() == 6
    lowest(-self_influence(learner, training_of(scenario, 0), 0.01).numpy(), labels, kept, 3)


def test_conjugate_gradients_solve_rows_of_all_sizes_together() -> None:
    random = np.random.default_rng(3)
    root = random.normal(size=(20, 20))
    matrix = torch.from_numpy(root @ root.T + 0.1 * np.eye(20))
    wanted = torch.from_numpy(random.normal(size=(4, 20)) * np.array([[1e-8], [1], [1e8], [0]]))
    found = conjugate_gradients(lambda rows: rows @ matrix, wanted)
    for row, expected in zip(found, torch.linalg.solve(matrix, wanted.T).T, strict=True):
        assert (row - expected).norm() <= 1e-4 * expected.norm()


@pytest.mark.parametrize("fields", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("choice", [CHOICES[1], CHOICES[4]], ids=str)
def test_all_that_is_remembered_is_saved(fields: dict, choice: dict) -> None:
    scenario = node_scenario(**fields)
    prefix = scenario.lessons(scenario.default)

    def new() -> Learner:
        return small_learner(scenario, "er-gnn", {"per_class": 2, **choice})

    refuse_forgetting(new, scenario.experience(prefix[:1]), scenario.experience(prefix[:2]))


@pytest.mark.parametrize(
    "training",
    [
        {"batch_size": 8},
        {"patience": 1},
        {"plateau": {"patience": 0}},
        {"reset_optimizer": True},
        {"batch_size": 8, "fan_outs": (2, 2)},
    ],
    ids=str,
)
@pytest.mark.parametrize("topology", ["in place", "isolated"])
def test_a_learner_goes_on_from_a_saved_state_as_if_it_had_never_stopped(training: dict, topology: str) -> None:
    scenario = node_scenario()

    def new() -> Learner:
        return small_learner(scenario, "er-gnn", {"per_class": 2, "topology": topology}, **training)

    straight = taught(new(), scenario, 2)
    resumed = new()
    resumed.restore(from_bytes(to_bytes(straight.state())))
    assert to_bytes(taught(resumed, scenario).state()) == to_bytes(taught(straight, scenario).state())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"per_class": 0}, "per_class 0 is not a whole number of at least 1"),
        ({"count": 2.5}, "count 2.5 is not a whole number"),
        ({"count": 7, "per_class": 1}, "give either per_class or a count"),
        ({"distance": 0}, "distance 0 is not above 0"),
        ({"distance": float("nan")}, "distance nan is not above 0"),
        ({"damping": -1}, "damping -1 is not above 0"),
        ({"selection": "mm"}, "unknown selection 'mm'; known: cm, im, mf, random"),
        ({"space": "feature"}, "unknown space 'feature'; did you mean 'features'"),
        ({"weighting": "invers"}, "unknown weighting 'invers'; did you mean 'inverse'"),
        ({"topology": "inplace"}, "unknown topology 'inplace'; did you mean 'in place'"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=f"method 'er-gnn': {message}"):
        make_method("er-gnn", parameters)


def test_what_is_left_unsaid_has_the_key_of_what_it_means() -> None:
    assert ERGNN.spelled_out({"per_class": None, "count": None}) == {"per_class": 10, "count": None}
    assert ERGNN.spelled_out({"per_class": None, "count": 7}) == {"per_class": None, "count": 7}
    assert make_method("er-gnn", {}).per_class == 10


def test_samples_that_are_no_nodes_or_have_many_labels_are_refused(small: Any) -> None:
    with pytest.raises(InputError, match="method ERGNN needs samples that are nodes of one graph"):
        small_learner(scenario_of(small), "er-gnn")
    with pytest.raises(InputError, match="method ERGNN needs samples of one class each"):
        small_learner(label_scenario(), "er-gnn")
