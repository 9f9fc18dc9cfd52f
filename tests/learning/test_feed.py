"""The feed: samples are arranged once per pool and backbone, never mixed up, and drawn from the stage's randomness."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone, make_backbone
from skeleton_cgl.backbones.clips.gcn import GCN
from skeleton_cgl.backbones.clips.stgcn import STGCN
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.feed import Feed
from skeleton_cgl.scenarios.inputs import Clips
from skeleton_cgl.scenarios.scenario import Facts
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.scenarios.split import Split
from skeleton_cgl.skeletons import Augmentation
from tests.learning.learners import answers_after_every_stage, assert_same_to_the_bit, small_learner
from tests.scenarios.graphs import node_scenario
from tests.scenarios.small import lesson, scenario_of, write_small

CPU = torch.device("cpu")
IDS = torch.tensor([3, 1, 4])
TASKS = ((0, 1), (2, 3))
FILE = """
from torch import nn
from skeleton_cgl.backbones.backbone import Backbone

class Cut(Backbone):
    arranged = []

    def __init__(self, frames=2):
        super().__init__()
        self.frames = frames
        self.linear = nn.Linear(1, 1)

    def arrange(self, clips):
        self.arranged.append(len(clips))
        return clips[:, :, : self.frames]

    def forward(self, clips):
        return clips.flatten(1)
