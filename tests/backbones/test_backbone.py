"""Making and checking a backbone: what cannot work is refused before anything is learned, saying what was expected."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone, embedding_width, make_backbone
from skeleton_cgl.backbones.clips.gcn import GCN
from skeleton_cgl.backbones.clips.stgcn import STGCN
from skeleton_cgl.backbones.head import Head
from skeleton_cgl.backbones.joins import join_of, joined_width, mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.learning.learner import Model
from skeleton_cgl.scenarios.inputs import Clips
from skeleton_cgl.scenarios.lessons import units_named
from skeleton_cgl.scenarios.scenario import Facts
from skeleton_cgl.skeletons.layout import UCLA

FRAMES, CHANNELS = 6, 3
OFFERED = Facts(
    "clips", {"layout": UCLA, "frames": FRAMES, "channels": CHANNELS, "features": FRAMES * CHANNELS, "actors": 1}
)
FILE = """
from torch import nn
from skeleton_cgl.backbones.backbone import Backbone

class Net(Backbone):
    def __init__(self, channels, width=4):
        super().__init__()
        self.linear = nn.Linear(channels, width)

    def forward(self, clips):
        return self.linear(clips.mean(dim=(2, 3)))
"""


def make_clips(count: int, actors: int = 1) -> Clips:
    leading = (count,) if actors == 1 else (count, actors)
    return Clips(torch.randn(*leading, CHANNELS, FRAMES, len(UCLA)), actors)


class Mean(Backbone):
    """Embeds a clip by its mean over frames and joints, changed by `change`."""

    def __init__(self, change: Any = None) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(CHANNELS)
        self.change = change

    def forward(self, clips: Tensor) -> Any:
        embeddings = self.norm(clips.mean(dim=(2, 3)))
        return embeddings if self.change is None else self.change(embeddings)


class Silent(Backbone):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)


@pytest.mark.parametrize("name", ["gcn", "stgcn"])
def test_the_same_seed_gives_the_same_weights_whatever_happened_before(name: str) -> None:
    torch.manual_seed(1)
    first = make_backbone(name, {}, OFFERED, seed=5)
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(1)), "making a backbone must leave global randomness alone"
    torch.manual_seed(2)
    again, other = make_backbone(name, {}, OFFERED, seed=5), make_backbone(name, {}, OFFERED, seed=6)
    for key, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[key]), key
    assert any(not torch.equal(value, other.state_dict()[key]) for key, value in first.state_dict().items())


def test_the_identity_tells_backbones_of_different_parameters_apart() -> None:
    identities = {
        make_backbone("gcn", parameters, OFFERED, seed=0).identity
        for parameters in ({}, {"width": 32}, {"depth": 3}, {"depth": 3, "width": 32}, {"width": 32, "depth": 3})
    }
    assert len(identities) == 4


def test_the_identity_is_the_class_and_not_its_name(tmp_path: Path) -> None:
    """Two files of one name, and one file before and after a change, are different backbones."""
    identities = set()
    for folder, text in (("one", FILE), ("two", FILE), ("one", FILE.replace("mean", "amax"))):
        path = tmp_path / folder / "net.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        first, again = (make_backbone(str(path), {}, OFFERED, seed=seed) for seed in range(2))
        assert first.identity == again.identity
        identities.add(first.identity)
    assert len(identities) == 3


@pytest.mark.parametrize(
    ("name", "parameters", "reason"),
    [
        ("gnc", {}, "unknown backbone 'gnc'; did you mean 'gcn'?"),
        ("transformer", {}, "unknown backbone 'transformer'; known: gcn, stgcn"),
        ("gcn", {"widht": 8}, "backbone 'gcn': unknown parameter 'widht'; did you mean 'width'?"),
        ("gcn", {"features": 8}, "backbone 'gcn': unknown parameter 'features'"),
        ("gcn", {"depth": 0}, "backbone 'gcn': depth and width must be at least 1, found 0 and 64"),
        ("stgcn", {"kernel": 4}, "backbone 'stgcn': kernel must be odd, found 4"),
        ("torch.nn:Linear", {}, "backbone 'torch.nn:Linear': expected a class derived from Backbone"),
        ("torch.nn:Linaer", {}, "backbone 'torch.nn:Linaer': module 'torch.nn' has no attribute 'Linaer'"),
        ("no_such_module:Net", {}, "backbone 'no_such_module:Net': No module named 'no_such_module'"),
        ("absent.py", {}, "backbone absent.py: no such file"),
    ],
)
def test_what_is_unknown_is_refused_with_what_is_known(name: str, parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError) as refused:
        make_backbone(name, parameters, OFFERED, seed=0)
    assert str(refused.value).startswith(reason)


def test_a_backbone_that_asks_for_what_the_scenario_lacks_is_refused() -> None:
    with pytest.raises(InputError, match="backbone 'stgcn': parameter 'layout' is missing"):
        make_backbone("stgcn", {}, Facts("clips", {"features": 18}), seed=0)


@pytest.mark.parametrize(
    ("takes", "name", "reason"),
    [
        ("graph", "skeleton_cgl.backbones.clips.gcn:GCN", "takes clips; the scenario has graphs"),
        ("clips", "skeleton_cgl.backbones.graphs.gcn:GCN", "takes graphs; the scenario has clips"),
        ("graph", "stgcn", "backbone 'stgcn' takes clips; the scenario has graphs"),
        ("clips", "gin", "backbone 'gin' takes graphs; the scenario has clips"),
        ("graph", "stgn", "unknown backbone 'stgn'; "),
    ],
)
def test_a_backbone_of_the_other_kind_is_refused(takes: Any, name: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        make_backbone(name, {}, Facts(takes, {"layout": UCLA, "features": 18}), seed=0)


def test_a_backbone_is_found_by_the_path_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    backbone = make_backbone(str(path), {"width": 7}, OFFERED, seed=0)
    assert embedding_width(backbone, make_clips(2)) == 7
    with pytest.raises(InputError, match="unknown parameter 'witdh'; did you mean 'width'"):
        make_backbone(str(path), {"witdh": 7}, OFFERED, seed=0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import torch\n", "expected one class derived from Backbone, found none$"),
        (FILE + "class Other(Net):\n    pass\n", "expected one class derived from Backbone, found Net, Other"),
        (FILE.replace("(Backbone)", "(nn.Module)"), "expected one class derived from Backbone, found none$"),
        ("class Net(:\n", r"cannot be imported: SyntaxError: invalid syntax \(net\.py, line 1\)"),
        ("import no_such_module\n", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_a_file_without_exactly_one_backbone_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "net.py"
    path.write_text(text)
    with pytest.raises(InputError, match=reason) as refused:
        make_backbone(str(path), {}, OFFERED, seed=0)
    assert f"backbone {path}: " in str(refused.value)


def raise_error(error: Exception) -> Any:
    raise error


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: e[:, None], r"expected embeddings \(2, width\) for inputs of \(2, 3, 6, 20\), found .* \(2, 1, 3\)"),
        (lambda e: e[0], r"expected embeddings \(2, width\) .*, found torch.float32 \(3,\)"),
        (lambda e: e[:1], r"expected embeddings \(2, width\) .*, found torch.float32 \(1, 3\)"),
        (lambda e: e.argmax(dim=1, keepdim=True), r"expected embeddings \(2, width\) .*, found torch.int64 \(2, 1\)"),
        (lambda e: (e, e), r"expected a tensor \(2, width\), found tuple"),
        (lambda _: None, r"expected a tensor \(2, width\), found NoneType"),
        (lambda e: e @ e, r"fails on \(2, 3, 6, 20\).*: RuntimeError: mat1 and mat2 .*; expected .*\(2, width\)"),
        (lambda _: raise_error(KeyError("elbow")), r"fails on \(2, 3, 6, 20\): KeyError: 'elbow' \(.*\); expected"),
        (lambda _: raise_error(NameError("name 'x' is not defined")), "fails on .*: NameError: name 'x' is not"),
    ],
)
def test_embeddings_that_are_not_one_per_clip_are_refused(change: Any, reason: str) -> None:
    with pytest.raises(InputError, match=f"^backbone Mean: {reason}"):
        embedding_width(Mean(change), make_clips(2))


def test_of_two_actors_the_refusal_tells_what_the_backbone_itself_gets_and_gives() -> None:
    with pytest.raises(InputError, match=r"^backbone Mean: expected embeddings \(4, width\) .*\(4, 3, 6, 20\), found"):
        embedding_width(Mean(lambda e: e[0]), make_clips(2, actors=2))


def test_a_failure_inside_forward_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(FILE.replace("dim=(2, 3)", "dim=(2, 4)"))
    backbone = make_backbone(str(path), {}, OFFERED, seed=0)
    line = 1 + path.read_text().splitlines().index("        return self.linear(clips.mean(dim=(2, 4)))")
    with pytest.raises(InputError, match=rf"IndexError: Dimension .*\({path}, line {line}, in `forward` of Net\)"):
        embedding_width(backbone, make_clips(2))


def test_a_backbone_without_forward_is_refused() -> None:
    expected = r"backbone Silent: method `forward` is missing; expected forward\(clips\) -> \(N, width\)"
    with pytest.raises(InputError, match=expected):
        embedding_width(Silent(), make_clips(2))
    with pytest.raises(InputError, match=expected):
        embedding_width(Silent(), make_clips(2, actors=2))


def test_a_backbone_with_nothing_to_train_is_refused() -> None:
    with pytest.raises(InputError, match="backbone Mean: has no parameter to train"):
        embedding_width(Mean().requires_grad_(False), make_clips(2))


def test_the_check_leaves_a_backbone_as_it_was() -> None:
    backbone = Mean()
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    assert embedding_width(backbone, make_clips(2)) == CHANNELS
    assert backbone.training
    for name, value in backbone.state_dict().items():
        assert torch.equal(value, before[name]), name


def model_of(backbone: Backbone, join: Literal["mean", "product"] = "mean", width: int = 64) -> Model:
    """Return a backbone with a head whose outputs are the embeddings themselves."""
    head = Head(width, 0, units_named(map(str, range(width))))
    head.restore(range(width), torch.eye(width, width + 1))
    return Model(backbone, head, join_of(backbone, Facts("graph", {}, join))).eval()


@pytest.mark.parametrize("name", ["gcn", "stgcn"])
def test_two_actors_are_embedded_alike_and_averaged(name: str) -> None:
    backbone = make_backbone(name, {}, OFFERED, seed=0).eval()
    model, clips = model_of(backbone), make_clips(4, actors=2)
    found = model(clips.arranged(backbone.arrange))
    apart = [backbone(backbone.arrange(clips.parts[:, actor])) for actor in range(2)]
    torch.testing.assert_close(found, (apart[0] + apart[1]) / 2)
    torch.testing.assert_close(model(Clips(clips.parts.flip(1), 2).arranged(backbone.arrange)), found)


@pytest.mark.parametrize("name", ["gcn", "stgcn"])
def test_arranged_actors_have_a_row_per_clip(name: str) -> None:
    backbone = make_backbone(name, {}, OFFERED, seed=0).eval()
    model, clips, rows = model_of(backbone), make_clips(5, actors=2), torch.tensor([3, 1])
    chosen = clips.arranged(backbone.arrange).rows(rows)
    assert len(chosen) == 2
    torch.testing.assert_close(model(chosen), model(clips.rows(rows).arranged(backbone.arrange)))
    assert embedding_width(backbone, chosen) == 64


def test_the_attention_of_two_actors_is_that_of_each() -> None:
    clips = make_clips(3, actors=2)
    for backbone in (GCN(FRAMES * CHANNELS, UCLA).eval(), STGCN(UCLA, CHANNELS).eval()):
        found = backbone.edge_attention(clips.arranged(backbone.arrange).content)
        torch.testing.assert_close(found, backbone.edge_attention(backbone.arrange(clips.parts.flatten(0, 1))))


class Rows(Backbone):
    """Embeds a place in a graph by its node's features."""

    def forward(self, places: Places) -> Tensor:
        return places.features[places.at.flatten()]


