"""What graph benchmarks report: AP, AF by the diagonal, INT, FWT; micro scores; repeats with tasks of their own."""

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.analysis import Beside, Findings, published_performance, runs
from skeleton_cgl.analysis.benchmarks import BENCHMARKS
from skeleton_cgl.analysis.curves import mean_accuracy_matrices
from skeleton_cgl.analysis.disparity import disparity
from skeleton_cgl.analysis.fate import accuracy_by_position, extreme_orders
from skeleton_cgl.analysis.figures.best_worst_orders import BestWorstOrders
from skeleton_cgl.analysis.figures.class_fate import ClassFate
from skeleton_cgl.analysis.figures.disparity_table import DisparityTable
from skeleton_cgl.analysis.figures.learning_curve import LearningCurve
from skeleton_cgl.analysis.figures.order_scatter import OrderScatter
from skeleton_cgl.analysis.finals import OWN_TASKS, final_accuracies
from skeleton_cgl.analysis.metric import entry_of
from skeleton_cgl.analysis.report import facts, report_tables, scatter_data
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.scores import ScoredRun, Scores
from skeleton_cgl.analysis.table import Table
from skeleton_cgl.analysis.tables import default_level, study_table, variance_table
from skeleton_cgl.analysis.words import OF_SKELETONS, Wording, order_words, unit_kind, worded
from skeleton_cgl.engine.rows import LearnerRow, StudyRow
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order
from tests.analysis.made_scores import ORDERS, TASKS, UNITS, as_scores, learner, random_scores, run
from tests.analysis.made_store import made_results

GROUPINGS = (TASKS, ((0, 2), (3, 6), (1, 5)), ((4, 6), (0, 3), (1, 2)))
"""Of seven classes: another one is left out in every repeat."""


def texts(table: Table, heading: str) -> list[str]:
    return [cell.text for cell in table.column(heading)]


def study(
    kind: str = "node", setting: str = "class-il", units: tuple[str, ...] = UNITS, default: Order = TASKS
) -> StudyRow:
    spec = json.dumps({"scenario": {"kind": kind, "setting": setting}})
    return StudyRow(1, "made", spec, (), units, default, ("micro_accuracy", "accuracy"))


def by_chance(
    runs: list[ScoredRun], learners: tuple[LearnerRow, ...], units: int = 6, seed: int = 0, metric: str = "accuracy"
) -> Scores:
    """Return runs with values at random, on tasks not yet learned as well, and numbers of queries at random."""
    generator = np.random.default_rng(seed)
    steps = max(each.steps for each in runs)
    test, validation = generator.random((2, len(runs), steps, units))
    asked = generator.integers(1, 50, size=(len(runs), 2, units))
    names = tuple(f"class {unit}" for unit in range(units))
    return Scores(learners, names, tuple(runs), test, validation, metric, asked)


def of_groupings(orders_each: int = 6, methods: tuple[str, ...] = ("bare",)) -> Scores:
    """Return runs of orders of other tasks in every repeat."""
    runs = [
        ScoredRun(number, repeat, 0, "task", order)
        for number in range(len(methods))
        for repeat, tasks in enumerate(GROUPINGS)
        for order in list(permutations(tasks))[:orders_each]
    ]
    return by_chance(runs, tuple(learner(number, method) for number, method in enumerate(methods)), units=7)


def test_intransigence_is_joint_less_ours_on_the_task_just_learned_in_the_same_run() -> None:
    learners = (learner(0), learner(1, "joint"), learner(2, backbone="gat"), learner(3, "joint", backbone="gat"))
    named = [ScoredRun(n, repeat, 0, "task", order) for n in range(4) for repeat in (0, 1) for order in ORDERS]
    scores = by_chance(named, learners)
    places = {each: place for place, each in enumerate(scores.runs)}
    for place, found in enumerate(runs(scores)["INT"]):
        own = scores.runs[place]
        if own.learner in (1, 3):
            assert np.isnan(found)
            continue
        joint = places[replace(own, learner=own.learner + 1)]
        apart = [
            np.mean([scores.test[joint, step, unit] - scores.test[place, step, unit] for unit in task])
            for step, task in enumerate(own.order)
        ]
        assert found == pytest.approx(np.mean(apart))


