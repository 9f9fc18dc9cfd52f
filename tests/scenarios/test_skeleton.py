"""Skeleton actions as a scenario: what is handed out, what is asked without labels, what is scored, what is refused."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skeleton_cgl import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.scenario import Queries, Scenario, join
from skeleton_cgl.scenarios.settings import check_scenario
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.scenarios.split import Split
from skeleton_cgl.skeletons import Archive, Augmentation, write_archive
from skeleton_cgl.skeletons.groups import performances
from tests.scenarios.small import NAMES, SETTINGS, lesson, small_source, write_small

CLASSES = len(NAMES)


def clips_of(scenario: SkeletonScenario, ids: torch.Tensor) -> np.ndarray:
    return scenario.queries(()).pool.whole().rows(ids).content.numpy()


def counts_of(scenario: Scenario, answers: torch.Tensor, *tasks: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return the confusion counts of every part."""
    measures: tuple[Measure, ...] = scenario.score(answers, scenario.lessons(tasks))
    return {measure.part: measure.counts for measure in measures if measure.counts is not None}


def truth_of(scenario: SkeletonScenario, small: Path) -> np.ndarray:
    """Return the labels of the queries, found by comparing their clips with those of the archive."""
    with Archive.open(small) as archive:
        known = {clip.tobytes(): label for clip, label in zip(archive.clips()[:, 0], archive.labels, strict=True)}
    clips = clips_of(scenario, scenario.queries(()).ids).transpose(0, 2, 3, 1)
    return np.array([known[np.ascontiguousarray(clip).tobytes()] for clip in clips])


@pytest.mark.parametrize("split", [Split(), Split(by="subject"), Split(by="view"), Split(ratios=(1, 2, 3), seed=4)])
def test_every_sample_is_handed_out_once_and_every_label_is_its_own(small: Path, split: Split) -> None:
    scenario = SkeletonScenario(small, split=split)
    experiences = [lesson(scenario, task) for task in [(4, 1), (0,), (2, 3, 5)]]
    training = join([experience.training for experience in experiences])
    validation = join([experience.validation for experience in experiences])
    queries = scenario.queries(())
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
    experience = lesson(small_scenario, task)
    assert experience.lesson.units == experience.outputs == tuple(sorted(task))
    assert experience.keys == tuple(NAMES[label] for label in sorted(task))
    for samples in (experience.training, experience.validation):
        assert set(samples.labels.tolist()) == set(task)


def test_queries_carry_no_labels_and_are_the_same_after_every_stage(small: Path) -> None:
    for setting in SETTINGS:
        scenario = SkeletonScenario(small, ClassTasks(setting=setting))
        queries = scenario.queries(())
        assert set(vars(queries)) == {"pool", "ids", "step"}
        assert not any("label" in name for name in chain(vars(queries.pool), dir(Queries), dir(queries.pool)))
        lesson(scenario, (0, 1))
        assert torch.equal(scenario.queries(scenario.lessons(((4,), (0, 1)))).ids, queries.ids)


def test_queries_reveal_their_task_in_task_il_once_it_was_learned_and_nothing_else(small: Path) -> None:
    order = ((4, 1), (0,), (5, 2))
    for setting in SETTINGS:
        scenario = SkeletonScenario(small, ClassTasks(setting=setting))
        truth = truth_of(scenario, small)
        prefix = scenario.lessons(order)
        for stage in range(4):
            learned = {label: step for step, task in enumerate(order[:stage]) for label in task}
            expected = [learned.get(label, -1) if setting == "task-il" else -1 for label in truth.tolist()]
            assert scenario.queries(prefix[:stage]).step.tolist() == expected
            if stage:
                revealed = stage - 1 if setting == "task-il" else -1
                experience = scenario.experience(prefix[:stage])
                assert set(experience.training.step.tolist()) == set(experience.validation.step.tolist()) == {revealed}


