"""How fast a stage on graphs is: against a plain loop of DGL, against its dense products alone, and on large graphs.

Everything is timed in one run on one thread, variants alternating, medians compared. An epoch is a step of training on
all nodes of a task and a look at its validation nodes, through the learner as a stage does it. The last line is one
JSON object: milliseconds per epoch, ratios, GB. Of molecules, an epoch is one of the size of a task of Aromaticity, in
batches of 128; of ratings, a step on all pairs of a task in a graph of the size of Bitcoin-OTC.

    python experiments/benchmark_graphs.py [--data data/planetoid] [--rounds 9] [--large-rounds 3]

Without the files of Cora and Citeseer, graphs of their size and sparsity are made up.
"""

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.graphs.gcn import GCN
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.datasets import open_graph
from skeleton_cgl.graphs.links import Links
from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.learning.learner import Taught
from skeleton_cgl.learning.training import Training
from skeleton_cgl.parts import TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.process import settle
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.scenarios.scenario import Experience, Facts

WIDTH, DEPTH = 256, 3
EPOCHS = 5
"""Epochs of one measurement."""
CORA, CITESEER = (2708, 5278, 1433, 18, 7), (3327, 4552, 3703, 32, 6)
"""Nodes, links, features, words of a node, classes."""
ARXIV = (169_343, 1_166_243, 128, 40)
"""Nodes, links, features, classes."""
REDDIT_DEGREE = 500
AROMATICITY = (3868, 29.7, 30, 3, 128)
"""Graphs, their mean number of nodes, classes, classes of a task, graphs of a batch."""
BITCOIN = (6005, 35_592, 9_943, 6)
"""Nodes, links, pairs that have a class, classes."""


@dataclass(frozen=True)
class Data:
    """A graph with its features, labels and parts; edges (2, E) in both directions, without loops."""

    edges: np.ndarray
    features: np.ndarray | csr_array
    labels: np.ndarray
    parts: np.ndarray


class WholePool:
    """All nodes of a graph, with a loop at each."""

    augmented = False

    def __init__(self, data: Data) -> None:
        self.digest = f"{id(data)}"
        self._places = Places.of(data.edges, data.features, np.arange(len(data.labels))[:, None], self_loops=True)

    def whole(self) -> Places:
        return self._places

    def drawn(self, ids: Tensor, random: np.random.Generator) -> Places:  # noqa: ARG002
        return self._places.rows(ids)


def citation_graph(size: tuple[int, ...], folder: Path | None, name: str) -> Data:
    """Return Cora or Citeseer from their files, or a graph of that size and sparsity."""
    if folder is not None:
        found = open_graph(str(folder), {"name": "planetoid", "dataset": name})
        assert found.split is not None
        # Nodes without a class are in no part.
        return Data(found.edges, found.features, found.labels.clip(0), found.split)
    nodes, links, width, words, classes = size
    random = np.random.default_rng(0)
    columns = random.integers(0, width, (nodes, words))
    features = csr_array(
        (np.full(nodes * words, 1 / words, dtype=np.float32), (np.repeat(np.arange(nodes), words), columns.ravel())),
        shape=(nodes, width),
    )
    parts = np.full(nodes, UNUSED)
    parts[:-1000], parts[-1000:] = UNUSED, TEST
    parts[: 20 * classes], parts[20 * classes : 20 * classes + 500] = TRAINING, VALIDATION
    return Data(linked(nodes, links, random), features, np.arange(nodes) % classes, parts)


def large_graph(nodes: int, links: int, width: int, classes: int) -> Data:
    """Return a graph with dense features; half of its nodes are to learn from."""
    random = np.random.default_rng(0)
    features = random.standard_normal((nodes, width), dtype=np.float32)
    parts = np.where(np.arange(nodes) % 2, TRAINING, np.where(np.arange(nodes) % 4, VALIDATION, TEST))
    return Data(linked(nodes, links, random), features, random.integers(0, classes, nodes), parts)