"""


class MadePool:
    """Clips whose numbers say which they are, drawn with noise from the generator given."""

    def __init__(self, digest: str = "made", augmented: bool = False) -> None:
        self.digest, self.augmented = digest, augmented
        self.clips = torch.arange(10.0)[:, None, None, None] + torch.zeros(10, 1, 4, 2)

    def whole(self) -> Clips:
        return Clips(self.clips)

    def drawn(self, ids: Tensor, random: np.random.Generator) -> Clips:
        return Clips(self.clips[ids] + float(random.random()))


def made(file: Path, frames: int = 2, text: str = FILE, seed: int = 0) -> Any:
    file.write_text(text)
    return make_backbone(str(file), {"frames": frames}, Facts("clips", {}), seed)


def fed(backbone: Backbone, pool: Any, ids: Tensor = IDS) -> Tensor:
    content = Feed(backbone, CPU).inputs(pool, ids).content
    assert isinstance(content, Tensor)
    return content


def test_a_pool_is_arranged_once_for_all_backbones_of_one_identity(tmp_path: Path) -> None:
    """Whatever their weights, and however often and by however many feeds samples are asked for."""
    pool = MadePool("once")
    first, second = made(tmp_path / "cut.py"), made(tmp_path / "cut.py", seed=1)
    for backbone in (first, second, first):
        feed = Feed(backbone, CPU)
        for ids in (IDS, torch.tensor([0])):
            assert feed.inputs(pool, ids).content.shape == (len(ids), 1, 2, 2)
    assert type(first).arranged == [10]


def graph_pools(folder: Path, number: int) -> list[Any]:
    """Return pools of the nodes of one graph under several digests."""
    pools = [node_scenario(seed=place).queries(()).pool for place in range(number)]
    for place, pool in enumerate(pools):
        pool.digest = f"{folder} {place}"
    return pools


class Counting(Backbone):
    """Counts the pools it arranges."""

    takes = "graph"

    def __init__(self) -> None:
        super().__init__()
        self.arranged = 0

    def arrange(self, places: Any) -> Any:
        self.arranged += 1
        return places


def test_a_few_graphs_are_kept_the_one_used_longest_ago_is_freed_first(tmp_path: Path) -> None:
    feed = Feed(counting := Counting(), CPU)
    *four, fifth = graph_pools(tmp_path, 5)
    for pool in (*four, *four):
        feed.inputs(pool, IDS)
    assert counting.arranged == 4
    feed.inputs(four[0], IDS)
    feed.inputs(fifth, IDS)
    assert counting.arranged == 5
    for pool in (four[0], four[2], four[3], fifth):
        feed.inputs(pool, IDS)
    assert counting.arranged == 5
    feed.inputs(four[1], IDS)
    assert counting.arranged == 6
    assert len(Feed._kept) <= 5


def test_of_clips_one_pool_is_kept_beside_those_of_graphs(tmp_path: Path) -> None:
    backbone = made(tmp_path / "cut.py")
    graphs = Feed(counting := Counting(), CPU)
    pool = graph_pools(tmp_path, 1)[0]
    graphs.inputs(pool, IDS)
    for digest in ("clips 1", "clips 2", "clips 1"):
        fed(backbone, MadePool(digest))
    assert type(backbone).arranged == [10, 10, 10]
    assert sum(kept.inputs.independent for kept in Feed._kept.values()) == 1
    graphs.inputs(pool, IDS)
    assert counting.arranged == 1


def test_who_writes_into_any_of_those_kept_is_refused_and_that_one_is_made_anew(tmp_path: Path) -> None:
    feed = Feed(counting := Counting(), CPU)
    first, second = graph_pools(tmp_path, 2)
    written = feed.inputs(first, IDS).features
    before = written.clone()
    feed.inputs(second, IDS)

    def write() -> None:
        with feed.untouched():
            written.mul_(2)

    with pytest.raises(InputError, match=r"^backbone Counting: it or the method writes into features"):
        write()
    assert torch.equal(feed.inputs(first, IDS).features, before)
    assert counting.arranged == 3
    feed.inputs(second, IDS)
    assert counting.arranged == 3


def test_two_backbones_of_other_parameters_are_not_confused(tmp_path: Path) -> None:
    pool = MadePool("parameters")
    for _ in range(2):
        for frames in (1, 3):
            assert fed(made(tmp_path / "cut.py", frames), pool).shape[2] == frames


def test_a_file_before_and_after_a_change_is_not_confused(tmp_path: Path) -> None:
    pool, changed = MadePool("file"), FILE.replace("clips[:, :, : self.frames]", "clips + 100")
    assert fed(made(tmp_path / "cut.py"), pool)[:, 0, 0, 0].tolist() == [3, 1, 4]
    assert fed(made(tmp_path / "cut.py", text=changed), pool)[:, 0, 0, 0].tolist() == [103, 101, 104]
    assert fed(made(tmp_path / "cut.py"), pool)[:, 0, 0, 0].tolist() == [3, 1, 4]


def test_two_files_of_one_name_are_not_confused(tmp_path: Path) -> None:
    pool = MadePool("names")
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    other = FILE.replace("clips[:, :, : self.frames]", "clips * 2")
    assert fed(made(tmp_path / "one" / "cut.py"), pool)[:, 0, 0, 0].tolist() == [3, 1, 4]
    assert fed(made(tmp_path / "two" / "cut.py", text=other), pool)[:, 0, 0, 0].tolist() == [6, 2, 8]


class Scaled(Backbone):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def arrange(self, clips: Tensor) -> Tensor:
        return clips * self.factor


def test_backbones_made_directly_share_nothing() -> None:
    pool = MadePool("direct")
    one, other = Scaled(2), Scaled(3)
    for _ in range(2):
        assert fed(one, pool)[:, 0, 0, 0].tolist() == [6, 2, 8]
        assert fed(other, pool)[:, 0, 0, 0].tolist() == [9, 3, 12]


def test_pools_of_other_content_are_not_confused(small: Path, tmp_path: Path) -> None:
    other = write_small(tmp_path / "other.h5", seed=1)
    scenarios = [SkeletonScenario(small), SkeletonScenario(other), SkeletonScenario(small, split=Split(seed=1))]
    found = []
    for scenario in (*scenarios, *scenarios):
        pool = scenario.queries(()).pool
        backbone = make_backbone("stgcn", {}, scenario.facts, 0)
        found.append(fed(backbone, pool))
        assert torch.equal(found[-1], pool.whole().rows(IDS).content.permute(0, 2, 3, 1))
    assert len({tensor.numpy().tobytes() for tensor in found}) == 3


def test_every_backbone_gets_its_own_arrangement(small: Path) -> None:
    scenario = scenario_of(small)
    offered, pool = scenario.facts.offered, scenario.queries(()).pool
    gcn = GCN(offered["features"], offered["layout"])
    stgcn = STGCN(offered["layout"], offered["channels"])
    clips = fed(Backbone(), pool)
    for _ in range(2):
        trajectories, sums = Feed(gcn, CPU).inputs(pool, IDS).content
        assert torch.equal(trajectories, clips.permute(0, 3, 2, 1).flatten(2))
        torch.testing.assert_close(sums, torch.from_numpy(offered["layout"].adjacency()) @ trajectories)
        assert torch.equal(fed(stgcn, pool), clips.permute(0, 2, 3, 1))


def test_the_neighbour_sums_of_a_graph_are_taken_once() -> None:
    scenario = node_scenario()
    pool = scenario.queries(()).pool
    feeds = [Feed(make_backbone("gcn", {}, scenario.facts, seed), CPU) for seed in range(2)]
    first, second = (feed.inputs(pool, IDS) for feed in feeds)
    assert first.kept["sums"] is second.kept["sums"]
    assert torch.equal(first.at, pool.whole().at[IDS])


def test_augmented_samples_are_drawn_from_the_randomness_of_the_stage(small: Path) -> None:
    """The stage seeds torch's generator: the same seed draws the same, the next draw is another."""
    scenario = SkeletonScenario(small, augmentation=Augmentation())
    pool = scenario.queries(()).pool
    feed = Feed(make_backbone("stgcn", {}, scenario.facts, 0), CPU)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        first, second = (feed.training_inputs(pool, IDS).content for _ in range(2))
        torch.manual_seed(5)
        np.random.default_rng().random()
        again = feed.training_inputs(pool, IDS).content
        torch.manual_seed(6)
        other = feed.training_inputs(pool, IDS).content
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert not torch.equal(first, other)
    plain = feed.inputs(pool, IDS).content
    assert torch.equal(plain, feed.inputs(pool, IDS).content)
    assert not torch.equal(plain, first)


