"""Where the time of a stage goes: dense path, a plain loop of DGL, bare matrix products, methods, ST-GCN, memory.

Everything is timed in one run on one thread, variants alternating, medians compared; the data are random clips of the
size of a stage on N-UCLA (237 clips × 20 joints × 52 frames × 3), so that no data set is needed. The last line is one
JSON object: milliseconds per epoch, and ratios.

    python experiments/benchmark_learning.py [--rounds 15] [--stgcn-rounds 3]

The part `methods` lists what every method that is defined for clips costs beside Bare (method_costs.py):

    python experiments/benchmark_learning.py --part methods --methods er gem --method-rounds 5
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import method_costs
import numpy as np
import torch
from measuring import alternate, peak_memory
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.learning.learner import Learner, Taught
from skeleton_cgl.learning.training import Training
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.process import ensure_bfloat16_works, settle
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.scenarios.scenario import Experience, Samples
from skeleton_cgl.scenarios.skeleton import SkeletonPool, facts_of
from skeleton_cgl.skeletons import NTU, UCLA, Archive, JointLayout, Preparation, Recording, Source

if TYPE_CHECKING:
    import dgl

CLIPS, FRAMES, COORDINATES, WIDTH, CLASSES = 237, 52, 3, 64, 10
EPOCHS = 10
"""Epochs of one measurement."""
MEMORY = 220
"""Clips: about a fifth of those of N-UCLA, which is what Replay remembers in the end."""
REMEMBERING = ("a-gem", "der", "der-pp", "er", "gem", "gss", "replay")


class RandomClips(Source):
    """A source of random recordings, the classes in turn."""

    def __init__(self, layout: JointLayout, clips: int, frames: int) -> None:
        self.layout = layout
        self.classes = tuple(f"class {label}" for label in range(CLASSES))
        self.preparation = Preparation(frames=frames, centre=1, scale="none", fit="repeat")
        self._clips, self._frames = clips, frames

    def __len__(self) -> int:
        return self._clips

    def recordings(self) -> Iterator[Recording]:
        random = np.random.default_rng(0)
        for index in range(self._clips):
            positions = random.standard_normal((1, self._frames, len(self.layout), COORDINATES), dtype=np.float32)
            yield Recording(f"clip {index}", positions, index % CLASSES)


class RandomScenario(LabelledSamples):
    """All random clips as training samples of some tasks, and a few of them as queries too."""

    def __init__(
        self,
        layout: JointLayout = UCLA,
        clips: int = CLIPS,
        frames: int = FRAMES,
        classes_per_task: int = CLASSES // 2,
        setting: method_costs.Setting = "class-il",
    ) -> None:
        source = RandomClips(layout, clips, frames)
        archive = Archive.in_memory(source)
        parts = np.full(clips, TRAINING)
        parts[:CLASSES], parts[CLASSES : 2 * CLASSES] = VALIDATION, TEST
        super().__init__(
            SkeletonPool(f"random {clips} of {frames} frames", archive, np.arange(clips), source.preparation, None),
            np.arange(clips) % CLASSES,
            parts,
            source.classes,
            ClassTasks(setting=setting, classes_per_task=classes_per_task),
            facts_of(archive, source.preparation),
            b"random",
        )

    def everything(self) -> Experience:
        """Return all clips, whatever their part, as one lesson."""
        lesson = self.experience(self.lessons((tuple(range(CLASSES)),)))
        count = len(self._labels)
        samples = Samples(self._pool, torch.arange(count), self._labels, torch.full((count,), -1))
        return replace(lesson, training=samples, validation=samples)


class PlainGCN(nn.Module):
    """The two-layer GCN as one writes it with DGL: sums over neighbours beside a skip, a gated sum and the largest."""

    def __init__(self, features: int) -> None:
        super().__init__()
        sizes = list(pairwise([features, WIDTH, WIDTH]))
        self.neighbours = nn.ModuleList(nn.Linear(*pair) for pair in sizes)
        self.own = nn.ModuleList(nn.Linear(*pair) for pair in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in sizes)
        self.gate = nn.Linear(WIDTH, 1)
        self.after = nn.Sequential(nn.Linear(2 * WIDTH, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, CLASSES))

    def forward(self, batch: "dgl.DGLGraph") -> Tensor:
        import dgl
        from dgl.ops import copy_u_sum

        hidden = batch.ndata["features"]
        for neighbours, own, norm in zip(self.neighbours, self.own, self.norms, strict=True):
            hidden = norm(neighbours(copy_u_sum(batch, hidden)).relu() + own(hidden).relu())
        batch.ndata["hidden"], batch.ndata["gate"] = hidden, torch.sigmoid(self.gate(hidden))
        parts = [dgl.sum_nodes(batch, "hidden", "gate"), dgl.max_nodes(batch, "hidden")]
        outputs: Tensor = self.after(torch.cat(parts, dim=1))
        return outputs


def dgl_loop(experience: Experience, layout: JointLayout, rebuild: bool) -> Callable[[], None]:
    """Return a function that trains for EPOCHS epochs on clips as graphs of DGL's, batched anew in every step.

    rebuild: makes the graphs anew too.
    """
    import dgl

    clips: Tensor = experience.training.pool.whole().content
    features = clips.permute(0, 3, 2, 1).flatten(2).contiguous()
    labels = experience.training.labels
    model = PlainGCN(features.shape[2])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

    def made() -> "list[dgl.DGLGraph]":
        graphs = [layout.graph() for _ in features]
        for graph, table in zip(graphs, features, strict=True):
            graph.ndata["features"] = table
        return graphs

    stored = made()

    def run() -> None:
        model.train()
        for _ in range(EPOCHS):
            batch = dgl.batch(made() if rebuild else stored)
            optimizer.zero_grad()
            functional.cross_entropy(model(batch), labels).backward()
            optimizer.step()

    return run


def trainer(learner: Learner, experience: Experience) -> Callable[[], None]:
    """Return a function that trains for EPOCHS epochs on the samples of a lesson, as a stage does."""
    learner.taught.append(Taught(experience.keys, ()))
    learner._meet(experience.outputs)
    learner.reset_optimizer()
    learner._lesson = experience, None
    return partial(learner.train, experience.training)


def products_of(rows: Tensor, weight: Tensor, gradient: Tensor, first: bool = False) -> None:
    """The products of a linear layer, forward and backward; the first layer's input needs no gradient."""
    rows @ weight.T
    gradient.T @ rows
    if not first:
        gradient @ weight


