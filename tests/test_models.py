"""The backbones in models/ plug in by path, learn, and use the bones as they say; the tutorial beside them is true."""

import re
import textwrap
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.backbones.backbone import Backbone, make_backbone
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.feed import Feed
from skeleton_cgl.learning.training import Training
from skeleton_cgl.scenarios.scenario import Facts
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.skeletons import UCLA, JointLayout, write_archive
from skeleton_cgl.skeletons.sources.synthetic import SyntheticSource

MODELS = Path(__file__).parents[1] / "models"
TUTORIAL = (MODELS / "README.md").read_text(encoding="utf-8")
NAMES = ["ctrgcn", "agcn", "tcn"]
FRAMES, CHANNELS = 10, 3


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def make(name: str, layout: JointLayout = UCLA, **parameters: float) -> Backbone:
    facts = Facts("clips", {"layout": layout, "channels": CHANNELS})
    return make_backbone(str(MODELS / f"{name}.py"), parameters, facts, seed=0)


def make_clips(count: int) -> Tensor:
    return torch.randn(count, CHANNELS, FRAMES, len(UCLA), generator=torch.Generator().manual_seed(0))


def embed(backbone: Backbone, clips: Tensor) -> Tensor:
    return backbone(backbone.arrange(clips))


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> SkeletonScenario:
    path = tmp_path_factory.mktemp("archives") / "few.h5"
    write_archive(SyntheticSource(subjects=2, views=1, repetitions=5), path)
    return SkeletonScenario(path, preparation={"frames": FRAMES})


@pytest.mark.parametrize("parameters", [{}, {"width": 8, "depth": 1}, {"width": 12, "depth": 3, "dropout": 0.5}])
@pytest.mark.parametrize("name", NAMES)
def test_clips_become_one_embedding_each(name: str, parameters: dict[str, float]) -> None:
    embeddings = embed(make(name, **parameters), make_clips(3))
    assert embeddings.shape == (3, parameters.get("width", 64))
    assert embeddings.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_a_clip_is_embedded_as_it_would_be_alone(name: str) -> None:
    backbone = make(name, width=8).eval()
    clips = make_clips(4)
    torch.testing.assert_close(embed(backbone, clips)[[2]], embed(backbone, clips[[2]]))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_reach_every_parameter(name: str) -> None:
    backbone = make(name, width=8)
    clips = make_clips(6)
    optimizer = torch.optim.SGD(backbone.parameters(), lr=0.1)
    # Twice: what CTR-GCN multiplies by α = 0 at the start has its first gradient after a step.
    for _ in range(2):
        optimizer.zero_grad()
        functional.cross_entropy(embed(backbone, clips), torch.arange(6)).backward()
        optimizer.step()
    for parameter_name, parameter in backbone.named_parameters():
        assert parameter.grad.abs().max() > 1e-7, parameter_name


@pytest.mark.parametrize("name", NAMES)
def test_a_few_epochs_lower_the_loss(scenario: SkeletonScenario, name: str) -> None:
    training = Training(epochs=12, batch_size=8, learning_rate=0.005)
    path = str(MODELS / f"{name}.py")
    learner = make_learner(scenario, path, training=training, backbone_parameters={"width": 16})
    losses = []
    learner.learn(
        scenario.experience(scenario.lessons(((0, 4),))), seed=0, progress=lambda _, loss: losses.append(loss)
    )
    assert losses[-1] < 0.5 * losses[0]


def moved_hand() -> JointLayout:
    """Return the body of N-UCLA with its left hand at its head."""
    hand, head = UCLA.index("left hand"), UCLA.index("head")
    bones = [(joint, head if joint == hand else parent) for joint, parent in UCLA.bones]
    return JointLayout(name="moved", joints=UCLA.joints, root=UCLA.root, bones=bones)


@pytest.mark.parametrize(("name", "sees_bones"), [("ctrgcn", True), ("agcn", True), ("tcn", False)])
def test_graph_backbones_see_the_bones_and_the_control_does_not(name: str, sees_bones: bool) -> None:
    one, other = make(name, width=8).eval(), make(name, moved_hand(), width=8).eval()
    clips = make_clips(3)
    assert torch.equal(embed(one, clips), embed(other, clips)) != sees_bones


