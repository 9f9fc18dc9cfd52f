"""Skeleton actions as a scenario: what is handed out, what is asked without labels, what is scored, what is refused."""

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.backbones.gcn import GCN
from skeleton_cgl.backbones.stgcn import STGCN
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.scenario import SETTINGS, Queries, join
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.scenarios.split import Split
from skeleton_cgl.skeletons import Archive, Augmentation
from tests.scenarios.small import NAMES, small_source, write_small

CLASSES = len(NAMES)


class Plain(Backbone):
    """Takes clips as they are."""


def clips_of(scenario: SkeletonScenario, ids: torch.Tensor) -> np.ndarray:
    return scenario.queries().pool.inputs(ids, Plain()).numpy()


def truth_of(scenario: SkeletonScenario, small: Path) -> np.ndarray:
    """Return the labels of the queries, found by comparing their clips with those of the archive."""
    with Archive.open(small) as archive:
        known = {clip.tobytes(): label for clip, label in zip(archive.clips()[:, 0], archive.labels, strict=True)}
    clips = clips_of(scenario, scenario.queries().ids).transpose(0, 2, 3, 1)
    return np.array([known[np.ascontiguousarray(clip).tobytes()] for clip in clips])


@pytest.mark.parametrize("split", [Split(), Split(by="subject"), Split(by="view"), Split(ratios=(1, 2, 3), seed=4)])
def test_every_sample_is_handed_out_once_and_every_label_is_its_own(small: Path, split: Split) -> None:
    scenario = SkeletonScenario(small, split=split)
    experiences = [scenario.experience(task) for task in [(4, 1), (0,), (2, 3, 5)]]
    training = join([experience.training for experience in experiences])
    validation = join([experience.validation for experience in experiences])
    queries = scenario.queries()
    with Archive.open(small) as archive:
        expected = {clip.tobytes(): label for clip, label in zip(archive.clips()[:, 0], archive.labels, strict=True)}
    everything = torch.cat([training.ids, queries.ids])
    assert everything.sort().values.tolist() == list(range(len(expected)))
    assert set(validation.ids.tolist()) < set(queries.ids.tolist())
    clips = clips_of(scenario, training.ids).transpose(0, 2, 3, 1)
    found = [expected[np.ascontiguousarray(clip).tobytes()] for clip in clips]
    assert found == training.labels.tolist()


@pytest.fixture(scope="module")
def small_scenario(small: Path) -> SkeletonScenario:
    return SkeletonScenario(small)


@settings(max_examples=30)
@given(task=st.lists(st.integers(0, CLASSES - 1), min_size=1, unique=True))
def test_an_experience_holds_the_classes_of_its_task_and_no_other(
    small_scenario: SkeletonScenario, task: list[int]
) -> None:
    experience = small_scenario.experience(tuple(task))
    assert experience.task == tuple(sorted(task))
    for samples in (experience.training, experience.validation):
        assert set(samples.labels.tolist()) == set(task)


def test_queries_carry_no_labels_and_are_the_same_after_every_stage(small_scenario: SkeletonScenario) -> None:
    queries = small_scenario.queries()
    assert set(vars(queries)) == {"pool", "ids"}
    assert not any("label" in name for name in chain(vars(queries.pool), dir(Queries), dir(queries.pool)))
    small_scenario.experience((0, 1))
    assert torch.equal(small_scenario.queries().ids, queries.ids)


def test_sample_numbers_and_query_order_say_nothing_about_the_class(small: Path) -> None:
    """Over many seeds, every class and both parts are on average in the middle of the numbers and of the queries."""
    places, parts = [], []
    for seed in range(40):
        scenario = SkeletonScenario(small, split=Split(seed=seed, ratios=(1, 1, 1)))
        truth = truth_of(scenario, small)
        within = np.arange(len(truth)) / (len(truth) - 1)
        places.append([within[truth == label].mean() for label in range(CLASSES)])
        everything = scenario.experience(tuple(range(CLASSES)))
        numbers, labels = everything.training.ids.numpy(), everything.training.labels.numpy()
        last = len(numbers) + len(truth) - 1
        places[-1] += [numbers[labels == label].mean() / last for label in range(CLASSES)]
        parts.append(within[np.isin(scenario.queries().ids, everything.validation.ids)].mean())
    # The mean of about 11 uniform places has a standard deviation of 0.29/√11; of 40 such means, 0.014.
    assert np.abs(np.mean(places, axis=0) - 0.5).max() < 0.06
    assert abs(np.mean(parts) - 0.5) < 0.05


@pytest.mark.parametrize("setting", SETTINGS)
@settings(max_examples=12)
@given(seed=st.integers(0, 9), order=st.permutations(range(CLASSES)), cut=st.integers(1, 3))
def test_the_oracle_scores_one_in_every_order_for_test_and_validation(
    small: Path, setting: str, seed: int, order: list, cut: int
) -> None:
    scenario = SkeletonScenario(small, setting, split=Split(seed=seed))
    truth = truth_of(scenario, small)
    answers = torch.nn.functional.one_hot(torch.from_numpy(truth), CLASSES).float()
    tasks = [tuple(order[start : start + cut]) for start in range(0, CLASSES, cut)]
    for stage in range(1, len(tasks) + 1):
        score = scenario.score(answers, tasks[:stage])
        seen = [label for task in tasks[:stage] for label in task]
        for counts in (score.test, score.validation):
            assert all(counts[label, label] == counts[label].sum() > 0 for label in seen)
        np.testing.assert_array_equal((score.test + score.validation).sum(axis=1), np.bincount(truth))