def gcn_products(clips: int = CLIPS, epochs: int = EPOCHS) -> Callable[[], None]:
    """Return the bare matrix products of epochs of the two-layer GCN, all clips at once."""
    joints, random = len(UCLA), torch.randn
    nodes = clips * joints
    trajectories, summed = random(nodes, FRAMES * COORDINATES), random(nodes, FRAMES * COORDINATES)
    hidden, gradient, gate = random(nodes, WIDTH), random(nodes, WIDTH), random(nodes, 1)
    first, second, gating = random(WIDTH, FRAMES * COORDINATES), random(WIDTH, WIDTH), random(1, WIDTH)
    read, embedded, outputs = random(clips, 2 * WIDTH), random(clips, 64), random(clips, CLASSES)
    predictor, head = random(64, 2 * WIDTH), random(CLASSES, 64)
    adjacency = torch.from_numpy(UCLA.adjacency()).expand(clips, -1, -1)

    def run() -> None:
        for _ in range(epochs):
            products_of(summed, first, gradient, first=True)
            products_of(trajectories, first, gradient, first=True)
            products_of(hidden, second, gradient)
            products_of(hidden, second, gradient)
            torch.bmm(adjacency, hidden.view(clips, joints, WIDTH))
            torch.bmm(adjacency, gradient.view(clips, joints, WIDTH))
            products_of(hidden, gating, gate)
            products_of(read, predictor, embedded)
            products_of(embedded, head, outputs)

    return run


def stgcn_products() -> Callable[[], None]:
    """Return the bare matrix products and temporal convolutions of an epoch of the two-layer ST-GCN."""
    joints, random = len(UCLA), torch.randn
    skeletons = CLIPS * FRAMES
    rows = skeletons * joints
    edges = random(3 * joints, joints).expand(skeletons, -1, -1)
    kernel = random(WIDTH, WIDTH, 9, 1).contiguous(memory_format=torch.channels_last)
    hidden, gradient = random(rows, WIDTH), random(rows, WIDTH)

    def convolution() -> None:
        image, back = (each.view(CLIPS, FRAMES, joints, WIDTH).permute(0, 3, 1, 2) for each in (hidden, gradient))
        functional.conv2d(image, kernel, padding=(4, 0))
        torch.ops.aten.convolution_backward(
            back, image, kernel, None, [1, 1], [4, 0], [1, 1], False, [0, 0], 1, [True, True, False]
        )

    def spatial(channels: int) -> Callable[[], None]:
        entering, summed = random(rows, channels), random(rows, 3 * channels)
        weight = random(WIDTH, 3 * channels)

        def run() -> None:
            features, gathered = entering.view(-1, joints, channels), summed.view(-1, 3 * joints, channels)
            torch.bmm(edges, features)
            torch.bmm(edges.mT, gathered)
            torch.bmm(gathered, features.mT)
            products_of(summed, weight, gradient)

        return run

    first, second = spatial(COORDINATES), spatial(WIDTH)
    clips, residual = random(rows, COORDINATES), random(WIDTH, COORDINATES)

    def run() -> None:
        convolution()
        convolution()
        first()
        second()
        products_of(clips, residual, gradient)

    return run


