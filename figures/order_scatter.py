"""AA against AF, one point per order (its mean over repeats), with the bound of Theorem 1 (Figs. 3 to 6).

A panel per study and backbone; give several stores, or several studies of one store, to see them side by side.

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


def panel_names(studies: list[Results]) -> list[str]:
    """Return a name for each study: its data set's, or if two are of one data set, the store's and its own."""
    scenarios = [results.study["spec"]["scenario"] for results in studies]
    data = [each.get("dataset") or Path(each.get("data", "synthetic")).stem for each in scenarios]
    if len(set(data)) == len(data):
        return data
    return [f"{results.path.stem}: {results.study['name']}" for results in studies]


def draw(options: argparse.Namespace) -> None:
    studies = [open_results(store, study) for store in options.store for study in options.study]
    runs = [
        of_kind(results.runs(), options.kind).assign(panel=lambda runs, name=name: name + ", " + runs["backbone"])
        for results, name in zip(studies, panel_names(studies), strict=True)
    ]
    save(order_scatter(mean_over_repeats(pd.concat(runs))), options.out)


if __name__ == "__main__":
    run(draw, make_parser(__doc__, kind=True, several=True))
