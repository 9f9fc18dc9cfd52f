"""Nothing that is handed out of links tells a class, a hidden link, or one to come: `link` and `link-prediction`."""

import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.items import NO_GROUP, Groups
from skeleton_cgl.graphs.link_set import LinkSet, make_link_set, pair_keys
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.lessons import Prefix
from skeleton_cgl.scenarios.link import LinkScenario, LinkSettings
from skeleton_cgl.scenarios.link_prediction import LinkPredictionScenario, LinkPredictionSettings
from skeleton_cgl.scenarios.opened import shuffled
from skeleton_cgl.scenarios.pair_views import PairPool
from skeleton_cgl.scenarios.scenario import Queries, Samples
from tests.scenarios.telling import (
    RARE,
    as_it_stands,
    assert_no_array_tells_a_test_label,
    assert_no_test_item_is_learned_from,
    assert_queries_stand_at_random,
    content,
    digests_of,
    prefixes,
    unlikely,
)

NODES, LINKS, NEGATIVES, SPARE = 70, 480, 300, 400
CLASSES, DOMAINS, PERIODS = 6, 3, 4
BASE = 40


@dataclass(frozen=True)
class Pairs:
    """Different pairs of nodes (2, …): linked, published as not linked, and left for what else is needed."""

    linked: np.ndarray
    free: np.ndarray
    spare: np.ndarray

    @classmethod
    def drawn(cls) -> "Pairs":
        random = np.random.default_rng(0)
        every = np.stack(np.triu_indices(NODES, 1))[:, random.permutation(NODES * (NODES - 1) // 2)]
        return cls(*np.split(every[:, : LINKS + NEGATIVES + SPARE], [LINKS, LINKS + NEGATIVES], axis=1))


def link_set(
    pairs: Pairs,
    given: bool = True,
    published: bool = True,
    negatives: bool = True,
    directed: bool = False,
    **changes: Any,
) -> LinkSet:
    """Return links in domains and a base, over years, with classes, sorted by part and class; given: with features."""
    random = np.random.default_rng(1)
    number = random.permutation(LINKS)
    labels, domains = number % CLASSES, number // CLASSES % DOMAINS
    times = 2000 + number // (CLASSES * DOMAINS) % PERIODS
    parts = random.choice([TRAINING, VALIDATION, TEST], size=LINKS, p=[0.5, 0.2, 0.3])
    domains[random.permutation(LINKS)[:BASE]] = NO_GROUP
    order = np.lexsort([labels, parts])
    free_parts = random.choice([VALIDATION, TEST], size=NEGATIVES, p=[0.3, 0.7])
    fields = {
        "labels": labels[order],
        "features": random.normal(size=(NODES, 3)) if given else None,
        "groups": {"domain": Groups(domains[order], tuple("abc"))},
        "times": times[order],
        "split": parts[order] if published else None,
        "negatives": pairs.free if negatives else None,
        "negatives_split": free_parts if negatives else None,
    }
    return make_link_set("links", NODES, pairs.linked, directed, **{**fields, **changes})


def classified(links: LinkSet, **fields: Any) -> LinkScenario:
    return _classified(as_it_stands(links), **fields)


def _classified(opened: Any, **fields: Any) -> LinkScenario:
    settings = LinkSettings(kind="link", **fields).checked()
    return LinkScenario(opened, settings, settings.split_for(opened.data, 0))


def predicted(links: LinkSet, seed: int = 0, **fields: Any) -> LinkPredictionScenario:
    settings = LinkPredictionSettings(kind="link-prediction", **{"k": 10, **fields}).checked()
    return LinkPredictionScenario(as_it_stands(links), settings, settings.split_for(links, seed))


def unit_of(links: LinkSet, setting: str) -> np.ndarray:
    return links.groups["domain"].numbers if setting == "domain-il" else links.times - 2000


def units_in(lessons: Prefix) -> list[int]:
    return [unit for lesson in lessons for unit in lesson.units]


def at(given: Samples | Queries) -> np.ndarray:
    """Return (2, N) the pairs of samples or queries."""
    places: Any = given.pool.whole().rows(given.ids)
    return ends_of(places)


def ends_of(places: Places) -> np.ndarray:
    return places.at.numpy().T


def keys_of(pairs: np.ndarray) -> np.ndarray:
    return pair_keys(pairs, NODES, directed=False)


def message_keys(given: Samples | Queries) -> set[int]:
    """Return the keys of the pairs that messages pass between, both ways; loops left out."""
    links = given.pool.whole().links
    ends = torch.stack([links.sources, links.targets]).numpy()
    proper = ends[:, ends[0] != ends[1]]
    keys = pair_keys(proper, NODES, directed=False)
    assert proper.shape[1] == 2 * len(np.unique(keys))
    return set(keys.tolist())


# Classes of links

SETTINGS = ("class-il", "task-il", "time-il")


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_array_within_reach_tells_the_class_of_a_test_link(setting: str) -> None:
    opened = shuffled(link_set(Pairs.drawn(), published=False, negatives=False, directed=True))
    scenario = _classified(opened, setting=setting, split={"ratios": (4, 2, 4)})
    labels, parts = opened.data.labels, scenario._parts
    assert_no_array_tells_a_test_label(scenario, labels, parts)
    assert_queries_stand_at_random(scenario, labels, parts)
    assert_no_test_item_is_learned_from(scenario, parts)
    sent = pickle.loads(pickle.dumps(scenario))
    assert all(content(sent, prefix) == content(scenario, prefix) for prefix in prefixes(scenario))


def _other_classes(links: LinkSet, pairs: Pairs, setting: str, prefix: Prefix) -> LinkSet:
    """Return other classes wherever a prefix shows none; in time-il also other links to come, and more."""
    units = links.labels if setting != "time-il" else links.times - 2000
    hidden = (links.split == TEST) | ~np.isin(units, prefix[-1].units)
    if setting != "time-il":
        # The other class of the same task, which a query of task-il reveals.
        return replace(links, labels=np.where(hidden, links.labels ^ 1, links.labels))
    late = np.flatnonzero(~np.isin(units, units_in(prefix)))
    ends = links.ends.copy()
    ends[:, late] = np.resize(pairs.spare, (2, len(late)))
    again = np.concatenate([np.arange(LINKS), late[:7]])
    labels = np.where(hidden, (links.labels + 1) % CLASSES, links.labels)
    groups = {"domain": Groups(links.groups["domain"].numbers[again], tuple("abc"))}
    return make_link_set(
        "other",
        NODES,
        ends[:, again],
        links.directed,
        labels[again],
        features=links.features,
        groups=groups,
        times=links.times[again],
        split=links.split[again],
    )


@pytest.mark.parametrize("given", [True, False], ids=["features", "degrees"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_other_classes_and_other_links_to_come_change_nothing_within_reach(setting: str, given: bool) -> None:
    pairs = Pairs.drawn()
    links = link_set(pairs, given, negatives=False, directed=True)
    scenario = classified(links, setting=setting)
    for prefix in prefixes(scenario):
        other = _other_classes(links, pairs, setting, prefix)
        assert not np.array_equal(links.labels, other.labels[:LINKS])
        assert content(classified(other, setting=setting), prefix) == content(scenario, prefix)


def test_leaking_degrees_tell_of_links_to_come_and_are_off_by_default() -> None:
    pairs = Pairs.drawn()
    links = link_set(pairs, given=False, negatives=False, directed=True)
    assert not LinkSettings(kind="link").leaking_degrees
    leaking = classified(links, setting="time-il", leaking_degrees=True)
    prefix = prefixes(leaking)[0]
    other = _other_classes(links, pairs, "time-il", prefix)
    assert content(classified(other, setting="time-il", leaking_degrees=True), prefix) != content(leaking, prefix)
    inward, outward = (np.bincount(ends, minlength=NODES) for ends in links.ends[::-1])
    for each in prefixes(leaking):
        held = leaking.experience(each).training.pool.whole().dense_features
        assert np.array_equal(held.numpy(), np.stack([inward, outward], axis=1))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_graph_and_its_degrees_are_of_all_links_or_of_those_that_have_come(setting: str, directed: bool) -> None:
    links = link_set(Pairs.drawn(), given=False, negatives=False, directed=directed)
    scenario = classified(links, setting=setting)
    for prefix in prefixes(scenario):
        here = np.arange(LINKS)
        if setting == "time-il":
            here = np.flatnonzero(np.isin(links.times - 2000, units_in(prefix)))
        degrees = np.zeros((NODES, 2))
        for source, target in links.ends[:, here].T:
            degrees[target, 0] += 1
            degrees[source, 1] += 1
        expected = degrees if directed else degrees.sum(axis=1, keepdims=True)
        experience, queries = scenario.experience(prefix), scenario.queries(prefix)
        for given in (experience.training, experience.validation, queries):
            held = given.pool.whole()
            assert np.array_equal(held.dense_features.numpy(), expected)
            assert len(held.links) == (1 if directed else 2) * len(here) + NODES
            assert np.array_equal(at(given), links.ends[:, given.ids.numpy()])
        asked = here[np.isin(links.split[here], (TEST, VALIDATION))]
        assert np.array_equal(np.sort(queries.ids.numpy()), asked)


# Hidden links

VIEWS: dict[str, dict[str, Any]] = {
    "domain-il": {"setting": "domain-il"},
    "own links": {"setting": "domain-il", "inter_task_edges": False},
    "time-il": {"setting": "time-il"},
    "time-il half": {"setting": "time-il", "joins_base": 0.5},
    "time-il own": {"setting": "time-il", "joins_base": 0.0},
}


def _other_links(links: LinkSet, pairs: Pairs, setting: str, prefix: Prefix) -> LinkSet:
    """Return links of which those hidden have changed places with pairs that are not linked, and others are to come.

    What is asked about is the same, and linked where it was not. Validation has shown what is linked of its lessons.
    """
    unit = unit_of(links, setting)
    late = (unit >= 0) & ~np.isin(unit, units_in(prefix))
    ends, free = links.ends.copy(), links.negatives.copy()
    moved = late & (np.ones(LINKS, dtype=bool) if setting == "time-il" else links.split == TRAINING)
    ends[:, moved] = pairs.spare[:, : moved.sum()]
    shown = (links.split == VALIDATION) & np.isin(unit, units_in(prefix))
    hidden = np.flatnonzero((unit >= 0) & (links.split != TRAINING) & ~shown & ~moved)
    unlinked = np.flatnonzero(links.negatives_split == TEST)
    count = min(len(hidden), len(unlinked))
    ends[:, hidden[:count]], free[:, unlinked[:count]] = (
        links.negatives[:, unlinked[:count]],
        links.ends[:, hidden[:count]],
    )
    # More of the last period, where it is to come.
    more = np.flatnonzero(moved)[:7] if setting == "time-il" else np.zeros(0, dtype=np.int64)
    again = np.concatenate([np.arange(LINKS), more])
    ends = np.concatenate([ends, pairs.spare[:, -len(more) :] if len(more) else ends[:, :0]], axis=1)
    return make_link_set(
        "other",
        NODES,
        ends,
        False,
        features=links.features,
        groups={"domain": Groups(links.groups["domain"].numbers[again], tuple("abc"))},
        times=links.times[again],
        split=links.split[again],
        negatives=free,
        negatives_split=links.negatives_split,
    )


@pytest.mark.parametrize("given", [True, False], ids=["features", "degrees"])
@pytest.mark.parametrize("view", VIEWS)
def test_other_hidden_links_and_others_to_come_change_nothing_within_reach(view: str, given: bool) -> None:
    pairs, fields = Pairs.drawn(), VIEWS[view]
    links = link_set(pairs, given)
    scenario = predicted(links, **fields)
    for prefix in prefixes(scenario):
        other = _other_links(links, pairs, fields["setting"], prefix)
        changed = predicted(other, **fields)
        assert (other.ends[:, :LINKS] != links.ends).any(axis=0).sum() > LINKS / 5
        assert content(changed, prefix) == content(scenario, prefix)
        # What is drawn for training neither.
        ids = scenario.experience(prefix).training.ids
        drawn = [
            each.experience(prefix).training.pool.drawn(ids, np.random.default_rng(5)).at
            for each in (scenario, changed)
        ]
        assert torch.equal(*drawn)


@pytest.mark.parametrize("leak", ["leaking_degrees", "shared_training_edges"])
@pytest.mark.parametrize("setting", ["domain-il", "time-il"])
def test_what_leaks_tells_what_it_is_named_for_and_is_off_by_default(setting: str, leak: str) -> None:
    assert not getattr(LinkPredictionSettings(kind="link-prediction"), leak)
    pairs = Pairs.drawn()
    links = link_set(pairs, given=False)
    scenario = predicted(links, setting=setting, **{leak: True})
    for prefix in prefixes(scenario):
        samples = scenario.experience(prefix).training
        features = samples.pool.whole().dense_features[:, 0].numpy()
        unit = unit_of(links, setting)
        training = np.flatnonzero((unit < 0) | (links.split == TRAINING))
        if leak == "leaking_degrees":
            assert np.array_equal(features, np.bincount(links.ends.flatten(), minlength=NODES))
            # The graph does not.
            assert message_keys(samples) <= set(keys_of(links.ends[:, training]).tolist())
        else:
            # All training links, to come or not; still no hidden one.
            assert message_keys(samples) == set(keys_of(links.ends[:, training]).tolist())
            assert np.array_equal(features, np.bincount(links.ends[:, training].flatten(), minlength=NODES))
    first = prefixes(scenario)[0]
    other = predicted(_other_links(links, pairs, setting, first), setting=setting, **{leak: True})
    assert content(other, first) != content(scenario, first)


def test_degrees_do_not_leak_where_features_are_given() -> None:
    with pytest.raises(InputError, match="leaking_degrees: the features are given"):
        predicted(link_set(Pairs.drawn()), leaking_degrees=True)


@pytest.mark.parametrize("view", VIEWS)
def test_messages_degrees_and_weights_are_of_the_links_in_view_and_of_no_hidden_one(view: str) -> None:
    links, fields = link_set(Pairs.drawn(), given=False), VIEWS[view]
    unit = unit_of(links, fields["setting"])
    scenario = predicted(links, **fields)
    keys, training = keys_of(links.ends), links.split == TRAINING
    hidden = set(keys[(unit >= 0) & ~training].tolist())
    joined: set[int] = set(keys[unit < 0].tolist())
    for prefix in prefixes(scenario):
        experience, queries = scenario.experience(prefix), scenario.queries(prefix)
        own = set(keys[training & np.isin(unit, prefix[-1].units)].tolist())
        for given in (experience.training, experience.validation, queries):
            found = message_keys(given)
            assert found.isdisjoint(hidden)
            assert own <= found
            earlier = set(keys[training & np.isin(unit, units_in(prefix[:-1]))].tolist())
            share = {"own links": 0, "time-il own": 0, "time-il half": 0.5}.get(view, 1)
            assert joined <= found <= joined | own | earlier
            assert len(found - own - set(keys[unit < 0].tolist())) == pytest.approx(
                share * len(earlier), abs=len(prefix) / 2
            )
            held = given.pool.whole()
            degrees = np.zeros(NODES)
            for key in found:
                degrees[[key // NODES, key % NODES]] += 1
            assert np.array_equal(held.dense_features[:, 0].numpy(), degrees)
            sources, targets = (ends.numpy() for ends in (held.links.sources, held.links.targets))
            expected = 1 / np.sqrt((degrees[sources] + 1) * (degrees[targets] + 1))
            np.testing.assert_allclose(held.links.weights("symmetric").numpy(), expected, rtol=1e-6)
        if fields["setting"] == "time-il":
            # What once joined the base stays.
            joined |= found - own


@pytest.mark.parametrize("view", VIEWS)
def test_with_negatives_of_its_own_a_lesson_is_learned_without_the_hidden_links(view: str) -> None:
    pairs, fields = Pairs.drawn(), {**VIEWS[view], "negatives": 40}
    links = link_set(pairs, given=False, negatives=False)
    unit = unit_of(links, fields["setting"])
    hidden = np.flatnonzero((links.split != TRAINING) & (unit >= 0))[:SPARE]
    ends = links.ends.copy()
    ends[:, hidden] = pairs.spare[:, : len(hidden)]
    scenario, changed = predicted(links, **fields), predicted(replace(links, ends=ends), **fields)
    for prefix in prefixes(scenario):
        one, other = (each.experience(prefix).training for each in (scenario, changed))
        assert one.pool.digest == other.pool.digest
        assert digests_of(one) == digests_of(other)


@pytest.mark.parametrize("setting", ["domain-il", "time-il"])
def test_pairs_asked_about_are_linked_or_not_by_nothing_that_can_be_seen(setting: str) -> None:
    """Their sequence, their numbers, which node comes first, and how often a pair is asked about."""
    links = link_set(Pairs.drawn(), negatives=False)
    scenario = predicted(links, setting=setting, negatives=40)
    unit = unit_of(links, setting)
    for prefix in prefixes(scenario):
        queries = scenario.queries(prefix)
        asked = at(queries)
        linked = np.isin(keys_of(asked), keys_of(links.ends))
        here = unit >= 0 if setting == "domain-il" else np.isin(unit, units_in(prefix))
        hidden = np.isin(links.split, (TEST, VALIDATION)) & here
        assert set(keys_of(asked)[linked].tolist()) == set(keys_of(links.ends[:, hidden]).tolist())
        lessons = DOMAINS if setting == "domain-il" else len(prefix)
        assert (~linked).sum() == 2 * 40 * lessons
        assert (asked[0] < asked[1]).all()
        assert len(np.unique(keys_of(asked))) == asked.shape[1]
        assert torch.equal(queries.ids, torch.arange(asked.shape[1]))
        assert (queries.step == -1).all()
        assert unlikely(np.arange(asked.shape[1]), linked) < RARE
    assert unlikely(linked.astype(int), linked) > 1.5 * RARE


def test_negatives_are_fixed_by_the_seed_and_apart_from_all_links_and_one_another() -> None:
    links = link_set(Pairs.drawn(), negatives=False)
    one, again, other = (predicted(links, seed, setting="domain-il", negatives=40) for seed in (0, 0, 1))
    pairs = one._negatives.pairs
    assert np.array_equal(pairs, again._negatives.pairs)
    shared = np.isin(keys_of(pairs), keys_of(other._negatives.pairs)).mean()
    assert shared < 0.5
    assert not np.isin(keys_of(pairs), keys_of(links.ends)).any()
    assert len(np.unique(keys_of(pairs))) == pairs.shape[1] == 2 * 40 * DOMAINS
    for unit in range(DOMAINS):
        own = one._negatives.unit == unit
        assert np.isin(pairs[:, own], links.ends[:, links.groups["domain"].numbers == unit]).all()
        assert [(one._negatives.parts[own] == part).sum() for part in (TEST, VALIDATION)] == [40, 40]


@pytest.mark.parametrize("setting", ["domain-il", "time-il"])
def test_validation_has_the_hidden_links_of_its_lesson_and_pairs_without_one(setting: str) -> None:
    links = link_set(Pairs.drawn(), negatives=False)
    scenario = predicted(links, setting=setting, negatives=40)
    unit = unit_of(links, setting)
    for prefix in prefixes(scenario):
        validation = scenario.experience(prefix).validation
        linked = (validation.labels == 1).numpy()
        own = (links.split == VALIDATION) & np.isin(unit, prefix[-1].units)
        assert set(keys_of(at(validation)[:, linked]).tolist()) == set(keys_of(links.ends[:, own]).tolist())
        assert not np.isin(keys_of(at(validation)[:, ~linked]), keys_of(links.ends)).any()
        assert (~linked).sum() == 40


@pytest.mark.parametrize("view", ["domain-il", "own links", "time-il half"])
def test_training_draws_pairs_anew_that_are_not_known_to_be_linked_and_may_be_hidden(view: str) -> None:
    """Were hidden links never drawn, what is not drawn would tell them."""
    fields = VIEWS[view]
    links = link_set(Pairs.drawn(), negatives=False)
    unit, keys = unit_of(links, fields["setting"]), keys_of(links.ends)
    scenario = predicted(links, **fields, negatives=40)
    hit = 0
    for prefix in prefixes(scenario):
        samples = scenario.experience(prefix).training
        pool = samples.pool
        assert isinstance(pool, PairPool)
        taught = (links.split == TRAINING) & np.isin(unit, units_in(prefix))
        own = np.flatnonzero((links.split == TRAINING) & np.isin(unit, prefix[-1].units))
        known = keys[taught | (unit < 0)]
        linked = (samples.labels == 1).numpy()
        assert linked.sum() == (~linked).sum() == len(own)
        random = np.random.default_rng(6)
        rounds = [*(ends_of(pool.drawn(samples.ids, random)) for _ in range(8)), at(samples)]
        for found in rounds:
            assert set(keys_of(found[:, linked]).tolist()) == set(keys[own].tolist())
            free = found[:, ~linked]
            assert not np.isin(keys_of(free), known).any()
            assert (free[0] != free[1]).all()
            assert np.isin(free[1], links.ends[:, own]).all()
            assert (free[0] == links.ends[:, own]).any(axis=0).all()
            hit += np.isin(keys_of(free), keys[~taught & (unit >= 0)]).sum()
        assert len({found[:, ~linked].tobytes() for found in rounds}) == len(rounds)
    assert hit > 50


@pytest.mark.parametrize("negatives", [True, False], ids=["published", "drawn"])
@pytest.mark.parametrize("view", VIEWS)
def test_what_is_remembered_by_number_is_found_as_it_was_in_later_lessons(view: str, negatives: bool) -> None:
    """Of training and of validation: Joint, and who stops early by all that was seen, validate on past lessons too."""
    drawn = {} if negatives else {"negatives": 40}
    scenario = predicted(link_set(Pairs.drawn(), negatives=negatives), **VIEWS[view], **drawn)
    trained: list[tuple[Tensor, np.ndarray]] = []
    validated: list[tuple[Tensor, np.ndarray]] = []
    for prefix in prefixes(scenario):
        experience = scenario.experience(prefix)
        training, validation = experience.training, experience.validation
        trained.append((training.ids, at(training)))
        validated.append((validation.ids, at(validation)))
        for samples, before in ((training, trained), (validation, validated)):
            for ids, pairs in before:
                assert np.array_equal(at(replace(samples, ids=ids)), pairs)
        for ids, pairs in trained:
            again = ends_of(training.pool.drawn(ids, np.random.default_rng(7)))
            linked = ids.numpy() % 2 == 0
            assert np.array_equal(again[:, linked], pairs[:, linked])
    # No sample has the number of another.
    every = torch.cat([ids for ids, _ in trained])
    assert len(every.unique()) == len(every)


@pytest.mark.parametrize("view", VIEWS)
def test_a_scenario_of_pairs_that_is_sent_to_a_worker_hands_out_the_same(view: str) -> None:
    scenario = predicted(link_set(Pairs.drawn()), **VIEWS[view])
    sent = pickle.loads(pickle.dumps(scenario))
    for prefix in prefixes(scenario):
        assert content(sent, prefix) == content(scenario, prefix)
        assert digests_of(sent.experience(prefix)) == digests_of(scenario.experience(prefix))


@pytest.mark.parametrize("setting", ["domain-il", "time-il"])
def test_a_unit_is_scored_against_pairs_without_a_link_of_all_domains_or_of_periods_up_to_it(
    setting: str,
) -> None:
    """Hits@K by OGB's definition and ROC-AUC by scikit-learn, with ties, of answers to queries as they are asked."""
    links = link_set(Pairs.drawn(), negatives=False)
    scenario = predicted(links, setting=setting, negatives=40, k=7)
    unit, parts = unit_of(links, setting), {"test": TEST, "validation": VALIDATION}
    for prefix in prefixes(scenario):
        asked = keys_of(at(scenario.queries(prefix)))
        answers = np.round(np.random.default_rng(8).normal(size=len(asked)), 1)
        given = dict(zip(asked.tolist(), answers.tolist(), strict=True))
        here = range(DOMAINS) if setting == "domain-il" else units_in(prefix)
        for measure in scenario.score(torch.from_numpy(answers)[:, None].float(), prefix):
            for number, value in enumerate(measure.values):
                judged = DOMAINS if setting == "domain-il" else number + 1
                own = (scenario._negatives.parts == parts[measure.part]) & (scenario._negatives.unit < judged)
                free = [given[key] for key in keys_of(scenario._negatives.pairs[:, own]).tolist() if key in given]
                chosen = (unit == number) & (links.split == parts[measure.part])
                if number not in here:
                    assert np.isnan(value)
                    continue
                assert len(free) == 40 * judged
                linked = [given[key] for key in keys_of(links.ends[:, chosen]).tolist()]
                border = sorted(free, reverse=True)[7 - 1]
                hits = sum(each > border for each in linked) / len(linked)
                area = roc_auc_score([1] * len(linked) + [0] * len(free), linked + free)
                assert value == pytest.approx({"hits@7": hits, "roc_auc": area}[measure.metric])
