"""Every figure shows the numbers it was given, where it should: read back from what was drawn."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from skeleton_cgl.analysis import disparity
from skeleton_cgl.analysis.curves import accuracy_by_step, aopd_growth, mean_accuracy_matrices
from skeleton_cgl.analysis.fate import accuracy_by_position, extreme_orders
from skeleton_cgl.analysis.figure import StudyFigure
from skeleton_cgl.analysis.figures.accuracy_matrix import AccuracyMatrix
from skeleton_cgl.analysis.figures.architecture import Architecture
from skeleton_cgl.analysis.figures.best_worst_orders import BestWorstOrders
from skeleton_cgl.analysis.figures.class_fate import ClassFate
from skeleton_cgl.analysis.figures.disparity_table import DisparityTable
from skeleton_cgl.analysis.figures.learning_curve import LearningCurve
from skeleton_cgl.analysis.figures.opd_growth import OpdGrowth
from skeleton_cgl.analysis.figures.order_scatter import OrderScatter
from skeleton_cgl.analysis.figures.sensitivity import Sensitivity
from skeleton_cgl.analysis.names import METHODS
from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, FORMATS, save
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.scores import ScoredRun, Scores
from skeleton_cgl.analysis.sweeps import sweep_curves
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import FIGURES
from tests.analysis.made_scores import (
    CLASS_ORDER,
    ORDERS,
    UNEVEN,
    UNITS,
    as_scores,
    learner,
    random_runs,
    random_scores,
    run,
    with_halves,
)
from tests.analysis.made_store import made_results

SCORES = random_scores(methods=["replay", "bare"])
"""Learner 0 is Replay, 1 is Bare."""
BACKBONES = as_scores([*random_runs(methods=["replay", "bare"]), *random_runs(seed=1, backbone="stgcn")])


def drawn(figure: StudyFigure[Any], *results: Results) -> Figure:
    return figure.draw(figure.compute_several(results))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return made_results(tmp_path, SCORES)


@pytest.fixture
def two_backbones(tmp_path: Path) -> Results:
    return made_results(tmp_path, BACKBONES, "two")


def swept_scores(methods: list[str]) -> Scores:
    """Return two repeats of one order at widths 32 and 128, AA at random."""
    points = [(method, width) for width in (128, 32) for method in methods]
    rows = tuple(
        learner(number, method, point=(("backbone.width", width),)) for number, (method, width) in enumerate(points)
    )
    runs = tuple(ScoredRun(number, repeat, 0, "task", ORDERS[0]) for number in range(len(rows)) for repeat in (0, 1))
    test = np.random.default_rng(0).random((len(runs), 3, 6))
    return Scores(rows, UNITS, runs, test, test)


def lines_of(panel: Axes) -> dict[str, list[list[float]]]:
    found = {str(line.get_label()): line for line in panel.get_lines() if not str(line.get_label()).startswith("_")}
    return {label: [list(line.get_xdata()), list(line.get_ydata())] for label, line in found.items()}


def texts_of(panel: Axes) -> list[str]:
    return [text.get_text() for text in panel.texts]


def final(aa: float, af: float, order: tuple, **names: Any) -> tuple:
    """Return a run that was perfect at aa + af on its first tasks and ends at aa on all."""
    backbone, method, scored, _ = run([0] * 6, order, **names)
    values = np.full((3, 6), aa + af)
    values[-1] = aa
    return backbone, method, scored, values


POINTS = [
    final(0.2, 0.6, ORDERS[0]),
    final(0.3, 0.5, ORDERS[1]),
    final(0.4, 0.5, CLASS_ORDER, kind="class"),
    final(0.6, 0.2, ORDERS[0], method="replay"),
    final(0.5, 0.4, ORDERS[0], method="own"),
    final(0.25, 0.5, ORDERS[0], backbone="stgcn"),
    final(0.7, -0.1, ORDERS[0], backbone="stgcn", method="replay"),
]


@pytest.fixture
def points(tmp_path: Path) -> Results:
    return made_results(tmp_path, as_scores(POINTS), "points")


def test_every_order_is_a_point_of_its_method_in_the_panel_of_its_backbone(points: Results) -> None:
    figure = drawn(OrderScatter(), points)
    assert [panel.get_title() for panel in figure.axes] == ["GCN", "ST-GCN"]
    found = {each.get_label(): each.get_offsets().data for each in figure.axes[0].collections}
    assert {label: len(offsets) for label, offsets in found.items()} == {
        **{"Bare task": 2, "Bare class": 1, "Replay task": 1, "own task": 1}
    }
    np.testing.assert_allclose(found["Bare task"], [[0.2, 0.6], [0.3, 0.5]])
    np.testing.assert_allclose(found["Bare class"], [[0.4, 0.5]])
    np.testing.assert_allclose(found["own task"], [[0.5, 0.4]])
    assert len(figure.axes[1].collections) == 2


def test_labels_stand_at_the_left_and_where_no_panel_is_below(tmp_path: Path) -> None:
    three = as_scores(run_ for name in "abc" for run_ in random_runs(backbone=name))
    axes = drawn(OrderScatter(), made_results(tmp_path, three)).axes
    shown = [(panel.xaxis.get_tick_params()["labelbottom"], bool(panel.get_xlabel())) for panel in axes]
    assert shown == [(False, False), (True, True), (True, True)]
    shown = [(panel.yaxis.get_tick_params()["labelleft"], bool(panel.get_ylabel())) for panel in axes]
    assert shown == [(True, True), (False, False), (True, True)]


def test_class_orders_are_hollow_and_explained_where_there_are_both(points: Results) -> None:
    figure = drawn(OrderScatter(), points)
    filled = {each.get_label(): len(each.get_facecolor()) > 0 for each in figure.axes[0].collections}
    assert filled == {"Bare task": True, "Bare class": False, "Replay task": True, "own task": True}
    words = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert words == ["Bare", "Replay", "own", "task order", "class order"]
    assert len(drawn(OrderScatter(kind="task"), points).legends) == 1


def test_the_bound_is_drawn_and_named_for_the_number_of_tasks(points: Results) -> None:
    panel = drawn(OrderScatter(), points).axes[0]
    (line,) = panel.get_lines()
    accuracy, bound = line.get_data()
    np.testing.assert_allclose(bound, 1 - 3 / 2 * np.asarray(accuracy) + 1 / 2)
    (label,) = panel.texts
    assert label.get_text() == "bound, 3 tasks"
    assert label.xy == pytest.approx((0.6, 0.6))


def test_negative_forgetting_stays_in_the_picture(points: Results) -> None:
    assert drawn(OrderScatter(), points).axes[1].get_ylim()[0] < -0.1


def test_several_studies_stand_side_by_side_with_one_look_for_a_method(tmp_path: Path) -> None:
    one = made_results(tmp_path, random_scores(methods=["mine.py", "bare"]), "one", scenario={"data": "ucla.h5"})
    other = made_results(tmp_path, random_scores(methods=["zeta", "mine.py"]), "other", scenario={"data": "ntu.h5"})
    figure = drawn(OrderScatter(kind="task"), one, other)
    assert [panel.get_title() for panel in figure.axes] == ["ucla, GCN", "ntu, GCN"]
    colours = [
        {each.get_label(): to_hex(each.get_facecolor()[0]) for each in panel.collections} for panel in figure.axes
    ]
    assert colours[0]["mine task"] == colours[1]["mine task"] != colours[1]["zeta task"]
    same = drawn(OrderScatter(), one, one)
    assert [panel.get_title() for panel in same.axes] == ["one: one, GCN"] * 2
    with pytest.raises(InputError, match="LearningCurve: takes one study, found 2"):
        LearningCurve().compute_several([one, other])


def test_a_method_has_its_own_colour_in_every_figure_whatever_its_label(tmp_path: Path) -> None:
    rows = tuple(replace(row, method=replace(row.method, label="a name")) for row in random_scores().learners[:1])
    relabelled = made_results(tmp_path, replace(random_scores(methods=["bare"]), learners=rows))
    scatter = drawn(OrderScatter(kind="task"), relabelled).axes[0].collections[0]
    curve = drawn(LearningCurve(), relabelled).axes[0].get_lines()[0]
    assert scatter.get_label() == "a name task"
    assert to_hex(scatter.get_facecolor()[0]) == to_hex(curve.get_color()) == "#000000"


def test_every_method_is_a_point_at_its_accuracy_and_disparity(points: Results) -> None:
    (panel,) = Sensitivity().compute(points)
    (bare,) = panel.points
    # Of Bare on GCN alone there are two task orders.
    assert (bare.name.method, panel.title, panel.orders) == ("Bare", "GCN", 2)
    np.testing.assert_allclose([bare.AA, bare.AOPD], [0.25, 0.1])
    axis = drawn(Sensitivity(), points).axes[0]
    assert axis.get_ylim()[0] == 0
    assert axis.get_ylabel() == "AOPD, 2 orders"


def test_accuracies_and_disparities_are_those_of_the_tables(results: Results) -> None:
    (panel,) = Sensitivity().compute(results)
    disparity, runs = results.disparity().set_index("method"), results.runs()
    assert {point.name.method for point in panel.points} == set(disparity.index)
    for point in panel.points:
        tasks = runs[(runs["method"] == point.name.method) & (runs["kind"] == "task") & (runs["noise"] == 0)]
        accuracy = tasks.groupby("repeat")["AA"].mean().mean()
        told = [disparity.loc[point.name.method, "AOPD"], accuracy]
        np.testing.assert_allclose([100 * point.AOPD, 100 * point.AA], told)


def test_the_marker_of_the_greatest_disparity_stands_clear_of_the_frame(tmp_path: Path) -> None:
    ends = {"bare": (0.9, 0.2), "ewc": (0.85, 0.3)}
    several = [
        final(aa, 0.1, order, method=name) for name in ends for aa, order in zip(ends[name], ORDERS, strict=False)
    ]
    figure = drawn(Sensitivity(), made_results(tmp_path, as_scores(several)))
    figure.draw_without_rendering()
    (axis,) = figure.axes
    point = max(axis.get_lines(), key=lambda line: max(line.get_ydata()))
    below = axis.get_window_extent().y1 - axis.transData.transform(point.get_xydata()).max(axis=0)[1]
    assert below > point.get_markersize() / 72 * figure.dpi


def test_studies_of_one_scenario_share_a_panel_and_others_do_not(tmp_path: Path) -> None:
    scenarios = {"one": "ucla.h5", "other": "ucla.h5", "third": "ntu.h5"}
    made = [
        made_results(tmp_path, random_scores(methods=[method, "bare"]), name, scenario={"data": data})
        for method, (name, data) in zip(("ewc", "replay", "ewc"), scenarios.items(), strict=True)
    ]
    found = Sensitivity().compute_several(made)
    assert [panel.title for panel in found] == ["ucla, GCN", "ntu, GCN"]
    assert [[point.name.method for point in panel.points] for panel in found] == [
        ["Bare", "EWC", "Bare", "Replay"],
        ["Bare", "EWC"],
    ]
    assert [panel.get_title() for panel in drawn(Sensitivity(), *made).axes] == ["ucla, GCN", "ntu, GCN"]


def test_one_order_has_no_sensitivity_to_draw(tmp_path: Path) -> None:
    single = made_results(tmp_path, as_scores([final(0.2, 0.6, ORDERS[0])]))
    assert not Sensitivity().applies(single)
    with pytest.raises(InputError, match="no method was taught in two orders"):
        Sensitivity().compute(single)


def test_the_legend_of_many_methods_fits(tmp_path: Path) -> None:
    names = [f"candidate number {number}" for number in range(10)]
    few, many = (
        drawn(OrderScatter(), made_results(tmp_path, random_scores(methods=some, repeats=1), str(len(some))))
        for some in (names[:4], names)
    )
    assert few.get_figheight() < many.get_figheight()
    for figure in (few, many):
        figure.draw_without_rendering()
        legend, panel = figure.legends[0].get_window_extent(), figure.axes[0].get_window_extent()
        assert 0 <= legend.x0 < legend.x1 <= figure.bbox.width
        assert panel.y1 < legend.y0 < legend.y1 <= figure.bbox.height
        assert panel.height > figure.dpi * 2


def test_the_learning_curve_has_the_mean_and_the_spread_of_every_step(two_backbones: Results) -> None:
    figure = drawn(LearningCurve(), two_backbones)
    assert [panel.get_title() for panel in figure.axes] == ["GCN", "ST-GCN"]
    steps = accuracy_by_step(BACKBONES)
    rows = steps[steps["learner"] == 1]
    places, averages = lines_of(figure.axes[0])["Bare"]
    assert averages == list(rows["AA"])
    assert np.round(places).tolist() == [1, 2, 3]
    spans = [[segment[:, 1].tolist() for segment in bars.get_segments()] for bars in figure.axes[0].collections[:2]]
    assert spans[0] == rows[["lowest", "highest"]].to_numpy().tolist()
    assert spans[1] == rows[["lower_quartile", "upper_quartile"]].to_numpy().tolist()


def test_the_growth_is_drawn_for_orders_and_for_seeds(results: Results, tmp_path: Path) -> None:
    growth = aopd_growth(SCORES, "task")
    figure = drawn(OpdGrowth("task"), results)
    found = lines_of(figure.axes[0])
    assert set(found) == {"Bare order", "Bare seeds", "Replay order", "Replay seeds"}
    for (number, varied), rows in growth.groupby(["learner", "varied"]):
        assert found[f"{['Replay', 'Bare'][number]} {varied}"] == [list(rows["r"]), list(rows["AOPD"])]
    assert figure.axes[0].get_xscale() == "log"
    assert len(figure.legends) == 2
    plain = made_results(tmp_path, random_scores(noise_runs=0), "plain")
    assert len(drawn(OpdGrowth("task"), plain).legends) == 1
    assert OpdGrowth().compute(results).growth["r"].max() == 8, "orders of classes were run"


def test_a_sweep_is_drawn_on_a_log_axis_with_its_deviation(tmp_path: Path) -> None:
    scores = swept_scores(["bare", "replay"])
    swept = made_results(tmp_path, scores, "swept")
    accuracy, forgetting = drawn(Architecture(), swept).axes
    assert (accuracy.get_xscale(), accuracy.get_xlabel()) == ("log", "width")
    assert list(accuracy.get_xticks()) == [32, 128]
    curves = sweep_curves(scores)
    for panel, measure in ((accuracy, "AA"), (forgetting, "AF")):
        for container, numbers in zip(panel.containers, ([2, 0], [3, 1]), strict=True):
            rows = curves.set_index("learner").loc[numbers]
            line, _, (bars,) = container
            np.testing.assert_array_equal(line.get_data(), [rows["value"], rows[measure]])
            ends = np.array([segment[:, 1] for segment in bars.get_segments()])
            deviation = rows[f"{measure}_std"]
            np.testing.assert_allclose(ends, np.stack([rows[measure] - deviation, rows[measure] + deviation], axis=1))
    depths = [
        replace(row, point=(*row.point, ("backbone.depth", 1 + number % 2)))
        for number, row in enumerate(swept_scores(["bare", "bare "]).learners)
    ]
    two = replace(scores, learners=tuple(depths))
    axes = drawn(Architecture(), made_results(tmp_path, two, "depths")).axes
    assert [panel.get_xlabel() for panel in axes] == ["width"] * 4 + ["depth"] * 4
    assert [panel.get_title() for panel in axes[::2]] == ["depth=1", "depth=2", "width=32", "width=128"]
    with pytest.raises(InputError, match="sweeps no field"):
        Architecture().compute(made_results(tmp_path, SCORES))


def test_a_matrix_has_its_percent_in_every_cell_up_to_the_diagonal(results: Results) -> None:
    matrices = mean_accuracy_matrices(SCORES)
    bare, replay = drawn(AccuracyMatrix(), results).axes
    assert (bare.get_title(), replay.get_title()) == ("Bare", "Replay")
    rows = matrices[matrices["learner"] == 0]
    assert texts_of(replay) == [f"{100 * accuracy:.0f}" for accuracy in rows["accuracy"]]
    cells = replay.collections[0].get_array().reshape(3, 3)
    np.testing.assert_array_equal(np.ma.getmaskarray(cells), np.triu(np.ones((3, 3), dtype=bool), 1))
    np.testing.assert_array_equal(cells.compressed(), rows["accuracy"])
    named = drawn(AccuracyMatrix(order="0,1 > 4,5 > 2,3"), results).axes[0]
    assert [label.get_text() for label in named.get_xticklabels()] == ["0,1", "4,5", "2,3"]
    with pytest.raises(InputError, match="order '0;1': expected tasks such as"):
        AccuracyMatrix(order="0;1")


def test_the_fate_of_every_class_stands_beside_its_name(tmp_path: Path) -> None:
    some = BACKBONES.where(lambda each: 2 not in each.order[2])
    *panels, bar = drawn(ClassFate(), made_results(tmp_path, some)).axes
    titles = ["Bare\nGCN", "Replay\nGCN", "Bare\nST-GCN", "Replay\nST-GCN"]
    assert [panel.get_title() for panel in panels] == titles
    assert [label.get_text() for label in panels[0].get_yticklabels()] == list(UNITS)
    cells = panels[1].collections[0].get_array().reshape(6, 3)
    fate = accuracy_by_position(some)
    for label, position, accuracy in fate[fate["learner"] == 0][["class", "position", "accuracy"]].to_numpy():
        assert cells[int(label), int(position) - 1] == accuracy
    assert [2, 2] in np.argwhere(np.ma.getmaskarray(cells)).tolist()
    assert bar.get_ylabel() == "final accuracy"


def test_the_extreme_orders_stand_in_rows_with_tasks_accuracies_and_aa(results: Results) -> None:
    orders = extreme_orders(SCORES, count=2)
    figure = drawn(BestWorstOrders(count=2), results)
    panel = figure.axes[0]
    rows = orders[orders["learner"] == 1]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["1", "2", "", "7", "8"]
    cells = [
        f"{','.join(map(str, order[position - 1]))}: {100 * accuracy:.0f}"
        for order, position, accuracy in zip(rows["order"], rows["position"], rows["accuracy"], strict=True)
    ]
    averages = [f"{100 * average:.0f}" for average in rows.drop_duplicates("rank")["AA"]]
    assert texts_of(panel) == [*cells, *averages, "AA"]
    assert " ".join(figure.get_supxlabel().split()) == "0 walk, 1 sit, 2 stand, 3 throw, 4 carry, 5 drop"
    both = drawn(BestWorstOrders(count=4), results).axes[0]
    assert [label.get_text() for label in both.get_yticklabels()] == list("12345678")


def test_what_does_not_hold_has_a_hollow_mark_and_a_word(tmp_path: Path) -> None:
    test = np.random.default_rng(0).random((len(SCORES.runs), 6))
    held, reversed_ = (
        made_results(tmp_path, with_halves(SCORES, test, validation), name)
        for name, validation in (("held", test), ("reversed", 1 - test))
    )
    for figure in (ClassFate(), BestWorstOrders(count=2)):
        first, *_ = drawn(figure, held).axes
        assert not first.get_lines()
        assert "○" not in drawn(figure, held).get_supxlabel()
    picture = drawn(ClassFate(), reversed_)
    assert "○ best and worst: not so" in picture.get_supxlabel()
    fate = accuracy_by_position(reversed_.scores)
    failing = fate[(fate["learner"] == 1) & ~fate["holds"]]
    assert len(failing) == 12
    marks = [(line.get_xdata()[0] + 0.5, line.get_ydata()[0] - 0.5) for line in picture.axes[0].get_lines()]
    assert marks == list(zip(failing["position"], failing["class"], strict=True))
    assert {line.get_markerfacecolor() for line in picture.axes[0].get_lines()} == {"none"}
    picture = drawn(BestWorstOrders(count=2), reversed_)
    assert "○ not so on the validation queries" in picture.get_supxlabel()
    orders = extreme_orders(reversed_.scores, count=2).drop_duplicates(["learner", "rank"])
    failing = orders[(orders["learner"] == 1) & ~orders["holds"]]["rank"]
    rows = {1: 0.5, 2: 1.5, 7: 3.5, 8: 4.5}
    assert [line.get_ydata()[0] for line in picture.axes[0].get_lines()] == [rows[rank] for rank in failing]
    assert len(failing) == 4


def test_a_table_of_a_study_half_done_is_drawn_with_a_word(tmp_path: Path) -> None:
    half = random_scores(methods=["bare"], noise_runs=0).where(lambda each: each.order in ORDERS[:2])
    missing = tuple(replace(half.runs[0], order=order, repeat=repeat) for order in ORDERS[2:] for repeat in (0, 1))
    (panel,) = drawn(DisparityTable(), made_results(tmp_path, replace(half, missing=missing))).axes
    assert any("orders: 2 of 6 planned" in text for text in texts_of(panel))


def test_one_method_is_chosen_by_what_it_is_or_is_called(results: Results) -> None:
    for word in ("replay", "Replay"):
        assert [panel.get_title() for panel in drawn(BestWorstOrders(method=word), results).axes] == ["Replay"]
    with pytest.raises(InputError, match="unknown method 'repaly'; did you mean 'replay'"):
        BestWorstOrders(method="repaly").compute(results)


def test_the_picture_of_the_table_says_what_the_table_says(results: Results, tmp_path: Path) -> None:
    table = disparity(SCORES)
    (panel,) = drawn(DisparityTable(published="ucla", anyway=True), results).axes
    words = [text for text in texts_of(panel) if text]
    assert words[:3] == ["method", "Bare", "Replay"]
    for measure in ("AOPD", "MOPD"):
        for row in table.to_dict("records"):
            assert f"{100 * row[measure]:.1f} ± {100 * row[f'{measure}_std']:.1f}" in words
            assert f"{100 * row[f'{measure}_cross']:.1f}".replace("-", "−") in words
    assert {"96.7 ± 0.7", "58.2 ± 7.5", "cross", "published"} <= set(words)
    assert "seeds" not in words, "the noise floor gives way to what was published"
    assert any("orders: 6, repeats: 2" in word for word in words)
    with_floor = texts_of(drawn(DisparityTable(), results).axes[0])
    assert {"R", "AOPD at R", "seeds"} <= set(with_floor)
    for row in table.to_dict("records"):
        assert {f"{100 * row[field]:.1f}" for field in ("expected_AOPD_at_R", "AOPD_floor")} <= set(with_floor)
    plain = drawn(DisparityTable(), made_results(tmp_path, random_scores(noise_runs=0, repeats=1), "plain"))
    assert not {"seeds", "R", "published", "orders"} & set(texts_of(plain.axes[0]))
    few = random_scores().where(lambda each: each.learner == 0 or each.order in ORDERS[:2])
    uneven = drawn(DisparityTable(), made_results(tmp_path, few, "few")).axes[0]
    assert {"orders", "2", "methods with fewer orders than others are not compared"} <= set(texts_of(uneven))


@pytest.mark.parametrize("count", [1, 3, 8])
def test_figures_of_any_number_of_methods_fit_a_column_and_nothing_is_cut_off(count: int, tmp_path: Path) -> None:
    methods = list(METHODS)[:count]
    names = tuple(f"pick up with {name} hands" for name in UNITS)
    made = made_results(tmp_path, replace(random_scores(methods=methods), units=names))
    swept = made_results(tmp_path, swept_scores(methods), "swept")
    figures = {
        **dict.fromkeys((OrderScatter(), Sensitivity(), LearningCurve(), OpdGrowth(), AccuracyMatrix()), made),
        ClassFate(): made,
        **{AccuracyMatrix(order="0,1 > 2,3 > 4,5"): made, BestWorstOrders(method="bare", count=10): made},
        **{DisparityTable(published="ucla", anyway=True): made, Architecture(): swept},
    }
    for figure, of in figures.items():
        picture = drawn(figure, of)
        picture.draw_without_rendering()
        extent = picture.get_tightbbox()
        name = type(figure).__name__
        assert picture.get_figwidth() <= COLUMN_INCHES, name
        assert min(extent.min) >= -0.01, name
        assert (extent.max <= picture.get_size_inches() + 0.01).all(), name


@pytest.mark.parametrize(
    "name",
    [name for name in FIGURES.names() if name not in ("architecture", "stream", "stream-orders", "stream-sweep")],
)
def test_uneven_tasks_and_orders_of_different_lengths_are_drawn(name: str, tmp_path: Path) -> None:
    runs = [run([10 * place, 20, 30, 40, 50, 60], order) for place, order in enumerate(permutations(UNEVEN))]
    shorter = run([90] * 6, ((5,), (0, 1, 2)), "class")
    single = run([90] * 6, ((0, 1, 2),), "class")
    made = made_results(tmp_path, as_scores([*runs, shorter, single]))
    figure = FIGURES.make(name, {})
    figure.draw(figure.compute(made)).draw_without_rendering()


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_same_figure_gives_the_same_file(results: Results, tmp_path: Path, suffix: str) -> None:
    for name in "ab":
        save(drawn(OpdGrowth(), results), tmp_path / f"{name}{suffix}")
    first, second = ((tmp_path / f"{name}{suffix}").read_bytes() for name in "ab")
    assert first == second
    assert first.startswith({".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[suffix])


def test_other_suffixes_are_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"scatter\.jpg: a figure is called NAME\.png"):
        save(drawn(OrderScatter(), results), tmp_path / "scatter.jpg")


def test_every_built_in_figure_tells_what_it_means() -> None:
    for name in FIGURES.names():
        found = FIGURES.find(name)
        assert found.title
        assert found.meaning.endswith(".")
