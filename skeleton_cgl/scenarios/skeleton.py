"""Skeleton action recognition as a scenario: the classes of an archive arrive task by task."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skeleton_cgl.config import check
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.scenarios.split import Split, divide
from skeleton_cgl.seeds import seed_of
from skeleton_cgl.skeletons import Archive, Augmentation, Preparation
from skeleton_cgl.skeletons.datasets import open_dataset
from skeleton_cgl.skeletons.preparation import make_clip


class SkeletonScenario(LabelledSamples):
    """Class- or task-incremental learning of the actions in an archive.

    data: the path of an archive or the name of a built-in data set; setting: "class-il" or "task-il"; classes_per_task
    divides the classes in ascending order into the default tasks; split says which clips are queries; preparation
    overrides the archive's fields by name (frames, scale, fit, stream); augmentation changes training clips.
    """

    def __init__(
        self,
        data: str | Path = "synthetic",
        setting: str = "class-il",
        classes_per_task: int = 2,
        split: Split | None = None,
        preparation: dict[str, Any] | None = None,
        augmentation: Augmentation | None = None,
    ) -> None:
        split = split or Split()
        with open_dataset(data) as archive:
            self._layout = archive.layout
            self._preparation = _override(archive.preparation, preparation or {})
            self.actors, _, self.coordinates = archive.sequence_shape
            shuffled = np.random.default_rng(seed_of("samples", split.seed)).permutation(len(archive))
            groups = {"class": None, "subject": archive.subjects, "view": archive.views}[split.by]
            parts = divide(split, archive.labels, archive.classes, groups)[shuffled]
            super().__init__(
                SkeletonPool(archive, shuffled, self._preparation, augmentation),
                torch.from_numpy(archive.labels[shuffled]),
                torch.from_numpy(parts),
                archive.classes,
                setting,
                classes_per_task,
            )
            described = [archive.digest, setting, self._preparation.model_dump_json(), split.model_dump_json()]
        described.append("" if augmentation is None else augmentation.model_dump_json())
        self.digest = hashlib.sha256("\n".join(described).encode() + parts.tobytes()).hexdigest()

    def backbone_arguments(self) -> dict[str, Any]:
        """Return what backbones for clips may ask for."""
        return {
            "layout": self._layout,
            "frames": self._preparation.frames,
            "channels": self.coordinates,
            "features": self._preparation.frames * self.coordinates,
            "actors": self.actors,
        }


def _override(preparation: Preparation, fields: dict[str, Any]) -> Preparation:
    # An archive's sequences are centred already, which clips cannot undo.
    if fields.get("centre", preparation.centre) != preparation.centre:
        raise InputError(
            f"scenario: preparation: centre is the archive's, {preparation.centre}; found {fields['centre']}"
        )
    return check(preparation.model_dump() | fields, Preparation, where="scenario: preparation")


class SkeletonPool:
    """The clips of an archive, (C, T, V) each or (A, C, T, V) for several actors, arranged as the backbone wants them.

    A backbone with a method `arrange` is given all clips (N, C, T, V) at once, the first time it asks for one; what it
    returns, a tensor or a tuple of tensors with N rows, it then gets row by row. One arrangement is kept at a time, for
    all backbones of one recipe; a backbone without a recipe shares it with none.
    """

    def __init__(
        self,
        archive: Archive,
        order: np.ndarray,
        preparation: Preparation,
        augmentation: Augmentation | None,
    ) -> None:
        self._layout = archive.layout
        self._preparation = preparation
        self._augmentation = augmentation
        self._sequences = [archive.sequence(index) for index in order] if augmentation else []
        self._clips = _to_channels_first(archive.clips(order, preparation))
        self._arranged_for: str | nn.Module | None = None
        self._arranged: Any = None

    @property
    def augmented(self) -> bool:
        """Whether training clips are drawn anew every time they are asked for."""
        return self._augmentation is not None

    def inputs(self, ids: Tensor, backbone: nn.Module, training: bool = False) -> Any:
        if training and self._augmentation is not None:
            return _arrange(backbone, self._augmented(ids))
        recipe = getattr(backbone, "recipe", "") or backbone
        if recipe != self._arranged_for:
            self._arranged_for, self._arranged = None, None
            self._arranged = _arrange(backbone, self._clips)
            self._arranged_for = recipe
        if isinstance(self._arranged, tuple):
            return tuple(part[ids] for part in self._arranged)
        return self._arranged[ids]

    def _augmented(self, ids: Tensor) -> Tensor:
        # The stage seeds torch's generator; drawing from it keeps augmentation a part of the stage's randomness.
        random = np.random.default_rng(int(torch.randint(2**62, (1,))))
        clips = [
            make_clip(self._sequences[index], self._layout, self._preparation, self._augmentation, random)
            for index in ids.tolist()
        ]
        return _to_channels_first(np.stack(clips))


def _arrange(backbone: nn.Module, clips: Tensor) -> Any:
    arrange = getattr(backbone, "arrange", None)
    return clips if arrange is None else arrange(clips)


def _to_channels_first(clips: np.ndarray) -> Tensor:
    """Return clips (N, A, T, V, C) as (N, C, T, V) for one actor, (N, A, C, T, V) for more."""
    tensor = torch.from_numpy(clips).permute(0, 1, 4, 2, 3)
    return (tensor[:, 0] if tensor.shape[1] == 1 else tensor).contiguous()
