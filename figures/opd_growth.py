"""AOPD expected of so many orders, exact; where one order was run with several seeds, the same for the seeds, dashed.

python figures/opd_growth.py results/ucla.db --level class --out growth.png
"""

import argparse

from command import make_parser, open_results, run

from skeleton_cgl.analysis.curves import aopd_growth
from skeleton_cgl.analysis.plots import opd_growth, save


def draw(options: argparse.Namespace) -> None:
    records = open_results(options.store, options.study).records
    save(opd_growth(aopd_growth(records, options.level)), options.out)


if __name__ == "__main__":
    run(draw, make_parser(__doc__, level=True))
