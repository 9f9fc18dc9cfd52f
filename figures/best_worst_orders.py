"""The kindest and the cruellest orders by final AA, with the final accuracy of each of their tasks.

python figures/best_worst_orders.py results/ucla.db --method replay --out orders.png
"""

import argparse

from command import make_parser, of_kind, open_results, run

from skeleton_cgl.analysis.fate import extreme_orders
from skeleton_cgl.analysis.performance import choose
from skeleton_cgl.analysis.plots import best_worst_orders, save


def draw(options: argparse.Namespace) -> None:
    results = open_results(options.store, options.study)
    records = of_kind(results.records, options.kind)
    if options.method:
        choose("method", options.method, list(records["method"].unique()))
        records = records[records["method"] == options.method]
    save(best_worst_orders(extreme_orders(records, options.count), results.units), options.out)


if __name__ == "__main__":
    parser = make_parser(__doc__, kind=True)
    parser.add_argument("--method", help="one method; all")
    parser.add_argument("--count", type=int, default=10, help="orders at each end: %(default)s")
    run(draw, parser)
