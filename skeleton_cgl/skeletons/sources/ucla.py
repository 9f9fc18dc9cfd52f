"""Northwestern-UCLA (Wang et al. 2014): one JSON file per sequence, `aAA_sSS_eEE_vVV.json`, in a folder or a zip."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.members import Members
from skeleton_cgl.skeletons.layout import UCLA
from skeleton_cgl.skeletons.preparation import Preparation
from skeleton_cgl.skeletons.recording import BadRecording, Recording, Source

ACTIONS = {
    1: "pick up with one hand",
    2: "pick up with two hands",
    3: "drop trash",
    4: "walk around",
    5: "sit down",
    6: "stand up",
    8: "donning",
    9: "doffing",
    11: "throw",
    12: "carry",
}
"""The number of an action in file names, and its name; classes follow this order."""

_LABEL_OF_ACTION = {action: label for label, action in enumerate(ACTIONS)}
_NAME = re.compile(r"a([0-9]{1,9})_s([0-9]{1,9})_e([0-9]{1,9})_v([0-9]{1,9})")


class UclaSource(Source):
    """All sequences below a folder or in a zip, in the order of their names."""

    layout = UCLA
    classes = tuple(ACTIONS.values())
    preparation = Preparation(frames=52, centre=1, scale="axes", fit="resample")

    def __init__(self, path: str | Path) -> None:
        self._members = Members(path, ".json")
        self._refuse_twice()
        self.provenance = {"data set": "N-UCLA", "source": Path(path).name}

    def _refuse_twice(self) -> None:
        found: dict[str, str] = {}
        for member in self._members.names:
            name = Path(member).stem
            if found.setdefault(name, member) != member:
                raise InputError(f"{self._members.path}: {name} is there twice, as {found[name]} and as {member}")

    def __len__(self) -> int:
        return len(self._members.names)

    def recordings(self) -> Iterator[Recording | BadRecording]:
        for member in self._members.names:
            try:
                yield self._recording(member)
            except InputError as error:
                yield BadRecording(member, str(error))

    def _recording(self, member: str) -> Recording:
        name = Path(member).stem
        match = _NAME.fullmatch(name)
        if not match:
            raise InputError("the name is not of the form aAA_sSS_eEE_vVV.json")
        action, subject, repetition, view = map(int, match.groups())
        if action not in _LABEL_OF_ACTION:
            raise InputError(f"action {action} is not one of {', '.join(map(str, ACTIONS))}")
        label = _LABEL_OF_ACTION[action]
        content = _parse(self._members.read(member))
        if content.get("label", label + 1) != label + 1:
            raise InputError(f"field 'label': {content['label']!r}, but the name says class {label + 1}")
        return Recording(name, _positions(content), label, subject, view, repetition)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not valid JSON: {error}") from error
    if not isinstance(content, dict) or "skeletons" not in content:
        raise InputError("field 'skeletons' is missing")
    return content


def _positions(content: dict[str, Any]) -> np.ndarray:
    """Return (1, T, V, C) from the field `skeletons`."""
    try:
        with np.errstate(over="ignore"):
            frames = np.array(content["skeletons"], dtype=np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"field 'skeletons': not a table of numbers: {error}") from error
    if frames.ndim != 3 or frames.shape[1:] != (len(UCLA), 3):
        raise InputError(f"field 'skeletons': expected (frames, {len(UCLA)}, 3), found {frames.shape}")
    return frames[None]
