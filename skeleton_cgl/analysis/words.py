"""What the units of a study are called where it is shown: classes, labels, domains or periods."""

import json
import re
from collections.abc import Iterable
from typing import Any

from skeleton_cgl.engine.rows import StudyRow
from skeleton_cgl.scenarios.lessons import UnitKind

PLURAL: dict[UnitKind, str] = {"class": "classes", "label": "labels", "domain": "domains", "period": "periods"}
_BY_SETTING: dict[str, UnitKind] = {"domain-il": "domain", "time-il": "period"}


def scenario_fields(study: StudyRow) -> dict[str, Any]:
    """Return what a study file says of its scenario."""
    fields: dict[str, Any] = json.loads(study.spec).get("scenario", {})
    return fields


def unit_kind(study: StudyRow, kinds: Iterable[str]) -> UnitKind:
    """Return what the units of a study are, by its scenario and by the kinds of its orders.

    A store keeps the names of the units and not what they are: the setting tells domains and periods, and average
    precision is what many labels are judged by.
    """
    if "domain" in kinds:
        return "domain"
    labels = "average_precision" in study.metrics
    return _BY_SETTING.get(str(scenario_fields(study).get("setting")), "label" if labels else "class")


def worded(text: str, unit: UnitKind) -> str:
    """Return a text of ours that speaks of classes in the words of another unit."""
    if unit == "class":
        return text
    found = re.sub(r"\bclasses\b", PLURAL[unit], text)
    return re.sub(r"\bclass\b", unit, found)


def order_words(kind: str, unit: UnitKind) -> str:
    """Return what an order of a kind arranges: mixed anew are classes or labels; periods have one order."""
    return unit if kind == "class" or unit == "period" else kind
