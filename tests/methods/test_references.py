"""References on fixed features: the answers of training on everything at once, in whatever order it came."""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.archive import write_archive
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.learning.training import Training
from skeleton_cgl.methods.ridge import Ridge
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.inputs import Clips
from skeleton_cgl.scenarios.made_up import made_up_graph
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.scenarios.settings import make_scenario
from tests.graphs.made_sets import random_graph_set
from tests.learning.learners import answers_after_every_stage, assert_same_to_the_bit, learn_tasks, small_learner
from tests.scenarios.sets import graph_set, link_set
from tests.scenarios.small import SETTINGS, lesson, scenario_of

TASKS = ((0, 1), (2, 3), (4, 5))
ORDERS = list(permutations(TASKS))


def final_answers(scenario: Scenario, order: Any, name: str, parameters: dict[str, Any], **backbone: Any) -> Tensor:
    recipe = Training(epochs=2, learning_rate=0.01, device="cpu")
    learner = make_learner(scenario, "gcn", name, recipe, 0, {"width": 8, **backbone}, parameters)
    return answers_after_every_stage(learner, scenario, order)[-1]


def all_samples(scenario: Scenario, order: Any = TASKS) -> tuple[Tensor, Tensor]:
    """Return raw features and labels of the training samples of all tasks."""
    parts = [lesson(scenario, *order[: step + 1]).training for step in range(len(order))]
    features = [part.pool.whole().rows(part.ids).plain(0, "mean") for part in parts]
    return torch.cat(features).double(), torch.cat([part.labels for part in parts])


def asked(scenario: Scenario, order: Any = TASKS) -> Tensor:
    queries = scenario.queries(scenario.lessons(order))
    return queries.pool.whole().rows(queries.ids).plain(0, "mean").double()


def by_sklearn(features: Tensor, wanted: Tensor, queries: Tensor, strength: float) -> Tensor:
    """Return what scikit-learn's ridge regression answers; the constant counts as a feature, and is held back too."""
    with_one = [np.pad(table.numpy(), ((0, 0), (0, 1)), constant_values=1) for table in (features, queries)]
    model = SklearnRidge(alpha=strength, fit_intercept=False, solver="cholesky").fit(with_one[0], wanted.numpy())
    return torch.from_numpy(np.asarray(model.predict(with_one[1])).reshape(len(queries), -1))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("strength", [0.5, 100.0])
def test_ridge_is_that_of_everything_at_once(small: Path, setting: str, strength: float) -> None:
    scenario = scenario_of(small, setting)
    features, labels = all_samples(scenario)
    expected = by_sklearn(features, torch.nn.functional.one_hot(labels).double(), asked(scenario), strength)
    for order in ORDERS:
        found = final_answers(scenario, order, "ridge", {"strength": strength, "projection": 0, "unit": False})
        torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
        assert found.argmax(dim=1).equal(expected.argmax(dim=1))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("ridge", {}),
        ("ridge", {"projection": 30, "strength": 1}),
        ("ridge", {"features": "untrained", "projection": 0}),
        ("ncm", {}),
        ("ncm", {"projection": 30}),
        ("cosine", {"features": "data"}),
    ],
    ids=str,
)
def test_every_order_of_tasks_and_classes_gives_the_same_answers(
    small: Path, name: str, parameters: dict[str, Any]
) -> None:
    scenario = scenario_of(small)
    answers = [final_answers(scenario, order, name, parameters) for order in (*ORDERS, ((5, 0), (1, 4), (3, 2)))]
    for found in answers[1:]:
        torch.testing.assert_close(found, answers[0], atol=1e-5, rtol=1e-5)
        assert found.argmax(dim=1).equal(answers[0].argmax(dim=1))


@pytest.mark.parametrize(
    ("name", "features"),
    [("ridge", "first task"), ("ncm", "first task"), ("cosine", "first task"), ("ridge", "self-supervised")],
)
def test_a_backbone_of_the_first_task_depends_on_which_that_was_and_on_nothing_else(
    small: Path, name: str, features: str
) -> None:
    scenario = scenario_of(small)
    parameters = {"features": features, "projection": 0}
    found = {order: final_answers(scenario, order, name, parameters) for order in ORDERS}
    for order, answers in found.items():
        for other, others in found.items():
            if order[0] == other[0]:
                torch.testing.assert_close(answers, others, atol=1e-4, rtol=1e-4)
            else:
                assert (answers - others).abs().max() > 1e-3


