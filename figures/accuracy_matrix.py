"""The performance matrix of every method: accuracy on each task of an order after each step, for one order or averaged.

python figures/accuracy_matrix.py results/ucla.db --out matrix.png
python figures/accuracy_matrix.py results/ucla.db --order "0,1 > 2,3 > 4,5 > 6,7 > 8,9" --out matrix.png
"""

import argparse

from command import make_parser, of_kind, open_results, run

from skeleton_cgl.analysis.curves import mean_accuracy_matrices
from skeleton_cgl.analysis.plots import accuracy_matrices, save
from skeleton_cgl.scenarios.lessons import Order, parse


def order(text: str) -> Order:
    return parse(text)


def draw(options: argparse.Namespace) -> None:
    records = open_results(options.store, options.study).records
    matrices = mean_accuracy_matrices(of_kind(records, options.kind), options.order)
    save(accuracy_matrices(matrices, options.order), options.out)


if __name__ == "__main__":
    parser = make_parser(__doc__, kind=True)
    parser.add_argument("--order", type=order, help="one order, such as '0,1 > 4,5 > 2,3'; the mean of all")
    run(draw, parser)
