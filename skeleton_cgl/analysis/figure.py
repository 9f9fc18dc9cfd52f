"""A figure of a study: one function that computes a small value, one that draws it.

To add one, derive from `StudyFigure` in a file of its own and give a title, a meaning and both functions; what its
constructor may be given are its options:

    class Best(StudyFigure[pd.DataFrame]):
        title = "The best order"
        meaning = "AA of the best order of every method."

        def __init__(self, kind: Kind = "both") -> None:
            self.kind = kind

        def compute(self, results: Results) -> pd.DataFrame: ...

        def draw(self, value: pd.DataFrame) -> Figure: ...
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Generic, Literal, TypeVar

from matplotlib.figure import Figure

from skeleton_cgl.analysis.names import LearnerName, name_learners
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.analysis.words import Wording, data_fields
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order, parse

Value = TypeVar("Value")
Kind = Literal["both", "task", "class", "domain"]
"""Of which orders a figure is."""
Level = Literal["task", "class"]
"""Whose disparity a figure shows."""


class StudyFigure(ABC, Generic[Value]):
    """A figure of a study. title and meaning: what a reader is told; wanted: whether a report shows it by itself."""

    title: ClassVar[str]
    meaning: ClassVar[str]
    wanted: ClassVar[bool] = True

    @abstractmethod
    def compute(self, results: Results) -> Value:
        """Return what is drawn of a study; refuse, in a sentence, a study of which it cannot be drawn."""

    @abstractmethod
    def draw(self, value: Value) -> Figure:
        """Return the figure of what `compute` gave; there is no arithmetic here beyond placing."""

    def compute_several(self, several: Sequence[Results]) -> Value:
        """Return what is drawn of several studies side by side; most figures refuse more than one."""
        if len(several) > 1:
            raise InputError(f"{type(self).__name__}: takes one study, found {len(several)}")
        return self.compute(several[0])

    def described(self, words: Wording) -> tuple[str, str]:
        """Return title and meaning in the words of a study; those of the figures here speak of classes and accuracy."""
        if not type(self).__module__.startswith("skeleton_cgl."):
            return self.title, self.meaning
        return words.of(self.title), words.of(self.meaning)

    def applies(self, results: Results) -> bool:  # noqa: ARG002
        """Return whether a report should show it, or say why it cannot be drawn."""
        return True

    def save(self, value: Value, path: Path) -> None:
        """Write the figure to a file: NAME.png, NAME.pdf or NAME.svg."""
        # Matplotlib takes a while to load, and what only lists figures needs none of it.
        from skeleton_cgl.analysis.plots.style import save

        save(self.draw(value), path)


def study_names(several: Sequence[Results]) -> list[str]:
    """Return a name for each study: its data set's, or if two are of one data set, the store's and its own."""
    scenarios = [data_fields(results.study) for results in several]
    data = [each.get("dataset") or Path(each.get("data", "synthetic")).stem for each in scenarios]
    if len(set(data)) == len(data):
        return data
    return [f"{results.path.stem}: {results.study.name}" for results in several]


def order_of(text: str | None) -> Order | None:
    """Return an order that an option names; refuse what is none."""
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise InputError(f"order {text!r}: expected tasks such as '0,1 > 4,5 > 2,3'") from error


def names_in(scores: Scores) -> tuple[LearnerName, ...]:
    """Return the names of the learners that have ordinary runs, in the sequence of panels and legends."""
    there = set(scores.ordinary().learner.tolist())
    return tuple(name for name in name_learners(scores.learners) if name.number in there)
