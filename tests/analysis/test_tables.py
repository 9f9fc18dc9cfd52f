"""The table of a study: which columns it has, what they say, and why some are empty."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, permutations
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.analysis import Beside, Findings, disparity, published_disparity, runs
from skeleton_cgl.analysis.rendering import FORMATS, render
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.analysis.table import Table
from skeleton_cgl.analysis.tables import default_level, known_columns, performance_table, study_table, variance_table
from skeleton_cgl.engine.rows import ComponentRow, StudyRow
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order
from tests.analysis.made_scores import (
    CLASS_ORDER,
    ORDERS,
    UNEVEN,
    as_scores,
    learner,
    random_runs,
    random_scores,
    run,
    with_halves,
)


def texts(table: Table, heading: str) -> list[str]:
    return [cell.text for cell in table.column(heading)]


def marks(table: Table, heading: str) -> list[str]:
    return [cell.mark for cell in table.column(heading)]


def ending_with(finals: dict[str, list[int]]) -> Scores:
    """Return scores in which the first orders of a method end with so many percent of everything."""
    return as_scores(
        run([percent] * 6, order, method=method)
        for method, percents in finals.items()
        for percent, order in zip(percents, ORDERS, strict=False)
    )


def test_accuracy_and_forgetting_come_first_then_disparity_and_floors() -> None:
    headings = [column.heading for column in study_table(Findings(random_scores())).columns]
    assert headings == [
        *("method", "orders", "repeats", "AA", "AF", "AOPD", "AOPD (cross)", "MOPD", "MOPD (cross)"),
        *("R", "AOPD at R", "AOPD floor (seeds)", "MOPD at R", "MOPD floor (seeds)", "AOPD mixed"),
    ]
    others = [
        run([50] * 6, ORDERS[0], repeat=repeat, noise=noise, floor="both") for repeat in (0, 1) for noise in (1, 2)
    ]
    both = study_table(Findings(as_scores([*random_runs(methods=["bare"]), *others])))
    headings = [column.heading for column in both.columns]
    assert headings[headings.index("R") + 1 :][:3] == ["AOPD at R", "AOPD floor (seeds)", "AOPD floor (both)"]


def test_every_number_is_that_of_the_computation_in_percent() -> None:
    scores = random_scores()
    for level in ("task", "class"):
        table = study_table(Findings(scores, level))
        found = disparity(scores, level)
        for place, row in found.iterrows():
            for measure in ("AOPD", "MOPD"):
                for heading, field in ((measure, measure), (f"{measure} (cross)", f"{measure}_cross")):
                    cell = table.column(heading)[place]
                    shown = f"{100 * row[field]:.1f} ± {100 * row[f'{field}_std']:.1f}"
                    assert cell.text.removeprefix("≥ ") == shown
                    assert cell.text.startswith("≥") == (level == "class" and field == measure)
                    assert cell.numbers == (round(100 * row[field], 1), round(100 * row[f"{field}_std"], 1))
                assert texts(table, f"{measure} floor (seeds)")[place] == f"{100 * row[f'{measure}_floor']:.1f}"
                assert texts(table, f"{measure} at R")[place] == f"{100 * row[f'expected_{measure}_at_R']:.1f}"
            assert texts(table, "R")[place] == "3"
            assert texts(table, "orders")[place] == str(row["orders"])
    ordinary = runs(scores).query("noise == 0 and kind == 'task'")
    by_repeat = 100 * ordinary.groupby(["learner", "repeat"])[["AA", "AF"]].mean()
    table = study_table(Findings(scores))
    for measure in ("AA", "AF"):
        expected = by_repeat[measure].groupby("learner").agg(["mean", "std"])
        assert texts(table, measure) == [
            f"{round(mean, 1) + 0.0:.1f} ± {std:.1f}".replace("-", "−") for mean, std in expected.to_numpy()
        ]


def test_one_order_and_a_sweep_have_accuracies_and_say_why_they_have_no_disparity() -> None:
    table = study_table(Findings(as_scores([run([50] * 6, ORDERS[0], repeat=repeat) for repeat in (0, 1)])))
    assert (texts(table, "AA"), texts(table, "AOPD"), texts(table, "MOPD")) == (["50.0 ± 0.0"], ["–"], ["–"])
    assert "One order: no disparity." in table.notes
    rows = tuple(learner(number, point=(("backbone.width", width),)) for number, width in enumerate((8, 4)))
    swept = as_scores([run([10] * 6, ORDERS[0]), run([20] * 6, ORDERS[0], backbone="other")])
    table = study_table(Findings(replace(swept, learners=rows)))
    assert texts(table, "width") == ["8", "4"]
    assert texts(table, "AA") == ["10.0", "20.0"]
    assert [row["backbone.width"] for row in json.loads(render(table, "json"))["rows"]] == [8, 4]


def test_repeats_that_cannot_be_compared_leave_one_learner_empty_and_say_whose() -> None:
    uneven = random_scores(noise_runs=0, kinds=["task"]).where(
        lambda each: (each.learner, each.repeat, each.order) != (0, 1, ORDERS[5])
    )
    table = study_table(Findings(uneven))
    assert texts(table, "AOPD")[0] == "–"
    assert "±" in texts(table, "AOPD")[1]
    assert any(note.startswith("Bare: every repeat needs the same orders") for note in table.notes)


def test_the_lowest_and_highest_are_marked_as_they_look() -> None:
    table = study_table(Findings(ending_with({"bare": [0, 90], "ewc": [0, 80], "replay": [0, 10]})))
    assert marks(table, "AOPD") == ["highest", "", "lowest"]
    equal = study_table(Findings(ending_with({"bare": [0, 50], "ewc": [10, 60]})))
    assert marks(equal, "AOPD") == ["", ""]
    shared = study_table(Findings(ending_with({"bare": [0, 50], "ewc": [10, 60], "mas": [0, 70]})))
    assert marks(shared, "MOPD") == ["lowest", "lowest", "highest"]


def test_settings_are_marked_apart_and_backbones_named_if_there_are_several() -> None:
    rivals = [("stgcn", "bare", 10), ("stgcn", "ewc", 20), ("gcn", "bare", 90), ("gcn", "replay", 50)]
    table = study_table(
        Findings(
            as_scores(
                run([percent] * 6, order, method=method, backbone=backbone)
                for backbone, method, high in rivals
                for percent, order in zip((0, high), ORDERS, strict=False)
            )
        )
    )
    assert texts(table, "backbone") == ["ST-GCN", "ST-GCN", "GCN", "GCN"]
    assert marks(table, "AOPD") == ["lowest", "highest", "highest", "lowest"]


def test_learners_with_fewer_orders_are_not_compared() -> None:
    whole = ending_with({"bare": [0, 90, 0], "ewc": [0, 80, 0], "replay": [0, 10, 0]})
    assert "fewer" not in render(study_table(Findings(whole)))
    table = study_table(Findings(ending_with({"bare": [0, 90, 0], "ewc": [0, 80, 0], "replay": [0, 10]})))
    assert marks(table, "AOPD") == ["highest", "lowest", ""]
    assert "methods with fewer than others are not compared" in render(table)


def test_a_disparity_of_sampled_orders_is_at_least_so_much() -> None:
    two, all_six = (
        study_table(Findings(ending_with({"bare": percents}))) for percents in ([0, 90], [0, 90, 0, 0, 0, 0])
    )
    assert (texts(two, "AOPD"), texts(two, "MOPD"), texts(two, "AOPD (cross)")) == (["≥ 90.0"], ["≥ 90.0"], ["90.0"])
    assert texts(all_six, "AOPD") == ["90.0"]
    assert "at least this" in render(two)
    assert "at least" not in render(all_six)
    assert r"$\geq$ 90.0" in render(two, "latex")
    assert json.loads(render(two, "json"))["rows"][0]["AOPD"] == 90


def half_done(missing: Sequence[Order], finals: dict[str, list[int]]) -> Scores:
    """Return scores of which the first method lacks orders that are planned."""
    scores = ending_with(finals)
    return replace(scores, missing=tuple(replace(scores.runs[0], order=order) for order in missing))


def test_a_study_half_done_says_so_and_is_not_compared() -> None:
    finals = {"bare": [0, 90], "ewc": [0, 80], "replay": [0, 10]}
    table = study_table(Findings(half_done(ORDERS[2:], finals)))
    assert texts(table, "orders") == ["2 of 6 planned", "2", "2"]
    assert marks(table, "AOPD") == marks(table, "AOPD (cross)") == ["", "highest", "lowest"]
    assert any(note.startswith("Half done: not all planned orders are finished") for note in table.notes)
    rows = json.loads(render(table, "json"))["rows"]
    assert [(row["orders"], row["orders_planned"]) for row in rows] == [(2, 6), (2, 2), (2, 2)]
    # Orders of other tasks are planned, too, and will not be compared.
    assert texts(study_table(Findings(half_done([CLASS_ORDER], finals))), "orders") == ["2", "2", "2"]
    assert not any(note.startswith("Half done") for note in study_table(Findings(ending_with(finals))).notes)


def test_repeats_that_are_planned_are_counted() -> None:
    scores = random_scores(methods=["bare"])
    planned = replace(scores, missing=(replace(scores.runs[0], repeat=2),))
    table = study_table(Findings(planned))
    assert (texts(table, "orders"), texts(table, "repeats")) == (["6"], ["2 of 3 planned"])


def test_the_number_of_queries_is_told_per_task_or_class() -> None:
    scores = random_scores(repeats=1)
    asked = np.tile([[[10, 20, 15, 15, 12, 18], [9, 9, 9, 9, 9, 9]]], (len(scores.runs), 1, 1))
    asked[scores.noise > 0] = 999
    told = {
        level: study_table(Findings(replace(scores, asked=asked), level), ["AOPD"]).notes for level in ("task", "class")
    }
    assert "Queries per task: 30 test, 18 validation." in told["task"]
    assert "Queries per class: 10–20 test, 9 validation." in told["class"]
    assert not any(note.startswith("Queries") for note in study_table(Findings(scores)).notes)


def test_it_is_told_why_a_disparity_is_not_cross_evaluated() -> None:
    scores = ending_with({"bare": [0, 90], "ewc": [0, 80]})
    nothing, some = scores.finals.copy(), scores.finals.copy()
    nothing[:] = some[:, 5] = np.nan
    none = study_table(Findings(with_halves(scores, scores.finals, nothing)))
    assert texts(none, "AOPD (cross)") == texts(none, "MOPD (cross)") == ["–", "–"]
    assert "Not cross-evaluated: no task has both test and validation queries." in none.notes
    most = study_table(Findings(with_halves(scores, scores.finals, some), "class"))
    assert texts(most, "AOPD (cross)") == ["90.0", "80.0"]
    assert "Cross-evaluated without 1 of 6, which lack test or validation queries." in most.notes


def test_floors_are_explained_with_what_was_drawn_anew_and_over_how_many_orders() -> None:
    runs = [run([10 * place] * 6, order) for place, order in enumerate(ORDERS)]
    runs += [run([50] * 6, order, noise=1, floor="splits") for order in ORDERS[:4]]
    (note,) = (note for note in study_table(Findings(as_scores(runs))).notes if note.startswith("Floor"))
    assert "R runs of one order, mean over 4 orders" in note
    assert "drawn anew (splits: other training, validation and test data)" in note


def test_orders_that_cannot_be_compared_are_left_out_with_a_word() -> None:
    whole = [run([percent] * 6, order) for percent, order in zip((10, 40), ORDERS, strict=False)]
    shorter = run([100] * 6, ((0, 1), (2, 3)), "class")
    for level, what in (("task", "tasks"), ("class", "classes")):
        table = study_table(Findings(as_scores([*whole, shorter]), level))
        assert (texts(table, "orders"), texts(table, "AA"), texts(table, "AOPD")) == (["2"], ["25.0"], ["≥ 30.0"])
        assert f"Left out: 1 order of other {what} than most." in table.notes


def test_the_level_is_that_at_which_orders_can_be_compared() -> None:
    assert default_level(random_scores()) == "task"
    assert default_level(random_scores(kinds=["class"], noise_runs=0)) == "class"
    assert default_level(as_scores([run([0] * 6, ORDERS[0])])) == "task"
    with pytest.raises(InputError, match="unknown level 'clas'; did you mean 'class'"):
        Findings(random_scores(), "clas")


@pytest.mark.parametrize("form", FORMATS)
def test_uneven_tasks_become_a_table_in_every_form(form: str) -> None:
    orders = [UNEVEN, UNEVEN[::-1], (*UNEVEN[1:], UNEVEN[0])]
    scores = as_scores([run([10 * place] * 6, order) for place, order in enumerate(orders)])
    for level in ("task", "class"):
        table = render(study_table(Findings(scores, level)), form)
        assert table.endswith("\n")
        assert "nan" not in table.lower()
        assert "20.0" in table


def test_columns_are_chosen_by_heading_or_by_metric() -> None:
    findings = Findings(random_scores())
    table = study_table(findings, ["AOPD", "AA", "counts"])
    assert [column.heading for column in table.columns] == ["method", "AOPD", "AA", "orders", "repeats"]
    assert texts(study_table(findings, ["AOPD floor (both)"]), "AOPD floor (both)") == ["–", "–"]
    with pytest.raises(InputError, match="unknown column 'AOPDD'; did you mean 'AOPD'"):
        study_table(findings, ["AOPDD"])
    with pytest.raises(InputError, match="say of which data set, with --published"):
        study_table(findings, ["published AOPD"])
    assert {"AA", "AF", "AOPD", "MOPD floor (splits)", "AOPD mixed", "AOPD difference"} <= known_columns().keys()


OWN = """
import numpy as np
from skeleton_cgl.analysis import Entry, Metric, Scores, entry_of

