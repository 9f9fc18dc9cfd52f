"""Runs of streams: what is said of them, held against computations by hand, and what figures show of them."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.collections import PolyCollection

from skeleton_cgl.analysis import Findings, runs
from skeleton_cgl.analysis.curves import accuracy_by_step
from skeleton_cgl.analysis.fate import extreme_orders
from skeleton_cgl.analysis.figure import study_names
from skeleton_cgl.analysis.figures.learning_curve import LearningCurve
from skeleton_cgl.analysis.figures.order_scatter import OrderScatter
from skeleton_cgl.analysis.figures.stream import StreamOverTime
from skeleton_cgl.analysis.figures.stream_orders import StreamOrders
from skeleton_cgl.analysis.figures.stream_sweep import StreamSweep
from skeleton_cgl.analysis.performance import STREAMED
from skeleton_cgl.analysis.report import report_figures, report_page, report_tables, scatter_data
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.scores import ScoredRun, Scores, joined
from skeleton_cgl.analysis.streams import examined_at, mixture, overlaps
from skeleton_cgl.analysis.table import Table
from skeleton_cgl.analysis.tables import study_table
from skeleton_cgl.analysis.words import unit_kind, wording
from skeleton_cgl.engine.exchange import export, import_export
from skeleton_cgl.engine.record import Made, Record
from skeleton_cgl.engine.rows import RunRow, StudyRow, Values
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import FIGURES
from skeleton_cgl.scenarios.lessons import Order, describe
from skeleton_cgl.scenarios.measures import SIZE, Measure
from skeleton_cgl.scenarios.settings import make_scenario
from tests.analysis.made_scores import ORDERS, TASKS, UNITS, learner, random_scores
from tests.analysis.made_store import made_results
from tests.conftest import Run

STREAM = {
    "kind": "stream",
    "of": {"kind": "node", "data": "graphs/cora.npz"},
    "transition": {"name": "gaussian", "sigma": 2},
}
SIGMAS: tuple[Values, ...] = tuple((("scenario.transition.sigma", sigma),) for sigma in (1, 2, 4))
KINDS: tuple[Values, ...] = tuple(
    (("scenario.transition", each),) for each in ("hard", {"name": "global", "share": 0.3})
)
OF_STREAMS = ("stream", "stream-orders", "stream-sweep")


def streamed(
    orders: Sequence[Order] = ORDERS[:3],
    methods: Sequence[str] = ("bare", "er"),
    repeats: int = 2,
    examinations: int = 5,
    points: Sequence[Values] = ((),),
) -> Scores:
    """Return runs of streams with values at random, other numbers of queries and samples for every unit and repeat."""
    generator = np.random.default_rng(0)
    rows = [(method, point) for point in points for method in methods]
    learners = tuple(learner(number, method, point=point) for number, (method, point) in enumerate(rows))
    named = tuple(
        ScoredRun(number, repeat, 0, "task", order, examinations)
        for number in range(len(rows))
        for repeat in range(repeats)
        for order in orders
    )
    test, validation = generator.random((2, len(named), examinations, 6))
    asked, trained = generator.integers(1, 50, size=(repeats, 2, 6)), generator.integers(20, 60, size=(repeats, 6))
    of_repeat = [run.repeat for run in named]
    return Scores(learners, UNITS, named, test, validation, asked=asked[of_repeat], trained=trained[of_repeat])


def study(**scenario: object) -> StudyRow:
    return StudyRow(1, "made", json.dumps({"scenario": {**STREAM, **scenario}}), (), UNITS, TASKS)


def headings(table: Table) -> list[str]:
    return [column.heading for column in table.columns]


def texts(table: Table, heading: str) -> list[str]:
    return [cell.text for cell in table.column(heading)]


def overlap_by_hand(order: Order, trained: np.ndarray, sigma: float, size: int = 10) -> float:
    """Return the share of batches in which no task has 0.9, from the definition, a sum at a time."""
    own = [math.ceil(sum(int(trained[unit]) for unit in task) / size) for task in order]
    centres = [sum(own[:place]) + own[place] / 2 for place in range(len(own))]
    mixed = 0
    for batch in range(sum(own)):
        likely = [math.exp(-((batch - centre) ** 2) / (2 * sigma**2)) for centre in centres]
        mixed += max(likely) / sum(likely) < 0.9
    return mixed / sum(own)


def mean_and_deviation(scores: Scores, number: int, values: Sequence[float]) -> str:
    """Return a cell: mean over the orders of a repeat, then mean and deviation over repeats."""
    by_repeat = [
        np.mean([value for each, value in zip(scores.runs, values, strict=True)
                 if (each.learner, each.repeat) == (number, repeat)])
        for repeat in (0, 1)
    ]  # fmt: skip
    return f"{100 * np.mean(by_repeat):.1f} ± {100 * np.std(by_repeat, ddof=1):.1f}"


def test_what_is_said_of_a_stream_is_as_defined() -> None:
    scores = streamed()
    found = runs(scores)
    assert scores.asked is not None
    for place, each in enumerate(scores.runs):
        tasks = [[np.mean(scores.test[place, s, list(task)]) for task in each.order] for s in range(5)]
        assert found["A_AUC"][place] == pytest.approx(np.mean([np.mean(row) for row in tasks]))
        lost = [max(tasks[s][j] for s in range(5)) - tasks[4][j] for j in range(3)]
        assert found["AF_s"][place] == pytest.approx(np.mean(lost))
        asked = scores.asked[place, 0]
        right = [sum(scores.test[place, s, unit] * asked[unit] for unit in range(6)) for s in range(5)]
        assert found["A_AUC_pooled"][place] == pytest.approx(np.mean(right) / asked.sum())
    np.testing.assert_allclose(runs(scores, sign="cglb")["AF_s"], -found["AF_s"])
    assert (found["AF_s"] >= 0).all()
    assert runs(random_scores())[STREAMED].isna().all(axis=None)


def test_units_that_an_order_leaves_out_are_not_pooled() -> None:
    scores = streamed(orders=[TASKS[:2]])
    assert scores.asked is not None
    asked = scores.asked[0, 0, :4]
    shares = scores.test[0, :, :4] @ asked / asked.sum()
    assert runs(scores)["A_AUC_pooled"][0] == pytest.approx(shares.mean())


def test_pooled_accuracy_is_known_where_it_follows_from_that_of_units() -> None:
    scores = streamed()
    macro, micro = runs(scores), runs(replace(scores, metric="micro_accuracy"))
    np.testing.assert_allclose(macro["A_AUC_pooled"], micro["A_AUC_pooled"])
    assert not np.allclose(macro["A_AUC"], micro["A_AUC"])
    domains = replace(scores, unit="domain")
    assert runs(domains)["A_AUC_pooled"].isna().all(), "the accuracy of a domain is the mean over its classes"
    assert runs(replace(domains, metric="micro_accuracy"))["A_AUC_pooled"].notna().all()
    unknown = (replace(scores, metric="roc_auc"), replace(scores, asked=None))
    for each in unknown:
        assert runs(each)["A_AUC_pooled"].isna().all()
        assert "A_AUC pooled" not in headings(study_table(Findings(each, study=study())))
    table = study_table(Findings(unknown[0], study=study()), ["A_AUC pooled"])
    assert any("does not follow from the roc_auc of every class" in note for note in table.notes)


def test_a_table_of_streams_has_their_columns_over_orders_and_repeats() -> None:
    scores = streamed()
    assert scores.trained is not None
    table = study_table(Findings(scores, study=study()))
    assert headings(table)[1:9] == ["orders", "repeats", "AP", "AF", "A_AUC", "A_AUC pooled", "AF_s", "O"]
    assert not {"AF diagonal", "INT", "FWT"} & set(headings(table))
    found = runs(scores)
    for heading, field in (("A_AUC", "A_AUC"), ("A_AUC pooled", "A_AUC_pooled"), ("AF_s", "AF_s")):
        assert texts(table, heading) == [mean_and_deviation(scores, number, list(found[field])) for number in (0, 1)]
    mixed = [overlap_by_hand(each.order, scores.trained[place], 2) for place, each in enumerate(scores.runs)]
    assert 0 < min(mixed) < max(mixed) < 1
    np.testing.assert_allclose(overlaps(scores, study()), mixed)
    assert texts(table, "O") == [mean_and_deviation(scores, number, mixed) for number in (0, 1)]
    assert any("DRIFT's tables print its negative" in note for note in table.notes)
    of_skeletons = study_table(Findings(scores, study=study(of={"kind": "skeleton"})))
    assert headings(of_skeletons)[3:9] == ["AA", "AF", "A_AUC", "A_AUC pooled", "AF_s", "O"]


def test_other_tables_have_none_of_it_unless_asked_and_then_say_why() -> None:
    ordinary = Findings(random_scores(), study=study(kind="node"))
    assert not {"A_AUC", "A_AUC pooled", "AF_s", "O"} & set(headings(study_table(ordinary)))
    asked = study_table(ordinary, ["A_AUC", "O"])
    assert texts(asked, "A_AUC") == texts(asked, "O") == ["–", "–"]
    assert "No A_AUC, AF_s and O: they are of streams." in asked.notes
    unasked = study_table(Findings(streamed(methods=("bare", "joint")), study=study()), ["INT"])
    assert texts(unasked, "INT") == ["–", "–"]
    assert "No INT: a stream is not examined after each of its tasks." in unasked.notes


def test_overlap_goes_by_the_point_of_the_sweep_and_by_what_is_left_unsaid() -> None:
    scores = streamed(methods=("bare",), repeats=1, points=(*SIGMAS, *KINDS))
    assert scores.trained is not None
    found = overlaps(scores, study()).reshape(5, 3)
    for row, sigma in zip(found, (1, 2, 4), strict=False):
        wanted = [overlap_by_hand(order, scores.trained[0], sigma) for order in ORDERS[:3]]
        np.testing.assert_allclose(row, wanted)
    assert (found[3] == 0).all(), "hard"
    plain = streamed(methods=("bare",), repeats=1)
    assert plain.trained is not None
    unsaid = replace(study(), spec=json.dumps({"scenario": {"kind": "stream", "of": STREAM["of"]}}))
    assert overlaps(plain, unsaid)[0] == overlap_by_hand(ORDERS[0], plain.trained[0], 20)
    assert overlaps(plain, study(batch=20))[0] == overlap_by_hand(ORDERS[0], plain.trained[0], 2, 20)
    assert np.isnan(overlaps(replace(plain, trained=None), study())).all()


def test_a_stream_examined_as_often_as_it_has_tasks_is_one(tmp_path: Path) -> None:
    scores = streamed(examinations=3)
    results = made_results(tmp_path, scores, scenario=STREAM)
    assert {each.examinations for each in results.scores.runs} == {3}
    np.testing.assert_array_equal(results.scores.trained, scores.trained)
    np.testing.assert_allclose(results.runs()["A_AUC"], 100 * runs(scores)["A_AUC"])
    table = study_table(Findings(results.scores, study=results.study))
    assert "A_AUC" in headings(table)
    assert "AF diagonal" not in headings(table)
    (tmp_path / "own").mkdir()
    own = made_results(tmp_path / "own", scores, scenario={"kind": "own.py"})
    assert {each.examinations for each in own.scores.runs} == {None}, "nothing tells them from tasks"
    longer = made_results(tmp_path / "own", streamed(examinations=4), "longer", scenario={"kind": "own.py"})
    assert {each.examinations for each in longer.scores.runs} == {4}


def test_orders_that_share_more_of_a_stream_than_tasks_are_exported_and_taken_over(tmp_path: Path) -> None:
    """Two orders whose first task is so long that two of three examinations fall into it."""
    before, after = ((0, 1), (2, 3), (4, 5)), ((0, 1), (4, 5), (2, 3))
    keys = [letter * 32 for letter in "abcd"]
    planned = [
        RunRow(0, "task", 0, 0, before, (*keys[:2], keys[2])),
        RunRow(0, "task", 0, 0, after, (*keys[:2], keys[3])),
    ]
    values = np.random.default_rng(0).random((4, 6))
    for kind in ("stream", "own.py"):
        with Store(tmp_path / f"{kind}.db") as store:
            store.add_study(study(kind=kind), [learner(0)], planned)
            for key, own in zip(keys, values, strict=True):
                measures = [Measure(part, "accuracy", own, np.full(6, 10)) for part in ("test", "validation")]
                store.add([("stage", Record(key, tuple(measures), Made(1.0, "here", (), 0)))])
            export(store, tmp_path / f"{kind}.csv.gz")
    with Store(tmp_path / "taken.db") as store:
        assert import_export(tmp_path / "stream.csv.gz", store) == 4
        with pytest.raises(InputError, match="is that of another stage"):
            import_export(tmp_path / "own.py.csv.gz", store)
    assert [each.examinations for each in Results(tmp_path / "taken.db").scores.runs] == [3, 3]


def test_a_mixture_told_by_records_is_that_of_the_scenario() -> None:
    """What analysis makes of the study file and the numbers in records, against the scenario itself."""
    of = {"kind": "node", "data": "synthetic"}
    for transition in ("hard", {"name": "gaussian", "sigma": 3}, {"name": "global", "share": 0.2}):
        for asked in ({"every": 7}, {"examinations": 4}, {}):
            fields = {"kind": "stream", "of": of, "transition": transition, "batch": 8, **asked}
            scenario = make_scenario(fields, 0)
            order = scenario.default[::-1]
            lessons = scenario.lessons(order)
            answers = torch.zeros(len(scenario.queries(lessons).ids), len(scenario.outputs))
            sizes = next(score for score in scenario.score(answers, lessons) if score.metric == SIZE)
            values = np.zeros((1, len(lessons), len(scenario.units)))
            run = ScoredRun(0, 0, 0, "task", order, len(lessons))
            units = tuple(unit.name for unit in scenario.units)
            scores = Scores((learner(0),), units, (run,), values, values, trained=sizes.asked[None])
            row = StudyRow(1, "made", json.dumps({"scenario": fields}), (), units, scenario.default)
            np.testing.assert_array_equal(mixture(scores, row, 0), scenario.mixture(order))
            assert examined_at(scores, row, 0).tolist() == np.cumsum([len(each.batches) for each in lessons]).tolist()


def test_a_learned_stream_of_three_tasks_examined_three_times_is_one(run: Run, tmp_path: Path) -> None:
    """The first task of two orders is so long that two of three examinations fall into it."""
    of = {"kind": "node", "data": "synthetic", "tasks": [list(range(8)), [8], [9]]}
    study = {
        "scenario": {"kind": "stream", "of": of, "transition": "hard", "examinations": 3},
        "backbone": {"name": "gcn", "width": 4, "depth": 1},
        "methods": ["bare"],
        "orders": {"tasks": "all"},
    }
    file = tmp_path / "three.yaml"
    file.write_text(json.dumps(study))
    assert run("run", file, "--store", tmp_path / "x.db")[0] == 0
    assert run("export", tmp_path / "x.db", "--out", tmp_path / "x.csv.gz")[0] == 0
    assert run("import", tmp_path / "x.csv.gz", "--store", tmp_path / "y.db")[0] == 0
    tables = [json.loads(run("table", tmp_path / store, "--format", "json")[1])["rows"] for store in ("x.db", "y.db")]
    assert tables[0] == tables[1]
    assert {"A_AUC", "AF_s", "O"} <= set(tables[0][0])
    assert {(len(each.order), each.examinations) for each in Results(tmp_path / "y.db").scores.runs} == {(3, 3)}


def test_records_of_a_stream_that_were_not_asked_the_same_are_not_taken_over(tmp_path: Path) -> None:
    """All queries are asked at every examination, whatever has been learned."""
    keys = tuple(letter * 32 for letter in "abc")
    with Store(tmp_path / "x.db") as store:
        store.add_study(study(), [learner(0)], [RunRow(0, "task", 0, 0, TASKS, keys)])
        for key, number in zip(keys, (10, 10, 11), strict=True):
            measures = [
                Measure(part, "accuracy", np.full(6, 0.5), np.full(6, number)) for part in ("test", "validation")
            ]
            store.add([("stage", Record(key, tuple(measures), Made(1.0, "here", (), 0)))])
        export(store, tmp_path / "x.csv.gz")
    with Store(tmp_path / "y.db") as store, pytest.raises(InputError, match="not asked the same"):
        import_export(tmp_path / "x.csv.gz", store)


def test_scores_of_streams_are_joined_with_what_they_tell_of_samples() -> None:
    scores = streamed()
    halves = [scores.where(lambda run, repeat=repeat: run.repeat == repeat) for repeat in (0, 1)]  # type: ignore[misc]
    both = joined(halves)
    assert both.trained is not None
    np.testing.assert_allclose(np.sort(overlaps(both, study())), np.sort(overlaps(scores, study())))
    with pytest.raises(InputError, match=r"trained: expected \(runs, units\)"):
        replace(scores, trained=np.ones((1, 6), dtype=int))


def test_what_a_stream_is_of_decides_the_words(tmp_path: Path) -> None:
    assert wording(study(), "class", "accuracy").average == "AP"
    assert wording(study(of={"kind": "skeleton"}), "class", "accuracy").average == "AA"
    assert wording(study(of={"data": "ucla.h5"}), "class", "accuracy").average == "AA", "skeletons are the default"
    assert unit_kind(study(of={"kind": "node", "setting": "domain-il"}), ["task"]) == "domain"
    assert unit_kind(study(), ["task"]) == "class"
    one = made_results(tmp_path, streamed(), "one", scenario=STREAM)
    other = made_results(
        tmp_path, streamed(), "other", scenario={**STREAM, "of": {"kind": "node", "dataset": "citeseer"}}
    )
    assert study_names([one, other]) == ["cora", "citeseer"]


def test_a_stream_is_drawn_with_its_mixture_and_the_mean_over_tasks(tmp_path: Path) -> None:
    scores = streamed()
    results = made_results(tmp_path, scores, scenario=STREAM)
    figure = StreamOverTime()
    (panel,) = figure.compute(results)
    assert panel.tasks == ("walk, sit", "stand, throw", "carry, drop"), "the default order"
    assert scores.trained is not None
    own = [math.ceil(scores.trained[0, [0, 1]].sum() / 10), math.ceil(scores.trained[0, [2, 3]].sum() / 10)]
    own.append(math.ceil(scores.trained[0, [4, 5]].sum() / 10))
    assert panel.mixture.shape == (sum(own), 3)
    np.testing.assert_allclose(panel.mixture.sum(axis=1), 1)
    assert panel.examined.tolist() == [round(place * sum(own) / 5) for place in range(1, 6)]
    for course in panel.courses:
        wanted = np.array([
            [np.mean([np.mean(scores.test[place, s, list(task)]) for task in TASKS]) for s in range(5)]
            for place, each in enumerate(scores.runs) if (each.learner, each.order) == (course.name.number, TASKS)
        ])  # fmt: skip
        assert len(wanted) == 2
        np.testing.assert_allclose(course.accuracy, wanted.mean(axis=0))
        np.testing.assert_allclose(course.spread, wanted.std(axis=0, ddof=1))
    above, below = figure.draw((panel,)).axes
    areas = [each for each in above.collections if isinstance(each, PolyCollection)]
    assert [area.get_label() for area in areas] == list(panel.tasks)
    assert areas[0].get_paths()[0].vertices[:, 1].max() == pytest.approx(panel.mixture[:, 0].max())
    assert areas[-1].get_paths()[0].vertices[:, 1].max() == pytest.approx(1)
    lines = {str(line.get_label()): line.get_data() for line in below.get_lines()}
    np.testing.assert_array_equal(lines["ER"], [panel.examined, panel.courses[1].accuracy])
    assert above.get_xlim() == below.get_xlim() == (0, sum(own))


def test_another_order_of_a_stream_is_drawn_if_asked(tmp_path: Path) -> None:
    results = made_results(tmp_path, streamed(), scenario=STREAM)
    (panel,) = StreamOverTime(order=describe(ORDERS[1])).compute(results)
    assert panel.tasks == ("walk, sit", "carry, drop", "stand, throw")
    with pytest.raises(InputError, match="was not run"):
        StreamOverTime(order="0,1 > 2,3").compute(results)
    with pytest.raises(InputError, match="expected tasks such as"):
        StreamOverTime(order="first")


def test_a_stream_examined_every_so_many_batches_is_drawn_there(tmp_path: Path) -> None:
    scores = streamed(repeats=1)
    assert scores.trained is not None
    batches = sum(math.ceil(scores.trained[0, list(task)].sum() / 10) for task in TASKS)
    every = math.ceil(batches / 5)
    results = made_results(tmp_path, scores, scenario={**STREAM, "every": every})
    found = examined_at(results.scores, results.study, 0).tolist()
    assert found == [every, 2 * every, 3 * every, 4 * every, batches]
    (panel,) = StreamOverTime().compute(results)
    assert np.isnan(panel.courses[0].spread).all(), "one repeat has no deviation"


def test_points_of_a_sweep_stand_side_by_side_as_far_as_there_is_room(tmp_path: Path) -> None:
    swept = made_results(tmp_path, streamed(points=SIGMAS), "swept", scenario=STREAM)
    axes = StreamOverTime().draw(StreamOverTime().compute(swept)).axes
    assert [axis.get_title() for axis in axes] == ["sigma=1", "sigma=2", "sigma=4", "", "", ""]
    kinds = made_results(tmp_path, streamed(points=KINDS), "kinds", scenario=STREAM)
    assert [panel.title for panel in StreamOverTime().compute(kinds)] == ["hard", "global share=0.3"]
    many = made_results(tmp_path, streamed(points=(*SIGMAS, *KINDS)), "many", scenario=STREAM)
    with pytest.raises(InputError, match="5 settings of backbone and sweep; there is room for 4"):
        StreamOverTime().compute(many)
    assert [panel.title for panel in StreamOverTime(only="sigma").compute(many)] == ["sigma=1", "sigma=2", "sigma=4"]
    (row,) = StreamSweep(only="sigma").compute(many)
    assert [len(line.overlap) for line in row.lines] == [3] * len(row.lines)
    with pytest.raises(InputError, match="only: no setting has 'gausian' in it; there are"):
        StreamSweep(only="gausian").compute(many)


def test_a_sweep_of_streams_is_drawn_against_their_overlap(tmp_path: Path) -> None:
    scores = streamed(points=SIGMAS[::-1])
    results = made_results(tmp_path, scores, scenario=STREAM)
    (row,) = StreamSweep().compute(results)
    assert [line.name.method for line in row.lines] == ["Bare", "ER"]
    assert scores.trained is not None
    overlap, found = overlaps(scores, results.study), runs(scores)
    for place, line in enumerate(row.lines):
        assert (np.diff(line.overlap) > 0).all()
        for column, number in enumerate([4 + place, 2 + place, place]):
            own = [each for each, run in enumerate(scores.runs) if run.learner == number]
            assert line.overlap[column] == pytest.approx(np.mean(overlap[own]))
            for measure, values, spread in zip(("A_AUC", "AF_s"), line.values, line.spread, strict=True):
                text = mean_and_deviation(scores, number, list(found[measure]))
                assert text == f"{100 * values[column]:.1f} ± {100 * spread[column]:.1f}"
    left, right = StreamSweep().draw((row,)).axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("accuracy (A_AUC)", "forgetting (AF_s)")
    for axis, place in ((left, 0), (right, 1)):
        np.testing.assert_array_equal(
            axis.containers[1][0].get_data(), [row.lines[1].overlap, row.lines[1].values[place]]
        )


def test_what_else_is_swept_has_a_row_of_its_own(tmp_path: Path) -> None:
    both = [(*point, ("backbone.width", width)) for point in SIGMAS for width in (8, 16)]
    results = made_results(tmp_path, streamed(points=both), scenario=STREAM)
    assert [row.title for row in StreamSweep().compute(results)] == ["width=8", "width=16"]
    assert all(len(line.overlap) == 3 for row in StreamSweep().compute(results) for line in row.lines)


def test_disparity_is_drawn_against_overlap_with_the_cross_evaluated_hollow(tmp_path: Path) -> None:
    results = made_results(tmp_path, streamed(points=SIGMAS), scenario=STREAM)
    (panel,) = StreamOrders().compute(results)
    frame = results.disparity().set_index("learner")
    assert panel.orders == 3
    for place, line in enumerate(panel.lines):
        own = frame.loc[[place, 2 + place, 4 + place]]
        np.testing.assert_allclose(100 * line.values, [own["AOPD"], own["AOPD_cross"]])
        np.testing.assert_allclose(100 * line.spread, [own["AOPD_std"], own["AOPD_cross_std"]])
    (axis,) = StreamOrders().draw((panel,)).axes
    drawn = {str(each.get_label()): each[0] for each in axis.containers}
    assert list(drawn) == ["Bare cross", "Bare", "ER cross", "ER"]
    assert drawn["ER cross"].get_markerfacecolor() == "none"
    np.testing.assert_array_equal(drawn["ER"].get_ydata(), panel.lines[1].values[0])


def test_streams_without_a_sweep_or_orders_are_refused_where_these_are_shown(tmp_path: Path) -> None:
    plain = made_results(tmp_path, streamed(), "plain", scenario=STREAM)
    for figure in (StreamSweep(), StreamOrders()):
        assert not figure.applies(plain)
        with pytest.raises(InputError, match="sweeps nothing of how tasks run into one another"):
            figure.compute(plain)
    wide = made_results(
        tmp_path, streamed(points=[(("backbone.width", 8),), (("backbone.width", 16),)]), "wide", scenario=STREAM
    )
    assert not StreamSweep().applies(wide)
    single = made_results(tmp_path, streamed(orders=ORDERS[:1], points=SIGMAS), "single", scenario=STREAM)
    assert not StreamOrders().applies(single)
    with pytest.raises(InputError, match="no method was taught in two orders"):
        StreamOrders().compute(single)
    unknown = made_results(tmp_path, replace(streamed(points=SIGMAS), trained=None), "unknown", scenario=STREAM)
    for figure in (StreamOverTime(), StreamSweep(), StreamOrders()):
        assert not figure.applies(unknown)
    with pytest.raises(InputError, match="do not tell how many training samples"):
        StreamOverTime().compute(unknown)


@pytest.mark.parametrize("name", OF_STREAMS)
def test_ordinary_studies_hear_nothing_of_streams(tmp_path: Path, name: str) -> None:
    ordinary = made_results(tmp_path, random_scores(), scenario={"kind": "node"})
    figure = FIGURES.make(name, {})
    assert not figure.applies(ordinary)
    with pytest.raises(InputError, match="the study is not one of a stream"):
        figure.compute(ordinary)
    assert type(figure) not in map(type, report_figures(ordinary))


SHAPES = {
    "one order": {"orders": ORDERS[:1]},
    "orders": {},
    "sweep": {"points": SIGMAS},
    "kinds": {"points": KINDS, "repeats": 1},
    "one examination": {"examinations": 1},
}
NOT_SWEPT = {"accuracy-matrix", "architecture", "stream-orders", "stream-sweep"}
REFUSED = {
    "one order": NOT_SWEPT | {"best-worst-orders", "class-fate", "opd-growth", "sensitivity"},
    "orders": NOT_SWEPT,
    "sweep": {"accuracy-matrix"},
    "kinds": {"accuracy-matrix", "architecture"},
    "one examination": NOT_SWEPT,
}
ALREADY_REFUSED_IN_A_REPORT = {"best-worst-orders", "class-fate", "opd-growth"}
"""What says in every report of one order that it needs several."""


@pytest.mark.parametrize("name", FIGURES.names())
@pytest.mark.parametrize("shape", SHAPES)
def test_every_figure_is_drawn_of_a_stream_or_says_why_not(tmp_path: Path, name: str, shape: str) -> None:
    results = made_results(tmp_path, streamed(**SHAPES[shape]), scenario=STREAM)  # type: ignore[arg-type]
    figure = FIGURES.make(name, {})
    if name in REFUSED[shape]:
        with pytest.raises(InputError):
            figure.compute(results)
        assert not figure.applies(results) or name in ALREADY_REFUSED_IN_A_REPORT or shape == "kinds"
    else:
        figure.save(figure.compute(results), tmp_path / "x.png")
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_tasks_of_long_names_are_told_by_their_sequence(tmp_path: Path) -> None:
    figure = StreamOverTime()
    (panel,) = figure.compute(made_results(tmp_path, streamed(), scenario=STREAM))
    many = replace(panel, tasks=tuple(f"a long name {task}" for task in range(35)), mixture=np.full((40, 35), 1 / 35))
    for value, labels in (
        (panel, list(panel.tasks)),
        (many, ["first of 35 tasks: a long name 0", "last: a long name 34"]),
    ):
        drawn = figure.draw((value,))
        assert [text.get_text() for text in drawn.legends[1].get_texts()] == labels
        drawn.draw_without_rendering()
        legend, axis = drawn.legends[1].get_window_extent(), drawn.axes[1].get_tightbbox()
        assert 0 <= legend.x0 < legend.x1 <= drawn.bbox.width
        assert legend.y1 < axis.y0


def test_the_report_of_streams_has_their_figures_and_tables(tmp_path: Path) -> None:
    results = made_results(tmp_path, streamed(points=SIGMAS), scenario=STREAM)
    shown = [type(figure) for figure in report_figures(results)]
    assert {StreamOverTime, StreamSweep, StreamOrders} <= set(shown)
    page = report_page(results)
    for title in ("Along a stream", "Order sensitivity on streams of more and more overlap"):
        assert title in page
    assert "Accuracy matrices" not in page
    assert "Not drawn" not in page
    performance, *_ = report_tables(results)
    assert {"A_AUC", "AF_s", "O"} <= set(headings(performance))
    assert not {"AF diagonal", "INT", "FWT"} & set(headings(performance))


def test_the_bound_of_theorem_1_is_not_drawn_of_streams(tmp_path: Path) -> None:
    results = made_results(tmp_path, streamed(), scenario=STREAM)
    (panel,) = OrderScatter().compute(results)
    assert panel.bounds == ()
    assert scatter_data(results.scores)["bounds"] == {}
    assert scatter_data(random_scores())["bounds"]


def test_the_learning_curve_of_a_stream_goes_along_its_examinations(tmp_path: Path) -> None:
    scores = streamed(methods=("bare",), examinations=60)
    results = made_results(tmp_path, scores, scenario=STREAM)
    steps = accuracy_by_step(scores)
    third = [np.mean([scores.test[place, 2, list(task)].mean() for task in TASKS]) for place in range(6)]
    assert steps["AA"][2] == pytest.approx(np.mean(third))
    axis = LearningCurve().draw(LearningCurve().compute(results)).axes[0]
    assert axis.get_xlabel() == "examinations"
    assert len(axis.get_xticks()) <= 20
    assert axis.get_xticks()[-1] == 60


def test_the_kindest_order_of_a_stream_is_that_of_the_highest_mean_in_the_end() -> None:
    scores = streamed(methods=("bare",), repeats=1)
    found = extreme_orders(scores)
    ends = {each.order: np.mean([scores.test[place, -1, list(task)].mean() for task in TASKS])
            for place, each in enumerate(scores.runs)}  # fmt: skip
    assert found[found["rank"] == 1]["order"].iloc[0] == max(ends, key=lambda order: ends[order])
    assert found["AA"].max() == pytest.approx(max(ends.values()))
