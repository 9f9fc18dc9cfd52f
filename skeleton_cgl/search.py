"""Searching the parameters of methods: every point of a grid is learned as a method of its own, validation decides.

Test answers are in the records too; the choice never looks at them.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from pydantic import Field, field_validator, model_validator

from skeleton_cgl.analysis.results import Results
from skeleton_cgl.config import did_you_mean
from skeleton_cgl.engine.orders import Orders
from skeleton_cgl.engine.run import run_study
from skeleton_cgl.engine.study import Component, Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside


class Search(Study):
    """A study whose methods are tried with every combination of the values in `grid`: {ewc: {strength: [1, 100]}}.

    It looks at the default order unless `orders` says otherwise. Methods without a grid are taken as they are.
    """

    orders: Orders = Orders(tasks="default")
    grid: dict[str, dict[str, tuple[Any, ...]]] = Field(min_length=1)

    @field_validator("grid")
    @classmethod
    def _grid_has_points(cls, grid: dict) -> dict:
        for method, values in grid.items():
            for parameter, tried in values.items():
                if not tried:
                    raise ValueError(f"{method}.{parameter}: give at least one value")
        return grid

    @model_validator(mode="after")
    def _grid_is_of_methods(self) -> "Search":
        titles = [method.title for method in self.methods]
        for title in self.grid:
            if title not in titles:
                raise ValueError(f"grid: {title!r} is none of the methods{did_you_mean(title, titles)}")
        return self

    def candidates(self) -> dict[str, list[Component]]:
        """Return the components tried for every method."""
        return {method.title: self._tried(method) for method in self.methods}

    def _tried(self, method: Component) -> list[Component]:
        grid = self.grid.get(method.title, {})
        points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        return [
            Component(
                name=method.name,
                label=" ".join([method.title, *(f"{parameter}={value}" for parameter, value in point.items())]),
                parameters={**method.parameters, **point},
            )
            for point in points
        ]

    def as_study(self) -> Study:
        """Return the study that learns all candidates."""
        fields = {name: getattr(self, name) for name in Study.model_fields}
        return Study(**{**fields, "methods": tuple(itertools.chain(*self.candidates().values()))})


@dataclass(frozen=True)
class Choice:
    """What validation says of the candidates of one method, best first: label and validation AA; and the winner."""

    method: str
    winner: Component
    scores: pd.Series


def run_search(search: Search, store: str | Path, **options: Any) -> tuple[Results, list[Choice]]:
    """Run what `store` lacks of a search; return its results and, if all runs are finished, what was chosen."""
    results = run_study(search.as_study(), store, **options)
    finished = results.finished_runs == results.planned_runs
    return results, choose(search, results.runs()) if finished else []


def choose(search: Search, runs: pd.DataFrame) -> list[Choice]:
    """Return the choice for every method by validation AA, the mean over repeats and orders; the first of equals wins.

    With several backbones or variants, a candidate is judged by its mean over them.
    """
    means = runs[runs["noise"] == 0].groupby("method", sort=False)["validation_AA"].mean()
    choices = []
    for method, candidates in search.candidates().items():
        labels = [candidate.label for candidate in candidates]
        missing = [label for label in labels if label not in means.index]
        if missing:
            raise InputError(f"search {search.name!r}: no finished run of {', '.join(missing)}")
        scores = means.loc[labels]
        winner = candidates[int(scores.to_numpy().argmax())]
        choices.append(Choice(method, winner, scores.sort_values(ascending=False, kind="stable")))
    return choices


def write_fragment(search: Search, choices: list[Choice], path: str | Path) -> None:
    """Write the winners as a study fragment, for the `include` of a study file."""
    titles = {method.title: method for method in search.methods}
    methods = [
        Component(name=each.winner.name, label=titles[each.method].label, parameters=each.winner.parameters).written()
        for each in choices
    ]
    lines = [f"# Chosen by validation AA in the search {search.name}; to be included in a study file."]
    lines += [f"#   {each.winner.label}: {each.scores.iloc[0]:.4f}" for each in choices if len(each.scores) > 1]
    text = yaml.safe_dump({"methods": methods}, sort_keys=False, default_flow_style=None)
    with write_beside(Path(path)) as unfinished:
        unfinished.write_text("\n".join([*lines, text]), encoding="utf-8")