class Worst(Metric):
    heading = "worst"
    note = "Worst: of any class."

    def measure(self, scores: Scores) -> Entry:
        if len(scores.runs) < 3:
            return Entry(reason="fewer than three runs")
        return entry_of(scores, np.nanmin(scores.finals, axis=1))
"""


def test_a_metric_in_a_file_is_a_column(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    scores = ending_with({"bare": [10, 40, 40], "ewc": [0, 50]})
    table = study_table(Findings(scores), ["AA", str(tmp_path / "mine.py")])
    assert texts(table, "worst") == ["30.0", "–"]
    assert {"Worst: of any class.", "EWC: fewer than three runs."} <= set(table.notes)
    further = study_table(Findings(scores), further=[str(tmp_path / "mine.py")])
    assert further.columns[-1].heading == "worst"


def test_the_performance_table_is_over_ordinary_runs() -> None:
    ordinary = [run([final] * 6, order) for final, order in zip((10, 50), ORDERS, strict=False)]
    table = performance_table(as_scores([run([99] * 6, ORDERS[0], noise=1), *ordinary]))
    found = {column.heading: cell.text for column, cell in zip(table.columns, table.rows[0], strict=True)}
    assert found | {"AA": "30.0", "AA lowest": "10.0", "AA highest": "50.0", "method": "Bare", "orders": "2"} == found


def test_the_variance_table_names_learners_and_tells_what_it_lacks() -> None:
    both = as_scores([*random_runs(noise_runs=0, backbone="b"), *random_runs(noise_runs=0, backbone="a")])
    named = zip(texts(variance_table(both), "backbone"), texts(variance_table(both), "method"), strict=True)
    assert list(named) == [("b", "Bare"), ("b", "Replay"), ("a", "Bare"), ("a", "Replay")]
    table = variance_table(as_scores([run([50] * 6, ORDERS[0])]))
    assert (table.rows, table.notes) == ((), ("Not computed: too few orders, or all end alike.",))


GCN = ComponentRow("gcn")
TEN = tuple((2 * task, 2 * task + 1) for task in range(5))
CLASSES = ("pick up with one hand", *(f"class {number}" for number in range(1, 10)))


def published_study(**fields: object) -> StudyRow:
    spec = {"scenario": {"data": "data/ucla.h5"}, "training": {"epochs": 100}, **fields}
    return StudyRow(1, "ours", json.dumps(spec), (), CLASSES, TEN)


def ours(*methods: ComponentRow, backbone: ComponentRow = GCN, orders: int = 120) -> Scores:
    """Return all task orders of five tasks, of which the first is learned to the half and the others not at all."""
    chosen = list(islice(permutations(TEN), orders))
    made = [
        run([50 * (place == 0)] * 10, order, method=str(number))
        for number in range(len(methods))
        for place, order in enumerate(chosen)
    ]
    rows = tuple(replace(learner(number), backbone=backbone, method=method) for number, method in enumerate(methods))
    return replace(as_scores(made, CLASSES), learners=rows)


EWC, REPLAY = ComponentRow("ewc", parameters=(("strength", 1e6),)), ComponentRow("replay")


def test_published_values_stand_beside_ours_with_the_difference() -> None:
    table = study_table(Findings(ours(EWC, ComponentRow("joint")), "task", published_study(), Beside("ucla")))
    assert texts(table, "published AOPD") == ["93.9 ± 0.6", "–"]
    assert texts(table, "AOPD difference") == ["−43.9", "–"]
    assert texts(table, "MOPD difference") == ["−50.0", "–"]
    notes = " ".join(table.notes)
    assert "over 120 orders, 5 repeats, Wei" in notes
    assert "Published over 5 repeats, ours over 1." in notes


def test_what_was_published_is_matched_by_what_a_component_is_not_by_its_label() -> None:
    disguised = ours(ComponentRow("bare", label="ewc"), backbone=ComponentRow("models/tcn.py", label="gcn"))
    with pytest.raises(InputError, match="nothing was published of these backbones with these methods"):
        study_table(Findings(disguised, "task", published_study(), Beside("ucla")))
    table = study_table(Findings(disguised, "task", published_study(), Beside("ucla", anyway=True)))
    assert (texts(table, "method"), texts(table, "published AOPD")) == (["ewc"], ["–"])
    assert "Nothing was published of it." in table.notes
    labelled = study_table(Findings(ours(replace(EWC, label="bare")), "task", published_study(), Beside("ucla")))
    assert texts(labelled, "published AOPD") == ["93.9 ± 0.6"]


@pytest.mark.parametrize(
    ("scores", "study", "dataset", "reason"),
    [
        (ours(EWC, orders=30), published_study(), "ucla", "30 orders, published 120"),
        (ours(EWC), published_study(training={"epochs": 10}), "ucla", "training.epochs 10, published 100"),
        (ours(EWC), published_study(training={"batch_size": 32}), "ucla", "training.batch_size 32, published None"),
        (ours(EWC), published_study(scenario={"data": "x", "setting": "task-il"}), "ucla", "setting task-il"),
        (
            ours(EWC),
            published_study(scenario={"data": "x", "split": {"by": "performance"}}),
            *("ucla", "scenario.split.by performance, published class"),
        ),
        (ours(EWC), published_study(scenario={}), "ucla", "other data than ucla"),
        (ours(EWC), published_study(), "ntu", "other data than ntu"),
        (
            ours(ComponentRow("ewc", parameters=(("strength", 1),))),
            published_study(),
            "ucla",
            "strength 1, published 1",
        ),
        (ours(ComponentRow("lwf")), published_study(), "ntu", "lwf.strength 1, published 0.1"),
        (ours(ComponentRow("replay", parameters=(("count", 9),))), published_study(), "ucla", "count 9, not published"),
        (
            ours(EWC, backbone=ComponentRow("gcn", parameters=(("width", 8),))),
            published_study(),
            *("ucla", "backbone gcn.width 8, published 64"),
        ),
    ],
)
def test_unlike_things_are_not_set_against_each_other_unless_asked_and_then_marked(
    scores: Scores, study: StudyRow, dataset: str, reason: str
) -> None:
    with pytest.raises(InputError, match=f"unlike the published one.*{reason}.*--anyway"):
        study_table(Findings(scores, "task", study, Beside(dataset)))
    table = study_table(Findings(scores, "task", study, Beside(dataset, anyway=True)))
    assert marks(table, "AOPD difference") == marks(table, "published MOPD") == ["unlike"]
    assert reason in " ".join(table.notes)
    assert "‡" in render(table)


def test_a_learner_that_is_unlike_is_left_empty_beside_those_that_are_alike() -> None:
    other = ComponentRow("replay", parameters=(("fraction", 0.1),))
    table = study_table(Findings(ours(EWC, other), "task", published_study(), Beside("ucla")))
    assert texts(table, "AOPD difference") == ["−43.9", "–"]
    assert "Replay: not set beside the published study: method replay.fraction 0.1, published 0.2." in table.notes


@pytest.mark.parametrize("anyway", [False, True])
def test_what_is_half_done_is_not_set_beside_what_was_published(anyway: bool) -> None:
    scores = ours(EWC, REPLAY, orders=121)
    absent = replace(scores.runs[0], order=tuple(reversed(TEN[1:])) + TEN[:1])
    fewer = scores.where(lambda each: each.learner == 1 or each.order != absent.order)
    half = replace(fewer, missing=(absent,))
    table = study_table(Findings(half, "task", published_study(), Beside("ucla", anyway)))
    assert texts(table, "orders") == ["119 of 120 planned", "120"]
    assert texts(table, "AOPD difference") == ["–", "−8.2"]
    assert texts(table, "published AOPD") == ["–", "58.2 ± 7.5"]
    assert "EWC: not set beside the published study: not all planned orders are finished." in table.notes
    alone = study_table(Findings(half.of_learner(0), "task", published_study(), Beside("ucla", anyway)))
    assert texts(alone, "AOPD difference") == ["–"]


def test_a_full_batch_is_as_published_and_a_point_of_a_sweep_is_not() -> None:
    full = published_study(training={"epochs": 100, "batch_size": 10000})
    assert texts(study_table(Findings(ours(REPLAY), "task", full, Beside("ucla"))), "published AOPD") == ["58.2 ± 7.5"]
    swept = replace(ours(REPLAY), learners=(replace(learner(0, "replay"), point=(("training.epochs", 5),)),))
    with pytest.raises(InputError, match=r"training\.epochs 5, published 100"):
        study_table(Findings(swept, "task", full, Beside("ucla")))


def test_the_published_table_is_complete_and_in_percent() -> None:
    table = published_disparity()
    assert len(table) == 28
    assert not table.duplicated(["dataset", "level", "method"]).any()
    assert table.groupby(["dataset", "level"])["method"].agg(set).map(len).eq(7).all()
    values = table[["AOPD", "AOPD_std", "MOPD", "MOPD_std"]]
    assert values.stack().between(0, 100).all()
    assert (table["AOPD"] <= table["MOPD"] + 1e-12).all()
    replay = table.query("dataset == 'ntu' and level == 'class' and method == 'replay'").iloc[0]
    assert replay["AOPD":"MOPD_std"].tolist() == pytest.approx([50.52, 1.16, 71.82, 2.27])
    table["AOPD"] = 0.0
    assert (published_disparity()["AOPD"] > 0).all()


def test_a_class_order_and_a_task_order_that_are_the_same_count_once() -> None:
    twice = [run([10] * 6, ORDERS[0], kind) for kind in ("task", "class")]
    table = study_table(Findings(as_scores([*twice, run([40] * 6, CLASS_ORDER, "class")]), "class"))
    assert (texts(table, "orders"), texts(table, "AA")) == (["2"], ["25.0"])
