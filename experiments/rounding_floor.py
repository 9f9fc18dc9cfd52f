"""The rounding floor: what is left of a disparity when order and seeds stay, and only the last bits of sums change.

Every order is learned again in several ways to round: with more threads, with fewer instructions. OPD_t is then taken
over the ways instead of over orders, AOPD and MOPD as always, averaged over orders and repeats; in percent. A store per
way lies in the folder of results; asking again runs only what they lack.

    python experiments/rounding_floor.py experiments/ucla_task_order.yaml --set 'methods=[bare, lwf, replay]'
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from skeleton_cgl import Results, Study
from skeleton_cgl.analysis.disparity import Finals, final_accuracies

WAYS = {
    "1 thread": {},
    "2 threads": {"THREADS": "2"},
    "3 threads": {"THREADS": "3"},
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    },
    "no AVX": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
    },
    "MKL alike everywhere": {"MKL_CBWR": "COMPATIBLE"},
}
"""Ways to round, as variables of the environment of a process."""


def learn_in(way: str, options: argparse.Namespace) -> Path:
    """Learn the study in a process of its own that rounds in one way; return its store."""
    store = options.results / f"rounding_{way.replace(' ', '_')}.db"
    changes = [part for change in options.changes for part in ("--set", change)]
    command = [
        sys.executable,
        __file__,
        str(options.study),
        "--in",
        str(store),
        "--orders",
        str(options.orders),
        *changes,
    ]
    print(f"{way}: {store}", file=sys.stderr)
    subprocess.run(command, env={**os.environ, **WAYS[way]}, check=True)
    return store


def learn_here(study: Study, store: Path) -> None:
    """Learn a study in this process, with as many threads as the environment says."""
    import torch

    from skeleton_cgl.process import settle

    settle()
    torch.set_num_threads(int(os.environ.get("THREADS", "1")))
    study.run(store)


def spreads(ways: list[Finals]) -> np.ndarray:
    """Return OPD (runs, T) over ways to round, of the runs of one learner."""
    values = np.array([finals.values[_sequence(finals)] for finals in ways])
    return values.max(axis=0) - values.min(axis=0)


def _sequence(finals: Finals) -> list[int]:
    runs = list(zip(finals.repeat.tolist(), finals.orders, strict=True))
    return sorted(range(len(runs)), key=runs.__getitem__)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="a study file")
    parser.add_argument("--set", dest="changes", action="append", default=[], help="change a field: repeats=2")
    parser.add_argument("--orders", type=int, default=4, help="so many orders: %(default)s")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="ways to round: all")
    parser.add_argument("--level", choices=["task", "class"], default="task", help="disparity of: %(default)s")
    parser.add_argument("--results", type=Path, default=Path("results"), help="where stores are: %(default)s")
    parser.add_argument("--in", dest="store", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    asked = ["repeats=1", "noise_floor=0", f"orders.tasks={options.orders}", *options.changes]
    study = Study.from_file(options.study, asked)
    if options.store is not None:
        learn_here(study, options.store)
        return
    by_way = [Results(learn_in(way, options)).scores for way in options.ways]
    print(f"{study.name}: {len(options.ways)} ways to round ({', '.join(options.ways)}), {options.orders} orders")
    print(f"{'method':12}{'AOPD':>8}{'MOPD':>8}")
    finals = zip(*(final_accuracies(scores, options.level) for scores in by_way), strict=True)
    for learner, ways in zip(by_way[0].learners, finals, strict=True):
        opd = 100 * spreads(list(ways))
        print(f"{learner.method.label or learner.method.name:12}{opd.mean():8.1f}{opd.max(axis=1).mean():8.1f}")


if __name__ == "__main__":
    main()
