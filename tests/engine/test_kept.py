"""What a method keeps, counted by hand: samples by id and by content, floating-point numbers, bytes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from skeleton_cgl.engine.contents import attributes_of, differing
from skeleton_cgl.engine.kept import kept_by
from skeleton_cgl.engine.record import Kept
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import Method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.scenarios.lessons import TaskLesson
from skeleton_cgl.scenarios.scenario import Experience, Samples, Scenario
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.skeletons import Augmentation
from tests.engine.studies import run, small_study
from tests.learning.learners import METHODS, seed_for, small_learner
from tests.scenarios.conftest import small
from tests.scenarios.graphs import FEATURES, node_graph, node_scenario
from tests.scenarios.sets import graph_set, graphs_of, link_set, prefixes
from tests.scenarios.small import scenario_of, write_small
from tests.scenarios.test_graph import graph_scenario
from tests.scenarios.test_link import link_scenario
from tests.scenarios.test_link_prediction import pair_scenario

__all__ = ["small"]

COUNT = 4
PER_ID = 3 * 8
"""Bytes of an id, its label and its step."""
CLIP = 3 * 4 * 5
"""Coordinates, frames and joints of a small clip."""


def learned(scenario: Scenario, method: str, lessons: int = 2, **parameters: Any) -> tuple[Learner, Experience]:
    """Return a learner after some lessons of the default order, and the last of them."""
    learner = small_learner(scenario, method, parameters, epochs=1)
    for step, prefix in enumerate(prefixes(scenario)[:lessons]):
        experience = scenario.experience(prefix)
        learner.learn(experience, seed_for(step))
    return learner, experience


@pytest.mark.parametrize("method", ["replay", "gem"])
def test_a_clip_kept_by_id_costs_all_its_coordinates(small: Path, method: str) -> None:
    learner, experience = learned(scenario_of(small), method, count=COUNT)
    kept = 2 * COUNT
    assert kept_by(learner.method, experience) == Kept(kept, kept * CLIP, kept * (4 * CLIP + PER_ID))


def test_a_clip_of_two_actors_costs_both_of_them_and_is_not_cheaper_where_it_is_drawn(tmp_path: Path) -> None:
    archive = write_small(tmp_path / "two.h5", actors=2)
    scenario = SkeletonScenario(archive, augmentation=Augmentation())
    learner, experience = learned(scenario, "replay", count=COUNT)
    assert kept_by(learner.method, experience).floats == 2 * COUNT * 2 * CLIP


def test_joint_keeps_every_training_sample(small: Path) -> None:
    scenario = scenario_of(small)
    learner, experience = learned(scenario, "joint", 3)
    every = sum(len(scenario.experience(prefix).training) for prefix in prefixes(scenario)[:3])
    assert kept_by(learner.method, experience) == Kept(every, every * CLIP, every * (4 * CLIP + PER_ID))


@pytest.mark.parametrize("view", [{"view": "whole"}, {"view": "task"}, {"view": "task", "inter_task_edges": True}])
def test_a_node_kept_by_id_costs_its_features(view: dict[str, Any]) -> None:
    learner, experience = learned(node_scenario(node_graph(), **view), "replay", count=COUNT)
    kept = 2 * COUNT
    assert kept_by(learner.method, experience) == Kept(kept, kept * FEATURES, kept * (4 * FEATURES + PER_ID))


def test_of_sparse_features_only_those_count_that_are_not_zero() -> None:
    table = csr_array(np.array([[0, 2, 0], [1, 0, 3], [0, 0, 0]], dtype=np.float32))
    edges = np.array([[0, 1], [1, 2]])
    places = Places.of(edges, table, np.array([[0, 1], [2, 2]]), self_loops=True)
    assert places.floats_of(torch.tensor([0])) == 3
    assert places.floats_of(torch.tensor([1, 0, 1])) == 3
    dense = Places.of(edges, table.toarray(), np.array([[0, 1], [2, 2]]), self_loops=True)
    assert dense.floats_of(torch.tensor([0])) == 6


def test_a_graph_kept_by_id_costs_the_features_of_its_nodes_on_the_mean_of_the_lesson() -> None:
    graphs = graph_set()
    learner, experience = learned(graph_scenario(graphs), "replay", count=COUNT)
    nodes = graphs.sizes[graphs_of(graphs, experience.training)]
    assert nodes.mean() != graphs.sizes.mean()
    floats = round(2 * COUNT * 3 * nodes.mean())
    assert kept_by(learner.method, experience) == Kept(2 * COUNT, floats, 4 * floats + 2 * COUNT * PER_ID)


def test_a_link_kept_by_id_costs_the_features_of_both_ends() -> None:
    links = link_set(features=np.random.default_rng(0).normal(size=(60, 7)))
    learner, experience = learned(link_scenario(links), "replay", count=COUNT)
    kept = 2 * COUNT
    assert kept_by(learner.method, experience) == Kept(kept, kept * 2 * 7, kept * (4 * 2 * 7 + PER_ID))


def test_a_pair_kept_by_id_costs_the_features_of_both_ends_and_its_label_which_is_a_float() -> None:
    # Without features of their own, nodes have their degrees.
    learner, experience = learned(pair_scenario(), "replay", count=COUNT)
    assert experience.training.labels.dtype == torch.float32
    kept = 2 * COUNT
    assert kept_by(learner.method, experience) == Kept(kept, kept * (2 + 1), kept * (4 * (2 + 1) + 2 * 8))


def test_ewc_keeps_no_sample_and_of_every_task_two_numbers_per_parameter(small: Path) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, "ewc", epochs=1)
    floats = 0
    for step, prefix in enumerate(prefixes(scenario)):
        experience = scenario.experience(prefix)
        learner.learn(experience, seed_for(step))
        # The head grows with every task, and with it the number of parameters.
        floats += 2 * sum(parameter.numel() for parameter in learner.model.parameters())
        assert kept_by(learner.method, experience) == Kept(0, floats, 4 * floats)


@pytest.mark.parametrize("method", ["bare", "lwf"])
def test_what_needs_only_its_model_keeps_nothing_beside_it(small: Path, method: str) -> None:
    learner, experience = learned(scenario_of(small), method)
    assert kept_by(learner.method, experience) == Kept(0, 0, 0)


class Holding(Method):
    """Holds whatever it is given, and says that it has samples of it."""

    def __init__(self, state: dict[str, Any], samples: Any = 0) -> None:
        self._state, self._samples = state, samples

    def samples_kept(self) -> int:
        return self._samples

    def state(self) -> dict[str, Any]:
        return self._state


class HoldingContents(Holding):
    """The same of the samples' contents."""

    by_content = True