def test_sample_numbers_and_query_order_say_nothing_about_the_class(small: Path) -> None:
    """Over many seeds, every class and both parts are on average in the middle of the numbers and of the queries."""
    places, parts = [], []
    for seed in range(40):
        scenario = SkeletonScenario(small, split=Split(seed=seed, ratios=(1, 1, 1)))
        truth = truth_of(scenario, small)
        within = np.arange(len(truth)) / (len(truth) - 1)
        places.append([within[truth == label].mean() for label in range(CLASSES)])
        everything = lesson(scenario, range(CLASSES))
        numbers, labels = everything.training.ids.numpy(), everything.training.labels.numpy()
        last = len(numbers) + len(truth) - 1
        places[-1] += [numbers[labels == label].mean() / last for label in range(CLASSES)]
        parts.append(within[np.isin(scenario.queries(()).ids, everything.validation.ids)].mean())
    # The mean of about 11 uniform places has a standard deviation of 0.29/√11; of 40 such means, 0.014.
    assert np.abs(np.mean(places, axis=0) - 0.5).max() < 0.06
    assert abs(np.mean(parts) - 0.5) < 0.05


def test_neighbours_in_the_sequence_of_queries_share_a_class_as_often_as_chance(small: Path) -> None:
    """An archive has its sequences sorted by class; 40 times 34 pairs have a standard deviation of 0.01."""
    alike, chance = [], []
    for seed in range(40):
        truth = truth_of(SkeletonScenario(small, split=Split(seed=seed, ratios=(4, 1, 1))), small)
        alike.append((truth[1:] == truth[:-1]).mean())
        counts = np.bincount(truth)
        chance.append((counts * (counts - 1)).sum() / (len(truth) * (len(truth) - 1)))
    assert abs(np.mean(alike) - np.mean(chance)) < 0.04


@pytest.mark.parametrize("setting", SETTINGS)
@settings(max_examples=12)
@given(seed=st.integers(0, 9), order=st.permutations(range(CLASSES)), cut=st.integers(1, 3))
def test_the_oracle_scores_one_in_every_order_for_test_and_validation(
    small: Path, setting: str, seed: int, order: list, cut: int
) -> None:
    scenario = SkeletonScenario(small, ClassTasks(setting=setting), Split(seed=seed))
    truth = truth_of(scenario, small)
    answers = torch.nn.functional.one_hot(torch.from_numpy(truth), CLASSES).float()
    tasks = [tuple(order[start : start + cut]) for start in range(0, CLASSES, cut)]
    for stage in range(1, len(tasks) + 1):
        by_part = counts_of(scenario, answers, *tasks[:stage])
        assert list(by_part) == ["test", "validation"]
        seen = [label for task in tasks[:stage] for label in task]
        for counts in by_part.values():
            assert all(counts[label, label] == counts[label].sum() > 0 for label in seen)
        np.testing.assert_array_equal(sum(by_part.values()).sum(axis=1), np.bincount(truth))


def test_validation_and_test_are_counted_apart(small: Path) -> None:
    scenario = SkeletonScenario(small)
    everything = lesson(scenario, range(CLASSES))
    validation = np.isin(scenario.queries(()).ids, everything.validation.ids)
    truth = torch.from_numpy(truth_of(scenario, small))
    answers = torch.zeros(len(truth), CLASSES)
    right = torch.from_numpy(validation)
    answers[torch.arange(len(truth)), torch.where(right, truth, (truth + 1) % CLASSES)] = 1
    counts = counts_of(scenario, answers, tuple(range(CLASSES)))
    assert np.trace(counts["validation"]) == validation.sum() == counts["validation"].sum()
    assert np.trace(counts["test"]) == 0
    assert counts["test"].sum() == (~validation).sum()


