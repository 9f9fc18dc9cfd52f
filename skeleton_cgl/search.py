"""Searching the parameters of methods, of the training recipe and of backbones: every combination in a grid is learned,
validation decides.

Test answers are in the records too; the choice never looks at them.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import yaml
from pydantic import Field, field_validator, model_validator

from skeleton_cgl.analysis.results import Results
from skeleton_cgl.config import check, did_you_mean, put
from skeleton_cgl.engine.orders import Orders
from skeleton_cgl.engine.rows import LearnerRow, Values
from skeleton_cgl.engine.study import MOST_VARIANTS, Component
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.learning.training import Training
from skeleton_cgl.plain import shown, whole_number
from skeleton_cgl.study import Study

_SHARED = ("training", "backbone")
"""Entries of a grid that all methods share; the others are methods."""
_NO_PARAMETERS = ("name", "label", "parameters")
"""What a study says of a backbone beside its parameters."""


class Search(Study):
    """A study whose methods are tried with every combination of the values in `grid`: {ewc: {strength: [1, 100]}}.

    The entries `training` ({learning_rate: [0.001, 0.01]}) and `backbone` ({dropout: [0, 0.5]}) are fields of the
    recipe and parameters of every backbone; all methods are tried at each of their points. A search looks at the
    default order unless `orders` says otherwise. Methods without a grid are taken as they are.
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
    def _grid_is_of_what_there_is(self) -> "Search":
        names = [str(method) for method in self.methods]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"methods: two are called {name!r}; give them labels")
        for name in self.grid:
            if name in _SHARED and name in names:
                raise ValueError(f"grid: {name!r} is a method, too; give the method another label")
            if name not in _SHARED and name not in names:
                raise ValueError(f"grid: {shown(name)} is none of the methods{did_you_mean(name, [*names, *_SHARED])}")
        for field in self.grid.get("training", {}):
            if field not in Training.model_fields:
                known = did_you_mean(field, Training.model_fields)
                raise ValueError(f"grid: training: unknown field {shown(field)}{known}")
        for parameter in self.grid.get("backbone", {}):
            if parameter in _NO_PARAMETERS or not parameter.isidentifier():
                raise ValueError(f"grid: backbone: {shown(parameter)} is no parameter of backbones")
        return self

    @model_validator(mode="after")
    def _grid_is_not_swept(self) -> "Search":
        for swept in self.sweep:
            part, *inside = swept.split(".")
            if part == "methods":
                raise ValueError(f"sweep: {shown(swept)}: methods cannot be swept in a search; use the grid")
            searched = self.grid.get(part, {}) if part in _SHARED else {}
            fields = [each for each in inside if whole_number(each) is None]
            if searched and (not fields or fields[0] in searched):
                raise ValueError(f"grid: {part}: {shown(swept)} is swept; leave it to the sweep or to the grid")
        return self

    @property
    def shared_fields(self) -> dict[str, tuple[Any, ...]]:
        """The fields of recipe and backbones in the grid, by their paths in a study, and the values tried."""
        return {f"{part}.{field}": values for part in _SHARED for field, values in self.grid.get(part, {}).items()}

    def points(self) -> list[Values]:
        """Return the combinations of recipe and backbone that are tried; one without fields where the grid has none."""
        fields = self.shared_fields
        return [tuple(zip(fields, values, strict=True)) for values in itertools.product(*fields.values())]

    def candidates(self) -> dict[str, list[Component]]:
        """Return the components tried for every method."""
        return {str(method): self._tried(method) for method in self.methods}

    def _tried(self, method: Component) -> list[Component]:
        grid = self.grid.get(str(method), {})
        points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        return [_with_parameters(method, point) for point in points]

    def as_study(self) -> Study:
        """Return the study that learns all candidates, at every point of recipe and backbone."""
        fields = {name: getattr(self, name) for name in Study.model_fields}
        tried = tuple(itertools.chain(*self.candidates().values()))
        changed = {"methods": tried, "sweep": {**self.sweep, **self.shared_fields}}
        return check({**fields, **changed}, Study, where=f"search {self.name!r}: grid")

    def written_at(self, point: Values) -> dict[str, Any]:
        """Return recipe and backbones at a point as a study file has them, complete, each where the grid has it."""
        backbones = [backbone.written() for backbone in self.backbone]
        fields: dict[str, Any] = {
            "training": self.training.model_dump(mode="json", exclude_unset=True),
            "backbone": backbones if len(backbones) > 1 else backbones[0],
        }
        for path, value in point:
            put(fields, path, value)
        return {part: fields[part] for part in _SHARED if self.grid.get(part)}


def _with_parameters(method: Component, point: dict[str, Any]) -> Component:
    words = " ".join([method.label, *(f"{parameter}={value}" for parameter, value in point.items())])
    return Component(name=method.name, label=words if method.label else "", parameters={**method.parameters, **point})


@dataclass(frozen=True)
class Candidate:
    """A method with one combination of parameters at one point of recipe and backbone; its validation AA in percent."""

    component: Component
    score: float
    point: Values = ()

    @property
    def name(self) -> str:
        """The method with its parameters, without the point."""
        parameters = (f"{name}={value}" for name, value in self.component.parameters.items())
        return self.component.label or " ".join([str(self.component), *parameters])

    def __str__(self) -> str:
        return f"{self.name} at {point_words(self.point)}" if self.point else self.name


@dataclass(frozen=True)
class Choice:
    """What validation says of the candidates of one method, best first; point: that chosen for all methods together."""

    method: Component
    tried: tuple[Candidate, ...]
    point: Values = ()

    @property
    def winner(self) -> Candidate:
        """The best at the point of all methods."""
        return _best_at(self.point, self.tried)

    @property
    def own_best(self) -> Candidate:
        """The best at any point."""
        return self.tried[0]


