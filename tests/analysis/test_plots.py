from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skeleton_cgl.analysis.plots import order_scatter, save
from skeleton_cgl.errors import InputError

ORDER = ((0, 1), (2, 3), (4, 5))
RUNS = pd.DataFrame(
    {
        "backbone": ["gcn"] * 4 + ["stgcn"] * 2,
        "method": ["bare", "bare", "replay", "own", "bare", "replay"],
        "order": [ORDER] * 6,
        "AA": [0.2, 0.3, 0.6, 0.5, 0.25, 0.7],
        "AF": [0.8, 0.7, 0.2, 0.4, 0.75, -0.1],
    }
)


def test_every_run_is_a_point_of_its_method_in_the_panel_of_its_backbone() -> None:
    figure = order_scatter(RUNS)
    assert [panel.get_title() for panel in figure.axes] == ["gcn", "stgcn"]
    points = {each.get_label(): each.get_offsets().data.tolist() for each in figure.axes[0].collections}
    assert points == {"Bare": [[0.2, 0.8], [0.3, 0.7]], "Replay": [[0.6, 0.2]], "own": [[0.5, 0.4]]}
    assert len(figure.axes[1].collections) == 2


def test_the_bound_is_drawn_for_the_number_of_tasks() -> None:
    (line,) = order_scatter(RUNS).axes[0].get_lines()
    accuracy, bound = line.get_data()
    np.testing.assert_allclose(bound, 1 - 3 / 2 * accuracy + 1 / 2)


def test_negative_forgetting_stays_in_the_picture() -> None:
    assert order_scatter(RUNS).axes[1].get_ylim()[0] < -0.1


def test_a_method_looks_the_same_in_every_panel() -> None:
    figure = order_scatter(RUNS)
    colours = [{each.get_label(): each.get_facecolor().tolist() for each in panel.collections} for panel in figure.axes]
    assert colours[0]["Bare"] == colours[1]["Bare"]
    assert colours[0]["Replay"] == colours[1]["Replay"]


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"scatter\.jpg: a figure is called"):
        save(order_scatter(RUNS), tmp_path / "scatter.jpg")
