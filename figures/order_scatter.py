"""AA against AF, one point per order (its mean over repeats), with the bound of Theorem 1 (Figs. 3 to 6).

A panel per data set and backbone; give several stores, or several studies of one store, to see them side by side.

python figures/order_scatter.py results/ucla.db --out scatter.png
python figures/order_scatter.py results/ucla.db results/ntu.db --kind task --out scatter.pdf
"""

import argparse
from pathlib import Path

import pandas as pd
from command import make_parser, of_kind, open_results, run

from skeleton_cgl import Results
from skeleton_cgl.analysis.curves import mean_over_repeats
from skeleton_cgl.analysis.plots import order_scatter, save


def runs_by_panel(results: Results) -> pd.DataFrame:
    scenario = results.study["spec"]["scenario"]
    data = scenario.get("dataset") or Path(scenario.get("data", "synthetic")).stem
    runs = results.runs()
    return runs.assign(panel=[f"{data}, {backbone}" for backbone in runs["backbone"]])


def draw(options: argparse.Namespace) -> None:
    runs = [runs_by_panel(open_results(store, study)) for store in options.store for study in options.study]
    save(order_scatter(mean_over_repeats(of_kind(pd.concat(runs), options.kind))), options.out)


if __name__ == "__main__":
    run(draw, make_parser(__doc__, kind=True, several=True))
