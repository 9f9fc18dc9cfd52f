from collections.abc import Sequence

import numpy as np
import pytest

from skeleton_cgl.analysis.scores import ScoredRun, Scores
from skeleton_cgl.analysis.sweeps import sweep_curves
from skeleton_cgl.errors import InputError
from tests.analysis.made_scores import ORDERS, learner


def swept(
    values: dict[tuple, float], fields: Sequence[str], backbones: Sequence[str] = ("gcn",), noisy: Sequence[tuple] = ()
) -> Scores:
    """Return runs that end with given AA, having begun with 1, by the swept fields, repeat and number of an order."""
    points = list(dict.fromkeys(tuple(point[:-2]) for point in values))
    named = [(backbone, point) for backbone in backbones for point in points]
    learners = tuple(
        learner(number, backbone=backbone, point=tuple(zip(fields, point, strict=True)))
        for number, (backbone, point) in enumerate(named)
    )
    runs, finals = [], []
    for number, (_, wanted) in enumerate(named):
        for (*point, repeat, order), average in values.items():
            if tuple(point) == wanted:
                for noise in range(2 if (*point, repeat, order) in noisy else 1):
                    floor = "seeds" if noise else ""
                    runs.append(ScoredRun(number, repeat, noise, "task", ORDERS[order], floor=floor))
                    finals.append(1.0 if noise else average)
    test = np.ones((len(runs), 3, 6))
    test[:, -1] = np.array(finals)[:, None]
    return Scores(learners, tuple("abcdef"), tuple(runs), test, test)


WIDTHS = {(64, 0, 0): 0.1, (64, 0, 1): 0.3, (64, 1, 0): 0.6, (32, 0, 0): 0.5}


def test_orders_are_averaged_inside_a_repeat_and_repeats_give_mean_and_deviation() -> None:
    curve = sweep_curves(swept(WIDTHS, ["backbone.width"], noisy=[(64, 0, 0)]))
    assert list(curve["value"]) == [32, 64]
    assert set(curve["field"]) == {"backbone.width"}
    assert curve["AA"].tolist() == pytest.approx([0.5, 0.4])
    assert curve["AF"].tolist() == pytest.approx([0.5, 0.6])
    assert np.isnan(curve["AA_std"][0])
    assert [curve["AA_std"][1], curve["AF_std"][1]] == pytest.approx([0.4 / 2**0.5] * 2)


def test_every_field_is_a_curve_for_each_setting_of_the_others() -> None:
    grid = {(width, depth, 0, 0): width / 1000 + depth / 100 for width in (64, 256, 32) for depth in (2, 1)}
    curves = sweep_curves(swept(grid, ["backbone.width", "backbone.depth"]))
    along = curves.groupby(["field", "others"], sort=False)["value"].agg(list)
    assert along.to_dict() == {
        ("backbone.width", "depth=1"): [32, 64, 256],
        ("backbone.width", "depth=2"): [32, 64, 256],
        ("backbone.depth", "width=32"): [1, 2],
        ("backbone.depth", "width=64"): [1, 2],
        ("backbone.depth", "width=256"): [1, 2],
    }
    row = curves.query("field == 'backbone.depth' and others == 'width=64' and value == 2")
    assert row["AA"].item() == pytest.approx(0.084)


def test_backbones_have_curves_of_their_own() -> None:
    curves = sweep_curves(swept(WIDTHS, ["backbone.width"], ("gcn", "models st-gcn")))
    assert curves["learner"].nunique() == 4


@pytest.mark.parametrize("values", [[], [64, 64], ["relu", "tanh"], [True, False]])
def test_a_study_that_sweeps_no_number_is_refused(values: list) -> None:
    fields = ["backbone.kernel"] if values else []
    runs = {(value, 0, 0): 0.1 for value in values} or {(0, 0): 0.1}
    with pytest.raises(InputError, match="sweeps no field over several numbers"):
        sweep_curves(swept(runs, fields))