def test_intransigence_is_against_joint_at_the_same_point_of_a_sweep() -> None:
    wide, narrow = (("backbone.width", 64),), (("backbone.width", 8),)
    learners = (learner(0, point=wide), learner(1, "joint", point=narrow), learner(2, "joint", point=wide))
    scores = by_chance([ScoredRun(number, 0, 0, "task", ORDERS[0]) for number in range(3)], learners)
    against = scores.of_learner(2)
    alone = replace(scores.chosen(scores.learner != 1), learners=(learners[0], learners[2]))
    assert runs(scores)["INT"][0] == pytest.approx(runs(alone)["INT"][0])
    assert not runs(replace(scores.chosen(scores.learner != 2), learners=learners[:2]))["INT"].notna().any()
    assert len(against.runs) == 1


def test_without_joint_the_column_is_empty_and_a_note_says_how_to_fill_it() -> None:
    table = study_table(Findings(random_scores(), study=study()))
    assert texts(table, "INT") == ["–", "–"]
    assert any("add joint to the study's methods" in note for note in table.notes)
    with_joint = study_table(Findings(random_scores(methods=["bare", "joint"]), study=study()))
    assert texts(with_joint, "INT")[0] != "–"
    assert texts(with_joint, "INT")[1] == "–"
    assert not any("add joint" in note for note in with_joint.notes)


def test_graphs_have_ap_where_skeletons_have_aa_and_both_have_all_by_name() -> None:
    scores = random_scores(methods=["bare", "joint"], kinds=["task"])
    of_graphs = study_table(Findings(scores, study=study()))
    assert [column.heading for column in of_graphs.columns][3:7] == ["AP", "AF", "AF diagonal", "INT"]
    of_skeletons = study_table(Findings(scores, study=study("skeleton")))
    assert [column.heading for column in of_skeletons.columns][3:6] == ["AA", "AF", "AOPD"]
    assert texts(of_graphs, "AP") == texts(of_skeletons, "AA")
    named = study_table(Findings(scores), ["AP", "AF diagonal", "INT", "FWT"])
    found = runs(scores.ordinary(), "diagonal")
    bare = found[found["learner"] == 0]
    entry = entry_of(scores.ordinary().of_learner(0), bare["AF"].to_numpy())
    assert texts(named, "AF diagonal")[0] == f"{100 * entry.value:.1f} ± {100 * entry.spread:.1f}".replace("-", "−")
    assert texts(named, "FWT") == ["–", "–"]
    assert any(note.startswith("No FWT: it is of domain orders") for note in named.notes)


def test_forward_transfer_is_what_is_known_of_the_next_domain_less_what_was_known_untrained() -> None:
    orders = list(permutations(((0,), (1,), (2,), (3,))))
    named = [ScoredRun(0, repeat, 0, "domain", order) for repeat in (0, 1) for order in orders]
    untrained = np.random.default_rng(1).random((len(named), 4))
    scores = replace(by_chance(named, (learner(0),), units=4), unit="domain", untrained=untrained)
    for place, found in enumerate(runs(scores)["FWT"]):
        then = [unit for (unit,) in scores.runs[place].order]
        apart = [scores.test[place, step - 1, then[step]] - untrained[place, then[step]] for step in (1, 2, 3)]
        assert found == pytest.approx(np.mean(apart))
    table = study_table(Findings(scores, default_level(scores), study(setting="domain-il")))
    assert texts(table, "FWT") != ["–"]
    assert "In percent, at the level of domains." in table.notes