@pytest.mark.parametrize("features", ["data", "untrained", "first task", "self-supervised"])
def test_no_weight_of_the_backbone_moves_but_in_the_first_lesson_if_it_is_to(small: Path, features: str) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, "ridge", {"features": features, "projection": 0})
    weights = [{name: value.clone() for name, value in learner.backbone.state_dict().items()}]
    for step in (1, 2):
        learner.learn(lesson(scenario, *TASKS[:step]), step)
        weights.append({name: value.clone() for name, value in learner.backbone.state_dict().items()})
    first, second, third = weights
    moved = any(not torch.equal(first[name], second[name]) for name in first)
    assert moved == (features in ("first task", "self-supervised"))
    assert all(torch.equal(second[name], third[name]) for name in second)


def test_random_features_are_those_of_one_matrix_for_all_orders_and_another_for_another_seed(small: Path) -> None:
    scenario = scenario_of(small)
    drawn = []
    for seed, order in ((0, TASKS), (0, TASKS[::-1]), (1, TASKS)):
        learner = small_learner(scenario, "ridge", {"projection": 7}, seed=seed)
        learn_tasks(learner, scenario, *order)
        drawn.append(learner.method.features._random)
        experience = lesson(scenario, TASKS[0])
        plain = experience.training.pool.whole().rows(experience.training.ids).plain(0, "mean").double()
        unit = plain / plain.norm(dim=1, keepdim=True) * plain.shape[1] ** 0.5
        expected = torch.cat([(unit @ drawn[-1]).clamp(min=0), torch.ones(len(unit), 1)], dim=1)
        torch.testing.assert_close(learner.method.features.of(learner, experience.training), expected.double())
    assert drawn[0].equal(drawn[1])
    assert not drawn[0].equal(drawn[2])
    assert abs(float(drawn[0].var()) * len(drawn[0]) - 1) < 0.3


def test_prototypes_are_class_means_as_by_scikit_learn_and_by_hand(small: Path) -> None:
    scenario = scenario_of(small)
    features, labels = all_samples(scenario)
    queries = asked(scenario)
    means = torch.stack([features[labels == label].mean(dim=0) for label in range(6)])
    nearest = KNeighborsClassifier(n_neighbors=1).fit(means.numpy(), np.arange(6))
    found = final_answers(scenario, TASKS, "ncm", {"unit": False})
    assert found.argmax(dim=1).tolist() == nearest.predict(queries.numpy()).tolist()
    squared = ((queries[:, None] - means) ** 2).sum(dim=2)
    torch.testing.assert_close(found.double(), -squared, atol=1e-5, rtol=1e-5)
    cosine = (queries @ means.T) / queries.norm(dim=1)[:, None] / means.norm(dim=1)
    found = final_answers(scenario, TASKS, "cosine", {"features": "data", "unit": False})
    torch.testing.assert_close(found.double(), cosine, atol=1e-5, rtol=1e-5)


def test_labels_that_are_not_known_count_nowhere() -> None:
    random = np.random.default_rng(0)
    features = torch.from_numpy(random.normal(size=(40, 5)))
    wanted = torch.from_numpy(random.choice([0.0, 1.0, np.nan], (40, 3)))
    all_known = torch.from_numpy(random.choice([0.0, 1.0], (10, 3)))
    ridge = Ridge(strength=2)
    # First samples that tell of all labels, and share one matrix, then others that do not.
    ridge.add(features[:10], all_known)
    assert len(ridge.squares) == 1
    ridge.add(features[10:], wanted[10:])
    whole = torch.cat([all_known, wanted[10:]])
    for label in range(3):
        known = ~whole[:, label].isnan()
        model = SklearnRidge(alpha=2, fit_intercept=False).fit(features[known].numpy(), whole[known, label].numpy())
        np.testing.assert_allclose(ridge.weights()[:, label].numpy(), model.coef_, rtol=1e-8)