def asked_about(*at: tuple[int, ...]) -> Places:
    """Return places among three nodes."""
    features = np.array([[1, 2], [4, 5], [5, 6]], dtype=np.float32)
    return Places.of(np.zeros((2, 0), dtype=int), features, np.array(at), self_loops=False)


@pytest.mark.parametrize(
    ("join", "at", "expected"),
    [
        ("mean", [(0, 1), (2, 2)], [[2.5, 3.5], [5, 6]]),
        ("product", [(0, 1), (2, 2)], [[4, 10], [25, 36]]),
        ("product", [(0, 1, 2)], [[20, 60]]),
        ("product", [(1,)], [[4, 5]]),
    ],
)
def test_the_places_of_a_query_are_joined_as_the_scenario_says(
    join: Literal["mean", "product"], at: list[tuple[int, ...]], expected: list[list[float]]
) -> None:
    found = model_of(Rows(), join, width=2)(asked_about(*at))
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float32))


class Sided(Rows):
    """Has a join of its own: the embeddings of a pair side by side."""

    def join(self, embeddings: Tensor, inputs: Places) -> Tensor:
        return embeddings.view(len(inputs), -1)


def test_the_join_of_a_backbone_wins_and_may_give_another_width() -> None:
    places = asked_about((0, 1), (2, 2))
    backbone, head = Sided(), Head(4, 0, units_named("abcd"))
    head.restore(range(4), torch.eye(4, 5))
    join = join_of(backbone, Facts("graph", {}, "product"))
    assert joined_width(backbone, join, places, 2) == 4
    assert joined_width(Rows(), mean, places, 2) == 2
    found = Model(backbone, head, join, width=2).eval()(places)
    torch.testing.assert_close(found, torch.tensor([[1.0, 2, 4, 5], [5, 6, 5, 6]]))
    with pytest.raises(InputError, match=r"expected embeddings \(2, 4\), one per query when they are joined"):
        Model(backbone, head, mean, width=2).eval()(places)
