"""Stores made up for the tests: a study and its records as if learned, without learning."""

from pathlib import Path

import pandas as pd

from skeleton_cgl.analysis.performance import RUN
from skeleton_cgl.engine.record import Record
from skeleton_cgl.engine.store import Store
from skeleton_cgl.scenarios.lessons import describe

UNITS = ("walk", "sit", "stand", "throw", "carry", "drop")
VERSIONS = {"skeleton_cgl": "0.1.0", "torch": "2.13.0"}


def made_store(path: Path, records: pd.DataFrame, name: str = "made", units: tuple[str, ...] = UNITS) -> Path:
    """Write a store of one study with these records, 1.5 seconds each on two machines, and a run never finished."""
    orders = [order for order, kind in zip(records["order"], records["kind"], strict=True) if kind == "task"]
    repeats = records["repeat"].nunique()
    study = {
        "id": 1,
        "name": name,
        "spec": {"name": name, "scenario": {"data": "made.h5"}, "repeats": repeats, "seed": 3, "noise_floor": 0},
        "digests": [f"digest of repeat {repeat}" for repeat in range(repeats)],
        "units": list(units),
        "tasks": sorted(orders[0]),
        "created": "2026-01-02T03:04:05+00:00",
    }
    unfinished = ("task", "gcn", "bare", 99, 0, describe(orders[0]))
    runs = {unfinished: ["absent"]}
    kept = []
    for number, row in enumerate(records.sort_values("step", kind="stable").to_dict("records")):
        backbone, method, repeat, noise, kind, order = (row[column] for column in RUN)
        host = f"machine-{number % 2}"
        record = Record(f"{number:032}", row["test"], row["validation"], 1.5, host, VERSIONS, seed=number)
        runs.setdefault((kind, backbone, method, repeat, noise, describe(order)), []).append(record.key)
        kept.append((describe(order[: row["step"]]), backbone, method, repeat, noise, record))
    with Store(path) as store:
        store.take_over([study], {1: runs}, kept)
    return path
