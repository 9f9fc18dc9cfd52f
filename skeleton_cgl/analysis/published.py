"""The order disparities of the skeleton study as published, to be set beside our own."""

import io

import pandas as pd

SOURCE = (
    "Wei, De Schepper, Mets: Benchmarking sensitivity of continual graph learning for skeleton-based action "
    "recognition (2024)"
)

DATASETS = ("ucla", "ntu")
ORDERS = {"task": 120, "class": 220}

# Percent, GCN backbone, mean and standard deviation of 5 repeats.
_PERCENT = """
dataset level method  AOPD  AOPD_std  MOPD  MOPD_std
ucla    task  bare    96.74  0.72   100     0
ucla    task  ewc     93.94  0.56   100     0
ucla    task  mas     89.46  1.6     98.7   1.61
ucla    task  twp     85.39  1.93   100     0
ucla    task  lwf     63.21  2.46    75.04  6.46
ucla    task  gem     83.89  1.45   100     0
ucla    task  replay  58.21  7.54    80.25  5.2
ntu     task  bare    92.91  0.38    99.24  0
ntu     task  ewc     85.36  0.88    94.24  1.23
ntu     task  mas     87.88  0.51    95.61  1.3
ntu     task  twp     77.45  1.4     89.24  1.11
ntu     task  lwf     78.36  1.1     93.48  1.13
ntu     task  gem     80.91  0.25    94.09  0.88
ntu     task  replay  39.52  0.94    53.18  2.41
ucla    class bare   100     0      100     0
ucla    class ewc    100     0      100     0
ucla    class mas     99.73  0.33   100     0
ucla    class twp     99.3   0.45   100     0
ucla    class lwf     93.44  1.46   100     0
ucla    class gem     99.59  0.33   100     0
ucla    class replay  82.54  4.56   100     0
ntu     class bare    99.73  0.06   100     0
ntu     class ewc     98.12  0.49   100     0
ntu     class mas     97.61  0.4    100     0
ntu     class twp     95.73  0.74   100     0
ntu     class lwf     94.0   0.61    98.79  0.61
ntu     class gem     95.36  0.49   100     0
ntu     class replay  50.52  1.16    71.82  2.27
"""

VALUES = ("AOPD", "AOPD_std", "MOPD", "MOPD_std")


def published_note(dataset: str, level: str) -> str:
    """Return where published values come from, and over how many orders they are."""
    return f"Published: {dataset}, over {ORDERS[level]} orders, {SOURCE}."


def published_disparity() -> pd.DataFrame:
    """Return the table of SOURCE as fractions: dataset, backbone, level, method, AOPD, AOPD_std, MOPD, MOPD_std."""
    table = pd.read_csv(io.StringIO(_PERCENT), sep=r"\s+")
    table[list(VALUES)] /= 100
    table.insert(1, "backbone", "gcn")
    return table