def test_validation_and_test_are_counted_apart(small: Path) -> None:
    scenario = SkeletonScenario(small)
    everything = scenario.experience(tuple(range(CLASSES)))
    validation = np.isin(scenario.queries().ids, everything.validation.ids)
    truth = torch.from_numpy(truth_of(scenario, small))
    answers = torch.zeros(len(truth), CLASSES)
    right = torch.from_numpy(validation)
    answers[torch.arange(len(truth)), torch.where(right, truth, (truth + 1) % CLASSES)] = 1
    score = scenario.score(answers, [tuple(range(CLASSES))])
    assert np.trace(score.validation) == validation.sum() == score.validation.sum()
    assert np.trace(score.test) == 0
    assert score.test.sum() == (~validation).sum()


def test_answers_that_do_not_fit_are_refused_with_both_shapes(small_scenario: SkeletonScenario) -> None:
    count = len(small_scenario.queries())
    for answers, found in [
        (torch.zeros(count - 1, CLASSES), rf"\({count}, {CLASSES}\).*\({count - 1}, {CLASSES}\)"),
        (torch.zeros(count, CLASSES + 1), rf"\({count}, {CLASSES}\).*\({count}, {CLASSES + 1}\)"),
        (torch.zeros(count), rf"\({count}, {CLASSES}\).*\({count},\)"),
        (torch.tensor(0.0), rf"\({count}, {CLASSES}\).*\(\)"),
        (torch.zeros(count, CLASSES, dtype=torch.int64), rf"floating-point.*\({count}, {CLASSES}\).*torch.int64"),
    ]:
        with pytest.raises(InputError, match=found):
            small_scenario.score(answers, [(0, 1)])
    with pytest.raises(InputError, match="not a number"):
        small_scenario.score(torch.full((count, CLASSES), torch.nan), [(0, 1)])