def linked(nodes: int, links: int, random: np.random.Generator) -> np.ndarray:
    """Return (2, E): random links in both directions, each once, none from a node to itself."""
    ends = random.integers(0, nodes, (2, links + links // 50))
    ends = ends[:, ends[0] != ends[1]]
    keys = np.unique(np.minimum(*ends) * nodes + np.maximum(*ends))
    chosen = keys if len(keys) <= links else random.choice(keys, links, replace=False)
    sources, targets = chosen // nodes, chosen % nodes
    return np.stack([np.concatenate([sources, targets]), np.concatenate([targets, sources])])


def scenario_of(data: Data, classes_per_task: int) -> LabelledSamples:
    names = tuple(f"class {label}" for label in range(int(data.labels.max()) + 1))
    return LabelledSamples(
        WholePool(data),
        data.labels,
        data.parts,
        names,
        ClassTasks(classes_per_task=classes_per_task),
        Facts("graph", {"features": data.features.shape[1]}),
        b"benchmark",
    )


def first_lesson(scenario: LabelledSamples) -> Experience:
    return scenario.experience(scenario.lessons(scenario.default)[:1])


def ours(
    scenario: LabelledSamples, epochs: int = EPOCHS, batch_size: int | None = None, **parameters: Any
) -> Callable[[], None]:
    """Return a function that learns the first task for some epochs and looks at its validation samples after each."""
    experience = first_lesson(scenario)
    training = Training(epochs=epochs, batch_size=batch_size, patience=1000, device="cpu")
    learner = make_learner(scenario, "gcn", training=training, backbone_parameters=parameters)
    learner.taught.append(Taught(experience.keys, ()))
    learner._meet(experience.outputs)
    learner.optimizer = learner._new_optimizer()
    return partial(learner._train, experience.training, experience, None)


class PlainGCN(nn.Module):
    """BeGin's GCN as one writes it with DGL: GraphConv on dense features, BatchNorm, ReLU, dropout, a linear head."""

    def __init__(self, features: int, classes: int, dropout: float) -> None:
        from dgl.nn.pytorch import GraphConv

        super().__init__()
        sizes = [features, *[WIDTH] * DEPTH]
        self.layers = nn.ModuleList(GraphConv(*sizes[i : i + 2], norm="both", bias=False) for i in range(DEPTH))
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in range(DEPTH))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(WIDTH, classes)

    def forward(self, graph: Any, features: Tensor) -> Tensor:
        hidden = self.dropout(features)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            hidden = self.dropout(norm(layer(graph, hidden)).relu())
        return self.head(hidden)


def plain_dgl(scenario: LabelledSamples, data: Data, dropout: float) -> Callable[[], None]:
    """Return a function that trains with DGL's own operators, and looks at the validation nodes after every epoch."""
    experience = first_lesson(scenario)
    graph = Links.of(data.edges, len(data.labels), self_loops=True).graph
    features = data.features if isinstance(data.features, np.ndarray) else data.features.toarray()
    table = torch.from_numpy(features)
    model = PlainGCN(table.shape[1], len(experience.outputs), dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    column = torch.zeros(len(scenario.outputs), dtype=torch.int64)
    column[list(experience.outputs)] = torch.arange(len(experience.outputs))

    def run() -> None:
        lowest = torch.inf
        for _ in range(EPOCHS):
            model.train()
            optimizer.zero_grad()
            training = experience.training
            loss = functional.cross_entropy(model(graph, table)[training.ids], column[training.labels])
            loss.backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                validation = experience.validation
                found = functional.cross_entropy(model(graph, table)[validation.ids], column[validation.labels]).item()
            if found < lowest:
                lowest, _kept = found, copy.deepcopy(model.state_dict())

    return run


def dense_products(nodes: int, validated: bool) -> Callable[[], None]:
    """Return the dense products of such an epoch: of all layers but the first, forward and backward.

    validated: those of looking at the validation nodes as well, through all nodes as a plain loop does.
    """
    hidden, gradient, weight = (torch.randn(*shape) for shape in ((nodes, WIDTH), (nodes, WIDTH), (WIDTH, WIDTH)))

    def run() -> None:
        for _ in range(EPOCHS):
            for _ in range(DEPTH - 1):
                hidden @ weight
                gradient @ weight.T
                hidden.T @ gradient
                if validated:
                    hidden @ weight

    return run


class MadePool:
    """Inputs that are made already."""

    augmented = False

    def __init__(self, inputs: Graphs | Places) -> None:
        self.digest = f"{id(inputs)}"
        self._inputs = inputs

    def whole(self) -> Graphs | Places:
        return self._inputs

    def drawn(self, ids: Tensor, random: np.random.Generator) -> Graphs | Places:  # noqa: ARG002
        return self._inputs.rows(ids)


def molecules(graphs: int, mean_nodes: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return starts and edges of graphs of the sizes of Aromaticity's: chains with branches, and a few rings each."""
    sizes = random.poisson(mean_nodes - 8, graphs) + 8
    starts = np.concatenate([[0], sizes.cumsum()])
    bonds = []
    for start, size in zip(starts, sizes, strict=False):
        nodes = np.arange(1, size)
        before = nodes - np.minimum(random.choice([1, 1, 1, 2], size - 1), nodes)
        rings = random.choice(size - 5, min(4, size - 5), replace=False)
        bonds.append(start + np.concatenate([[nodes, before], [rings, rings + 5]], axis=1))
    ends = np.concatenate(bonds, axis=1)
    edges = np.unique(np.concatenate([ends, ends[::-1]], axis=1), axis=1)
    return starts, edges


def molecule_scenario() -> tuple[LabelledSamples, list[Any]]:
    """Return graphs of the sizes of Aromaticity's as a scenario, and each of them as a graph of DGL's."""
    import dgl

    graphs, mean_nodes, classes, classes_per_task, _ = AROMATICITY
    random = np.random.default_rng(0)
    starts, edges = molecules(graphs, mean_nodes, random)
    degrees = np.repeat(np.bincount(edges[1], minlength=starts[-1])[:, None], 2, axis=1).astype(np.float32)
    labels = np.arange(graphs) % classes
    parts = random.choice([TRAINING, VALIDATION, TEST], graphs, p=[0.6, 0.2, 0.2])
    scenario = LabelledSamples(
        MadePool(Graphs.of(starts, edges, degrees, self_loops=False)),
        labels,
        parts,
        tuple(f"class {label}" for label in range(classes)),
        ClassTasks(classes_per_task=classes_per_task),
        Facts("graph", {"features": 2, "rows": "graphs"}),
        b"benchmark",
    )
    whole = dgl.graph(tuple(torch.from_numpy(ends) for ends in edges), num_nodes=int(starts[-1]))
    whole.ndata["features"] = torch.from_numpy(degrees)
    whole.set_batch_num_nodes(torch.from_numpy(np.diff(starts)))
    owners = np.searchsorted(starts, edges[1], side="right") - 1
    whole.set_batch_num_edges(torch.from_numpy(np.bincount(owners, minlength=graphs)))
    return scenario, dgl.unbatch(whole)


class PlainConvolutions(nn.Module):
    """GraphConv, BatchNorm and ReLU, so many times."""

    def __init__(self, sizes: Sequence[int]) -> None:
        from dgl.nn.pytorch import GraphConv

        super().__init__()
        self.layers = nn.ModuleList(GraphConv(*pair, norm="both", bias=False) for pair in pairwise(sizes))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in sizes[1:])

    def forward(self, graph: Any, hidden: Tensor) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            hidden = norm(layer(graph, hidden)).relu()
        return hidden


def plain_loop(
    scenario: LabelledSamples, model: nn.Module, outputs: Callable[[Tensor], Tensor], batch_size: int, epochs: int
) -> Callable[[], None]:
    """Return a function that trains a model in batches, and looks at the validation samples after every epoch.

    outputs: from ids to the outputs of the model.
    """
    experience = first_lesson(scenario)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    column = torch.zeros(len(scenario.outputs), dtype=torch.int64)
    column[list(experience.outputs)] = torch.arange(len(experience.outputs))
    training, validation = experience.training, experience.validation

    def run() -> None:
        lowest = torch.inf
        for _ in range(epochs):
            model.train()
            for chosen in torch.randperm(len(training)).split(batch_size):
                optimizer.zero_grad()
                found = functional.cross_entropy(outputs(training.ids[chosen]), column[training.labels[chosen]])
                found.backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                found = functional.cross_entropy(outputs(validation.ids), column[validation.labels])
            if found.item() < lowest:
                lowest, _kept = found.item(), copy.deepcopy(model.state_dict())

    return run


def measure_molecules(rounds: int) -> dict[str, float]:
    """Return milliseconds per epoch on graphs of the sizes of Aromaticity's, ours and by batching graphs of DGL."""
    import dgl

    scenario, graphs = molecule_scenario()
    *_, classes_per_task, batch_size = AROMATICITY
    encoder, layers = nn.Linear(2, 146), PlainConvolutions([146] * 5)
    after = nn.Sequential(nn.Linear(146, 73), nn.ReLU(), nn.Linear(73, 36), nn.ReLU(), nn.Linear(36, classes_per_task))

    def outputs(ids: Tensor) -> Tensor:
        batch = dgl.batch([graphs[number] for number in ids.tolist()])
        batch.ndata["hidden"] = layers(batch, encoder(batch.ndata["features"]))
        return after(dgl.mean_nodes(batch, "hidden"))

    model = nn.ModuleList([encoder, layers, after])
    return _against_dgl(
        "molecules",
        ours(scenario, batch_size=batch_size, preset="begin-graphs"),
        plain_loop(scenario, model, outputs, batch_size, EPOCHS),
        rounds,
    )


def measure_ratings(rounds: int) -> dict[str, float]:
    """Return milliseconds per epoch on pairs in a graph of the size of Bitcoin-OTC, ours and with DGL's operators."""
    nodes, links, pairs, classes = BITCOIN
    random = np.random.default_rng(0)
    # A few take part in many ratings.
    popular = (nodes * random.random((2, 2 * links)) ** 3).astype(np.int64)
    edges = np.unique(popular[:, popular[0] != popular[1]], axis=1)
    edges = edges[:, np.sort(random.choice(edges.shape[1], links, replace=False))]
    features = np.stack([np.bincount(ends, minlength=nodes) for ends in edges], axis=1).astype(np.float32)
    at = edges[:, random.choice(links, pairs, replace=False)].T
    places = Places.of(edges, features, at, self_loops=True)
    scenario = LabelledSamples(
        MadePool(places),
        random.integers(0, classes, pairs),
        random.choice([TRAINING, VALIDATION, TEST], pairs, p=[0.8, 0.1, 0.1]),
        tuple(f"class {label}" for label in range(classes)),
        ClassTasks(classes_per_task=2),
        Facts("graph", {"features": 2, "rows": "pairs"}, join="product"),
        b"benchmark",
    )
    layers = PlainConvolutions([2, *[WIDTH] * DEPTH])
    after = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2))
    graph, table, ends = places.links.graph, places.features, places.at

    def outputs(ids: Tensor) -> Tensor:
        hidden = layers(graph, table)
        return after(hidden[ends[ids, 0]] * hidden[ends[ids, 1]])

    return _against_dgl(
        "ratings",
        ours(scenario, preset="begin-links"),
        plain_loop(scenario, nn.ModuleList([layers, after]), outputs, pairs, EPOCHS),
        rounds,
    )


