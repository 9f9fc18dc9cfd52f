"""A small skeleton and a single thread for every test of a backbone."""

import pytest
import torch

from skeleton_cgl.skeletons.layout import JointLayout


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def layout() -> JointLayout:
    """Six joints: a trunk, an arm of two joints, a leg and a head, so that degrees differ."""
    joints = ("hip", "neck", "head", "elbow", "hand", "foot")
    bones = (("hip", "neck"), ("head", "neck"), ("elbow", "neck"), ("hand", "elbow"), ("foot", "hip"))
    return JointLayout(name="small", joints=joints, root="neck", bones=bones)