def no_samples() -> Experience:
    nothing = torch.zeros(0, dtype=torch.long)
    empty = Samples(None, nothing, nothing, nothing)
    return Experience(TaskLesson((0,)), ("a",), (0,), empty, empty)


@pytest.mark.parametrize(
    ("value", "floats", "size"),
    [
        (torch.zeros(3, 2), 6, 24),
        (torch.zeros(3, 2, dtype=torch.float64), 6, 48),
        (torch.zeros(3, dtype=torch.bfloat16), 3, 6),
        (torch.zeros(3, dtype=torch.complex64), 6, 24),
        (torch.zeros(5, dtype=torch.uint8), 0, 5),
        (torch.zeros(5, dtype=torch.bool), 0, 5),
        (1.5, 1, 8),
        (7, 0, 8),
        ("Gähnen", 0, 7),
        (None, 0, 0),
        ([1.0] * 1000, 1000, 8000),
        ({"a": [torch.zeros(2), {"b": (torch.zeros(3), 2.5)}]}, 6, 28),
    ],
)
def test_everything_in_a_state_counts_also_what_is_in_no_tensor(value: Any, floats: int, size: int) -> None:
    assert kept_by(Holding({"x": value}), no_samples()) == Kept(0, floats, size)


def test_samples_whose_contents_are_in_the_state_do_not_count_twice(small: Path) -> None:
    experience = scenario_of(small).experience(prefixes(scenario_of(small))[0])
    state = {"clips": torch.zeros(9, 3, 4, 5)}
    assert kept_by(HoldingContents(state, 9), experience) == Kept(9, 9 * CLIP, 9 * 4 * CLIP)
    assert kept_by(Holding(state, 9), experience) == Kept(9, 2 * 9 * CLIP, 2 * 9 * 4 * CLIP)


@pytest.mark.parametrize("samples", [-1, 2.0, None, True])
def test_what_is_no_number_of_samples_is_refused(samples: Any) -> None:
    with pytest.raises(InputError, match=r"method Holding: `samples_kept` gives .*; expected a whole number from 0 on"):
        kept_by(Holding({}, samples), no_samples())


# What LwF still holds of a lesson, its teacher, is made anew from the model when the next one begins.
@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"lwf"}))
def test_a_method_holds_nothing_after_a_lesson_that_its_state_does_not_tell(small: Path, method: str) -> None:
    scenario = scenario_of(small)
    learner, experience = learned(scenario, method, **METHODS[method])
    other = small_learner(scenario, method, METHODS[method], epochs=1)
    other.restore(from_bytes(to_bytes(learner.state())))
    assert differing(attributes_of(learner.method), attributes_of(other.method)) == []
    assert kept_by(other.method, experience) == kept_by(learner.method, experience)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_records_of_a_study_tell_what_was_kept_after_every_stage(tmp_path: Path) -> None:
    study = small_study(tmp_path, methods=["bare", {"name": "replay", "count": COUNT}])
    with Store(run(study, tmp_path / "x.db")) as store:
        bare, replay = (
            [[store.record(key).made.kept for key in each.keys] for each in store.runs(1) if each.learner == learner]
            for learner in (0, 1)
        )
    # Frames, joints and coordinates of a clip as the study has it.
    clip = 8 * 20 * 3
    expected = [Kept(COUNT * step, COUNT * step * clip, COUNT * step * (4 * clip + PER_ID)) for step in (1, 2, 3)]
    assert bare == [[Kept(0, 0, 0)] * 3] * 3
    assert replay == [expected] * 3