def measure_gcn(rounds: int) -> dict[str, float]:
    scenario = RandomScenario()
    training = Training(epochs=EPOCHS)
    variants = {"products": gcn_products()}
    variants["dense"] = trainer(make_learner(scenario, training=training), scenario.everything())
    for name, rebuild in (("dgl", False), ("dgl_rebuilt", True)):
        variants[name] = dgl_loop(scenario.everything(), UCLA, rebuild)
    return {f"gcn_{name}_ms": value / EPOCHS for name, value in alternate(variants, rounds).items()}


def clip_bench(clips: int = CLIPS, frames: int = FRAMES) -> method_costs.Bench:
    """Return what methods are timed on: five tasks of two classes, so many clips in each, with GCN and its recipe.

    Memories hold in the second lesson what they do in the last one of the study.
    """

    def scenario(setting: method_costs.Setting) -> RandomScenario:
        return RandomScenario(clips=clips * CLASSES // 2, frames=frames, classes_per_task=2, setting=setting)

    parameters = {name: {"count": MEMORY} for name in REMEMBERING} | {"ridge": {"projection": 2000}}
    return method_costs.Bench("skeleton", scenario, Training(device="cpu"), 100, ("gcn", {}), parameters)


def measure_stgcn(rounds: int, precision: Literal["float32", "bfloat16"]) -> dict[str, float]:
    scenario = RandomScenario()
    training = Training(epochs=1, precision=precision)
    learner = make_learner(scenario, backbone="stgcn", training=training)
    variants = {f"stgcn_{precision}_ms": trainer(learner, scenario.everything())}
    if precision == "float32":
        variants["stgcn_products_ms"] = stgcn_products()
    return alternate(variants, rounds)


def measure_memory() -> dict[str, float]:
    """Return the peak memory of an epoch at the size of an NTU task: 1066 clips × 25 joints × 900."""
    scenario = RandomScenario(NTU, clips=1066, frames=300)
    trainer(make_learner(scenario, training=Training(epochs=2)), scenario.everything())()
    return {"peak_gb_at_ntu_size": peak_memory()}


def in_a_process_of_its_own(part: str, rounds: int) -> dict[str, float]:
    """Run a part of this file in a new process: for its memory, and because bfloat16 may need settings of its own."""
    command = [sys.executable, __file__, "--part", part, "--stgcn-rounds", str(rounds)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(printed.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--stgcn-rounds", type=int, default=3)
    parser.add_argument("--part", choices=["all", "methods", "memory", "bfloat16"], default="all")
    method_costs.add_options(parser)
    options = parser.parse_args()
    if options.part == "bfloat16":
        ensure_bfloat16_works()
    settle()
    os.environ.setdefault("DGLBACKEND", "pytorch")
    if options.part == "memory":
        figures = measure_memory()
    elif options.part == "methods":
        figures = method_costs.report(clip_bench(), options, "method")
    elif options.part == "bfloat16":
        figures = measure_stgcn(options.stgcn_rounds, "bfloat16")
    else:
        figures = measure_gcn(options.rounds)
        figures["gcn_dense_over_products"] = figures["gcn_dense_ms"] / figures["gcn_products_ms"]
        figures["gcn_dgl_over_dense"] = figures["gcn_dgl_ms"] / figures["gcn_dense_ms"]
        figures["gcn_dgl_rebuilt_over_dense"] = figures["gcn_dgl_rebuilt_ms"] / figures["gcn_dense_ms"]
        figures |= measure_stgcn(options.stgcn_rounds, "float32")
        figures["stgcn_over_products"] = figures["stgcn_float32_ms"] / figures["stgcn_products_ms"]
        figures |= in_a_process_of_its_own("bfloat16", 1)
        figures["stgcn_bfloat16_over_float32"] = figures["stgcn_bfloat16_ms"] / figures["stgcn_float32_ms"]
        figures |= in_a_process_of_its_own("memory", 1)
        for name, value in figures.items():
            print(f"{name:32} {value:10.2f}")
        figures |= method_costs.report(clip_bench(), options, "method")
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