@pytest.mark.parametrize("name", ["ctrgcn", "agcn"])
def test_a_joint_receives_from_its_neighbour_and_not_the_other_way_round(name: str) -> None:
    """The inward partition carries from the parent to the joint, as `layout.partitions` defines."""
    spatial = make(name, width=4, depth=1).blocks[0].spatial
    convolution = spatial[1] if name == "ctrgcn" else spatial[0]
    if name == "agcn":
        # Only the inward partition is left: without similarities C_k is 1/V everywhere, and B_k takes that away.
        convolution.skeleton[[0, 2]] = 0
        torch.nn.init.zeros_(convolution.theta.weight)
        torch.nn.init.constant_(convolution.learned, -1 / len(UCLA))
    features = make_clips(1)
    mixed = torch.autograd.functional.jacobian(lambda x: convolution(x)[0, :, 0].sum(dim=0), features)
    received = (mixed[:, 0, :, 0].abs().sum(dim=1) > 1e-6).nonzero().tolist()
    assert sorted(received) == sorted([joint, parent] for joint, parent in UCLA.bones)


def test_the_refined_topology_is_that_of_the_paper_joint_by_joint() -> None:
    convolution = make("ctrgcn", width=8, depth=1).blocks[0].spatial[2]
    torch.nn.init.constant_(convolution.alpha, 0.7)
    features = make_clips(2)
    found = convolution(features)
    with torch.no_grad():
        pooled, projected = features.mean(dim=2), convolution.weight(features)
        for clip, channel, joint in [(0, 0, 0), (0, 5, 19), (1, 7, 2)]:
            expected = torch.zeros(FRAMES)
            for other in range(len(UCLA)):
                psi, phi = convolution.psi(pooled[clip, :, joint]), convolution.phi(pooled[clip, :, other])
                refined = convolution.topology[joint, other] + 0.7 * convolution.xi(torch.tanh(psi - phi))[channel]
                expected += refined * projected[clip, channel, :, other]
            torch.testing.assert_close(found[clip, channel, :, joint], expected)


def test_the_temporal_branches_reach_as_far_as_the_paper_says() -> None:
    module = make("ctrgcn", width=8, depth=1).blocks[0].temporal[0].eval()
    features = torch.rand(1, 8, 15, 1, generator=torch.Generator().manual_seed(0))
    middle = torch.autograd.functional.jacobian(lambda x: module(x)[0, :, 7, 0], features)
    reached = middle[:, 0, :, :, 0].abs().sum(dim=1).unflatten(0, (4, 2)).sum(dim=1) > 0
    frames = [{frame - 7 for frame in branch.nonzero()[:, 0].tolist()} for branch in reached]
    assert frames[:2] == [{-2, -1, 0, 1, 2}, {-4, -2, 0, 2, 4}]
    assert frames[2] <= {-1, 0, 1}
    assert frames[3] == {0}