@pytest.mark.parametrize("per_task", [1, 2, 3, 6])
def test_the_default_tasks_divide_the_classes_in_ascending_order(small: Path, per_task: int) -> None:
    tasks = SkeletonScenario(small, classes_per_task=per_task).default_tasks
    assert [len(task) for task in tasks] == [per_task] * (CLASSES // per_task)
    assert list(chain(*tasks)) == list(range(CLASSES))


@pytest.mark.parametrize("per_task", [0, 4, 5, 7, -2])
def test_classes_that_do_not_divide_are_refused(small: Path, per_task: int) -> None:
    with pytest.raises(InputError, match=f"6 classes do not divide into tasks of {per_task}"):
        SkeletonScenario(small, classes_per_task=per_task)


def test_whole_subjects_and_views_are_queries(small: Path) -> None:
    facts = {clip.name: clip for clip in small_source().items}
    with Archive.open(small) as archive:
        by_clip = {clip.tobytes(): name for clip, name in zip(archive.clips()[:, 0], archive.names, strict=True)}
    for by, test, validation in [("subject", (2,), (5, 1)), ("view", (3,), (1,))]:
        scenario = SkeletonScenario(small, split=Split(by=by, test=test, validation=validation))
        everything = scenario.experience(tuple(range(CLASSES)))
        asked = set(scenario.queries().ids.tolist())
        parts = {
            "training": everything.training.ids,
            "validation": everything.validation.ids,
            "test": torch.tensor(sorted(asked - set(everything.validation.ids.tolist()))),
        }
        found = {}
        for part, ids in parts.items():
            clips = clips_of(scenario, ids).transpose(0, 2, 3, 1)
            names = [by_clip[np.ascontiguousarray(clip).tobytes()] for clip in clips]
            found[part] = {getattr(facts[name], by) for name in names}
        everyone = {getattr(clip, by) for clip in facts.values()}
        assert found["test"] == set(test)
        assert found["validation"] == set(validation)
        assert found["training"] == everyone - set(test) - set(validation)


def test_which_recordings_of_a_class_are_queries_does_not_depend_on_the_other_classes(
    small: Path, tmp_path: Path
) -> None:
    """A study of some of the classes asks the same queries about them as a study of all."""
    fewer = write_small(tmp_path / "fewer.h5", names=("shrug", "nod", "clap"))

    def queries_of(path: Path, label: int) -> set[bytes]:
        scenario = SkeletonScenario(path, classes_per_task=1)
        ids = scenario.queries().ids[torch.from_numpy(truth_of(scenario, path) == label)]
        return {clip.tobytes() for clip in clips_of(scenario, ids)}

    for label, name in enumerate(("shrug", "nod", "clap")):
        assert queries_of(fewer, label) == queries_of(small, NAMES.index(name))


def test_the_digest_follows_what_is_handed_out_asked_and_scored(small: Path, tmp_path: Path) -> None:
    other = write_small(tmp_path / "other.h5", seed=1)
    digests = [
        SkeletonScenario(small).digest,
        SkeletonScenario(other).digest,
        SkeletonScenario(small, "task-il").digest,
        SkeletonScenario(small, split=Split(seed=1)).digest,
        SkeletonScenario(small, split=Split(by="subject")).digest,
        SkeletonScenario(small, preparation={"stream": "bone"}).digest,
        SkeletonScenario(small, augmentation=Augmentation()).digest,
        SkeletonScenario(small, augmentation=Augmentation(rotation=10)).digest,
    ]
    assert len(set(digests)) == len(digests)
    assert SkeletonScenario(small, classes_per_task=3).digest == digests[0]


def test_unknown_settings_tasks_data_and_preparations_are_refused(small: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="setting 'domain-il' is not one of class-il, task-il"):
        SkeletonScenario(small, "domain-il")
    with pytest.raises(InputError, match="no such file"):
        SkeletonScenario(tmp_path / "absent.h5")
    with pytest.raises(InputError, match="neither an archive nor a built-in data set; did you mean 'synthetic'"):
        SkeletonScenario("syntetic")
    with pytest.raises(InputError, match="preparation: unknown field 'frame'; did you mean 'frames'"):
        SkeletonScenario(small, preparation={"frame": 8})
    with pytest.raises(InputError, match="preparation: field 'stream'"):
        SkeletonScenario(small, preparation={"stream": "muscle"})
    with pytest.raises(InputError, match="preparation: centre is the archive's, 0; found 1"):
        SkeletonScenario(small, preparation={"centre": 1})
    scenario = SkeletonScenario(small)
    for task in [(0, 6), (-1, 2)]:
        with pytest.raises(InputError, match="classes are 0–5"):
            scenario.experience(task)
    with pytest.raises(InputError, match="at least one class"):
        scenario.experience(())
    with pytest.raises(InputError, match="given twice"):
        scenario.experience((1, 1))


def test_the_preparation_can_be_changed_by_field(small: Path) -> None:
    scenario = SkeletonScenario(small, preparation={"frames": 7, "fit": "repeat"})
    assert scenario.backbone_arguments()["frames"] == 7
    assert scenario.backbone_arguments()["features"] == 21
    clips = clips_of(scenario, torch.arange(3))
    assert clips.shape == (3, 3, 7, 5)
    np.testing.assert_array_equal(clips[:, :, 4:], clips[:, :, :3])


def test_several_actors_come_as_a_further_dimension(tmp_path: Path) -> None:
    scenario = SkeletonScenario(write_small(tmp_path / "two.h5", actors=2))
    assert scenario.backbone_arguments()["actors"] == 2
    assert clips_of(scenario, torch.arange(3)).shape == (3, 2, 3, 4, 5)


def test_augmentation_changes_training_clips_alone_and_is_drawn_from_the_random_state(small: Path) -> None:
    scenario = SkeletonScenario(small, augmentation=Augmentation())
    plain = SkeletonScenario(small)
    ids, pool = torch.arange(6), scenario.queries().pool
    assert pool.augmented
    assert not plain.queries().pool.augmented
    assert torch.equal(pool.inputs(ids, Plain()), plain.queries().pool.inputs(ids, Plain()))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first, second = pool.inputs(ids, Plain(), training=True), pool.inputs(ids, Plain(), training=True)
        torch.manual_seed(0)
        again = pool.inputs(ids, Plain(), training=True)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert not torch.equal(first, pool.inputs(ids, Plain()))


def test_every_backbone_gets_its_own_arrangement(small: Path) -> None:
    """Also backbones made directly, and two of one class whose arrangements differ."""

    class Cut(Backbone):
        def __init__(self, frames: int) -> None:
            super().__init__()
            self.frames = frames

        def arrange(self, clips: torch.Tensor) -> torch.Tensor:
            return clips[:, :, : self.frames]

    scenario = SkeletonScenario(small)
    offered, ids, pool = scenario.backbone_arguments(), torch.tensor([3, 1]), scenario.queries().pool
    gcn = GCN(offered["features"], offered["layout"])
    stgcn = STGCN(offered["layout"], offered["channels"])
    clips = pool.inputs(ids, Plain())
    for _ in range(2):
        trajectories, sums = pool.inputs(ids, gcn)
        assert torch.equal(trajectories, clips.permute(0, 3, 2, 1).flatten(2))
        torch.testing.assert_close(sums, offered_adjacency(scenario) @ trajectories)
        assert torch.equal(pool.inputs(ids, stgcn), clips.permute(0, 2, 3, 1))
        assert pool.inputs(ids, Cut(1)).shape[2] == 1
        assert pool.inputs(ids, Cut(3)).shape[2] == 3


def offered_adjacency(scenario: SkeletonScenario) -> torch.Tensor:
    return torch.from_numpy(scenario.backbone_arguments()["layout"].adjacency())
