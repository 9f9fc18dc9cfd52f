"""AA after each step, mean and spread over orders.

python figures/learning_curve.py results/ucla.db --out learning.png
"""

import argparse

from command import make_parser, of_kind, open_results, run

from skeleton_cgl.analysis.curves import accuracy_by_step
from skeleton_cgl.analysis.plots import learning_curve, save


def draw(options: argparse.Namespace) -> None:
    records = open_results(options.store, options.study).records
    save(learning_curve(accuracy_by_step(of_kind(records, options.kind))), options.out)


if __name__ == "__main__":
    run(draw, make_parser(__doc__, kind=True))
