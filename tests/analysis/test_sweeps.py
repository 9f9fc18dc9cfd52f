import numpy as np
import pandas as pd
import pytest

from skeleton_cgl.analysis.sweeps import COLUMNS, sweep_curves
from skeleton_cgl.errors import InputError
from tests.analysis.made_records import ORDERS


def swept(values: dict[tuple, float], fields: list[str], backbone: str = "gcn", noise: int = 0) -> pd.DataFrame:
    """Return runs of given AA, and AF = 1 − AA, by the swept fields, repeat and number of an order."""
    rows = []
    for (*point, repeat, order), average in values.items():
        named = dict(zip(fields, point, strict=True))
        label = ", ".join(f"{field.removeprefix('backbone.')}={value}" for field, value in named.items())
        run = (f"{backbone} {label}", "bare", repeat, noise, "task", ORDERS[order], average, 1 - average, 1.0, 0.0)
        rows.append({**dict(zip(COLUMNS, run, strict=True)), **named})
    return pd.DataFrame(rows)


WIDTHS = {(64, 0, 0): 0.1, (64, 0, 1): 0.3, (64, 1, 0): 0.6, (32, 0, 0): 0.5}


def test_orders_are_averaged_inside_a_repeat_and_repeats_give_mean_and_deviation() -> None:
    noisy = swept({(64, 0, 0): 1.0}, ["backbone.width"], noise=1)
    curve = sweep_curves(pd.concat([swept(WIDTHS, ["backbone.width"]), noisy]))
    assert list(curve["value"]) == [32, 64]
    assert set(curve["field"]) == {"backbone.width"}
    assert set(curve["backbone"]) == {"gcn"}
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
    both = pd.concat([swept(WIDTHS, ["backbone.width"], name) for name in ("gcn", "models st-gcn")])
    assert list(sweep_curves(both)["backbone"].unique()) == ["gcn", "models st-gcn"]


@pytest.mark.parametrize("values", [None, [64, 64], ["relu", "tanh"], [True, False]])
def test_a_study_that_sweeps_no_number_is_refused(values: list | None) -> None:
    runs = swept({(64, 0, 0): 0.1, (64, 0, 1): 0.2}, ["backbone.width"]).drop(columns="backbone.width")
    with pytest.raises(InputError, match="sweeps no field over several numbers"):
        sweep_curves(runs if values is None else runs.assign(**{"backbone.kernel": values}))
