"""One class per link as a scenario: what is handed out, asked and scored in every setting, by hand."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from skeleton_cgl.graphs.link_set import LinkSet
from skeleton_cgl.parts import TEST
from skeleton_cgl.scenarios.link import LinkScenario, LinkSettings
from skeleton_cgl.scenarios.opened import Opened
from tests.scenarios.sets import (
    CLASSES,
    NODES,
    PERIODS,
    link_set,
    links_at,
    measure_of,
    pairs_of,
    prefixes,
    seen_links,
    units_of,
)

SETTINGS = ("class-il", "task-il", "time-il")


def link_scenario(links: LinkSet | None = None, seed: int = 0, repeat: int = 0, **fields: Any) -> LinkScenario:
    """Return the scenario of links as they stand: they keep their numbers."""
    links = links or link_set()
    settings = LinkSettings(kind="link", **fields).of_repeat(repeat).checked()
    return LinkScenario(Opened(links, np.arange(len(links))), settings, settings.split_for(links, seed))


@pytest.mark.parametrize("setting", SETTINGS)
def test_lessons_and_queries_divide_the_links(setting: str) -> None:
    links = link_set()
    scenario, unit = link_scenario(links, setting=setting), units_of(links, setting)
    taught: set[int] = set()
    for step, prefix in enumerate(prefixes(scenario)):
        taught |= set(prefix[-1].units)
        experience, queries = scenario.experience(prefix), scenario.queries(prefix)
        asked = links_at(links, pairs_of(queries))
        assert len(np.unique(asked)) == len(asked)
        assert set(unit[asked]) == (taught if setting == "time-il" else set(range(CLASSES)))
        own = np.isin(unit, prefix[-1].units)
        # Every class of a lesson is divided by itself, 8 : 1 : 1.
        sizes = np.bincount(links.labels[own], minlength=CLASSES)
        tenths = sum(max(1, round(0.1 * size)) for size in sizes.tolist() if size)
        for samples, count, queried in (
            (experience.training, own.sum() - 2 * tenths, False),
            (experience.validation, tenths, True),
        ):
            found = links_at(links, pairs_of(samples))
            assert np.array_equal(pairs_of(samples), links.ends[:, found].T)
            assert np.array_equal(samples.labels.numpy(), links.labels[found])
            assert own[found].all()
            assert (np.isin(found, asked) == queried).all()
            assert len(found) == count
            assert samples.step.unique().tolist() == [step if setting == "task-il" else -1]
        steps = {number: place for place, lesson in enumerate(prefix) for number in lesson.units}
        revealed = [steps.get(each, -1) if setting == "task-il" else -1 for each in unit[asked].tolist()]
        assert queries.step.tolist() == revealed


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_graph_has_all_links_or_those_that_have_come_and_degrees_count_these(setting: str) -> None:
    links = link_set()
    scenario = link_scenario(links, setting=setting)
    assert scenario.facts.offered["features"] == 2
    for prefix in prefixes(scenario):
        come = np.ones(len(links), dtype=bool)
        if setting == "time-il":
            come = units_of(links, setting) <= prefix[-1].units[0]
        for given in (scenario.experience(prefix).training, scenario.queries(prefix)):
            assert seen_links(links, given) == set(np.flatnonzero(come).tolist())
            expected = [np.bincount(ends, minlength=NODES) for ends in links.ends[::-1, come]]
            assert np.array_equal(given.pool.whole().dense_features.numpy(), np.stack(expected, axis=1))


def test_leaking_degrees_count_links_to_come() -> None:
    links = link_set()
    scenario = link_scenario(links, setting="time-il", leaking_degrees=True)
    training = scenario.experience(prefixes(scenario)[0]).training
    expected = np.stack([np.bincount(ends, minlength=NODES) for ends in links.ends[::-1]], axis=1)
    assert np.array_equal(training.pool.whole().dense_features.numpy(), expected)
    assert len(seen_links(links, training)) == len(links) // PERIODS


@pytest.mark.parametrize("setting", SETTINGS)
def test_scores_are_the_shares_of_right_answers(setting: str) -> None:
    links = link_set()
    scenario, unit = link_scenario(links, setting=setting), units_of(links, setting)
    prefix = prefixes(scenario)[1]
    queries = scenario.queries(prefix)
    asked = links_at(links, pairs_of(queries))
    taught = [number for lesson in prefix for number in lesson.units]
    met = list(range(CLASSES)) if setting == "time-il" else taught
    answers = torch.full((len(asked), CLASSES), -torch.inf)
    answers[:, met] = torch.from_numpy(np.random.default_rng(0).normal(size=(len(asked), len(met)))).float()
    allowed = answers.clone()
    for row, step in enumerate(queries.step.tolist()):
        if step >= 0:
            allowed[row, [each for each in range(CLASSES) if each not in prefix[step].units]] = -torch.inf
    right = allowed.argmax(dim=1).numpy() == links.labels[asked]
    measures = scenario.score(answers, prefix)
    assert [each.metric for each in measures[:2]] == ["accuracy", "micro_accuracy"]
    validation = [links_at(links, pairs_of(scenario.experience(prefix[:step]).validation)) for step in (1, 2)]
    is_validation = np.isin(asked, np.concatenate(validation))
    for part, here in (("validation", is_validation), ("test", ~is_validation)):
        for number in taught:
            own = here & (unit[asked] == number)
            by_class = [
                right[own & (links.labels[asked] == label)].mean() for label in np.unique(links.labels[asked[own]])
            ]
            assert measure_of(measures, part, "accuracy").values[number] == pytest.approx(np.mean(by_class))
            micro = measure_of(measures, part, "micro_accuracy")
            assert (micro.values[number], micro.asked[number]) == (pytest.approx(right[own].mean()), own.sum())


def test_two_classes_have_a_roc_auc_in_every_period() -> None:
    links = link_set()
    links = link_set(labels=links.labels % 2)
    scenario = link_scenario(links, setting="time-il", score="roc_auc")
    assert scenario.problem.metrics == ("roc_auc", "accuracy", "micro_accuracy")
    prefix = prefixes(scenario)[-1]
    asked = links_at(links, pairs_of(scenario.queries(prefix)))
    answers = torch.from_numpy(np.random.default_rng(1).normal(size=(len(asked), 2)).round(1))
    found = measure_of(scenario.score(answers, prefix), "test", "roc_auc")
    for period in range(PERIODS):
        own = (scenario._parts[asked] == TEST) & (units_of(links, "time-il")[asked] == period)
        expected = roc_auc_score(links.labels[asked[own]], (answers[:, 1] - answers[:, 0])[own])
        assert found.values[period] == pytest.approx(expected)


def test_the_digest_changes_with_what_is_handed_out_asked_or_scored_and_stays_otherwise() -> None:
    usual = {"setting": "time-il", "features": "degrees"}
    others: list[dict[str, Any]] = [
        {"setting": "class-il"},
        {"leaking_degrees": True},
        {"self_loops": False},
        {"score": "micro_accuracy"},
        {"balanced": False},
        {"periods": 2},
        {"split": {"ratios": (6, 2, 2)}},
        {"split": {"seed": 1}},
    ]
    digests = [link_scenario(**{**usual, **each}).digest for each in ({}, *others)]
    digests += [link_scenario(seed=2, **usual).digest, link_scenario(link_set(seed=1), **usual).digest]
    assert len(set(digests)) == len(digests)
    assert link_scenario(link_set(notes=("read",)), **usual).digest == digests[0]
    assert link_scenario(split={"ratios": (80, 10, 10)}, **usual).digest == digests[0]
    by_class = [link_scenario(classes_per_task=size).digest for size in (1, 2, 3)]
    assert len({*by_class, link_scenario(setting="task-il").digest}) == 2
    assert link_scenario(classes=(0, 1, 2, 3)).digest not in by_class


def test_which_classes_make_a_task_is_drawn_by_repeat_or_by_a_seed_of_its_own() -> None:
    drawn = [link_scenario(repeat=repeat, grouping="random").default for repeat in range(4)]
    assert len(set(drawn)) > 1
    assert all(sorted(each for task in order for each in task) == list(range(CLASSES)) for order in drawn)
    fixed = [link_scenario(repeat=repeat, grouping="random", grouping_seed=5).default for repeat in range(4)]
    assert len(set(fixed)) == 1
