"""Skeleton action recognition as a scenario: the classes of an archive arrive task by task."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal
from weakref import WeakValueDictionary

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from skeleton_cgl.config import Checked, check
from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import NAMES
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.inputs import Clips
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.scenarios.overlap import overlap
from skeleton_cgl.scenarios.scenario import Facts, Need
from skeleton_cgl.scenarios.settings import ScenarioSettings
from skeleton_cgl.scenarios.split import Split, divide, settle
from skeleton_cgl.seeds import seed_of
from skeleton_cgl.skeletons import Archive, Augmentation, Preparation, Source
from skeleton_cgl.skeletons.datasets import open_dataset
from skeleton_cgl.skeletons.groups import groups_of
from skeleton_cgl.skeletons.preparation import make_clip


class SkeletonSettings(ClassTasks, ScenarioSettings):
    """Action recognition on the clips of an archive.

    data: the path of an archive or the name of a built-in data set; split says which clips are queries; preparation
    overrides the archive's fields by name (frames, scale, fit, stream); augmentation changes training clips.
    """

    offered: ClassVar[tuple[Need, ...]] = ("one class",)

    kind: Literal["skeleton"] = "skeleton"
    data: str = "synthetic"
    split: Split = Split()
    preparation: dict[str, Any] = Field(default_factory=dict)
    augmentation: Augmentation | None = None

    @model_validator(mode="before")
    @classmethod
    def _says_what_divides(cls, fields: Any) -> Any:
        """Spell out the default of split.by, so that a stored study means the same whatever becomes the default."""
        if not isinstance(fields, Mapping):
            return fields
        split = fields.get("split", {})
        split = split.model_dump(exclude_unset=True) if isinstance(split, Split) else split
        return {**fields, "split": {"by": "auto", **split}} if isinstance(split, Mapping) else fields

    def make(self, seed: int) -> "SkeletonScenario":
        drawn = "seed" not in self.split.model_fields_set
        split = self.split.model_copy(update={"seed": seed}) if drawn else self.split
        return SkeletonScenario(self.data, self, split, self.preparation, self.augmentation)


class SkeletonScenario(LabelledSamples):
    """Class- or task-incremental learning of the actions in an archive; `tasks` says which classes, in which tasks.

    notes: the sizes of the parts and what they have in common, in words.
    """

    def __init__(
        self,
        data: str | Path | Source = "synthetic",
        tasks: ClassTasks | None = None,
        split: Split | None = None,
        preparation: dict[str, Any] | None = None,
        augmentation: Augmentation | None = None,
    ) -> None:
        tasks, split = tasks or ClassTasks(), split or Split()
        with open_dataset(data) as archive:
            prepared = _override(archive.preparation, preparation or {})
            shuffled = np.random.default_rng(seed_of("samples", split.seed)).permutation(len(archive))
            groups = groups_of(archive)
            split = settle(split, groups)
            parts = divide(split, archive.labels, archive.classes, groups)
            described = [archive.digest, tasks.setting, _described(prepared), _described(split)]
            described.append("" if augmentation is None else _described(augmentation))
            content = "\n".join(described).encode()
            super().__init__(
                SkeletonPool(hashlib.sha256(content).hexdigest(), archive, shuffled, prepared, augmentation),
                archive.labels[shuffled],
                parts[shuffled],
                archive.classes,
                tasks,
                facts_of(archive, prepared),
                content,
            )
            used = np.empty_like(parts)
            used[shuffled] = self._parts.numpy()
            self.notes = notes_on(split, used, archive.copies, groups)


def notes_on(split: Split, parts: np.ndarray, copies: np.ndarray, groups: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """Return in words how many sequences each of the parts (N,) has, and what they have in common: see `overlap`."""
    counts = ", ".join(f"{(parts == part).sum()} {name}" for part, name in enumerate(NAMES))
    return (f"split by {split.by}: {counts} clips", *overlap(parts, copies, groups))


def facts_of(archive: Archive, preparation: Preparation) -> Facts:
    """Return what clip backbones may know of the clips of an archive."""
    actors, _, coordinates = archive.sequence_shape
    offered = {
        "layout": archive.layout,
        "frames": preparation.frames,
        "channels": coordinates,
        "features": preparation.frames * coordinates,
        "actors": actors,
    }
    return Facts("clips", offered)


def _described(fields: Checked) -> str:
    return fields.model_dump_json(exclude=fields.as_before)


def _override(preparation: Preparation, fields: dict[str, Any]) -> Preparation:
    # An archive's sequences are centred already, which clips cannot undo.
    if fields.get("centre", preparation.centre) != preparation.centre:
        raise InputError(
            f"scenario: preparation: centre is the archive's, {preparation.centre}; found {fields['centre']}"
        )
    return check(preparation.model_dump() | fields, Preparation, where="scenario: preparation")


class SkeletonPool:
    """The clips of an archive in a given order, (C, T, V) each or (A, C, T, V) for several actors."""

    def __init__(
        self,
        digest: str,
        archive: Archive,
        order: np.ndarray,
        preparation: Preparation,
        augmentation: Augmentation | None,
    ) -> None:
        self.digest = digest
        self._layout = archive.layout
        self._preparation = preparation
        self._augmentation = augmentation
        self._sequences = [archive.sequence(index) for index in order] if augmentation else []
        self._clips = _clips_of(archive, preparation)
        self._order = torch.from_numpy(order)

    @property
    def augmented(self) -> bool:
        """Whether training clips are drawn anew every time they are asked for."""
        return self._augmentation is not None

    def whole(self) -> Clips:
        return self._clips.rows(self._order)

    def drawn(self, ids: Tensor, random: np.random.Generator) -> Clips:
        clips = [
            make_clip(self._sequences[index], self._layout, self._preparation, self._augmentation, random)
            for index in ids.tolist()
        ]
        return _channels_first(np.stack(clips))


_IN_USE: WeakValueDictionary[tuple[str, str], Clips] = WeakValueDictionary()
"""The clips that pools in use were made of, so that the repeats of a study read and prepare them once."""


def _clips_of(archive: Archive, preparation: Preparation) -> Clips:
    wanted = (archive.digest, preparation.model_dump_json())
    clips = _IN_USE.get(wanted)
    if clips is None:
        clips = _IN_USE[wanted] = _channels_first(archive.clips(preparation=preparation))
    return clips


def _channels_first(clips: np.ndarray) -> Clips:
    """Return clips (N, A, T, V, C) as (N, C, T, V) for one actor, (N, A, C, T, V) for more."""
    tensor = torch.from_numpy(clips).permute(0, 1, 4, 2, 3)
    actors = tensor.shape[1]
    return Clips((tensor[:, 0] if actors == 1 else tensor).contiguous(), actors)
