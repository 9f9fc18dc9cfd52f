"""How a study is spoken of where it is shown: what its units, its average over tasks and its score are called."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from skeleton_cgl.config import put
from skeleton_cgl.engine.rows import StudyRow, Values
from skeleton_cgl.scenarios.lessons import UnitKind

PLURAL: dict[UnitKind, str] = {"class": "classes", "label": "labels", "domain": "domains", "period": "periods"}
_BY_SETTING: dict[str, UnitKind] = {"domain-il": "domain", "time-il": "period"}
_IN_FULL = {"AA": "accuracy", "AP": "performance"}
_SCORES = {"micro_accuracy": "accuracy", "roc_auc": "ROC-AUC"}
"""What scores are called where it is not their name: an accuracy of one class is the same, macro or micro."""


@dataclass(frozen=True)
class Wording:
    """The words for a study: what its units are, its average over tasks (AA, or AP), and its score.

    Studies of skeletons have an average accuracy AA; all others an average performance AP, as graph benchmarks have it.
    """

    unit: UnitKind = "class"
    average: str = "AA"
    score: str = "accuracy"

    @property
    def measured(self) -> str:
        """What the average is of, with its letters: accuracy (AA)."""
        return f"{_IN_FULL[self.average]} ({self.average})"

    def of(self, text: str) -> str:
        """Return a text of ours that speaks of classes, accuracy and AA in the words of the study."""
        text = worded(text, self.unit)
        if self.average == "AA":
            return text
        replaced = (
            (r"(?<=verage )accuracy\b", "performance"),
            (r"\baccuracy(?= and forgetting)", "performance"),
            (r"\bAccuracy(?= and forgetting)", "Performance"),
            (r"\baccuracy\b", self.score),
            (r"\bAccuracy\b", self.score[0].upper() + self.score[1:]),
            (r"\bAA\b", self.average),
        )
        for ours, theirs in replaced:
            text = re.sub(ours, theirs, text)
        return text


OF_SKELETONS = Wording()


def wording(study: StudyRow | None, unit: UnitKind, metric: str) -> Wording:
    """Return the words for a study that goes by a metric; those of skeletons where the study is not known."""
    of_skeletons = study is None or data_fields(study).get("kind", "skeleton") == "skeleton"
    score = _SCORES.get(metric, metric.replace("_", " "))
    return Wording(unit, "AA" if of_skeletons else "AP", score)


def scenario_fields(study: StudyRow, point: Values = ()) -> dict[str, Any]:
    """Return what a study file says of its scenario, at a point of its sweep."""
    spec: dict[str, Any] = {"scenario": json.loads(study.spec).get("scenario", {})}
    for path, value in point:
        if path.split(".")[0] == "scenario":
            put(spec, path, value)
    fields: dict[str, Any] = spec["scenario"]
    return fields


def data_fields(study: StudyRow) -> dict[str, Any]:
    """Return what a study file says of where samples come from: its scenario, or the one that it streams."""
    fields = scenario_fields(study)
    return dict(fields.get("of", {})) if study.is_stream else fields


def unit_kind(study: StudyRow, kinds: Iterable[str]) -> UnitKind:
    """Return what the units of a study are, by its scenario and by the kinds of its orders.

    A store keeps the names of the units and not what they are: the setting tells domains and periods, and average
    precision is what many labels are judged by.
    """
    if "domain" in kinds:
        return "domain"
    labels = "average_precision" in study.metrics
    return _BY_SETTING.get(str(data_fields(study).get("setting")), "label" if labels else "class")


def worded(text: str, unit: UnitKind) -> str:
    """Return a text of ours that speaks of classes in the words of another unit."""
    if unit == "class":
        return text
    found = re.sub(r"\bclasses\b", PLURAL[unit], text)
    return re.sub(r"\bclass\b", unit, found)


def order_words(kind: str, unit: UnitKind) -> str:
    """Return what an order of a kind arranges: mixed anew are classes or labels; periods have one order."""
    return unit if kind == "class" or unit == "period" else kind
