"""What a learner keeps between lessons, beside its model: samples, floating-point numbers, bytes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn, entry_of
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.analysis.table import EMPTY, Cell, Column

_NOTE = (
    "Memory: what the method keeps after the last task beside the model, mean over orders and repeats. The inputs of "
    "samples that are kept by their ids count, 4 bytes for each of their floats."
)
_UNKNOWN = "what is kept was not counted in full when its records were made"
_FIELDS = {"memory": "memory_bytes", "samples": "memory_samples", "floats": "memory_floats"}
"""The field behind each heading."""
_LARGE = (("G", 1e9), ("M", 1e5), ("k", 1e3))
"""Shown in a larger unit from so many on; those of millions early, so that memories are compared in one unit."""
_UNITS = {"G": 1e9, "M": 1e6, "k": 1e3}


@dataclass(frozen=True)
class _Mean:
    """What a learner keeps, on the mean; NaN where it is not known."""

    samples: float
    floats: float
    bytes: float


class Memory(Metric):
    """The memory of a method after the last task: samples, floating-point numbers and bytes."""

    offers: ClassVar[tuple[str, ...]] = tuple(_FIELDS)

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        found = [_mean(findings.compared.of_learner(name.number)) for name in findings.names]
        notes = (_NOTE, *findings.told([_UNKNOWN if np.isnan(each.bytes) else "" for each in found]))
        rows = [_cells(each) for each in found]
        return tuple(
            MetricColumn(Column(heading, (field,)), tuple(row[heading] for row in rows), notes, optional=True)
            for heading, field in _FIELDS.items()
        )


def _mean(scores: Scores) -> _Mean:
    costs = scores.costs
    if costs is None:
        return _Mean(np.nan, np.nan, np.nan)
    return _Mean(*(entry_of(scores, each).value for each in (costs.samples, costs.floats, costs.bytes)))


def _cells(of: _Mean) -> dict[str, Cell]:
    """Return the cells of a learner by their headings."""
    if np.isnan(of.bytes):
        return dict.fromkeys(_FIELDS, Cell(EMPTY, (None,)))
    return {
        "memory": Cell(_memory(of), (round(of.bytes, 1),)),
        "samples": Cell(_plain(of.samples), (round(of.samples, 1),)),
        "floats": Cell(_short(of.floats), (round(of.floats, 1),)),
    }


def _memory(of: _Mean) -> str:
    """Return a memory in words: its samples where it has some, else its numbers, and how large it is."""
    if not of.bytes:
        return "nothing"
    number, what = (_plain(of.samples), "sample") if of.samples else (_short(of.floats), "float")
    return f"{number} {what}{'s' * (number != '1')}, {_short(of.bytes, 'B')}"


def _plain(number: float) -> str:
    """Return a mean of whole numbers: without decimals where it is one."""
    return f"{number:,.0f}" if number == round(number) else f"{number:,.1f}"


def _short(number: float, unit: str = "") -> str:
    """Return a number in the unit that suits its size: 512 B, 12 kB, 0.61 MB, 4.0 M."""
    for prefix, least in _LARGE:
        if number >= least:
            scaled = number / _UNITS[prefix]
            decimals = 2 if scaled < 0.995 else 1 if scaled < 9.95 else 0
            return f"{scaled:.{decimals}f} {prefix}{unit}"
    return f"{_plain(number)} {unit}".strip()