def test_answers_that_do_not_fit_are_refused_with_both_shapes(small_scenario: SkeletonScenario) -> None:
    count, prefix = len(small_scenario.queries(())), small_scenario.lessons(((0, 1),))
    for answers, found in [
        (torch.zeros(count - 1, CLASSES), rf"\({count}, {CLASSES}\).*\({count - 1}, {CLASSES}\)"),
        (torch.zeros(count, CLASSES + 1), rf"\({count}, {CLASSES}\).*\({count}, {CLASSES + 1}\)"),
        (torch.zeros(count), rf"\({count}, {CLASSES}\).*\({count},\)"),
        (torch.tensor(0.0), rf"\({count}, {CLASSES}\).*\(\)"),
        (torch.zeros(count, CLASSES, dtype=torch.int64), rf"floating-point.*\({count}, {CLASSES}\).*torch.int64"),
    ]:
        with pytest.raises(InputError, match=found):
            small_scenario.score(answers, prefix)
    with pytest.raises(InputError, match="not a number"):
        small_scenario.score(torch.full((count, CLASSES), torch.nan), prefix)


def test_whole_subjects_and_views_are_queries(small: Path) -> None:
    facts = {clip.name: clip for clip in small_source().items}
    with Archive.open(small) as archive:
        by_clip = {clip.tobytes(): name for clip, name in zip(archive.clips()[:, 0], archive.names, strict=True)}
    for by, test, validation in [("subject", (2,), (5, 1)), ("view", (3,), (1,))]:
        scenario = SkeletonScenario(small, split=Split(by=by, test=test, validation=validation))
        everything = lesson(scenario, range(CLASSES))
        asked = set(scenario.queries(()).ids.tolist())
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
        scenario = SkeletonScenario(path)
        ids = scenario.queries(()).ids[torch.from_numpy(truth_of(scenario, path) == label)]
        return {clip.tobytes() for clip in clips_of(scenario, ids)}

    for label, name in enumerate(("shrug", "nod", "clap")):
        assert queries_of(fewer, label) == queries_of(small, NAMES.index(name))


def test_the_digest_follows_what_is_handed_out_asked_and_scored(small: Path, tmp_path: Path) -> None:
    other = write_small(tmp_path / "other.h5", seed=1)
    digests = [
        SkeletonScenario(small).digest,
        SkeletonScenario(other).digest,
        SkeletonScenario(small, ClassTasks(setting="task-il")).digest,
        SkeletonScenario(small, ClassTasks(classes=(0, 1, 2, 3))).digest,
        SkeletonScenario(small, ClassTasks(classes=(0, 1, 2, 4))).digest,
        SkeletonScenario(small, split=Split(seed=1)).digest,
        SkeletonScenario(small, split=Split(by="subject")).digest,
        SkeletonScenario(small, preparation={"stream": "bone"}).digest,
        SkeletonScenario(small, augmentation=Augmentation()).digest,
        SkeletonScenario(small, augmentation=Augmentation(rotation=10)).digest,
    ]
    assert len(set(digests)) == len(digests)
    assert SkeletonScenario(small, ClassTasks(classes_per_task=3)).digest == digests[0]
    assert SkeletonScenario(small, ClassTasks(tasks=((5, 4), (3,), (0, 1, 2)))).digest == digests[0]


def test_unknown_settings_tasks_data_and_preparations_are_refused(small: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="scenario: field 'setting': Input should be 'class-il' or 'task-il'"):
        check_scenario({"data": str(small), "setting": "domain-il"})
    with pytest.raises(InputError, match="no such file"):
        SkeletonScenario(tmp_path / "absent.h5")
    with pytest.raises(InputError, match="neither an archive nor a known data set; did you mean 'synthetic'"):
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
            scenario.lessons(((2, 3), task))
    with pytest.raises(InputError, match="at least one class"):
        scenario.lessons(((),))
    with pytest.raises(InputError, match="given twice"):
        scenario.lessons(((1, 1),))


def test_the_preparation_can_be_changed_by_field(small: Path) -> None:
    scenario = SkeletonScenario(small, preparation={"frames": 7, "fit": "repeat"})
    assert scenario.facts.offered["frames"] == 7
    assert scenario.facts.offered["features"] == 21
    clips = clips_of(scenario, torch.arange(3))
    assert clips.shape == (3, 3, 7, 5)
    np.testing.assert_array_equal(clips[:, :, 4:], clips[:, :, :3])