def test_sums_are_the_same_in_whatever_batches_samples_come() -> None:
    random = np.random.default_rng(1)
    features, wanted = torch.from_numpy(random.normal(size=(60, 8))), torch.eye(4, dtype=torch.float64).repeat(15, 1)
    whole, parts = Ridge(), Ridge()
    whole.add(features, wanted)
    for rows in torch.from_numpy(random.permutation(60)).split(7):
        parts.add(features[rows], wanted[rows])
    torch.testing.assert_close(parts.weights(), whole.weights(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["ridge", "ncm", "cosine"])
def test_what_is_learned_after_a_saved_state_is_what_is_learned_without(small: Path, name: str) -> None:
    scenario = scenario_of(small)
    straight = small_learner(scenario, name)
    saved = b""
    for step in (1, 2, 3):
        saved = to_bytes(straight.state())
        straight.learn(lesson(scenario, *TASKS[:step]), step)
    resumed = small_learner(scenario, name)
    resumed.restore(from_bytes(saved))
    resumed.learn(lesson(scenario, *TASKS), 3)
    queries = scenario.queries(scenario.lessons(TASKS))
    assert_same_to_the_bit([resumed.answer(queries)], [straight.answer(queries)])
    assert to_bytes(resumed.state()) == to_bytes(straight.state())


@pytest.mark.parametrize("name", ["ridge", "ncm", "cosine"])
def test_who_answered_and_goes_back_answers_as_then(small: Path, name: str) -> None:
    scenario = scenario_of(small)
    learner, queries = small_learner(scenario, name, {"features": "data"}), scenario.queries(scenario.lessons(TASKS))
    learner.learn(lesson(scenario, *TASKS[:1]), 1)
    before, saved = learner.answer(queries), learner.state()
    learner.learn(lesson(scenario, *TASKS[:2]), 2)
    assert not torch.equal(learner.answer(queries), before)
    learner.restore(saved)
    assert_same_to_the_bit([learner.answer(queries)], [before])


def test_before_anything_is_learned_all_answers_are_alike(small: Path) -> None:
    scenario = scenario_of(small)
    for name in ("ridge", "ncm", "cosine"):
        learner = small_learner(scenario, name)
        learner.head.meet([0, 1])
        answers = learner.answer(scenario.queries(scenario.lessons(TASKS[:1])))
        assert not answers[:, :2].any()


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("ridge", {"strength": 0}, "strength must be positive, found 0"),
        ("ridge", {"strength": -1}, "strength must be positive, found -1"),
        (
            "ridge",
            {"features": "backbon"},
            "unknown features 'backbon'; known: data",
        ),
        ("ridge", {"hops": -1}, "hops -1 is not a whole number of at least 0"),
        ("ncm", {"projection": 1.5}, "projection 1.5 is not a whole number of at least 0"),
        ("cosine", {"hops": 1}, "hops: features of the data are summed over neighbours, and features is 'first task'"),
        ("ncm", {"read_out": "max"}, "unknown read_out 'max'; known: mean, sum"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        METHODS.make(name, parameters)
    assert str(refused.value).startswith(f"method {name!r}: {message.split('; known')[0]}")


def test_what_is_not_defined_for_a_scenario_is_refused(small: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="method Ridge needs samples in graphs whose nodes have features"):
        small_learner(scenario_of(small), "ridge", {"hops": 2})
    write_archive(random_graph_set(graphs=150, many_labels=True, published=False, texts=False), tmp_path / "labels.h5")
    labelled = make_scenario({"kind": "graph", "data": str(tmp_path / "labels.h5"), "classes_per_task": 1}, 0)
    with pytest.raises(InputError, match="method NCM needs samples of one class each"):
        make_learner(labelled, "gcn", "ncm", Training(device="cpu"))


KINDS = [
    *(("link", setting, "links") for setting in ("class-il", "task-il", "time-il")),
    *(("link-prediction", setting, "links") for setting in ("domain-il", "time-il")),
    *(("graph", setting, "graphs") for setting in ("class-il", "task-il", "domain-il", "time-il")),
    *(("graph", setting, "labelled") for setting in ("class-il", "task-il", "domain-il")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("references")
    write_archive(link_set(), made / "links.h5")
    write_archive(graph_set(), made / "graphs.h5")
    write_archive(random_graph_set(graphs=150, many_labels=True, published=False, texts=False), made / "labelled.h5")
    return made


@pytest.mark.parametrize(("kind", "setting", "data"), KINDS, ids=str)
@pytest.mark.parametrize(
    "parameters", [{"hops": 1, "projection": 0, "unit": False}, {"features": "untrained"}], ids=str
)
def test_ridge_answers_every_problem_alike_in_every_order(
    folder: Path, kind: str, setting: str, data: str, parameters: dict[str, Any]
) -> None:
    more = {"negatives": 20, "k": 5} if kind == "link-prediction" else {}
    scenario = make_scenario({"kind": kind, "data": str(folder / f"{data}.h5"), "setting": setting, **more}, 0)
    order = scenario.default
    found = final_answers(scenario, order, "ridge", parameters)
    assert found.isfinite().all()
    assert found.std() > 0
    # Periods have one order. Labels are shown again by later lessons of class-il, and links seen by later lessons.
    if scenario.unit_kind == "period" or kind == "link-prediction" or (data, setting) == ("labelled", "class-il"):
        return
    again = final_answers(scenario, order[::-1], "ridge", parameters)
    answered = ((found, scenario.lessons(order)), (again, scenario.lessons(order[::-1])))
    scores = [scenario.score(*each) for each in answered]
    for one, other in zip(*scores, strict=True):
        np.testing.assert_allclose(one.values, other.values, atol=1e-12)


def normalised(edges: np.ndarray, nodes: int) -> np.ndarray:
    """Return Â, dense: in-edges weighted by 1/√(d_out·d_in)."""
    dense = np.zeros((nodes, nodes))
    dense[edges[1], edges[0]] = 1
    return dense / np.sqrt(np.outer(dense.sum(axis=1), dense.sum(axis=0)))


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_features_of_nodes_pairs_and_graphs_are_as_by_dense_matrices(hops: int) -> None:
    random = np.random.default_rng(2)
    nodes = 12
    edges = np.stack(np.nonzero((random.random((nodes, nodes)) < 0.3) | np.eye(nodes, dtype=bool)))
    table = (random.normal(size=(nodes, 4)) * (random.random((nodes, 4)) < 0.5)).astype(np.float32)
    expected = np.linalg.matrix_power(normalised(edges, nodes), hops) @ table
    for at in (np.array([[3], [3], [0]]), np.array([[1, 2], [5, 5]])):
        wanted = expected[at].prod(axis=1)
        for features in (table, csr_array(table)):
            found = Places.of(edges, features, at, self_loops=False).plain(hops, "mean")
            np.testing.assert_allclose(found.numpy(), wanted, atol=1e-6)
    starts = np.array([0, 5, 12])
    inside = (edges < 5).all(axis=0) | (edges >= 5).all(axis=0)
    own = np.linalg.matrix_power(normalised(edges[:, inside], nodes), hops) @ table
    graphs = Graphs.of(starts, edges[:, inside], table, self_loops=False)
    for read_out, reduce in (("mean", np.mean), ("sum", np.sum)):
        expected = np.stack([reduce(own[first:last], axis=0) for first, last in ((0, 5), (5, 12))])
        np.testing.assert_allclose(graphs.plain(hops, read_out).numpy(), expected, atol=1e-5)


def test_codes_become_a_column_for_every_kind() -> None:
    codes = np.array([[0, 2], [1, 0], [1, 1]], dtype=np.float32)
    graphs = Graphs.of(np.array([0, 1, 3]), np.zeros((2, 0), dtype=np.int64), codes, self_loops=True, codes=(2, 3))
    expected = [[1, 0, 0, 0, 1], [0, 2, 1, 1, 0]]
    assert graphs.plain(0, "sum").tolist() == expected
    assert graphs.rows(torch.tensor([1])).plain(2, "sum").tolist() == expected[1:]


def test_features_of_clips_are_their_coordinates_the_mean_over_actors() -> None:
    clips = torch.arange(48.0).reshape(2, 2, 3, 2, 2)
    assert Clips(clips, actors=2).plain(0, "mean").equal(clips.mean(dim=1).flatten(1))
    assert Clips(clips[:, 0]).plain(0, "mean").equal(clips[:, 0].flatten(1))
    with pytest.raises(InputError, match="clips: features summed over neighbours 2 times are of graphs"):
        Clips(clips[:, 0]).plain(2, "mean")


def test_features_of_nodes_stay_fixed_in_the_made_up_graph() -> None:
    scenario = made_up_graph("class-il")
    found = [final_answers(scenario, order, "ridge", {"hops": 2, "projection": 0}) for order in ORDERS]
    for answers in found[1:]:
        torch.testing.assert_close(answers, found[0], atol=1e-5, rtol=1e-5)


def test_a_class_that_was_met_without_a_sample_is_never_answered(small: Path) -> None:
    scenario = scenario_of(small)
    for name in ("ncm", "cosine"):
        learner = small_learner(scenario, name, {"features": "data"})
        learner.learn(lesson(scenario, (0, 1)), 0)
        learner.head.meet([2])
        answers = learner.answer(scenario.queries(scenario.lessons(((0, 1),))))
        assert answers[:, 2].isneginf().all()
        assert answers[:, :2].isfinite().all()