def _against_dgl(name: str, own: Callable[[], None], plain: Callable[[], None], rounds: int) -> dict[str, float]:
    times = {each: value / EPOCHS for each, value in alternate({"ours": own, "dgl": plain}, rounds).items()}
    found = {f"{name}_{each}_ms": value for each, value in times.items()}
    return found | {f"{name}_dgl_over_ours": times["dgl"] / times["ours"]}


def alternate(variants: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each variant, run in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for run in variants.values():
        run()
    for _ in range(rounds):
        for name, run in variants.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    return {name: 1000 * statistics.median(values) for name, values in seconds.items()}


def measure_citation(name: str, data: Data, dropouts: tuple[float, ...], rounds: int) -> dict[str, float]:
    """Return milliseconds per epoch of the learner, of DGL and of the products, and their ratios."""
    scenario = scenario_of(data, classes_per_task=2)
    found = {}
    for dropout in dropouts:
        variants = {
            "ours": ours(scenario, preset="begin", dropout=dropout),
            "dgl": plain_dgl(scenario, data, dropout),
            "products": dense_products(len(data.labels), validated=True),
            "step_products": dense_products(len(data.labels), validated=False),
        }
        called = f"{name}_dropout_{dropout:g}"
        times = {each: value / EPOCHS for each, value in alternate(variants, rounds).items()}
        found |= {f"{called}_{each}_ms": value for each, value in times.items()}
        found[f"{called}_dgl_over_ours"] = times["dgl"] / times["ours"]
        for products in ("products", "step_products"):
            found[f"{called}_ours_over_{products}"] = times["ours"] / times[products]
    return found


def measure_sums(rounds: int) -> dict[str, float]:
    """Return the milliseconds of a symmetric sum over neighbours, by the ways there are to take it."""
    import dgl.ops

    found = {}
    for name, (nodes, links, *_), width in (("cora", CORA, WIDTH), ("arxiv", ARXIV, 128), ("arxiv", ARXIV, WIDTH)):
        random = np.random.default_rng(0)
        all_links = Links.of(linked(nodes, links, random), nodes, self_loops=True)
        features, weights = torch.randn(nodes, width), all_links.weights("symmetric")
        graph, scale = all_links.graph, all_links.in_degrees.rsqrt()[:, None]
        offsets, columns = all_links.pattern.offsets, all_links.sources
        with warnings.catch_warnings():
            # That such tensors are young.
            warnings.simplefilter("ignore")
            rows = torch.sparse_csr_tensor(offsets, columns, weights, (nodes, nodes))
        table = csr_array((weights.numpy(), columns.numpy(), offsets.numpy()), shape=(nodes, nodes))
        variants = {
            "bags": partial(all_links.sum, features, "symmetric"),
            "torch_csr": partial(torch.mm, rows, features),
            "dgl": partial(_scaled_by_dgl, dgl.ops.copy_u_sum, graph, features, scale),
            "dgl_weighted": partial(dgl.ops.u_mul_e_sum, graph, features, weights),
            "scipy": partial(table.__matmul__, features.numpy()),
        }
        found |= {f"sum_{name}_{width}_{each}_ms": value for each, value in alternate(variants, rounds).items()}
    return found


def _scaled_by_dgl(copy_u_sum: Callable[..., Tensor], graph: Any, features: Tensor, scale: Tensor) -> Tensor:
    return copy_u_sum(graph, features * scale).mul_(scale)


def measure_large(rounds: int) -> dict[str, float]:
    """Return the time and peak memory of a full-batch epoch with validation at the size of ogbn-arxiv."""
    data = large_graph(*ARXIV)
    run = ours(scenario_of(data, classes_per_task=int(data.labels.max()) + 1), epochs=3, preset="begin")
    milliseconds = alternate({"epochs": run}, rounds)["epochs"]
    return {"arxiv_epoch_s": milliseconds / 3000, "arxiv_peak_gb": peak_memory()}


def measure_sampling(rounds: int) -> dict[str, float]:
    """Return time, nodes and tensors of steps on 200 nodes with fan-outs 10 and 10, as the average degree grows."""
    found, random = {}, np.random.default_rng(0)
    for degree in (50, REDDIT_DEGREE):
        nodes = 40_000
        data = large_graph(nodes, nodes * degree // 2, 128, 40)
        backbone = GCN(128, "cglb", depth=2)
        batch = WholePool(data).whole().rows(torch.arange(200))
        nodes_drawn, megabytes = [], []

        def run(batch: Places = batch, backbone: GCN = backbone) -> None:
            sampled = batch.sampled([10, 10], random)
            backbone(sampled).sum().backward()
            nodes_drawn.append(sampled.links.nodes)  # noqa: B023
            megabytes.append(sum(tensor.nbytes for tensor in sampled.tensors()) / 1e6)  # noqa: B023

        found[f"sampled_degree_{degree}_step_ms"] = alternate({"step": run}, 10 * rounds)["step"]
        found[f"sampled_degree_{degree}_nodes"] = float(max(nodes_drawn))
        found[f"sampled_degree_{degree}_mb"] = max(megabytes)
        found[f"sampled_degree_{degree}_whole_graph_mb"] = sum(tensor.nbytes for tensor in batch.tensors()) / 1e6
    return found


def measure_growth(rounds: int) -> dict[str, float]:
    """Return milliseconds per epoch as nodes grow at ten links each, and as links grow at 10 000 nodes."""
    found = {}
    for nodes, links in ((5_000, 50_000), (10_000, 100_000), (20_000, 200_000), (40_000, 400_000)):
        found[f"grow_{nodes}_nodes_{links}_links_ms"] = _epoch(nodes, links, rounds)
    for links in (200_000, 400_000):
        found[f"grow_{10_000}_nodes_{links}_links_ms"] = _epoch(10_000, links, rounds)
    return found


def _epoch(nodes: int, links: int, rounds: int) -> float:
    data = large_graph(nodes, links, 128, 10)
    run = ours(scenario_of(data, classes_per_task=10), epochs=1, preset="begin")
    return alternate({"epoch": run}, rounds)["epoch"]


def peak_memory() -> float:
    """Return the peak memory of this process in GB; getrusage would begin with that of the process it came from."""
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1e6


def in_a_process_of_its_own(part: str, rounds: int) -> dict[str, float]:
    """Run a part of this file in a new process, for its memory."""
    command = [sys.executable, __file__, "--part", part, "--large-rounds", str(rounds)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(printed.splitlines()[-1])


PARTS: dict[str, Callable[[int], dict[str, float]]] = {
    "molecules": measure_molecules,
    "ratings": measure_ratings,
    "sums": measure_sums,
    "large": measure_large,
    "sampling": measure_sampling,
    "growth": measure_growth,
}


def main() -> None:
    os.environ.setdefault("DGLBACKEND", "pytorch")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the Planetoid files; without it, made-up graphs")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--large-rounds", type=int, default=3)
    parser.add_argument("--part", choices=["all", "citation", *PARTS], default="all")
    options = parser.parse_args()
    settle()
    figures: dict[str, float] = {}
    if options.part in ("all", "citation"):
        for name, size, dropouts in (("cora", CORA, (0.0, 0.5)), ("citeseer", CITESEER, (0.0,))):
            figures |= measure_citation(name, citation_graph(size, options.data, name), dropouts, options.rounds)
    for part, measure in PARTS.items():
        if options.part == "all":
            figures |= in_a_process_of_its_own(part, options.large_rounds)
        elif options.part == part:
            figures |= measure(options.large_rounds)
    for name, value in figures.items():
        print(f"{name:44} {value:10.2f}")
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
