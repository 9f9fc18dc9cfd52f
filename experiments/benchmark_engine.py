"""What the engine saves and what it costs: tree, workers, overhead, and the whole against the usual way.

The usual way learns every order by itself, on DGL graphs batched anew every epoch. Everything is timed in one run; the
usual way on a few orders, scaled up. The last line is one JSON object.

    python experiments/benchmark_engine.py [--data data/ucla.h5] [--epochs 100] [--orders 1]
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmark_learning import on_graphs

from skeleton_cgl import Study
from skeleton_cgl.engine import run as engine
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.training import Training
from skeleton_cgl.process import settle
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.skeletons.datasets import open_dataset


def seconds(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def study(data: str, epochs: int, **orders: Any) -> Study:
    return Study(scenario={"data": data}, methods="bare", orders=orders, training={"epochs": epochs, "device": "cpu"})


def run(asked: Study, folder: Path, **options: Any) -> float:
    """Return the seconds of running a study into a new store."""
    store = folder / f"{time.monotonic_ns()}.db"
    return seconds(lambda: asked.run(store, progress=False, **options))


@contextmanager
def timing(owner: object, name: str) -> Iterator[list[float]]:
    """Give the seconds of every call of a function within."""
    usual, spent = getattr(owner, name), []

    def timed(*arguments: Any) -> Any:
        started = time.perf_counter()
        found = usual(*arguments)
        spent.append(time.perf_counter() - started)
        return found

    setattr(owner, name, timed)
    try:
        yield spent
    finally:
        setattr(owner, name, usual)


def measure_overhead(data: str, epochs: int, folder: Path) -> float:
    """Return the part of a stage's time that is not training, on a few orders in this process."""
    asked = study(data, epochs, tasks=3)
    stages = len(make_plan(asked).stages)
    # What is done once per study, whatever its size, is not part of a stage: planning, and trying the method.
    planning, trying = (timing(engine, name) for name in ("plan_of", "refuse_forgetful_methods"))
    with planning as planned, trying as tried, timing(Learner, "_train") as trained:
        whole = run(asked, folder)
    learned = whole - sum(planned) - sum(tried)
    return (learned - sum(trained[-stages:])) / learned


def usual_way(data: str, epochs: int, orders: int, rebuild: bool) -> float:
    """Return the seconds of one order learned by itself on the DGL path."""
    settle()
    with open_dataset(data) as archive:
        layout = archive.layout
    scenario = on_graphs(SkeletonScenario(data), layout, rebuild)
    lessons = scenario.lessons(scenario.default)

    def learn() -> None:
        learner = make_learner(scenario, training=Training(epochs=epochs))
        for step in range(1, len(lessons) + 1):
            prefix = lessons[:step]
            learner.learn(scenario.experience(prefix), 0)
            scenario.score(learner.answer(scenario.queries(prefix)), prefix)

    return sum(seconds(learn) for _ in range(orders)) / orders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="synthetic")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--orders", type=int, default=1, help="orders learned the usual way")
    options = parser.parse_args()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        short = max(1, options.epochs // 20)
        figures["tree_s"] = run(study(options.data, short, tasks="all"), folder)
        figures["alone_s"] = run(study(options.data, short, tasks="all"), folder, tree=False)
        figures["alone_over_tree"] = figures["alone_s"] / figures["tree_s"]
        print(f"all orders alone {figures['alone_s']:.0f} s, as a tree {figures['tree_s']:.0f} s", flush=True)
        figures["overhead_of_a_stage"] = measure_overhead(options.data, options.epochs, folder)
        print(f"not training: {figures['overhead_of_a_stage']:.1%} of a stage", flush=True)
        dgl = usual_way(options.data, options.epochs, options.orders, rebuild=False)
        rebuilt = usual_way(options.data, options.epochs, options.orders, rebuild=True)
        figures["usual_120_orders_s"], figures["usual_rebuilt_120_orders_s"] = 120 * dgl, 120 * rebuilt
        asked = study(options.data, options.epochs, tasks="all")
        figures["two_workers_s"] = run(asked, folder, workers=2)
        few = study(options.data, options.epochs, tasks=4)
        figures["few_one_worker_s"], figures["few_two_workers_s"] = run(few, folder), run(few, folder, workers=2)
        figures["one_over_two_workers"] = figures["few_one_worker_s"] / figures["few_two_workers_s"]
        figures["usual_over_engine"] = figures["usual_120_orders_s"] / figures["two_workers_s"]
        figures["usual_rebuilt_over_engine"] = figures["usual_rebuilt_120_orders_s"] / figures["two_workers_s"]
    for name, value in figures.items():
        print(f"{name:28} {value:10.2f}")
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
