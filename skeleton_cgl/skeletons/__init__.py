"""Skeletons: joint layouts, readers for recordings, preparation, the archive and the synthetic default."""

from skeleton_cgl.skeletons.archive import Archive, write_archive
from skeleton_cgl.skeletons.layout import NTU, UCLA, JointLayout, read_layout
from skeleton_cgl.skeletons.preparation import Augmentation, Preparation
from skeleton_cgl.skeletons.recording import BadRecording, Recording, Source

__all__ = [
    "NTU",
    "UCLA",
    "Archive",
    "Augmentation",
    "BadRecording",
    "JointLayout",
    "Preparation",
    "Recording",
    "Source",
    "read_layout",
    "write_archive",
]
