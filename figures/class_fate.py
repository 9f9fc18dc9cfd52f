"""Final accuracy of every class by its position in the order: which classes suffer, and when.

python figures/class_fate.py results/ucla.db --out fate.png
"""

import argparse

from command import make_parser, of_kind, open_results, run

from skeleton_cgl.analysis.fate import accuracy_by_position
from skeleton_cgl.analysis.plots import class_fate, save


def draw(options: argparse.Namespace) -> None:
    results = open_results(options.store, options.study)
    save(class_fate(accuracy_by_position(of_kind(results.records, options.kind)), results.units), options.out)


if __name__ == "__main__":
    run(draw, make_parser(__doc__, kind=True))
