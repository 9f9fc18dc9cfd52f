"""One class per node as a scenario: lessons, queries and scores of every setting and view, by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import NO_CLASS, Graph
from skeleton_cgl.parts import NAMES, TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.scenarios.lessons import Prefix
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.node import NodeScenario
from skeleton_cgl.scenarios.scenario import Queries, Samples
from tests.scenarios.graphs import CLASSES, DOMAINS, NODES, PERIODS, node_graph, node_scenario

SETTINGS = ("class-il", "task-il", "domain-il", "time-il")
VIEWS: dict[str, dict[str, Any]] = {
    "whole": {"view": "whole"},
    "own": {"view": "task"},
    "so far": {"view": "task", "inter_task_edges": True},
}
CASES = [
    *((setting, view) for setting in SETTINGS[:3] for view in VIEWS),
    ("time-il", ""),
]


def scenario_of(setting: str, view: str, graph: Graph | None = None, **fields: Any) -> NodeScenario:
    return node_scenario(graph, setting=setting, **(VIEWS[view] if view else {}), **fields)


def nodes_of(graph: Graph, given: Samples | Queries) -> np.ndarray:
    """Return the nodes that samples or queries are, by their features, of which no two are alike."""
    places = given.pool.whole().rows(given.ids)
    found = places.dense_features[places.at[:, 0]].numpy()
    apart = np.abs(found[:, None] - graph.features[None]).sum(axis=2)
    assert (apart.min(axis=1) == 0).all()
    return apart.argmin(axis=1)


def units_of(graph: Graph, setting: str) -> np.ndarray:
    if setting == "domain-il":
        return graph.groups["domain"].numbers
    return graph.times - 2000 if setting == "time-il" else graph.labels


def prefixes(scenario: NodeScenario) -> list[Prefix]:
    lessons = scenario.lessons(scenario.default)
    return [lessons[: step + 1] for step in range(len(lessons))]


def measure_of(measures: tuple[Measure, ...], part: str, metric: str) -> Measure:
    (found,) = (each for each in measures if (each.part, each.metric) == (part, metric))
    return found


@pytest.mark.parametrize(("setting", "view"), CASES)
def test_lessons_and_queries_divide_the_nodes_of_the_graph(setting: str, view: str) -> None:
    graph = node_graph()
    scenario, unit = scenario_of(setting, view, graph), units_of(graph, setting)
    taught: list[int] = []
    for prefix in prefixes(scenario):
        taught += prefix[-1].units
        experience, queries = scenario.experience(prefix), scenario.queries(prefix)
        own = [nodes_of(graph, samples) for samples in (experience.training, experience.validation)]
        for samples, nodes in zip((experience.training, experience.validation), own, strict=True):
            assert np.array_equal(samples.labels.numpy(), graph.labels[nodes])
            assert set(unit[nodes]) == set(prefix[-1].units)
        asked = nodes_of(graph, queries)
        assert not np.isin(own[0], asked).any()
        assert np.isin(own[1], asked).all()
        expected = range(unit.max() + 1) if view == "whole" else taught
        assert set(unit[asked]) == set(expected)
        assert len(np.unique(asked)) == len(asked)
        counts = [np.isin(unit, prefix[-1].units).sum(), len(own[0]), len(own[1])]
        assert counts[1] == pytest.approx(0.8 * counts[0], abs=1 + 0.1 * counts[0])


@pytest.mark.parametrize(("setting", "view"), CASES)
def test_what_a_sample_reveals_is_its_lesson_in_task_il_and_nothing_elsewhere(setting: str, view: str) -> None:
    graph = node_graph()
    scenario, unit = scenario_of(setting, view, graph), units_of(graph, setting)
    for step, prefix in enumerate(prefixes(scenario)):
        queries = scenario.queries(prefix)
        revealed = scenario.experience(prefix).training.step.unique().tolist()
        assert revealed == [step if setting == "task-il" else -1]
        if setting != "task-il":
            assert queries.step.unique().tolist() == [-1]
            continue
        taught = {each: place for place, lesson in enumerate(prefix) for each in lesson.units}
        expected = [taught.get(int(each), -1) for each in unit[nodes_of(graph, queries)]]
        assert queries.step.tolist() == expected


@pytest.mark.parametrize(("setting", "view"), CASES)
def test_scores_are_the_shares_of_right_answers(setting: str, view: str) -> None:
    graph = node_graph()
    scenario, unit = scenario_of(setting, view, graph), units_of(graph, setting)
    by_classes = setting in ("class-il", "task-il")
    prefix = prefixes(scenario)[1]
    queries = scenario.queries(prefix)
    nodes = nodes_of(graph, queries)
    met = sorted(each for lesson in prefix for each in lesson.units) if by_classes else list(range(CLASSES))
    answers = torch.full((len(nodes), CLASSES), -torch.inf)
    answers[:, met] = torch.from_numpy(np.random.default_rng(0).normal(size=(len(nodes), len(met))).astype(np.float32))
    allowed = answers.clone()
    for row, step in enumerate(queries.step.tolist()):
        if step >= 0:
            others = [each for each in range(CLASSES) if each not in prefix[step].units]
            allowed[row, others] = -torch.inf
    right = allowed.argmax(dim=1).numpy() == graph.labels[nodes]
    measures = scenario.score(answers, prefix)
    # What was asked is known of every validation sample; the rest is test.
    validation = np.isin(
        nodes, np.concatenate([nodes_of(graph, scenario.experience(prefix[:n]).validation) for n in (1, 2)])
    )
    for part, here in (("validation", validation), ("test", ~validation)):
        for number in [each for lesson in prefix for each in lesson.units]:
            own = here & (unit[nodes] == number)
            if part == "test":
                own &= scenario._parts[nodes] == TEST
            micro = measure_of(measures, part, "micro_accuracy")
            assert micro.values[number] == pytest.approx(right[own].mean())
            assert micro.asked[number] == own.sum()
            by_class = [
                right[own & (graph.labels[nodes] == label)].mean() for label in np.unique(graph.labels[nodes[own]])
            ]
            assert measure_of(measures, part, "accuracy").values[number] == pytest.approx(np.mean(by_class))
    leading = measures[0]
    assert leading.metric == "accuracy"
    assert leading.counts is not None
    assert leading.counts.sum() == leading.asked.sum()


def test_two_classes_in_domains_have_a_roc_auc() -> None:
    two = _two_classes(node_graph())
    scenario = scenario_of("domain-il", "whole", two, score="roc_auc")
    assert scenario.problem.metrics == ("roc_auc", "accuracy", "micro_accuracy")
    prefix = prefixes(scenario)[0]
    queries = scenario.queries(prefix)
    nodes = nodes_of(two, queries)
    answers = torch.from_numpy(np.random.default_rng(1).normal(size=(len(nodes), 2)))
    (measure,) = (each for each in scenario.score(answers, prefix) if (each.part, each.metric) == ("test", "roc_auc"))
    domain = two.groups["domain"].numbers[nodes]
    likely = torch.softmax(answers, dim=1)[:, 1].numpy()
    for number in range(DOMAINS):
        own = (domain == number) & (scenario._parts[nodes] == TEST)
        assert measure.values[number] == pytest.approx(roc_auc_score(two.labels[nodes[own]], likely[own]))


def _two_classes(graph: Graph) -> Graph:
    return replace(graph, labels=graph.labels % 2, classes=("no", "yes"))


def test_periods_have_the_calendars_order_and_snapshots() -> None:
    graph = node_graph()
    scenario = scenario_of("time-il", "", graph)
    assert [unit.name for unit in scenario.units] == ["2000", "2001", "2002", "2003"]
    for step, prefix in enumerate(prefixes(scenario)):
        for pool in (scenario.experience(prefix).training.pool, scenario.queries(prefix).pool):
            present = np.sort(graph.times)[: (step + 1) * NODES // PERIODS]
            assert len(pool.whole()) == len(present)
    with pytest.raises(InputError, match="the calendar's"):
        scenario.lessons(((1,), (0,)))


@pytest.mark.parametrize(
    ("periods", "names"), [(2, ["2000–2001", "2002–2003"]), ((2001, 2003), ["2000", "2001–2002", "2003"])]
)
def test_periods_are_so_many_of_equal_size_or_begin_when_they_are_said_to(periods: Any, names: list[str]) -> None:
    assert [unit.name for unit in scenario_of("time-il", "", periods=periods).units] == names


def test_classes_left_out_are_said_and_not_asked_about() -> None:
    graph = node_graph()
    scenario = node_scenario(graph, classes_per_task=4, rest="drop")
    assert scenario.default == ((0, 1, 2, 3),)
    assert "in no task, neither learned nor asked about: class 4, class 5" in scenario.notes
    assert set(graph.labels[nodes_of(graph, scenario.queries(scenario.lessons(scenario.default)))]) == {0, 1, 2, 3}


def test_nodes_without_a_class_are_in_the_graph_and_never_asked_about() -> None:
    graph = node_graph()
    labels = np.where(np.arange(NODES) < 20, NO_CLASS, graph.labels)
    scenario = node_scenario(replace(graph, labels=labels))
    queries = scenario.queries(scenario.lessons(scenario.default))
    assert len(queries.pool.whole()) == NODES
    assert nodes_of(graph, queries).min() >= 20


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"setting": "domain-il", "classes_per_task": 3}, "scenario: classes_per_task: all classes are learned"),
        ({"domains": "domain"}, "scenario: domains: there are none in class-il"),
        ({"setting": "domain-il", "domains": "langage"}, "no groups 'langage'"),
        ({"periods": 2}, "scenario: periods: there are none in class-il"),
        ({"setting": "time-il", "view": "task"}, "scenario: view: in time-il a lesson sees"),
        ({"setting": "time-il", "periods": 9}, "4 different times do not make 9 periods"),
        ({"setting": "time-il", "periods": (2002, 2001)}, "expected ascending times"),
        ({"inter_task_edges": True}, "it goes with view: task"),
        ({"score": "roc_auc"}, "roc_auc needs two classes"),
        ({"split": {"by": "published"}}, "comes without a published split"),
        ({"split": {"by": "country"}}, "no such groups"),
        ({"grouping_seed": 3}, "grouping_seed: nothing is drawn"),
    ],
)
def test_what_means_nothing_is_refused_by_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        node_scenario(**fields)


def test_ratios_of_a_split_that_is_given_are_refused() -> None:
    graph = node_graph()
    published = replace(graph, split=np.arange(NODES) % 3)
    with pytest.raises(InputError, match="split: ratios: the parts are given with by: published"):
        node_scenario(published, split={"ratios": (6, 2, 2)})
    assert node_scenario(published, split={"by": "class", "ratios": (6, 2, 2)}).notes


def test_a_class_without_a_test_node_is_refused() -> None:
    graph = node_graph()
    split = np.where(graph.labels == 3, TRAINING, np.arange(NODES) % 3)
    with pytest.raises(InputError, match="class 'class 3' has no validation node"):
        node_scenario(replace(graph, split=split))


@pytest.mark.parametrize(("setting", "message"), [("domain-il", "domain 'b'"), ("time-il", "period '2001'")])
def test_a_domain_or_period_without_a_node_of_a_class_is_refused(setting: str, message: str) -> None:
    graph = node_graph()
    assert graph.times is not None
    without = graph.groups["domain"].numbers == 1 if setting == "domain-il" else graph.times == 2001
    with pytest.raises(InputError, match=f"{message} has no training node"):
        node_scenario(replace(graph, labels=np.where(without, NO_CLASS, graph.labels)), setting=setting)


def test_groups_named_for_parts_are_refused_where_a_split_was_published() -> None:
    graph = replace(node_graph(), split=np.random.default_rng(0).integers(3, size=NODES))
    with pytest.raises(InputError, match="name groups; they mean nothing with by: published"):
        node_scenario(graph, split={"test": (1,)})


def test_an_area_of_one_class_alone_is_refused() -> None:
    graph = _two_classes(node_graph())
    one = replace(graph, labels=np.where(graph.groups["domain"].numbers == 1, 0, graph.labels))
    with pytest.raises(InputError, match="roc_auc is undefined: all test nodes of domain 'b' are 'no'"):
        scenario_of("domain-il", "whole", one, score="roc_auc")


def test_a_split_from_a_file_is_the_one_in_the_file(tmp_path: Path) -> None:
    parts = np.random.default_rng(0).integers(-1, 3, size=NODES)
    masks = {name: parts == part for part, name in enumerate(("train", "val", "test"))}
    np.savez(tmp_path / "masks.npz", **{f"{name}_mask": mask for name, mask in masks.items()})
    np.savez(tmp_path / "several.npz", **{f"{name}_masks": np.stack([~mask, mask]) for name, mask in masks.items()})
    words = {UNUSED: "", **dict(enumerate(NAMES))}
    (tmp_path / "parts.csv").write_text("part\n" + "".join(f'"{words[int(part)]}"\n' for part in parts))
    for split in (
        {"file": str(tmp_path / "masks.npz")},
        {"file": str(tmp_path / "several.npz"), "mask": 1},
        {"file": str(tmp_path / "parts.csv")},
    ):
        assert np.array_equal(node_scenario(split={"by": "file", **split})._parts, parts)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"train_mask": np.ones(NODES, bool)}, "val_mask.* is missing"),
        ({f"{name}_mask": np.ones(NODES, bool) for name in ("train", "val", "test")}, "a node is in two parts"),
        ({f"{name}_mask": np.ones(3, bool) for name in ("train", "val", "test")}, "expected true or false for each of"),
    ],
)
def test_masks_that_do_not_fit_are_refused_by_file_and_field(tmp_path: Path, content: Any, message: str) -> None:
    np.savez(tmp_path / "masks.npz", **content)
    with pytest.raises(InputError, match=f"masks.npz.*{message}"):
        node_scenario(split={"by": "file", "file": str(tmp_path / "masks.npz")})


def test_groups_are_in_one_part_as_a_whole() -> None:
    graph = node_graph()
    scenario = node_scenario(graph, split={"by": "domain", "test": (1,)})
    domain = graph.groups["domain"].numbers
    assert (scenario._parts[domain == 1] == TEST).all()
    assert {len(np.unique(scenario._parts[domain == number])) for number in range(DOMAINS)} == {1}
    assert (scenario._parts == VALIDATION).any()


def test_the_digest_follows_all_that_decides_what_is_learned_and_asked() -> None:
    graph = node_graph()
    digests = [scenario_of(setting, view, graph).digest for setting, view in CASES]
    digests += [node_scenario(graph, seed=1).digest, node_scenario(graph, balanced=False).digest]
    digests += [node_scenario(graph, self_loops=False).digest, node_scenario(graph, score="micro_accuracy").digest]
    digests += [node_scenario(node_graph(1)).digest, node_scenario(graph, classes_per_task=4, rest="drop").digest]
    assert len(set(digests)) == len(digests)
    assert node_scenario(replace(graph, name="other")).digest == digests[0]