def test_several_actors_come_as_a_further_dimension(tmp_path: Path) -> None:
    scenario = SkeletonScenario(write_small(tmp_path / "two.h5", actors=2))
    assert scenario.facts.offered["actors"] == 2
    clips = scenario.queries(()).pool.whole().rows(torch.arange(3))
    assert clips.parts.shape == (3, 2, 3, 4, 5)
    assert (len(clips), clips.places) == (3, 2)
    assert torch.equal(clips.content, clips.parts.flatten(0, 1))


def test_augmented_clips_are_drawn_from_the_generator_given_and_the_others_stay(small: Path) -> None:
    scenario, plain = SkeletonScenario(small, augmentation=Augmentation()), SkeletonScenario(small)
    ids, pool = torch.arange(6), scenario.queries(()).pool
    assert pool.augmented
    assert not plain.queries(()).pool.augmented
    np.testing.assert_array_equal(clips_of(scenario, ids), clips_of(plain, ids))

    def drawn(random: np.random.Generator) -> Any:
        return pool.drawn(ids, random).content

    random = np.random.default_rng(0)
    first, second = drawn(random), drawn(random)
    assert torch.equal(first, drawn(np.random.default_rng(0)))
    assert not torch.equal(first, second)
    assert not np.array_equal(first.numpy(), clips_of(plain, ids))


def write_views(path: Path, **facts: Any) -> Path:
    """Write an archive in which recordings of three views follow each other as one performance."""
    source = small_source(fewest=30)
    items = [
        replace(item, **{"view": 1 + place % 3, "repetition": place // 3, **facts})
        for place, item in enumerate(source.items)
    ]
    write_archive(replace(source, items=items), path)
    return path


def parts_by_name(scenario: SkeletonScenario, path: Path) -> dict[str, set[str]]:
    """Return the names of the training, validation and test sequences, found by their clips."""
    with Archive.open(path) as archive:
        by_clip = {clip.tobytes(): name for clip, name in zip(archive.clips()[:, 0], archive.names, strict=True)}
    everything, queries = lesson(scenario, range(CLASSES)), set(scenario.queries(()).ids.tolist())
    validation = set(everything.validation.ids.tolist())
    found = {}
    for part, ids in (
        ("training", everything.training.ids.tolist()),
        ("validation", sorted(validation)),
        ("test", sorted(queries - validation)),
    ):
        clips = clips_of(scenario, torch.tensor(ids)).transpose(0, 2, 3, 1)
        found[part] = {by_clip[np.ascontiguousarray(clip).tobytes()] for clip in clips}
    return found


def test_what_divides_by_itself_is_the_performance_where_the_data_tell_it(tmp_path: Path) -> None:
    told = write_views(tmp_path / "told.h5")
    by = {by: SkeletonScenario(told, split=Split(by=by)) for by in ("auto", "performance", "class")}
    assert by["auto"].digest == by["performance"].digest != by["class"].digest
    parts = parts_by_name(by["auto"], told)
    with Archive.open(told) as archive:
        performance = dict(zip(archive.names, performances(archive).tolist(), strict=True))
    seen = [{performance[name] for name in names} for names in parts.values()]
    assert not seen[0] & seen[1] | seen[0] & seen[2] | seen[1] & seen[2]
    untold = write_views(tmp_path / "untold.h5", repetition=-1)
    assert SkeletonScenario(untold).digest == SkeletonScenario(untold, split=Split(by="class")).digest
    with pytest.raises(InputError, match="do not tell the performance of every sample"):
        SkeletonScenario(untold, split=Split(by="performance"))


def test_a_study_says_what_divides_whatever_becomes_the_default(small: Path) -> None:
    new = Study(scenario={"data": str(small), "split": {"ratios": [3, 1, 1]}})
    assert new.scenario["split"] == {"by": "auto", "ratios": [3, 1, 1]}
    assert Study(scenario={"data": str(small)}).scenario["split"] == {"by": "auto"}
    assert Study.model_validate(new.model_dump(mode="json")) == new