@pytest.mark.parametrize("level", ["task", "class"])
def test_micro_scores_weigh_units_by_their_queries_wherever_a_task_has_a_value(level: str) -> None:
    learners = (learner(0), learner(1, "joint"))
    named = [ScoredRun(number, 0, 0, "task", order) for number in (0, 1) for order in ORDERS]
    scores = by_chance(named, learners, metric="micro_accuracy")
    assert scores.asked is not None
    # Whole numbers of right answers, counted without the code under test.
    right = np.round(scores.test * scores.asked[:, None, 0])
    on_validation = np.round(scores.validation * scores.asked[:, None, 1])
    scores = replace(scores, test=right / scores.asked[:, None, 0], validation=on_validation / scores.asked[:, None, 1])

    def share(place: int, step: int, task: tuple[int, ...], part: int = 0) -> float:
        counted = (right, on_validation)[part][place, step]
        return sum(counted[unit] for unit in task) / sum(scores.asked[place, part, unit] for unit in task)

    found = runs(scores)
    for place, each in enumerate(scores.runs):
        assert found["AP"][place] == pytest.approx(np.mean([share(place, 2, task) for task in each.order]))
        assert found["validation_AA"][place] == pytest.approx(
            np.mean([share(place, 2, task, 1) for task in each.order])
        )
        if each.learner == 0:
            apart = [share(place + 6, at, task) - share(place, at, task) for at, task in enumerate(each.order)]
            assert found["INT"][place] == pytest.approx(np.mean(apart))
    (finals, _) = final_accuracies(scores, level)
    for row in range(6):
        expected = [[share(row, 2, task, part) for task in finals.tasks] for part in (0, 1)]
        np.testing.assert_allclose(finals.halves[:, row], expected)
        np.testing.assert_allclose(finals.values[row], expected[0])
    last = mean_accuracy_matrices(scores.of_learner(0)).query("step == 3 and position == 3")["accuracy"].item()
    assert last == pytest.approx(np.mean([share(row, 2, each.order[2]) for row, each in enumerate(scores.runs[:6])]))


def test_a_table_says_which_score_it_is_of_and_a_micro_one_needs_its_queries(tmp_path: Path) -> None:
    scores = by_chance([ScoredRun(0, 0, 0, "task", order) for order in ORDERS], (learner(0),))
    macro = study_table(Findings(scores, study=study()))
    assert "Score: accuracy, macro: a task's is the mean over its classes; --score gives micro_accuracy." in macro.notes
    micro = study_table(Findings(replace(scores, metric="micro_accuracy"), study=study()))
    assert any(note.startswith("Score: micro accuracy, micro: a task's is the share") for note in micro.notes)
    with pytest.raises(InputError, match="micro_accuracy: tasks weigh units by their queries"):
        replace(scores, metric="micro_accuracy", asked=None)
    kept = made_results(tmp_path, replace(scores, metric="micro_accuracy"), scenario={"kind": "node"})
    assert Results(kept.path, score="micro_accuracy").scores.is_micro
    assert list(kept.runs()["AP"]) == list(kept.runs()["AA"])


def test_orders_are_compared_inside_of_a_repeat_over_the_tasks_of_that_repeat() -> None:
    scores = of_groupings()
    for level in ("task", "class"):
        by_repeat = []
        for repeat, tasks in enumerate(GROUPINGS):
            units = tasks if level == "task" else tuple((unit,) for task in tasks for unit in task)
            ends = scores.test[scores.repeat == repeat, -1]
            values = np.array([[end[list(task)].mean() for task in units] for end in ends])
            by_repeat.append(values.max(axis=0) - values.min(axis=0))
        row = disparity(scores, level).iloc[0]
        assert row["AOPD"] == pytest.approx(np.mean([opd.mean() for opd in by_repeat]))
        assert row["AOPD_std"] == pytest.approx(np.std([opd.mean() for opd in by_repeat], ddof=1))
        assert row["MOPD"] == pytest.approx(np.mean([opd.max() for opd in by_repeat]))
        assert (row["orders"], row["planned"], row["repeats"], row["left_out"]) == (6, 6, 3, 0)
        assert row["possible"] == 6
        assert np.isnan(row["AOPD_mixed"])


def test_every_run_counts_and_what_needs_the_same_tasks_says_that_it_does(tmp_path: Path) -> None:
    scores = of_groupings(methods=("bare", "joint"))
    table = study_table(Findings(scores, study=study(units=scores.units)))
    assert texts(table, "orders") == ["6", "6"]
    assert texts(table, "repeats") == ["3", "3"]
    assert OWN_TASKS in table.notes
    every = [np.mean([scores.test[place, -1, list(task)].mean() for task in each.order])
             for place, each in enumerate(scores.runs) if each.learner == 0]  # fmt: skip
    of_repeats = np.reshape(every, (3, 6)).mean(axis=1)
    assert texts(table, "AP")[0] == f"{100 * of_repeats.mean():.1f} ± {100 * of_repeats.std(ddof=1):.1f}"
    assert "–" not in texts(table, "AOPD") + texts(table, "MOPD (cross)")
    asked = study_table(Findings(scores), ["AOPD mixed"])
    assert texts(asked, "AOPD mixed") == ["–", "–"]
    assert any("needs repeats that share their orders" in note for note in asked.notes)
    with pytest.raises(InputError, match="no order was learned in every repeat"):
        extreme_orders(scores)
    fate = accuracy_by_position(scores).set_index(["learner", "class", "position"])["accuracy"]
    ends = [
        np.mean([scores.test[place, -1, 6] for place, each in enumerate(scores.runs)
                 if (each.learner, each.repeat) == (0, repeat) and 6 in each.order[0]])
        for repeat in (1, 2)
    ]  # fmt: skip
    assert fate[0, 6, 1] == pytest.approx(np.mean(ends))
    results = made_results(tmp_path, scores, scenario={"kind": "node"})
    (orders,) = (fact.lines for fact in facts(results) if fact.name == "Orders")
    assert orders == ("6 task orders in each repeat, of its own",)


