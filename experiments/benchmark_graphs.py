"""How fast a stage on graphs is: against a plain loop of DGL, against its dense products alone, and on large graphs.

Everything is timed in one run on one thread, variants alternating, medians compared. An epoch is a step of training on
all nodes of a task and a look at its validation nodes, through the learner as a stage does it. The last line is one
JSON object: milliseconds per epoch, ratios, GB. Of molecules, an epoch is one of the size of a task of Aromaticity, in
batches of 128; of ratings, a step on all pairs of a task in a graph of the size of Bitcoin-OTC.

    python experiments/benchmark_graphs.py [--data data/planetoid] [--rounds 9] [--large-rounds 3]

Without the files of Cora and Citeseer, graphs of their size and sparsity are made up. The parts `methods` and
`graph-methods` list what every method that is defined for nodes, and for whole graphs, costs beside Bare
(method_costs.py), on made-up graphs of the sizes of Cora and of Aromaticity:

    python experiments/benchmark_graphs.py --part methods --methods er-gnn cat --method-rounds 5
"""

import argparse
import copy
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import method_costs
import numpy as np
import torch
from made_graphs import (
    AROMATICITY,
    ARXIV,
    BITCOIN,
    CITESEER,
    CORA,
    REDDIT_DEGREE,
    Data,
    citation_graph,
    dgl_graphs,
    large_graph,
    linked,
    molecule_scenario,
    molecules,
    rating_scenario,
    scenario_of,
)
from measuring import alternate, peak_memory
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.graphs.gcn import GCN
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.links import Links
from skeleton_cgl.learning.learner import Taught
from skeleton_cgl.learning.training import Training
from skeleton_cgl.process import settle
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.scenarios.scenario import Experience

WIDTH, DEPTH = 256, 3
EPOCHS = 5
"""Epochs of one measurement."""
REMEMBERING = ("a-gem", "der", "der-pp", "er", "gem", "gss", "replay")
REMEMBERING_NODES = (*REMEMBERING, "cgnn", "dmsg-stream", "er-gnn", "sem", "sem-stream", "ssm", "ssm-stream")
"""Methods that remember as many samples as they are told; others have a size of their own."""


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
    learner.reset_optimizer()
    learner._lesson = experience, None
    return partial(learner.train, experience.training)


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

    count, mean_nodes, classes, classes_per_task, batch_size = AROMATICITY
    starts, edges = molecules(count, mean_nodes, np.random.default_rng(0))
    scenario = molecule_scenario(starts, edges, classes, classes_per_task)
    graphs = dgl_graphs(starts, edges)
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
    scenario, places = rating_scenario(nodes, links, pairs, classes)
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
        batch = first_lesson(scenario_of(data, classes_per_task=40)).training.pool.whole().rows(torch.arange(200))
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


def node_bench(size: tuple[int, ...] = CORA, width: int = WIDTH) -> method_costs.Bench:
    """Return what methods are timed on: nodes two classes a task, BeGin's GCN, and of 12 nodes a memory, as it has."""
    data = citation_graph(size, None, "")
    ridge = {"hops": 2, "projection": 0, "strength": 1000}
    return method_costs.Bench(
        "node",
        partial(scenario_of, data, 2),
        Training(reset_optimizer=True, device="cpu"),
        study_epochs=1000,
        backbone=("gcn", {"preset": "begin", "width": width}),
        parameters={name: {"count": 12} for name in REMEMBERING_NODES} | {"ridge": ridge},
        others={
            "pdgnn-tem": ("sgc", {"aggregation": "appnp", "depth": 2, "width": width}),
            "evolve-gcn": ("evolving-gcn", {"depth": DEPTH, "encoder": True, "width": width}),
        },
    )


def molecule_bench(graphs: int = AROMATICITY[0]) -> method_costs.Bench:
    """Return what methods are timed on: molecules three classes a task, BeGin's GCN, and of 50 molecules a memory."""
    _, mean_nodes, classes, classes_per_task, batch_size = AROMATICITY
    made = molecules(graphs, mean_nodes, np.random.default_rng(0))
    ridge = {"hops": 2, "projection": 2000, "unit": False}
    return method_costs.Bench(
        "graph",
        partial(molecule_scenario, *made, classes, classes_per_task),
        Training(batch_size=batch_size, reset_optimizer=True, device="cpu"),
        study_epochs=100,
        backbone=("gcn", {"preset": "begin-graphs"}),
        parameters={name: {"count": 50} for name in REMEMBERING} | {"ridge": ridge},
    )


def in_a_process_of_its_own(part: str, options: argparse.Namespace) -> dict[str, float]:
    """Run a part of this file in a new process, for its memory; print what it prints, but for the figures."""
    command = [sys.executable, __file__, "--part", part, "--large-rounds", str(options.large_rounds)]
    command += ["--method-rounds", str(options.method_rounds), "--method-epochs", str(options.method_epochs)]
    command += ["--methods", *options.methods] if options.methods else []
    *lines, figures = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    print(*lines, sep="\n")
    return json.loads(figures)


def listed(figures: dict[str, float]) -> dict[str, float]:
    """Print figures line by line, and return them."""
    for name, value in figures.items():
        print(f"{name:44} {value:10.2f}")
    return figures


PARTS: dict[str, Callable[[int], dict[str, float]]] = {
    "molecules": measure_molecules,
    "ratings": measure_ratings,
    "sums": measure_sums,
    "large": measure_large,
    "sampling": measure_sampling,
    "growth": measure_growth,
}
BENCHES: dict[str, tuple[Callable[[], method_costs.Bench], str]] = {
    "methods": (node_bench, "method"),
    "graph-methods": (molecule_bench, "graph_method"),
}
"""Parts that list methods, and what their figures are called by."""


def main() -> None:
    os.environ.setdefault("DGLBACKEND", "pytorch")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the Planetoid files; without it, made-up graphs")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--large-rounds", type=int, default=3)
    parser.add_argument("--part", choices=["all", "citation", *PARTS, *BENCHES], default="all")
    method_costs.add_options(parser)
    options = parser.parse_args()
    settle()
    figures: dict[str, float] = {}
    if options.part in ("all", "citation"):
        for name, size, dropouts in (("cora", CORA, (0.0, 0.5)), ("citeseer", CITESEER, (0.0,))):
            data = citation_graph(size, options.data, name)
            figures |= listed(measure_citation(name, data, dropouts, options.rounds))
    if options.part == "all":
        for part in (*PARTS, *BENCHES):
            figures |= in_a_process_of_its_own(part, options)
    elif options.part in PARTS:
        figures |= listed(PARTS[options.part](options.large_rounds))
    elif options.part in BENCHES:
        bench, called = BENCHES[options.part]
        figures |= method_costs.report(bench(), options, called)
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
