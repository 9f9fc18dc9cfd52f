"""Joint training on Aromaticity as CGLB has it, with one split, and with one drawn anew for every task.

CGLB's code divides the molecules anew whenever a task comes, so that most of what it tests on was learned from before.
For every repeat, the score after the last of 15 tasks of two counts (class-il), both ways:

    python experiments/joint_reshuffled.py data/molecules/aromatic_atom_count.csv --repeats 3
"""

import argparse
from typing import Any

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.learning.training import Training
from skeleton_cgl.process import settle
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.scenarios.settings import make_scenario

TASKS, EACH = 15, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="aromatic_atom_count.csv")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    options = parser.parse_args()
    settle()
    for repeat in range(options.repeats):
        same = joint(options, repeat, [repeat] * TASKS)
        anew = joint(options, repeat, [1000 + repeat * TASKS + task for task in range(TASKS)])
        print(f"repeat {repeat}: one split {same:.1%}, drawn anew {anew:.1%}", flush=True)


def joint(options: Any, repeat: int, seeds: list[int]) -> float:
    """Return the accuracy, classes counting equally, after learning all classes so far in turn, divided by seeds."""
    training = Training(epochs=options.epochs, batch_size=128, patience=10, monitor="score")
    learner = make_learner(scenario_of(options.data, seeds[0]), "skeleton-gcn", "bare", training, repeat)
    for task, seed in enumerate(seeds):
        scenario = scenario_of(options.data, seed)
        prefix = scenario.lessons((tuple(range(EACH * (task + 1))),))
        learner.learn(scenario.experience(prefix), 1000 * repeat + task)
    scores = scenario.score(learner.answer(scenario.queries(prefix)), prefix)
    return float(scores[0].values.mean())


def scenario_of(data: str, seed: int) -> Scenario:
    """Return Aromaticity as CGLB has it, its molecules divided by a seed."""
    return make_scenario({"kind": "graph", "data": data, "reader": {"features": "atoms", "fewest": 20}}, seed)


if __name__ == "__main__":
    main()