def test_one_order_in_every_repeat_has_performance_and_no_disparity() -> None:
    scores = of_groupings(orders_each=1, methods=("bare", "joint"))
    assert default_level(scores) == "task"
    table = study_table(Findings(scores, study=study(units=scores.units)))
    assert texts(table, "AOPD") == texts(table, "MOPD") == ["–", "–"]
    assert "One order in every repeat: no disparity." in table.notes
    assert all(cell != "–" for heading in ("AP", "AF", "AF diagonal") for cell in texts(table, heading))
    assert texts(table, "INT")[0] != "–"
    with pytest.raises(InputError, match="only one order was run"):
        accuracy_by_position(scores)


def test_a_repeat_half_done_is_counted_by_its_own_orders() -> None:
    scores = of_groupings()
    absent = next(each for each in scores.runs if each.repeat == 2)
    half = replace(scores.where(lambda each: each != absent), missing=(absent,))
    with pytest.raises(InputError, match="every repeat needs as many orders, found 6 in repeat 0 and 5 in repeat 2"):
        disparity(half)
    elsewhere = replace(scores.where(lambda each: each.repeat < 2), missing=(absent,))
    assert texts(study_table(Findings(elsewhere)), "orders") == ["6"]
    assert texts(study_table(Findings(elsewhere)), "repeats") == ["2 of 3 planned"]


def test_labels_domains_and_periods_are_called_so() -> None:
    assert unit_kind(study(setting="domain-il"), ["task"]) == "domain"
    assert unit_kind(study(setting="time-il"), ["task"]) == "period"
    assert unit_kind(replace(study("multilabel"), metrics=("average_precision", "roc_auc")), ["class"]) == "label"
    assert unit_kind(study(), ["task", "class"]) == "class"
    assert worded("A class among classes, classified", "label") == "A label among labels, classified"
    assert [order_words(kind, "label") for kind in ("task", "class")] == ["task", "label"]
    labels = replace(random_scores(), unit="label")
    table = study_table(Findings(labels, "class"))
    assert "In percent, at the level of labels." in table.notes
    assert table.title == "Order disparity of labels"
    assert not any("class" in note for each in (table, variance_table(labels)) for note in each.notes)


def test_figures_of_graphs_speak_of_average_performance_and_of_their_score(tmp_path: Path) -> None:
    scores = as_scores([run([10, 20, 30, 40, 50, 60], order) for order in ORDERS])
    (tmp_path / "node").mkdir()
    (tmp_path / "skeleton").mkdir()
    for kind, average, axis in (
        ("node", "AP", "average performance (AP)"),
        ("skeleton", "AA", "average accuracy (AA)"),
    ):
        results = made_results(tmp_path / kind, scores, scenario={"kind": kind, "setting": "class-il"})
        scatter, curve, ends = OrderScatter(), LearningCurve(), BestWorstOrders()
        assert scatter.draw(scatter.compute(results)).axes[0].get_xlabel() == axis
        assert curve.draw(curve.compute(results)).axes[0].get_ylabel() == axis
        texts_there = {text.get_text() for text in ends.draw(ends.compute(results)).axes[0].texts}
        assert {"AA", "AP"} & texts_there == {average}
        assert scatter_data(results.scores, results.words)["words"]["axis"] == axis
    labels = Wording("label", "AP", "average precision")
    assert OrderScatter().described(labels)[0] == "Performance and forgetting of every order"
    assert ClassFate().described(labels)[1].startswith("Final average precision of every label")
    assert labels.of("By final average accuracy; AA") == "By final average performance; AP"
    assert OF_SKELETONS.of("Accuracy of a class, AA") == "Accuracy of a class, AA"


