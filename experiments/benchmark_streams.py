"""How fast streams are learned: steps per second against plain loops and against matrix products alone, and by methods.

Everything is timed in one run on one thread, in time of the processor, variants alternating, medians compared. A step
is one on a batch of 10 samples, through the learner as a stage does it, in the middle of a stream, memories full. The
last line is one JSON object: steps per second, ratios of times, and the milliseconds of an examination.

    python experiments/benchmark_streams.py [--data data/planetoid] [--rounds 9] [--part nodes]

nodes: of a graph of Cora's size, made up without its files, by Bare and ER on the whole graph and on sampled
neighbourhoods, beside a loop over DGL's samplers. skeletons: random clips of the size of N-UCLA's, beside a loop of
PyTorch with the same model, and one of DGL on a graph of joints for every clip. methods: all that run on streams, on
both, beside Bare:

    python experiments/benchmark_streams.py --part methods --methods gss der --rounds 5
"""

import argparse
import copy
import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from benchmark_learning import CLASSES, CLIPS, FRAMES, RandomScenario, gcn_products
from made_graphs import CORA, Data, citation_graph, scenario_of
from measuring import alternate
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.engine.learners import BACKBONE_NEEDS, make_learner
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.links import Links
from skeleton_cgl.graphs.sparse import SparseFeatures, product, turned_product
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import make_method, needs_of
from skeleton_cgl.learning.training import Training
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.process import settle
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.inputs import Inputs
from skeleton_cgl.scenarios.scenario import Experience, Scenario
from skeleton_cgl.scenarios.stream import StreamScenario, StreamSettings
from skeleton_cgl.skeletons import UCLA

if TYPE_CHECKING:
    import dgl

BATCH, MEMORY, WIDTH = 10, 100, 256
STEPS = 40
"""Steps of one measurement."""
FAN_OUTS = (25, 10)
"""Neighbours of the nodes of a batch, and of these in turn; DGL names them from the first layer on: 10, 25."""
RECIPE = Training(learning_rate=5e-3, weight_decay=5e-4, device="cpu")

Run = Callable[[], None]


@dataclass(frozen=True)
class Bench:
    """A stream, cut into pieces of as many batches as are timed at once, and who learns it."""

    scenario: StreamScenario
    training: Training
    backbone: Mapping[str, Any] = field(default_factory=dict)

    @property
    def piece(self) -> Experience:
        """The second piece of the stream, so that something was met before."""
        return self.scenario.experience(self.scenario.lessons(self.scenario.default)[:2])

    @property
    def steps(self) -> int:
        return len(batches_of(self.piece))

    def learner(self, method: str, **parameters: Any) -> Learner:
        """Return a learner that has been through the stream: all classes are met, and memories are full."""
        made = make_learner(
            self.scenario,
            "gcn",
            method,
            self.training,
            backbone_parameters=self.backbone,
            method_parameters=parameters,
        )
        prefix = self.scenario.lessons(self.scenario.default)
        for piece in range(len(prefix)):
            made.learn(self.scenario.experience(prefix[: piece + 1]), piece)
        return made


def batches_of(experience: Experience) -> list[Tensor]:
    """Return the rows of every batch of a piece."""
    assert experience.pace is not None
    (batches,) = (list(epoch) for epoch in experience.pace.epochs(experience.training))
    return batches


def node_bench(data: Data, steps: int = STEPS, sampled: bool = False, width: int = WIDTH) -> Bench:
    """Return a stream of the nodes of a graph, two classes a task, three nodes of five to learn from; CGLB's GCN.

    sampled: whether a batch sees a part of the graph, drawn anew, or all of it.
    """
    parts = np.random.default_rng(0).choice([TRAINING, VALIDATION, TEST], len(data.labels), p=[0.6, 0.2, 0.2])
    nodes = scenario_of(replace(data, parts=parts), classes_per_task=2)
    drawn = {"fan_outs": FAN_OUTS, "batch_size": BATCH} if sampled else {}
    return Bench(
        stream_of(nodes, {"kind": "node"}, steps),
        RECIPE.model_copy(update=drawn),
        {"preset": "cglb", "width": width},
    )