@dataclass(frozen=True)
class PointScore:
    """A point of recipe and backbone, and the mean over methods of the best validation AA that each has there."""

    point: Values
    score: float


def point_words(point: Values) -> str:
    """Return a point as text, as `--set` takes its parts."""
    return " ".join(f"{path}={value}" for path, value in point)


def run_search(search: Search, store: str | Path, **options: Any) -> tuple[Results, list[Choice]]:
    """Run what `store` lacks of a search; return its results and, if all runs are finished, what was chosen."""
    results = search.as_study().run(store, **options)
    finished = results.finished_runs == results.planned_runs
    return results, choose(search, results.scores.learners, results.runs()) if finished else []


def choose(search: Search, learners: Sequence[LearnerRow], runs: pd.DataFrame) -> list[Choice]:
    """Return the choice for every method by validation AA, the mean over repeats and orders; the first of equals wins.

    `runs` is what `Results.runs` gives. With several backbones or variants, its mean over them judges a candidate. All
    choices have the point that `compare_points` puts first. What has no defined validation AA comes last; refused where
    none of a method has.
    """
    ordinary = runs[runs["noise"] == 0].groupby("learner")["validation_AA"]
    found = {number: list(values) for number, values in ordinary}
    tried: dict[str, list[Candidate]] = {str(method): [] for method in search.methods}
    for point in search.points():
        here = [each for each in learners if all(dict(each.point).get(path) == value for path, value in point)]
        for name, components in search.candidates().items():
            tried[name] += [_candidate(search, component, point, here, found) for component in components]
    for name, candidates in tried.items():
        if all(math.isnan(each.score) for each in candidates):
            raise InputError(f"search {search.name!r}: no run of {name} has a validation AA")
    best_first = [tuple(sorted(each, key=_rank)) for each in tried.values()]
    common = compare_points(search, best_first)[0].point
    return [Choice(method, each, common) for method, each in zip(search.methods, best_first, strict=True)]


def compare_points(search: Search, tried: Sequence[Sequence[Candidate]]) -> list[PointScore]:
    """Return the points of recipe and backbone, best first, from the candidates of every method, best first.

    A study has one recipe for all its methods. Every method counts the same, with the parameters that suit it best at
    the point.
    """
    scores = [
        PointScore(point, fmean(_best_at(point, candidates).score for candidates in tried)) for point in search.points()
    ]
    return sorted(scores, key=_rank)


def _candidate(
    search: Search,
    component: Component,
    point: Values,
    learners: Sequence[LearnerRow],
    found: Mapping[int, list[float]],
) -> Candidate:
    """Return a candidate with its mean score over those of the learners at its point that have its component."""
    wanted = (component.name, component.parameters)
    by = [each.number for each in learners if (each.method.name, dict(each.method.parameters)) == wanted]
    values = [value for number in by for value in found.get(number, [])]
    if not values:
        raise InputError(f"search {search.name!r}: no finished run of {Candidate(component, nan, point)}")
    return Candidate(component, fmean(values), point)


def _best_at(point: Values, best_first: Sequence[Candidate]) -> Candidate:
    return next(each for each in best_first if each.point == point)


def _rank(scored: Candidate | PointScore) -> float:
    return math.inf if math.isnan(scored.score) else -scored.score


def describe_choices(search: Search, choices: Sequence[Choice]) -> str:
    """Return all candidates of every method and all points, best first, with what was chosen; as text."""
    lines = []
    for choice in choices:
        lines.append(f"{choice.method}:")
        for candidate in choice.tried:
            lines.append(f"  {candidate.score:.2f}  {candidate}{' <' if candidate is choice.winner else ''}")
    common = choices[0].point
    if common:
        lines.append("all methods, the mean of their best:")
        for each in compare_points(search, [choice.tried for choice in choices]):
            lines.append(f"  {each.score:.2f}  {point_words(each.point)}{' <' if each.point == common else ''}")
        lines.append(f"chosen for all methods: {point_words(common)}")
        lines += [f"  {choice.winner.name}: {choice.winner.score:.2f}{_preferred(choice)}" for choice in choices]
    return "\n".join(lines)


def write_fragment(search: Search, choices: list[Choice], path: str | Path) -> None:
    """Write the winners as a study fragment, for the `include` of a study file.

    Where the grid has recipe or backbone, the fragment has them too, at the point of all methods; its comments tell
    which method would rather have another.
    """
    methods = [
        each.method.model_copy(update={"parameters": each.winner.component.parameters}).written() for each in choices
    ]
    lines = [f"# Chosen by validation AA (percent) in the search {search.name}; to be included in a study file."]
    if choices[0].point:
        best = compare_points(search, [each.tried for each in choices])[0]
        lines += [f"# For all methods {point_words(best.point)}: {best.score:.2f} in the mean."]
    for choice in choices:
        if len(choice.tried) > 1:
            lines += [f"#   {choice.winner.name}: {choice.winner.score:.2f}{_preferred(choice)}"]
    fields = {**search.written_at(choices[0].point), "methods": methods}
    text = yaml.safe_dump(fields, sort_keys=False, default_flow_style=None)
    with write_beside(Path(path)) as unfinished:
        unfinished.write_text("\n".join([*lines, text]), encoding="utf-8")


def _preferred(choice: Choice) -> str:
    """Return words on the point at which a method is best by itself; none where that is the point of all."""
    best = choice.own_best
    return "" if best.point == choice.point else f"; by itself {best}: {best.score:.2f}"
