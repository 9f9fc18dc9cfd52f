"""Order disparity if every order has a split, first weights, memory and training noise of its own.

In a study the orders of a repeat share all of these, so that what differs is the order alone. Here every order is a
study by itself, with a seed of its own. Asking again runs only what the store lacks.

    python experiments/own_splits.py experiments/ucla_task_order.yaml --set orders.tasks=24 --set 'methods=[replay]'
"""

import argparse
import sys
from pathlib import Path

from tqdm import tqdm

from skeleton_cgl import Study
from skeleton_cgl.analysis import Findings, Scores, joined, render, study_table
from skeleton_cgl.engine.orders import Orders
from skeleton_cgl.engine.plan import make_plan

FIRST_SEED = 1000
"""Far from the seeds of ordinary repeats."""


def scores_of(study: Study, store: Path) -> Scores:
    """Return the scores of all orders of a study, each run with a seed of its own."""
    single = study.model_copy(update={"repeats": 1, "noise_floor": None})
    orders = list(dict.fromkeys(run.order for run in make_plan(single).runs))
    scores = []
    for number, order in enumerate(tqdm(orders, study.name, unit=" orders")):
        changes = {"orders": Orders(given=(order,)), "seed": study.seed + FIRST_SEED + number}
        results = single.model_copy(update=changes).run(store, progress=False)
        if results.finished_runs < results.planned_runs:
            sys.exit(f"{store}: order {number} is not finished, see `skeleton-cgl status`; the same command goes on")
        scores.append(results.scores)
    return joined(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="a study file")
    parser.add_argument("--set", dest="changes", action="append", default=[], help="change a field: orders.tasks=24")
    parser.add_argument("--store", type=Path, default=Path("results/own_splits.db"), help="results: %(default)s")
    parser.add_argument("--level", choices=["task", "class"], default="task", help="disparity of: %(default)s")
    options = parser.parse_args()
    study = Study.from_file(options.study, options.changes)
    print(render(study_table(Findings(scores_of(study, options.store), options.level))), end="")


if __name__ == "__main__":
    main()
