"""Link prediction as a scenario: what is hidden, asked and scored, on which graph, by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.items import NO_GROUP, Groups
from skeleton_cgl.graphs.link_set import LinkSet
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.link_pairs import links_of
from skeleton_cgl.scenarios.link_prediction import LinkPredictionScenario, LinkPredictionSettings
from skeleton_cgl.scenarios.opened import Opened
from tests.scenarios.graphs import node_graph
from tests.scenarios.sets import (
    ITEMS,
    NODES,
    link_set,
    links_at,
    measure_of,
    pairs_of,
    prefixes,
    seen_links,
    units_of,
)

EACH, K = 20, 10
SETTINGS = ("domain-il", "time-il")
PARTS = (("test", TEST), ("validation", VALIDATION))


def pair_set(seed: int = 0, **changes: Any) -> LinkSet:
    """Return links as pairs, every sixth in no domain."""
    links = link_set(seed)
    numbers = np.where(np.arange(ITEMS) % 6 == 0, NO_GROUP, links.groups["domain"].numbers)
    given = link_set(seed, **{"groups": {"domain": Groups(numbers, tuple("abc"))}, **changes})
    return links_of(given)


def pair_scenario(links: LinkSet | None = None, seed: int = 0, **fields: Any) -> LinkPredictionScenario:
    """Return the scenario of pairs as they stand: they keep their numbers."""
    links = links or pair_set()
    few = {} if links.negatives is not None else {"negatives": EACH}
    settings = LinkPredictionSettings(kind="link-prediction", **{**few, "k": K, **fields}).checked()
    return LinkPredictionScenario(Opened(links, np.arange(len(links))), settings, settings.split_for(links, seed))


@pytest.mark.parametrize("setting", SETTINGS)
def test_lessons_have_links_to_learn_from_and_as_many_pairs_and_the_others_are_asked_about(setting: str) -> None:
    links = pair_set()
    scenario, unit = pair_scenario(links, setting=setting), units_of(links, setting)
    count = len(scenario.units)
    for step, prefix in enumerate(prefixes(scenario), start=1):
        (own,) = prefix[-1].units
        experience, queries = scenario.experience(prefix), scenario.queries(prefix)
        known = [links_at(links, pairs_of(samples)) for samples in (experience.training, experience.validation)]
        asked = links_at(links, pairs_of(queries))
        assert len(np.unique(np.sort(pairs_of(queries), axis=1), axis=0)) == len(queries)
        training, validation = (
            found[samples.labels.numpy() == 1]
            for found, samples in zip(known, (experience.training, experience.validation), strict=True)
        )
        assert set(unit[np.concatenate([training, validation])]) == {own}
        assert (experience.training.labels == 0).sum() == len(training)
        assert (known[1][experience.validation.labels.numpy() == 0] == -1).all()
        assert (experience.validation.labels == 0).sum() == EACH
        hidden = asked[asked >= 0]
        assert np.array_equal(
            np.sort(np.concatenate([training, hidden[unit[hidden] == own]])), np.flatnonzero(unit == own)
        )
        assert np.isin(validation, hidden).all()
        come = count if setting == "domain-il" else step
        assert set(unit[hidden]) == set(range(come))
        assert (asked == -1).sum() == 2 * EACH * come
        assert set(queries.step.tolist()) == {-1}


def test_pairs_without_a_link_are_drawn_anew_from_an_end_of_each_link_to_a_node_of_its_domain() -> None:
    links = pair_set()
    scenario, unit = pair_scenario(links), units_of(links, "domain-il")
    prefix = prefixes(scenario)[1]
    training = scenario.experience(prefix).training
    linked = training.labels.numpy() == 1
    first, second = (training.pool.redrawn(training.ids, np.random.default_rng(seed)).numpy() for seed in (0, 1))
    assert np.array_equal(first[linked], second[linked])
    assert not np.array_equal(first[~linked], second[~linked])
    learned = links_at(links, first[linked])
    there = np.unique(links.ends[:, learned])
    for drawn in (first[~linked], second[~linked]):
        begins = np.stack([np.isin(pair[0], ends) for pair, ends in zip(drawn, links.ends[:, learned].T, strict=True)])
        assert begins.all()
        assert np.isin(drawn[:, 1], there).all()
        assert (drawn[:, 0] != drawn[:, 1]).all()
        told = np.isin(scenario._parts, TRAINING) & np.isin(unit, [each for step in prefix for each in step.units])
        assert not np.isin(links_at(links, drawn), np.flatnonzero(told | (unit < 0))).any()


@pytest.mark.parametrize(
    ("fields", "later"),
    [
        ({}, "so far"),
        ({"inter_task_edges": False}, "own"),
        ({"shared_training_edges": True}, "all"),
        ({"setting": "time-il"}, "so far"),
        ({"setting": "time-il", "joins_base": 0}, "own"),
        ({"setting": "time-il", "joins_base": 0.5}, "half"),
    ],
)
def test_the_graph_has_the_base_and_links_to_learn_from_and_degrees_count_these(
    fields: dict[str, Any], later: str
) -> None:
    links = pair_set()
    scenario = pair_scenario(links, **fields)
    unit = units_of(links, fields.get("setting", "domain-il"))
    training = scenario._parts == TRAINING
    base = set(np.flatnonzero(unit < 0).tolist())
    before: set[int] = set()
    for step, prefix in enumerate(prefixes(scenario)):
        experience = scenario.experience(prefix)
        given = experience.training
        own = set(links_at(links, pairs_of(given)[given.labels.numpy() == 1]).tolist())
        seen = seen_links(links, given)
        if later == "half":
            assert own <= seen <= own | before
            sizes = [int((training & (unit == each)).sum()) for each in range(step)]
            assert len(seen) - len(own) == sum(round(size / 2) for size in sizes)
        else:
            every = set(np.flatnonzero(training).tolist())
            assert seen == base | own | {"so far": before, "own": set(), "all": every}[later]
        ends = links.ends[:, sorted(seen)]
        degrees = np.bincount(ends.ravel(), minlength=NODES)
        for part in (given, experience.validation, scenario.queries(prefix)):
            assert seen_links(links, part) == seen
            assert np.array_equal(part.pool.whole().dense_features[:, 0].numpy(), degrees)
        before |= own


def test_leaking_degrees_count_what_is_hidden_and_to_come() -> None:
    links = pair_set()
    scenario = pair_scenario(links, leaking_degrees=True)
    training = scenario.experience(prefixes(scenario)[0]).training
    everything = np.bincount(links.ends.ravel(), minlength=NODES)
    assert np.array_equal(training.pool.whole().dense_features[:, 0].numpy(), everything)
    assert len(seen_links(links, training)) < len(links)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("score", ["hits", "roc_auc"])
def test_a_unit_s_links_are_scored_against_pairs_without_one_of_all_domains_or_periods_up_to_it(
    setting: str, score: str
) -> None:
    links = pair_set()
    scenario, unit = pair_scenario(links, setting=setting, score=score), units_of(links, setting)
    names = (f"hits@{K}", "roc_auc")
    assert scenario.problem.metrics == (names if score == "hits" else names[::-1])
    prefix = prefixes(scenario)[1]
    lessons = [prefix[:step] for step in (1, 2)]
    if setting == "domain-il":
        lessons = [(each,) for each in scenario.lessons(scenario.default)]
    # What is validation is told to learners; all else that is asked about is test.
    told = {frozenset(pair) for each in lessons for pair in pairs_of(scenario.experience(each).validation).tolist()}
    pairs = pairs_of(scenario.queries(prefix))
    asked = links_at(links, pairs)
    is_validation = np.array([frozenset(pair) in told for pair in pairs.tolist()])
    drawn = scenario._negatives
    drawn_for = dict(zip(map(frozenset, drawn.pairs.T.tolist()), drawn.unit.tolist(), strict=True))
    of_free = np.array([drawn_for.get(frozenset(pair), -1) for pair in pairs.tolist()])
    # Rounded, so that many are equal.
    answers = np.random.default_rng(0).normal(size=len(pairs)).round(1) + (asked >= 0)
    measures = scenario.score(torch.from_numpy(answers)[:, None], prefix)
    for (part, _), here in zip(PARTS, (~is_validation, is_validation), strict=True):
        for number in sorted(set(unit[asked[asked >= 0]].tolist())):
            judged = here & (asked < 0) & (of_free <= (number if setting == "time-il" else np.inf))
            free = answers[judged]
            threshold = sorted(free.tolist(), reverse=True)[K - 1]
            own = answers[here & (asked >= 0) & (unit[asked] == number)]
            hits, area = (measure_of(measures, part, metric) for metric in names)
            assert hits.values[number] == pytest.approx(np.mean([each > threshold for each in own]))
            truth = np.repeat([1, 0], [len(own), len(free)])
            assert area.values[number] == pytest.approx(roc_auc_score(truth, np.concatenate([own, free])))
            assert hits.asked[number] == len(truth)


def test_a_published_split_and_published_negatives_are_taken() -> None:
    split = np.random.default_rng(1).choice([TRAINING, VALIDATION, TEST], size=ITEMS)
    linked = {frozenset(pair) for pair in link_set().ends.T.tolist()}
    free = [(low, high) for high in range(NODES) for low in range(high) if frozenset((low, high)) not in linked]
    negatives, parts = np.array(free[: 3 * K]).T, np.arange(3 * K) % 2 + VALIDATION
    links = pair_set(split=split, negatives=negatives, negatives_split=parts)
    scenario = pair_scenario(links, setting="time-il")
    years = units_of(links, "time-il")
    for prefix in prefixes(scenario):
        experience, pairs = scenario.experience(prefix), pairs_of(scenario.queries(prefix))
        asked = links_at(links, pairs)
        come = years <= prefix[-1].units[0]
        assert set(asked[asked >= 0]) == set(np.flatnonzero(come & (links.split != TRAINING)))
        assert {tuple(pair) for pair in pairs[asked < 0].tolist()} == set(free[: 3 * K])
        told = pairs_of(experience.validation)[experience.validation.labels.numpy() == 0]
        assert {tuple(pair) for pair in told.tolist()} == {
            pair for pair, part in zip(free, parts.tolist(), strict=False) if part == VALIDATION
        }
    with pytest.raises(InputError, match="scenario: negatives: small came with its own; drop it"):
        pair_scenario(links, setting="time-il", negatives=EACH)
    with pytest.raises(InputError, match=f"scenario: k: expected at most the {3 * K // 2} test pairs"):
        pair_scenario(links, setting="time-il", k=2 * K)


def test_links_of_a_graph_of_nodes_are_in_domains_by_the_classes_of_their_ends() -> None:
    graph = node_graph()
    links = links_of(graph)
    proper = {frozenset(pair) for pair in graph.edges.T.tolist() if pair[0] != pair[1]}
    assert len(links) == len(proper)
    assert {frozenset(pair) for pair in links.ends.T.tolist()} == proper
    ends, same = links.groups["ends"], links.groups["same ends"]
    for number, pair in enumerate(links.ends.T.tolist()):
        low, high = sorted(graph.labels[pair].tolist())
        assert ends.names[ends.numbers[number]] == f"{graph.classes[low]} – {graph.classes[high]}"
        assert same.numbers[number] == (low if low == high else NO_GROUP)
    assert len(ends.names) == 6 * 7 // 2
    assert same.names == graph.classes
    scenario = pair_scenario(links, domains="same ends")
    assert tuple(unit.name for unit in scenario.units) == graph.classes
    first = scenario.experience(prefixes(scenario)[0]).training
    mixed = set(np.flatnonzero(same.numbers == NO_GROUP).tolist())
    own = links_at(links, pairs_of(first)[first.labels.numpy() == 1])
    assert set(same.numbers[own]) == {0}
    assert seen_links(links, first) == mixed | set(own.tolist())
    assert tuple(unit.name for unit in pair_scenario(links, domains="ends", negatives=5).units) == ends.names


def test_the_digest_changes_with_what_is_handed_out_asked_or_scored_and_stays_otherwise() -> None:
    links = pair_set()
    others: list[dict[str, Any]] = [
        {"setting": "time-il"},
        {"setting": "time-il", "joins_base": 0.5},
        {"setting": "time-il", "periods": 2},
        {"inter_task_edges": False},
        {"shared_training_edges": True},
        {"leaking_degrees": True},
        {"self_loops": False},
        {"negatives": EACH + 1},
        {"k": K + 1},
        {"score": "roc_auc"},
        {"split": {"ratios": (6, 2, 2)}},
        {"split": {"seed": 1}},
    ]
    digests = [pair_scenario(links, **each).digest for each in ({}, *others)]
    digests += [pair_scenario(links, seed=2).digest, pair_scenario(pair_set(seed=1)).digest]
    assert len(set(digests)) == len(digests)
    assert pair_scenario(replace(links, name="other", notes=("read",))).digest == digests[0]
    assert pair_scenario(links, domains="domain").digest == digests[0]
    assert pair_scenario(links, split={"by": "class", "seed": 0}).digest == digests[0]
