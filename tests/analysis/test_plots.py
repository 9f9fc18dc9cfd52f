"""Every figure shows the numbers it was given, where it should: read back from what was drawn."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from skeleton_cgl.analysis import disparity, plots, runs
from skeleton_cgl.analysis.curves import accuracy_by_step, aopd_growth, mean_accuracy_matrices
from skeleton_cgl.analysis.fate import accuracy_by_position, extreme_orders
from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, looks
from skeleton_cgl.analysis.tables import METHODS
from skeleton_cgl.errors import InputError
from tests.analysis.made_records import ORDERS, random_records

UNITS = ("walk", "sit", "stand", "throw", "carry", "drop")
RUNS = pd.DataFrame(
    {
        "backbone": ["gcn"] * 5 + ["stgcn"] * 2,
        "method": ["bare", "bare", "bare", "replay", "own", "bare", "replay"],
        "kind": ["task", "task", "class", "task", "task", "task", "task"],
        "order": [ORDERS[0]] * 7,
        "AA": [0.2, 0.3, 0.4, 0.6, 0.5, 0.25, 0.7],
        "AF": [0.8, 0.7, 0.6, 0.2, 0.4, 0.75, -0.1],
    }
)
RECORDS = random_records(methods=["replay", "bare"])
CURVES = pd.DataFrame(
    {
        "field": ["backbone.width"] * 4,
        "others": [""] * 4,
        "backbone": ["gcn"] * 4,
        "method": ["bare", "bare", "replay", "replay"],
        "value": [32, 128, 32, 128],
        **{"AA": [0.2, 0.3, 0.6, 0.5], "AF": [0.8, 0.7, 0.1, 0.2]},
        **{"AA_std": [0.01, 0.02, 0.03, 0.04], "AF_std": [np.nan] * 4},
    }
)


def lines_of(panel: Axes) -> dict[str, list[list[float]]]:
    drawn = {line.get_label(): line for line in panel.get_lines() if not line.get_label().startswith("_")}
    return {label: [list(line.get_xdata()), list(line.get_ydata())] for label, line in drawn.items()}


def texts_of(panel: Axes) -> list[str]:
    return [text.get_text() for text in panel.texts]


def with_two_backbones(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame.assign(backbone="stgcn")], ignore_index=True)


def test_every_order_is_a_point_of_its_method_in_the_panel_of_its_backbone() -> None:
    figure = plots.order_scatter(RUNS)
    assert [panel.get_title() for panel in figure.axes] == ["gcn", "stgcn"]
    points = {each.get_label(): each.get_offsets().data.tolist() for each in figure.axes[0].collections}
    assert points == {
        "bare task": [[0.2, 0.8], [0.3, 0.7]],
        "bare class": [[0.4, 0.6]],
        "replay task": [[0.6, 0.2]],
        "own task": [[0.5, 0.4]],
    }
    assert len(figure.axes[1].collections) == 2
    titles = [panel.get_title() for panel in plots.order_scatter(RUNS.assign(panel=list("aabbbbb"))).axes]
    assert titles == ["a", "b"]


def test_labels_stand_at_the_left_and_where_no_panel_is_below() -> None:
    axes = plots.order_scatter(pd.concat([RUNS.assign(panel=name) for name in "abc"])).axes
    shown = [(panel.xaxis.get_tick_params()["labelbottom"], bool(panel.get_xlabel())) for panel in axes]
    assert shown == [(False, False), (True, True), (True, True)]
    shown = [(panel.yaxis.get_tick_params()["labelleft"], bool(panel.get_ylabel())) for panel in axes]
    assert shown == [(True, True), (False, False), (True, True)]


def test_class_orders_are_hollow_and_explained_where_there_are_both() -> None:
    figure = plots.order_scatter(RUNS)
    filled = {each.get_label(): len(each.get_facecolor()) > 0 for each in figure.axes[0].collections}
    assert filled == {"bare task": True, "bare class": False, "replay task": True, "own task": True}
    words = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert words == ["Bare", "Replay", "own", "task order", "class order"]
    assert len(plots.order_scatter(RUNS[RUNS["kind"] == "task"]).legends) == 1


def test_the_bound_is_drawn_and_named_for_the_number_of_tasks() -> None:
    panel = plots.order_scatter(RUNS).axes[0]
    (line,) = panel.get_lines()
    accuracy, bound = line.get_data()
    np.testing.assert_allclose(bound, 1 - 3 / 2 * accuracy + 1 / 2)
    (label,) = panel.texts
    assert label.get_text() == "bound, 3 tasks"
    assert label.xy == pytest.approx((0.6, 0.6))


def test_negative_forgetting_stays_in_the_picture() -> None:
    assert plots.order_scatter(RUNS).axes[1].get_ylim()[0] < -0.1


def test_a_method_has_its_own_colour_and_marker_in_every_figure() -> None:
    drawn = looks([*METHODS, "own", "other"])
    assert list(drawn) == [*METHODS, "other", "own"]
    assert len({look.colour for look in drawn.values()}) == len({look.marker for look in drawn.values()}) == len(drawn)
    scatter = next(c for c in plots.order_scatter(RUNS).axes[0].collections if c.get_label() == "bare task")
    curve = plots.learning_curve(accuracy_by_step(RECORDS)).axes[0].get_lines()[0]
    assert to_hex(scatter.get_facecolor()[0]) == to_hex(curve.get_color()) == drawn["bare"].colour


def test_many_methods_look_different_and_their_legend_fits() -> None:
    names = [f"candidate number {number}" for number in range(78)]
    assert len({(look.colour, look.marker) for look in looks(names).values()}) == 78
    few, many = (
        plots.order_scatter(pd.concat([RUNS.assign(method=name, backbone="gcn") for name in some]))
        for some in (names[:4], names[:10])
    )
    assert few.get_figheight() < many.get_figheight()
    for figure in (few, many):
        figure.draw_without_rendering()
        legend, panel = figure.legends[0].get_window_extent(), figure.axes[0].get_window_extent()
        assert 0 <= legend.x0 < legend.x1 <= figure.bbox.width
        assert panel.y1 < legend.y0 < legend.y1 <= figure.bbox.height
        assert panel.height > figure.dpi * 2


def test_the_learning_curve_has_the_mean_and_the_spread_of_every_step() -> None:
    steps = with_two_backbones(accuracy_by_step(RECORDS))
    figure = plots.learning_curve(steps)
    assert [panel.get_title() for panel in figure.axes] == ["gcn", "stgcn"]
    rows = steps[(steps["backbone"] == "gcn") & (steps["method"] == "bare")]
    places, averages = lines_of(figure.axes[0])["bare"]
    assert averages == list(rows["AA"])
    assert np.round(places).tolist() == [1, 2, 3]
    spans = [[segment[:, 1].tolist() for segment in bars.get_segments()] for bars in figure.axes[0].collections[:2]]
    assert spans[0] == rows[["lowest", "highest"]].to_numpy().tolist()
    assert spans[1] == rows[["lower_quartile", "upper_quartile"]].to_numpy().tolist()


def test_the_growth_is_drawn_for_orders_and_for_seeds() -> None:
    growth = aopd_growth(RECORDS)
    figure = plots.opd_growth(growth)
    found = lines_of(figure.axes[0])
    assert set(found) == {"bare order", "bare seed", "replay order", "replay seed"}
    for (method, varied), rows in growth.groupby(["method", "varied"]):
        assert found[f"{method} {varied}"] == [list(rows["r"]), list(rows["AOPD"])]
    assert figure.axes[0].get_xscale() == "log"
    assert len(figure.legends) == 2
    assert len(plots.opd_growth(growth[growth["varied"] == "order"]).legends) == 1


def test_a_sweep_is_drawn_on_a_log_axis_with_its_deviation() -> None:
    figure = plots.architecture(CURVES)
    accuracy, forgetting = figure.axes
    assert (accuracy.get_xscale(), accuracy.get_xlabel()) == ("log", "width")
    assert list(accuracy.get_xticks()) == [32, 128]
    for panel, measure in ((accuracy, "AA"), (forgetting, "AF")):
        for container, (_, rows) in zip(panel.containers, CURVES.groupby("method"), strict=True):
            line, _, (bars,) = container
            np.testing.assert_array_equal(line.get_data(), [rows["value"], rows[measure]])
            deviation = rows[f"{measure}_std"].fillna(0)
            ends = np.array([segment[:, 1] for segment in bars.get_segments()])
            np.testing.assert_allclose(ends, np.stack([rows[measure] - deviation, rows[measure] + deviation], axis=1))
    two = pd.concat([CURVES, CURVES.assign(field="backbone.depth", others="width=64")])
    assert [panel.get_xlabel() for panel in plots.architecture(two).axes] == ["width", "width", "depth", "depth"]
    assert [panel.get_title() for panel in plots.architecture(two).axes] == ["", "", "width=64", "width=64"]


def test_a_matrix_has_its_percent_in_every_cell_up_to_the_diagonal() -> None:
    matrices = mean_accuracy_matrices(RECORDS)
    bare, replay = plots.accuracy_matrices(matrices).axes
    assert (bare.get_title(), replay.get_title()) == ("Bare", "Replay")
    rows = matrices[matrices["method"] == "replay"]
    assert texts_of(replay) == [f"{100 * accuracy:.0f}" for accuracy in rows["accuracy"]]
    cells = replay.collections[0].get_array().reshape(3, 3)
    np.testing.assert_array_equal(np.ma.getmaskarray(cells), np.triu(np.ones((3, 3), dtype=bool), 1))
    np.testing.assert_array_equal(cells.compressed(), rows["accuracy"])
    named = plots.accuracy_matrices(matrices, ORDERS[1]).axes[0]
    assert [label.get_text() for label in named.get_xticklabels()] == ["0,1", "4,5", "2,3"]


def test_the_fate_of_every_class_stands_beside_its_name() -> None:
    fate = accuracy_by_position(RECORDS)
    blank = fate[(fate["class"] != 2) | (fate["position"] != 3)]
    figure = plots.class_fate(with_two_backbones(blank), UNITS)
    *drawn, bar = figure.axes
    assert [panel.get_title() for panel in drawn] == ["Bare\ngcn", "Replay\ngcn", "Bare\nstgcn", "Replay\nstgcn"]
    assert [label.get_text() for label in drawn[0].get_yticklabels()] == list(UNITS)
    cells = drawn[1].collections[0].get_array().reshape(6, 3)
    for label, position, accuracy in blank[blank["method"] == "replay"][["class", "position", "accuracy"]].to_numpy():
        assert cells[int(label), int(position) - 1] == accuracy
    assert list(np.argwhere(np.ma.getmaskarray(cells))[0]) == [2, 2]
    assert bar.get_ylabel() == "final accuracy"


def test_the_extreme_orders_stand_in_rows_with_tasks_accuracies_and_aa() -> None:
    orders = extreme_orders(RECORDS, count=2)
    figure = plots.best_worst_orders(orders, UNITS)
    panel = figure.axes[0]
    rows = orders[orders["method"] == "bare"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["1", "2", "", "7", "8"]
    cells = [
        f"{','.join(map(str, order[position - 1]))}: {100 * accuracy:.0f}"
        for order, position, accuracy in zip(rows["order"], rows["position"], rows["accuracy"], strict=True)
    ]
    averages = [f"{100 * average:.0f}" for average in rows.drop_duplicates("rank")["AA"]]
    assert texts_of(panel) == [*cells, *averages, "AA"]
    assert " ".join(figure.get_supxlabel().split()) == "0 walk, 1 sit, 2 stand, 3 throw, 4 carry, 5 drop"
    both = plots.best_worst_orders(extreme_orders(RECORDS, count=4), UNITS).axes[0]
    assert [label.get_text() for label in both.get_yticklabels()] == list("12345678")


def test_the_picture_of_the_table_says_what_the_table_says() -> None:
    table = disparity(RECORDS)
    (panel,) = plots.disparity_picture(table, published="ucla").axes
    words = [text for text in texts_of(panel) if text]
    assert words[:3] == ["method", "Bare", "Replay"]
    for measure in ("AOPD", "MOPD"):
        for row in table.to_dict("records"):
            assert f"{100 * row[measure]:.1f} ± {100 * row[f'{measure}_std']:.1f}" in words
            assert f"{100 * row[f'{measure}_floor']:.1f}" in words
    assert {"96.7 ± 0.7", "58.2 ± 7.5", "floor", "published"} <= set(words)
    assert any("orders: 6, repeats: 2" in word for word in words)
    plain = plots.disparity_picture(disparity(random_records(noise_runs=0, repeats=1)))
    assert not {"floor", "published", "orders"} & set(texts_of(plain.axes[0]))
    uneven = plots.disparity_picture(table.assign(orders=[6, 2])).axes[0]
    assert {"orders", "2", "methods with fewer orders than others are not compared"} <= set(texts_of(uneven))


@pytest.mark.parametrize("count", [1, 3, len(METHODS)])
def test_figures_of_any_number_of_methods_fit_a_column_and_nothing_is_cut_off(count: int) -> None:
    methods = METHODS[:count]
    records = random_records(methods=methods, repeats=2)
    names = [f"pick up with {name} hands" for name in UNITS]
    figures = {
        "scatter": plots.order_scatter(runs(records)),
        "learning": plots.learning_curve(accuracy_by_step(records)),
        "growth": plots.opd_growth(aopd_growth(records)),
        "architecture": plots.architecture(pd.concat([CURVES.assign(method=method) for method in methods])),
        "matrices": plots.accuracy_matrices(mean_accuracy_matrices(records)),
        "matrices of an order": plots.accuracy_matrices(mean_accuracy_matrices(records), ORDERS[0]),
        "fate": plots.class_fate(accuracy_by_position(records), names),
        "orders": plots.best_worst_orders(extreme_orders(records[records["method"] == "bare"]), names),
        "table": plots.disparity_picture(disparity(records), published="ucla"),
    }
    for name, figure in figures.items():
        figure.draw_without_rendering()
        drawn = figure.get_tightbbox()
        assert figure.get_figwidth() <= COLUMN_INCHES, name
        assert min(drawn.min) >= -0.01, name
        assert (drawn.max <= figure.get_size_inches() + 0.01).all(), name


@pytest.mark.parametrize("suffix", plots.FORMATS)
def test_the_same_figure_gives_the_same_file(tmp_path: Path, suffix: str) -> None:
    for name in "ab":
        plots.save(plots.opd_growth(aopd_growth(RECORDS)), tmp_path / f"{name}{suffix}")
    first, second = ((tmp_path / f"{name}{suffix}").read_bytes() for name in "ab")
    assert first == second
    assert first.startswith({".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[suffix])


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"scatter\.jpg: a figure is called NAME\.png"):
        plots.save(plots.order_scatter(RUNS), tmp_path / "scatter.jpg")
