import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.skeletons import NTU, UCLA, JointLayout, read_layout

BODY = {"name": "body", "joints": ["hip", "neck", "head", "hand"], "root": "neck"}
BONES = [["hip", "neck"], ["head", "neck"], ["hand", "neck"]]


@pytest.mark.parametrize("layout", [UCLA, NTU], ids=lambda layout: layout.name)
def test_built_in_layouts_are_the_bodies_of_the_reference(layout: JointLayout) -> None:
    parents = dict(layout.bones)
    assert len(layout.bones) == len(layout) - 1
    for side in ("left", "right"):
        chain = [f"{side} {joint}" for joint in ("foot", "ankle", "knee", "hip")]
        for joint, parent in zip(chain, [*chain[1:], "base of spine"], strict=True):
            assert layout.joints[parents[layout.joints.index(joint)]] == parent
    assert layout.joints[layout.root] == "spine at shoulders"


@pytest.mark.parametrize("layout", [UCLA, NTU], ids=lambda layout: layout.name)
def test_dense_adjacency_equals_the_dgl_graph(layout: JointLayout) -> None:
    graph = layout.graph()
    dense = np.zeros((len(layout), len(layout)))
    sources, targets = (ends.numpy() for ends in graph.edges())
    dense[targets, sources] = 1
    np.testing.assert_array_equal(dense, layout.adjacency())
    assert graph.num_edges() == 2 * len(layout.bones) + len(layout)


@pytest.mark.parametrize("layout", [UCLA, NTU], ids=lambda layout: layout.name)
def test_partitions_divide_the_neighbourhood_and_average_it(layout: JointLayout) -> None:
    itself, inward, outward = layout.partitions()
    np.testing.assert_array_equal((itself + inward + outward) > 0, layout.adjacency() > 0)
    value = np.arange(len(layout), dtype=np.float32)
    parents = dict(layout.bones)
    children = {joint: [child for child, parent in layout.bones if parent == joint] for joint in range(len(layout))}
    np.testing.assert_array_equal(value @ itself, value)
    np.testing.assert_array_equal(value @ inward, [parents.get(joint, 0) for joint in range(len(layout))])
    expected = [np.mean(children[joint]) if children[joint] else 0 for joint in range(len(layout))]
    np.testing.assert_allclose(value @ outward, expected, rtol=1e-6)


def test_dgl_is_imported_only_when_a_graph_is_asked_for() -> None:
    script = "import sys, skeleton_cgl.skeletons as s; s.UCLA.partitions(); sys.exit('dgl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_joints_may_be_named_or_numbered() -> None:
    named = JointLayout(**BODY, bones=BONES)
    numbered = JointLayout(name="body", joints=BODY["joints"], root=1, bones=[[0, 1], [2, 1], [3, 1]])
    assert named == numbered
    assert named.parents().tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"bones": [*BONES, [4, 1]]}, "joint 4 is outside the joints 0–3"),
        ({"bones": [["hip", "neck"], ["head", "hand"], ["hand", "head"]]}, "cycle through joint"),
        ({"bones": [["neck", "hip"], ["head", "neck"], ["hand", "neck"], ["hip", "neck"]]}, "the root 1 .neck. has a"),
        ({"bones": BONES[:2]}, "no bone reaches joint 3 .hand."),
        ({"bones": [["hip", "neck"], ["hand", "head"]]}, "two roots: 1 .neck. and 2 .head."),
        ({"bones": [*BONES, ["hand", "hip"]]}, "joint 3 .hand. has two parents"),
        ({"bones": [["hip", "nek"], *BONES[1:]]}, "bones: 'nek' is not one of the joints; did you mean 'neck'"),
        ({"bones": BONES, "root": 9}, "root 9 is outside the joints"),
        ({"bones": BONES, "joints": ["hip", "neck", "head", "hand", "head"]}, "joint names must differ"),
    ],
)
def test_what_is_no_skeleton_is_refused(change: dict, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        JointLayout(**{**BODY, **change})


def test_a_layout_file_is_read_and_its_errors_name_file_and_field(tmp_path: Path) -> None:
    path = tmp_path / "body.yaml"
    text = "name: body\njoints: [hip, neck, head, hand]\nroot: neck\n"
    path.write_text(text + "bones:\n  - [hip, neck]\n  - [head, neck]\n  - [hand, neck]\n")
    assert read_layout(path) == JointLayout(**BODY, bones=BONES)
    path.write_text(text + "bone: []\n")
    with pytest.raises(InputError, match=r"body\.yaml: unknown field 'bone'; did you mean 'bones'"):
        read_layout(path)
    path.write_text(text + "bones: [[hip, neck], [hip, neck]]\nroot: hip\n")
    with pytest.raises(InputError, match=r"body\.yaml: line 5: key 'root' is given twice"):
        read_layout(path)
    path.write_text("- a list\n")
    with pytest.raises(InputError, match=r"expected fields .*, found list"):
        read_layout(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_layout(tmp_path / "absent.yaml")


def test_a_joint_is_found_by_name_or_number() -> None:
    assert UCLA.index("head") == UCLA.index("3") == 3
    with pytest.raises(InputError, match="no joint 'haed'; did you mean 'head'"):
        UCLA.index("haed")
