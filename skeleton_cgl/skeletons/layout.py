"""Joint layouts: which joints a skeleton has, which bones join them, and the graphs that follow from it."""

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import field_validator, model_validator

from skeleton_cgl.config import Checked, did_you_mean, place_of, read_yaml
from skeleton_cgl.errors import InputError

if TYPE_CHECKING:
    import dgl


MOST_JOINTS = 4096
"""More joints than this no skeleton has; graphs of them are kept as dense matrices."""


class JointLayout(Checked):
    """A skeleton as a tree of V joints: every bone is (joint, parent), and all parents lead to the root.

    Bones and root may be given by joint name or by 0-based index; they are kept as indices.
    Refused: a bone outside the joints, a joint with two parents, a cycle, a joint no bone reaches, a second root.
    """

    name: str
    joints: tuple[str, ...]
    root: int
    bones: tuple[tuple[int, int], ...]

    @model_validator(mode="before")
    @classmethod
    def _names_to_indices(cls, fields: Any) -> Any:
        if not isinstance(fields, dict) or not isinstance(fields.get("joints"), list | tuple):
            return fields
        index = {str(joint): number for number, joint in enumerate(fields["joints"])}

        def resolve(joint: Any, field: str) -> Any:
            if not isinstance(joint, str):
                return joint
            if joint not in index:
                raise ValueError(f"{field}: {joint!r} is not one of the joints{did_you_mean(joint, index)}")
            return index[joint]

        resolved = dict(fields)
        if "root" in fields:
            resolved["root"] = resolve(fields["root"], "root")
        if isinstance(fields.get("bones"), list | tuple):
            resolved["bones"] = [
                [resolve(joint, "bones") for joint in bone] if isinstance(bone, list | tuple) else bone
                for bone in fields["bones"]
            ]
        return resolved

    @field_validator("joints")
    @classmethod
    def _joints_are_distinct(cls, joints: tuple[str, ...]) -> tuple[str, ...]:
        repeated = [joint for joint, times in Counter(joints).items() if times > 1]
        if repeated:
            raise ValueError(f"joint names must differ, found {repeated[0]!r} twice")
        if not joints:
            raise ValueError("at least one joint is needed")
        if len(joints) > MOST_JOINTS:
            raise ValueError(f"{len(joints):,} joints, expected at most {MOST_JOINTS:,}")
        return joints

    @model_validator(mode="after")
    def _is_a_tree(self) -> "JointLayout":
        count = len(self.joints)
        if not 0 <= self.root < count:
            raise ValueError(f"root {self.root} is outside the joints 0–{count - 1}")
        parents: dict[int, int] = {}
        for joint, parent in self.bones:
            for end in (joint, parent):
                if not 0 <= end < count:
                    raise ValueError(f"bone ({joint}, {parent}): joint {end} is outside the joints 0–{count - 1}")
            if joint in parents:
                raise ValueError(
                    f"joint {self._say(joint)} has two parents, {self._say(parents[joint])} and {self._say(parent)}"
                )
            parents[joint] = parent
        if self.root in parents:
            raise ValueError(f"the root {self._say(self.root)} has a parent, which makes a cycle or a second root")
        for joint in range(count):
            if joint != self.root and joint not in parents:
                if joint in parents.values():
                    raise ValueError(f"two roots: {self._say(self.root)} and {self._say(joint)} have no parent")
                raise ValueError(f"no bone reaches joint {self._say(joint)}")
        rooted = {self.root}
        for joint in range(count):
            path = set()
            while joint not in rooted:
                path.add(joint)
                joint = parents[joint]
                if joint in path:
                    raise ValueError(f"the bones form a cycle through joint {self._say(joint)}")
            rooted |= path
        return self

    def _say(self, joint: int) -> str:
        return f"{joint} ({self.joints[joint]})"

    def __len__(self) -> int:
        return len(self.joints)

    def index(self, joint: str) -> int:
        """Return the index of a joint given by name or by number; refuse an unknown one."""
        place = place_of(joint, self.joints)
        if place is None:
            raise InputError(f"layout {self.name!r} has no joint {joint!r}{did_you_mean(joint, self.joints)}")
        return place

    def parents(self) -> np.ndarray:
        """Return (V,) the parent of every joint; the root is its own."""
        parents = np.full(len(self), self.root)
        for joint, parent in self.bones:
            parents[joint] = parent
        return parents

    def adjacency(self) -> np.ndarray:
        """Return (V, V) float32: 1 where two joints share a bone and on the diagonal; symmetric."""
        adjacency = np.eye(len(self), dtype=np.float32)
        for joint, parent in self.bones:
            adjacency[joint, parent] = adjacency[parent, joint] = 1
        return adjacency

    def partitions(self) -> np.ndarray:
        """Return (3, V, V) float32: the self, inward and outward partitions of ST-GCN (Yan et al. 2018), A·D⁻¹.

        Entry [k, v, w] is the weight of joint v in what joint w receives: from itself (self), from its neighbour
        towards the root (inward), from its neighbours away from the root (outward). Columns sum to 1, or to 0 where
        a joint has no such neighbour.
        """
        inward = np.zeros((len(self), len(self)), dtype=np.float32)
        for joint, parent in self.bones:
            inward[parent, joint] = 1
        partitions = np.stack([np.eye(len(self), dtype=np.float32), inward, inward.T])
        degree = partitions.sum(axis=1, keepdims=True)
        return partitions / np.maximum(degree, 1)

    def graph(self) -> "dgl.DGLGraph":
        """Return the DGL graph of the joints: every bone in both directions, and self-loops."""
        os.environ.setdefault("DGLBACKEND", "pytorch")
        import dgl

        sources, targets = np.nonzero(self.adjacency())
        return dgl.graph((sources, targets), num_nodes=len(self))


def read_layout(path: str | Path) -> JointLayout:
    """Return the layout described by a YAML file with the fields name, joints, root, bones."""
    return read_yaml(path, JointLayout)


_KINECT_LIMBS = [
    *["left shoulder", "left elbow", "left wrist", "left hand"],
    *["right shoulder", "right elbow", "right wrist", "right hand"],
    *["left hip", "left knee", "left ankle", "left foot"],
    *["right hip", "right knee", "right ankle", "right foot"],
]

UCLA = JointLayout(
    name="ucla",
    joints=("base of spine", "middle of spine", "spine at shoulders", "head", *_KINECT_LIMBS),
    root=2,
    bones=(
        *[(0, 1), (1, 2), (3, 2)],
        *[(4, 2), (5, 4), (6, 5), (7, 6), (8, 2), (9, 8), (10, 9), (11, 10)],
        *[(12, 0), (13, 12), (14, 13), (15, 14), (16, 0), (17, 16), (18, 17), (19, 18)],
    ),
)

NTU = JointLayout(
    name="ntu",
    joints=(
        *["base of spine", "middle of spine", "neck", "head", *_KINECT_LIMBS],
        *["spine at shoulders", "left hand tip", "left thumb", "right hand tip", "right thumb"],
    ),
    root=20,
    bones=(
        *[(0, 1), (1, 20), (2, 20), (3, 2)],
        *[(4, 20), (5, 4), (6, 5), (7, 6), (8, 20), (9, 8), (10, 9), (11, 10)],
        *[(12, 0), (13, 12), (14, 13), (15, 14), (16, 0), (17, 16), (18, 17), (19, 18)],
        *[(21, 22), (22, 7), (23, 24), (24, 11)],
    ),
)
