"""Searching the parameters of methods: every point of a grid is learned as a method of its own, validation decides.

Test answers are in the records too; the choice never looks at them.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import yaml
from pydantic import Field, field_validator, model_validator

from skeleton_cgl.analysis.results import Results
from skeleton_cgl.config import check, did_you_mean
from skeleton_cgl.engine.orders import Orders
from skeleton_cgl.engine.rows import LearnerRow
from skeleton_cgl.engine.study import MOST_VARIANTS, Component
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.study import Study


class Search(Study):
    """A study whose methods are tried with every combination of the values in `grid`: {ewc: {strength: [1, 100]}}.

    It looks at the default order unless `orders` says otherwise. Methods without a grid are taken as they are.
    """

    orders: Orders = Orders(tasks="default")
    grid: dict[str, dict[str, tuple[Any, ...]]] = Field(min_length=1)

    @field_validator("grid")
    @classmethod
    def _grid_has_points(cls, grid: dict[str, Any]) -> dict[str, Any]:
        for method, values in grid.items():
            for parameter, tried in values.items():
                if not tried:
                    raise ValueError(f"{method}.{parameter}: give at least one value")
            points = math.prod(map(len, values.values()))
            if points > MOST_VARIANTS:
                raise ValueError(f"{method}: {points:,} combinations, expected at most {MOST_VARIANTS:,}")
        return grid

    @model_validator(mode="after")
    def _grid_is_of_methods(self) -> "Search":
        names = [str(method) for method in self.methods]
        for name in self.grid:
            if name not in names:
                raise ValueError(f"grid: {name!r} is none of the methods{did_you_mean(name, names)}")
        return self

    def candidates(self) -> dict[str, list[Component]]:
        """Return the components tried for every method."""
        return {str(method): self._tried(method) for method in self.methods}

    def _tried(self, method: Component) -> list[Component]:
        grid = self.grid.get(str(method), {})
        points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        return [_with_parameters(method, point) for point in points]

    def as_study(self) -> Study:
        """Return the study that learns all candidates."""
        fields = {name: getattr(self, name) for name in Study.model_fields}
        tried = tuple(itertools.chain(*self.candidates().values()))
        return check({**fields, "methods": tried}, Study, where=f"search {self.name!r}: grid")


def _with_parameters(method: Component, point: dict[str, Any]) -> Component:
    words = " ".join([method.label, *(f"{parameter}={value}" for parameter, value in point.items())])
    return Component(name=method.name, label=words if method.label else "", parameters={**method.parameters, **point})


@dataclass(frozen=True)
class Candidate:
    """A method with one combination of parameters, and its validation AA in percent."""

    component: Component
    score: float

    def __str__(self) -> str:
        parameters = (f"{name}={value}" for name, value in self.component.parameters.items())
        return self.component.label or " ".join([str(self.component), *parameters])


@dataclass(frozen=True)
class Choice:
    """What validation says of the candidates of one method, best first."""

    method: Component
    tried: tuple[Candidate, ...]

    @property
    def winner(self) -> Candidate:
        return self.tried[0]


def run_search(search: Search, store: str | Path, **options: Any) -> tuple[Results, list[Choice]]:
    """Run what `store` lacks of a search; return its results and, if all runs are finished, what was chosen."""
    results = search.as_study().run(store, **options)
    finished = results.finished_runs == results.planned_runs
    return results, choose(search, results.scores.learners, results.runs()) if finished else []


def choose(search: Search, learners: Sequence[LearnerRow], runs: pd.DataFrame) -> list[Choice]:
    """Return the choice for every method by validation AA, the mean over repeats and orders; the first of equals wins.

    `runs` is what `Results.runs` gives. With several backbones or variants, its mean over them
    judges a candidate.
    """
    by_learner = runs[runs["noise"] == 0].groupby("learner")["validation_AA"]
    choices = []
    for method, components in zip(search.methods, search.candidates().values(), strict=True):
        tried = []
        for component in components:
            wanted = (component.name, component.parameters)
            by = [each.number for each in learners if (each.method.name, dict(each.method.parameters)) == wanted]
            values = [value for number, group in by_learner if number in by for value in group]
            if not values:
                raise InputError(f"search {search.name!r}: no finished run of {Candidate(component, nan)}")
            tried.append(Candidate(component, fmean(values)))
        choices.append(Choice(method, tuple(sorted(tried, key=lambda each: -each.score))))
    return choices


def write_fragment(search: Search, choices: list[Choice], path: str | Path) -> None:
    """Write the winners as a study fragment, for the `include` of a study file."""
    methods = [
        each.method.model_copy(update={"parameters": each.winner.component.parameters}).written() for each in choices
    ]
    lines = [f"# Chosen by validation AA (percent) in the search {search.name}; to be included in a study file."]
    lines += [f"#   {each.winner}: {each.winner.score:.2f}" for each in choices if len(each.tried) > 1]
    text = yaml.safe_dump({"methods": methods}, sort_keys=False, default_flow_style=None)
    with write_beside(Path(path)) as unfinished:
        unfinished.write_text("\n".join([*lines, text]), encoding="utf-8")
