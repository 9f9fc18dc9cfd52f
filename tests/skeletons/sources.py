"""Small sources of recordings for tests of what is built on them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from skeleton_cgl.skeletons import UCLA, BadRecording, JointLayout, Preparation, Recording, Source

RESAMPLED = Preparation(frames=16, centre=1, scale="axes", fit="resample")


@dataclass
class ListSource(Source):
    """A source of recordings that are there already."""

    items: Sequence[Recording | BadRecording]
    classes: tuple[str, ...] = ("sit", "stand")
    layout: JointLayout = UCLA
    preparation: Preparation = RESAMPLED
    provenance: dict[str, str] = field(default_factory=lambda: {"data set": "test"})

    def __len__(self) -> int:
        return len(self.items)

    def recordings(self) -> Iterator[Recording | BadRecording]:
        yield from self.items


def random_recording(seed: int, length: int, label: int, actors: int = 1, joints: int = 20) -> Recording:
    positions = np.random.default_rng(seed).normal(size=(actors, length, joints, 3)).astype(np.float32)
    return Recording(f"r{seed:03}", positions, label, subject=seed % 3, view=1, repetition=seed)


def random_source(lengths: Sequence[int] = (1, 7, 30, 40), actors: int = 1) -> ListSource:
    return ListSource([random_recording(seed, length, seed % 2, actors) for seed, length in enumerate(lengths)])
