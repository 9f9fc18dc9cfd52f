"""How benchmarks measure: variants in turn, their medians; and the memory a process has needed."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path


def alternate(
    variants: dict[str, Callable[[], None]], rounds: int, now: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the median milliseconds of each variant, run in turn; now: the clock, in seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for run in variants.values():
        run()
    for _ in range(rounds):
        for name, run in variants.items():
            started = now()
            run()
            seconds[name].append(now() - started)
    return {name: 1000 * statistics.median(values) for name, values in seconds.items()}


def peak_memory() -> float:
    """Return the peak memory of this process in GB; getrusage would begin with that of the process it came from."""
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1e6