def test_augmented_samples_are_arranged_like_all_others(tmp_path: Path) -> None:
    pool = MadePool("drawn", augmented=True)
    backbone = made(tmp_path / "cut.py", frames=3)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        drawn = Feed(backbone, CPU).training_inputs(pool, IDS).content
    assert drawn.shape == (3, 1, 3, 2)
    noise = drawn[:, 0, 0, 0] - IDS
    assert (noise > 0).all()
    torch.testing.assert_close(noise, noise[:1].expand(3))


def test_a_pool_that_does_not_augment_draws_nothing() -> None:
    pool, feed = MadePool("plain"), Feed(Backbone(), CPU)
    before = torch.get_rng_state()
    assert torch.equal(feed.training_inputs(pool, IDS).content, feed.inputs(pool, IDS).content)
    assert torch.equal(torch.get_rng_state(), before)


class Centring(Backbone):
    """Arranges clips by writing into those it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(1, 1)

    def arrange(self, clips: Tensor) -> Tensor:
        return clips.sub_(clips.mean())


@pytest.mark.parametrize("actors", [1, 2])
def test_a_backbone_that_arranges_clips_in_place_spoils_those_of_no_other(
    small: Path, tmp_path: Path, actors: int
) -> None:
    path = small if actors == 1 else write_small(tmp_path / "two.h5", actors=2)
    pools = [SkeletonScenario(path, split=Split(seed=seed)).queries(()).pool for seed in range(2)]
    before = [fed(Backbone(), pool) for pool in pools]
    assert not torch.equal(fed(Centring(), pools[0]), before[0])
    for pool, clips in zip(pools, before, strict=True):
        assert torch.equal(fed(Backbone(), pool), clips)
        assert torch.equal(pool.whole().rows(IDS).content, clips)


class Changed(Backbone):
    def __init__(self, change: Any) -> None:
        super().__init__()
        self.change = change

    def arrange(self, clips: Tensor) -> Any:
        return self.change(clips)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda _: None, "NoneType"),
        (lambda clips: clips[1:], r"\(9, 1, 4, 2\)"),
        (lambda clips: clips.sum(), r"\(\)"),
        (lambda clips: (clips, clips[:1]), r"\(1, 1, 4, 2\)"),
        (lambda clips: [clips], "list"),
    ],
)
def test_an_arrangement_without_a_row_per_clip_is_refused(change: Any, found: str) -> None:
    expected = f"^backbone Changed: `arrange` gives {found}; expected tensors with 10 rows, one per clip"
    with pytest.raises(InputError, match=expected):
        fed(Changed(change), MadePool("rows"))


def test_what_is_written_into_a_batch_stays_in_that_batch(small: Path) -> None:
    pool, feed = scenario_of(small).queries(()).pool, Feed(Backbone(), CPU)
    before = feed.inputs(pool, IDS).content.clone()
    feed.inputs(pool, IDS).content.zero_()
    assert torch.equal(feed.inputs(pool, IDS).content, before)
    assert torch.equal(pool.whole().rows(IDS).content, before)


def test_a_backbone_that_arranges_in_place_does_not_change_what_the_next_one_gets() -> None:
    class InPlace(Backbone):
        def arrange(self, clips: Tensor) -> Tensor:
            return clips.mul_(2)

    pool = MadePool("in place")
    for _ in range(2):
        assert fed(InPlace(), pool)[:, 0, 0, 0].tolist() == [6, 2, 8]
        assert fed(Backbone(), pool)[:, 0, 0, 0].tolist() == [3, 1, 4]


def test_what_is_arranged_may_have_been_made_without_gradients() -> None:
    class Inferred(Backbone):
        @torch.inference_mode()
        def arrange(self, clips: Tensor) -> Tensor:
            return clips * 3

    with Feed(Inferred(), CPU).untouched():
        assert fed(Inferred(), MadePool("inferred"))[:, 0, 0, 0].tolist() == [9, 3, 12]


GRAPH = """
from skeleton_cgl.backbones.graphs.gcn import GCN as Base

