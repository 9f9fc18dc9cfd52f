"""AA against AF, one point per order, one colour and marker per method, with the bound of Theorem 1 (Figs. 3 to 6).

python figures/order_scatter.py results/ucla.db --out scatter.png [--kind task|class|both] [--study NAME]
"""

import argparse

from skeleton_cgl import Results
from skeleton_cgl.analysis.plots import order_scatter, save

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--out", required=True)
    parser.add_argument("--kind", choices=["task", "class", "both"], default="both")
    parser.add_argument("--study")
    options = parser.parse_args()
    runs = Results(options.store, options.study).runs()
    wanted = (runs.noise == 0) & ((runs.kind == options.kind) | (options.kind == "both"))
    save(order_scatter(runs[wanted]), options.out)