def test_the_adaptive_graph_is_that_of_the_paper_joint_by_joint() -> None:
    convolution = make("agcn", width=8, depth=1).blocks[0].spatial[0]
    torch.nn.init.normal_(convolution.learned)
    features = make_clips(2)
    with torch.no_grad():
        found = convolution(features)
        theta, phi = convolution.theta(features), convolution.phi(features)
        for clip, joint in [(0, 0), (1, 13)]:
            expected = torch.zeros(8, FRAMES)
            for part, weight in enumerate(convolution.weight.weight[..., 0, 0].split(CHANNELS, dim=1)):
                of_part = slice(2 * part, 2 * part + 2)
                here = phi[clip, of_part, :, joint]
                products = [
                    (theta[clip, of_part, :, other] * here).sum(dim=0).mean() / 2**0.5 for other in range(len(UCLA))
                ]
                attention = torch.stack(products).softmax(dim=0)
                fixed = convolution.skeleton[part, :, joint] + convolution.learned[part, :, joint]
                for other in range(len(UCLA)):
                    expected += (fixed[other] + attention[other]) * (weight @ features[clip, :, :, other])
            torch.testing.assert_close(found[clip, :, :, joint], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "wrong", "reason"),
    [
        ("ctrgcn", {"width": 30}, "width must be a multiple of 4, found 30"),
        ("ctrgcn", {"depth": 0}, "depth must be at least 1, found 0"),
        ("agcn", {"width": 0}, "depth and width must be at least 1, found 2 and 0"),
        ("agcn", {"kernel": 2}, "kernel must be odd, found 2"),
        ("tcn", {"depth": 0}, "depth and width must be at least 1, found 0 and 64"),
        ("tcn", {"kernel": 2}, "kernel must be odd, found 2"),
        *[(name, {"dropout": 2}, "between 0 and 1") for name in NAMES],
        *[(name, {"widht": 2}, "unknown parameter 'widht'; did you mean 'width'") for name in NAMES],
    ],
)
def test_parameters_without_meaning_are_refused(name: str, wrong: dict[str, float], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        make(name, **wrong)


BLOCKS = re.findall(r"```python\n(.*?)```", TUTORIAL, flags=re.DOTALL)


@pytest.fixture
def beside_my_net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return models/my_net.py as the tutorial has it written, below the working directory."""
    monkeypatch.chdir(tmp_path)
    path = Path("models/my_net.py")
    path.parent.mkdir()
    path.write_text(BLOCKS[0], encoding="utf-8")
    return path


@pytest.mark.usefixtures("beside_my_net")
def test_the_backbone_of_the_tutorial_learns_as_the_tutorial_shows(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(BLOCKS[1], "README.md", "exec"), {})
    accuracy = float(capsys.readouterr().out.rsplit(maxsplit=1)[-1])
    assert accuracy > 0.5, "four classes: chance is 0.25"


def test_arranging_as_the_tutorial_shows_changes_no_number(beside_my_net: Path, scenario: SkeletonScenario) -> None:
    queries = scenario.queries(())
    plain = make_learner(scenario, str(beside_my_net)).backbone
    own_forward = BLOCKS[0].index("    def forward")
    arranging_file = beside_my_net.with_name("arranging.py")
    arranging_file.write_text(BLOCKS[0][:own_forward] + textwrap.indent(BLOCKS[2], "    "), encoding="utf-8")
    arranging = make_learner(scenario, str(arranging_file)).backbone
    found, expected = (
        backbone(Feed(backbone, torch.device("cpu")).inputs(queries.pool, queries.ids).content)
        for backbone in (arranging, plain)
    )
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("mistake", "change", "arguments"),
    [
        ("return states", ("states.mean(dim=1)", "states"), {}),
        ("flatten(3)", ("flatten(2)", "flatten(3)"), {}),
        ("def forwards(", ("def forward(", "def forwards("), {}),
        ('{"widht": 32}', None, {"backbone_parameters": {"widht": 32}}),
        ('{"width": 0}', None, {"backbone_parameters": {"width": 0}}),
        ("models/mynet.py", None, {"backbone": "models/mynet.py"}),
        ('method="twp"', None, {"method": "twp"}),
    ],
)
def test_mistakes_are_reported_in_the_words_of_the_tutorial(
    beside_my_net: Path,
    scenario: SkeletonScenario,
    mistake: str,
    change: tuple[str, str] | None,
    arguments: dict,
) -> None:
    row = next(line for line in TUTORIAL.splitlines() if line.startswith(f"| `{mistake}` |"))
    told = row.split("|")[2].strip().strip("`")
    if change:
        assert BLOCKS[0].count(change[0]) == 1
        beside_my_net.write_text(BLOCKS[0].replace(*change), encoding="utf-8")
    defaults = {"backbone": "models/my_net.py", "backbone_parameters": {"width": 32}}
    with pytest.raises(InputError) as refused:
        make_learner(scenario, **{**defaults, **arguments})
    # The tutorial's clips have the 52 frames of the whole data set, and its path is told from the working directory.
    found = str(refused.value).replace(f"{Path.cwd()}/", "").replace(f" {FRAMES},", " 52,")
    assert found == told