def clip_bench(clips: int = CLIPS * CLASSES // 2, frames: int = FRAMES, steps: int = STEPS) -> Bench:
    """Return a stream of random clips, two classes a task, with GCN and the recipe of the order study."""
    scenario = RandomScenario(clips=clips, frames=frames, classes_per_task=2)
    return Bench(stream_of(scenario, {"kind": "skeleton"}, steps), Training(device="cpu"))


def stream_of(scenario: Scenario, described: dict[str, Any], steps: int) -> StreamScenario:
    """Return the samples of a scenario as a stream that is examined after so many batches each."""
    settings = StreamSettings(kind="stream", of=described, batch=BATCH, every=steps)
    return StreamScenario(scenario, scenario, settings, 0, "benchmark")


def ours(learner: Learner, bench: Bench) -> Run:
    """Return a function that learns a piece of the stream."""
    return partial(learner.learn, bench.piece, 0)


class PlainReservoir:
    """Samples and their labels, of all that has passed, as one writes it: sample by sample."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._seen = 0
        self._kept: list[tuple[int, int]] = []

    def draw(self, number: int) -> tuple[Tensor, Tensor]:
        """Return so many samples at most, and their labels."""
        chosen = torch.tensor(random.sample(self._kept, min(number, len(self._kept))), dtype=torch.int64)
        ids, labels = chosen.view(-1, 2).unbind(dim=1)
        return ids, labels

    def offer(self, ids: Tensor, labels: Tensor) -> None:
        for sample in zip(ids.tolist(), labels.tolist(), strict=True):
            self._seen += 1
            if len(self._kept) < self._count:
                self._kept.append(sample)
            elif (slot := random.randrange(self._seen)) < self._count:
                self._kept[slot] = sample


def plain_loop(
    bench: Bench, model: nn.Module, outputs: Callable[[Tensor], Tensor], memory: PlainReservoir | None
) -> Run:
    """Return a function that learns a piece of the stream as one writes it, a step of Adam for every batch.

    outputs: from ids to the outputs of the model. memory: what is replayed joins the batch.
    """
    samples, batches = bench.piece.training, batches_of(bench.piece)
    rate, decay = bench.training.learning_rate, bench.training.weight_decay
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
    met = torch.zeros(len(bench.scenario.outputs), dtype=torch.bool)

    def run() -> None:
        model.train()
        for rows in batches:
            ids, labels = fresh = samples.ids[rows], samples.labels[rows]
            met[labels] = True
            if memory is not None:
                past = memory.draw(len(rows))
                ids, labels = (torch.cat(pair) for pair in zip(fresh, past, strict=True))
                memory.offer(*fresh)
            optimizer.zero_grad()
            functional.cross_entropy(outputs(ids).masked_fill(~met, -torch.inf), labels).backward()
            optimizer.step()

    return run


class PlainGCN(nn.Module):
    """Two convolutions of DGL's on dense features."""

    def __init__(self, features: int, width: int, classes: int) -> None:
        from dgl.nn.pytorch import GraphConv

        super().__init__()
        self.first = GraphConv(features, width, norm="none", bias=False)
        self.second = GraphConv(width, classes, norm="none")

    def forward(self, blocks: Sequence[Any], features: Tensor) -> Tensor:
        found: Tensor = self.second(blocks[1], self.first(blocks[0], features).relu())
        return found


def plain_nodes(bench: Bench, data: Data, memory: PlainReservoir | None) -> Run:
    """Return a loop over DGL's samplers: of all neighbours, or of as many as the recipe has."""
    from dgl.dataloading import MultiLayerFullNeighborSampler, NeighborSampler

    graph = Links.of(data.edges, len(data.labels), self_loops=True).graph
    table = torch.from_numpy(data.features if isinstance(data.features, np.ndarray) else data.features.toarray())
    model = PlainGCN(table.shape[1], bench.backbone["width"], len(bench.scenario.outputs))
    outwards = bench.training.fan_outs
    sampler = MultiLayerFullNeighborSampler(2) if outwards is None else NeighborSampler(list(outwards[::-1]))

    def outputs(ids: Tensor) -> Tensor:
        # A node that is asked for twice, in the batch and in the memory, must not be sampled twice.
        seeds, places = ids.unique(return_inverse=True)
        entering, _, blocks = sampler.sample(graph, seeds)
        return model(blocks, table[entering])[places]

    return plain_loop(bench, model, outputs, memory)


def plain_clips(bench: Bench, learner: Learner, memory: PlainReservoir | None) -> Run:
    """Return a loop of PyTorch with the backbone of a learner, and a head of its own."""
    clips = bench.piece.training.pool.whole().content
    backbone = copy.deepcopy(learner.backbone)
    head = nn.Linear(learner.head.width, len(bench.scenario.outputs))

    def outputs(ids: Tensor) -> Tensor:
        found: Tensor = head(backbone(backbone.arrange(clips[ids])))
        return found

    return plain_loop(bench, nn.ModuleList([backbone, head]), outputs, memory)


class PlainJoints(nn.Module):
    """The GCN of clips as one writes it with DGL: convolutions beside a skip, a gated sum and the largest."""

    def __init__(self, features: int, width: int, embedding: int, classes: int) -> None:
        from dgl.nn.pytorch import GraphConv

        super().__init__()
        sizes = [(features, width), (width, width)]
        self.neighbours = nn.ModuleList(GraphConv(*pair, norm="none") for pair in sizes)
        self.own = nn.ModuleList(nn.Linear(*pair) for pair in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in sizes)
        self.gate = nn.Linear(width, 1)
        self.predictor = nn.Sequential(nn.Linear(2 * width, embedding), nn.ReLU(), nn.BatchNorm1d(embedding))
        self.head = nn.Linear(embedding, classes)

    def forward(self, batch: "dgl.DGLGraph") -> Tensor:
        import dgl

        hidden = batch.ndata["features"]
        for neighbours, own, norm in zip(self.neighbours, self.own, self.norms, strict=True):
            hidden = norm(neighbours(batch, hidden).relu() + own(hidden).relu())
        batch.ndata["hidden"], batch.ndata["gate"] = hidden, torch.sigmoid(self.gate(hidden))
        parts = [dgl.sum_nodes(batch, "hidden", "gate"), dgl.max_nodes(batch, "hidden")]
        found: Tensor = self.head(self.predictor(torch.cat(parts, dim=1)))
        return found


def joint_graphs(clips: Tensor) -> "list[dgl.DGLGraph]":
    """Return a graph of joints for each of clips (N, C, T, V), whose features are their trajectories."""
    graphs = [UCLA.graph() for _ in clips]
    for graph, clip in zip(graphs, clips, strict=True):
        graph.ndata["features"] = clip.permute(2, 1, 0).flatten(1)
    return graphs


def plain_joints(bench: Bench, learner: Learner, memory: PlainReservoir | None) -> Run:
    """Return a loop over graphs of DGL's, one a clip, batched anew in every step, with a model of the same size."""
    import dgl

    graphs = joint_graphs(bench.piece.training.pool.whole().content)
    features, width = graphs[0].ndata["features"].shape[1], learner.backbone.gate.in_features
    model = PlainJoints(features, width, learner.head.width, len(bench.scenario.outputs))
    return plain_loop(bench, model, lambda ids: model(dgl.batch([graphs[clip] for clip in ids.tolist()])), memory)


def inputs_of_steps(learner: Learner, bench: Bench) -> list[Inputs]:
    """Learn a piece of the stream, and return what enters the model in every step."""
    usual, found = learner._step, []

    def watched(batch: Batch) -> float:
        found.append(batch.inputs)
        return usual(batch)

    learner._step = watched  # type: ignore[method-assign]
    learner.learn(bench.piece, 0)
    del learner._step
    return found


def node_products(learner: Learner, steps: Sequence[Places]) -> Run:
    """Return the products of such steps alone, forward and backward: with features, over links, of the head.

    Which neighbours there are, and the sequence of the transposes, is known beforehand.
    """
    weight, head = learner.backbone.layers[0].weight.detach(), learner.head.rows.detach()[:, :-1].contiguous()  # type: ignore[index, union-attr]

    def run() -> None:
        for places in steps:
            paths = places.towards(2)
            features: Any = paths.rows("features", places.features)
            assert isinstance(features, SparseFeatures)
            first, second = (links.pattern for links in paths.links)
            embedded = product(second, None, product(first, None, features.matmul(weight)))
            outputs = embedded @ head.T
            outputs.T @ embedded
            gradient = turned_product(first, None, turned_product(second, None, outputs @ head))
            turned_product(features.pattern, features.values, gradient)

    return run


def compared(case: str, bench: Bench, variants: Mapping[str, Run], rounds: int) -> dict[str, float]:
    """Return steps per second of every variant, and the ratios of their times that matter."""
    times = alternate(dict(variants), rounds, time.process_time)
    found = {f"{case}_{name}_steps_per_s": 1000 * bench.steps / value for name, value in times.items()}
    found |= {f"{case}_{name}_over_ours": times[name] / times["ours"] for name in ("plain", "dgl") if name in times}
    found[f"{case}_ours_over_products"] = times["ours"] / times["products"]
    return found


def measure_nodes(data: Data, rounds: int, steps: int = STEPS, width: int = WIDTH) -> dict[str, float]:
    """Return the figures of Bare and ER on nodes, on the whole graph and on sampled neighbourhoods."""
    found = {}
    for view, sampled in (("full", False), ("sampled", True)):
        bench = node_bench(data, steps, sampled, width)
        for method, count in (("bare", 0), ("er", MEMORY)):
            learner = bench.learner(method, **({"count": count} if count else {}))
            entered: Any = inputs_of_steps(learner, bench)
            variants = {
                "ours": ours(learner, bench),
                "plain": plain_nodes(bench, data, PlainReservoir(count) if count else None),
                "products": node_products(learner, entered),
            }
            found |= compared(f"nodes_{view}_{method}", bench, variants, rounds)
        found |= examined(f"nodes_{view}", learner, bench, rounds)
    return found


def measure_clips(rounds: int, clips: int = CLIPS * CLASSES // 2, steps: int = STEPS) -> dict[str, float]:
    """Return the figures of Bare and ER on clips."""
    found, bench = {}, clip_bench(clips, steps=steps)
    for method, count in (("bare", 0), ("er", MEMORY)):
        learner = bench.learner(method, **({"count": count} if count else {}))
        sizes = [len(inputs) for inputs in inputs_of_steps(learner, bench)]
        variants = {
            "ours": ours(learner, bench),
            "plain": plain_clips(bench, learner, PlainReservoir(count) if count else None),
            "dgl": plain_joints(bench, learner, PlainReservoir(count) if count else None),
            "products": clip_products(sizes),
        }
        found |= compared(f"clips_{method}", bench, variants, rounds)
    return found | examined("clips", learner, bench, rounds)


def clip_products(sizes: Sequence[int]) -> Run:
    """Return the matrix products of steps on so many clips each."""
    by_size = {size: gcn_products(size, epochs=1) for size in set(sizes)}

    def run() -> None:
        for size in sizes:
            by_size[size]()

    return run


def examined(case: str, learner: Learner, bench: Bench, rounds: int) -> dict[str, float]:
    """Return the milliseconds of answering all queries, how many they are, and how often the backbone is passed."""
    queries = bench.scenario.queries(bench.scenario.lessons(bench.scenario.default)[:2])
    passed: list[None] = []
    hook = learner.backbone.register_forward_hook(lambda *_: passed.append(None))
    learner.answer(queries)
    hook.remove()
    times = alternate({"answer": lambda: _done(learner.answer(queries))}, rounds, time.process_time)
    return {
        f"{case}_examination_ms": times["answer"],
        f"{case}_examination_queries": len(queries),
        f"{case}_examination_passes": len(passed),
    }


def _done(_: object) -> None:
    """Take what is of no use to a measurement."""


def methods_on(bench: Bench, only: Sequence[str] = ()) -> list[str]:
    """Return the methods that learn a stream step by step, Bare first; or `only` some of them."""
    backbone = make_learner(bench.scenario, "gcn", backbone_parameters=bench.backbone).backbone
    offered = {*bench.scenario.offers, *(need for need, call in BACKBONE_NEEDS.items() if _has(backbone, call))}
    made = {name: make_method(name, {}) for name in METHODS.names()}
    found = [name for name, method in made.items() if not method.offline and needs_of(method) <= offered]
    return ["bare", *(name for name in found if name != "bare" and (not only or name in only))]


def _has(backbone: nn.Module, call: str) -> bool:
    return hasattr(backbone, call.partition("(")[0])


def measure_methods(kind: str, bench: Bench, rounds: int, only: Sequence[str] = ()) -> dict[str, float]:
    """Return steps per second of every method, with its defaults, and how many times as long as Bare's a step takes."""
    names = methods_on(bench, only)
    times = alternate({name: ours(bench.learner(name), bench) for name in names}, rounds, time.process_time)
    found = {f"{kind}_method_{name}_steps_per_s": 1000 * bench.steps / times[name] for name in names}
    return found | {f"{kind}_method_{name}_over_bare": times[name] / times["bare"] for name in names[1:]}


def listed(figures: dict[str, float]) -> dict[str, float]:
    """Print figures line by line, and return them."""
    for name, value in figures.items():
        print(f"{name:44} {value:10.2f}", flush=True)
    return figures


def main() -> None:
    os.environ.setdefault("DGLBACKEND", "pytorch")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the Planetoid files; without it, a made-up graph")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--part", choices=["all", "nodes", "skeletons", "methods"], default="all")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS.names(), default=[], metavar="NAME", help="only these methods, and Bare"
    )
    options = parser.parse_args()
    settle()
    random.seed(0)
    torch.manual_seed(0)
    data = citation_graph(CORA, options.data, "cora")
    figures: dict[str, float] = {}
    if options.part in ("all", "nodes"):
        figures |= listed(measure_nodes(data, options.rounds))
    if options.part in ("all", "skeletons"):
        figures |= listed(measure_clips(options.rounds))
    if options.part in ("all", "methods"):
        figures |= listed(measure_methods("nodes", node_bench(data), options.rounds, options.methods))
        figures |= listed(measure_methods("clips", clip_bench(), options.rounds, options.methods))
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