class Writing(Base):
    def __init__(self, features, width=6):
        super().__init__(features, width=width)

    def arrange(self, places):
        return super().arrange(places)

    def forward(self, places):
        return super().forward(places)
"""
REFUSED = {
    "features": "places.features.mul_(2)",
    "sums": "places.kept['sums'].mul_(2)",
    "edges": "places.links.sources.fill_(1)",
    "weights of edges": "places.links.weights('symmetric').mul_(2)",
}
HARMLESS = {
    "data of nodes": "places.graph.ndata['more'] = places.features",
    "more edges": "places.graph.add_edges([0, 1], [1, 0])",
    "edges of DGL's": "places.graph.edges()[0].fill_(1)",
}
"""What stays in the graph of the batch."""


@pytest.mark.parametrize("change", [*REFUSED, *HARMLESS])
def test_who_writes_into_a_graph_that_all_share_is_refused_and_reaches_nobody_else(tmp_path: Path, change: str) -> None:
    scenario = node_scenario()
    line = {**REFUSED, **HARMLESS}[change]
    (tmp_path / "plain.py").write_text(GRAPH)
    (tmp_path / "writing.py").write_text(
        GRAPH.replace("return super().f", f"if self.training: {line}\n        return super().f")
    )
    plain = partial(small_learner, scenario, backbone=str(tmp_path / "plain.py"))
    expected = answers_after_every_stage(plain(), scenario, TASKS)
    writing = small_learner(scenario, backbone=str(tmp_path / "writing.py"))
    if change in REFUSED:
        with pytest.raises(InputError, match=r"^backbone Writing: it or the method writes into features or edges"):
            writing.learn(lesson(scenario, *TASKS[:1]), 0)
    else:
        writing.learn(lesson(scenario, *TASKS[:1]), 0)
    kept = Feed(writing.backbone, CPU).inputs(scenario.queries(()).pool, IDS)
    assert not kept.graph.ndata
    fresh = node_scenario().queries(()).pool.whole()
    assert torch.equal(kept.features, fresh.features)
    assert [end.tolist() for end in kept.graph.edges()] == [end.tolist() for end in fresh.graph.edges()]
    assert_same_to_the_bit(answers_after_every_stage(plain(), scenario, TASKS), expected)


@pytest.mark.parametrize("line", [REFUSED["features"], REFUSED["edges"]])
def test_a_graph_arranged_in_place_is_the_backbones_own(tmp_path: Path, line: str) -> None:
    scenario = node_scenario()
    (tmp_path / "writing.py").write_text(GRAPH.replace("return super().a", f"{line}\n        return super().a"))
    expected = answers_after_every_stage(small_learner(scenario), scenario, TASKS)
    answers_after_every_stage(small_learner(scenario, backbone=str(tmp_path / "writing.py")), scenario, TASKS)
    assert_same_to_the_bit(answers_after_every_stage(small_learner(scenario), scenario, TASKS), expected)


def test_what_a_method_writes_into_a_whole_pool_stays_with_it() -> None:
    pool = node_scenario().queries(()).pool
    before = pool.whole()
    pool.whole().features.zero_()
    pool.whole().links.sources.zero_()
    after = pool.whole()
    assert torch.equal(after.features, before.features)
    assert after.version == before.version
