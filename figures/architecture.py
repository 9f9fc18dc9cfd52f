"""AA and AF against what a study sweeps, such as width or depth, mean and spread over repeats (Figs. 7, 8).

python figures/architecture.py results/ucla.db --study ucla_width --out width.png
"""

import argparse

from command import make_parser, open_results, run

from skeleton_cgl.analysis.plots import architecture, save
from skeleton_cgl.analysis.sweeps import sweep_curves


def draw(options: argparse.Namespace) -> None:
    results = open_results(options.store, options.study)
    save(architecture(sweep_curves(results.runs())), options.out)


if __name__ == "__main__":
    run(draw, make_parser(__doc__))