def test_the_picture_of_a_table_without_disparity_says_why(tmp_path: Path) -> None:
    scores = as_scores([run([10, 20, 30, 40, 50, 60], ORDERS[0])])
    shown = DisparityTable().compute(made_results(tmp_path, scores, scenario={"kind": "node"})).shown
    assert shown.notes[1:] == ("One order: no disparity.",)


def test_a_report_of_domains_has_them_at_one_level(tmp_path: Path) -> None:
    orders = list(permutations(((0,), (1,), (2,))))
    scores = as_scores([run([10, 50, 90], order, "domain") for order in orders], ("DE", "EN", "FR"))
    results = made_results(tmp_path, scores, scenario={"kind": "node", "setting": "domain-il"})
    assert [table.title for table in report_tables(results)][1:3] == [
        "Order disparity of domains",
        "What about an order matters",
    ]


CORA = (130, 91, 144, 319, 149, 103, 64)


def cora(methods: tuple[str, ...] = ("bare", "joint"), metric: str = "micro_accuracy") -> Scores:
    scores = replace(of_groupings(1, methods), asked=None)
    asked = np.zeros((len(scores.runs), 2, 7), dtype=int)
    for place, each in enumerate(scores.runs):
        for unit in (unit for task in each.order for unit in task):
            asked[place, :, unit] = CORA[unit], 20
    return replace(scores, asked=asked, metric=metric)


def test_what_was_published_of_a_benchmark_stands_beside_ours() -> None:
    findings = Findings(
        cora(("bare", "joint", "replay")), study=study(units=tuple("abcdefg")), beside=Beside("cora-class")
    )
    table = study_table(findings)
    assert texts(table, "published AP") == ["54.1 ± 3.6", "–", "80.0 ± 2.0"]
    assert texts(table, "published AF") == ["56.5 ± 3.9", "–", "–"]
    assert texts(table, "published INT")[0] == "−6.4 ± 1.8"
    ours = float(texts(table, "AP")[0].split()[0])
    assert float(texts(table, "AP difference")[0].replace("−", "-")) == pytest.approx(ours - 54.1, abs=0.1)
    assert any("Its AF is by the diagonal" in note for note in table.notes)
    assert "Replay: nothing was published of it." in table.notes


@pytest.mark.parametrize(
    ("changes", "metric", "dataset", "reason"),
    [
        ({"kind": "skeleton"}, "micro_accuracy", "cora-class", "scenario.kind skeleton, published node"),
        ({}, "micro_accuracy", "cora-task", "scenario.setting class-il, published task-il"),
        ({}, "accuracy", "cora-class", "score accuracy, published micro_accuracy"),
        ({}, "micro_accuracy", "citeseer-class", "number of classes 7, published 6"),
        ({"default": ((0, 1, 2), (3, 4, 5))}, "micro_accuracy", "cora-class", "sizes of tasks 3, 3, published 2, 2, 2"),
    ],
)
def test_a_study_unlike_a_benchmark_is_refused_unless_asked_and_then_marked(
    changes: dict[str, object], metric: str, dataset: str, reason: str
) -> None:
    row = study(units=tuple("abcdefg"), **changes)
    with pytest.raises(InputError, match=f"unlike the published one.*{reason}"):
        study_table(Findings(cora(metric=metric), study=row, beside=Beside(dataset)))
    table = study_table(Findings(cora(metric=metric), study=row, beside=Beside(dataset, anyway=True)))
    assert {cell.mark for cell in table.column("AP difference")} == {"unlike"}


def test_another_split_than_the_published_one_is_seen_by_its_queries() -> None:
    scores = cora()
    assert scores.asked is not None
    other = replace(scores, asked=scores.asked + (scores.asked > 0))
    with pytest.raises(InputError, match="other test queries than those of cora"):
        study_table(Findings(other, study=study(units=tuple("abcdefg")), beside=Beside("cora-class")))


def test_the_published_table_has_every_benchmark_and_positive_forgetting_of_bare() -> None:
    table = published_performance()
    assert set(table["dataset"]) == set(BENCHMARKS)
    assert not table.duplicated(["dataset", "method"]).any()
    assert (table[table["method"] == "bare"]["AF"].dropna() > 0).all()
