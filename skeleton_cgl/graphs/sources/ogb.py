"""The Open Graph Benchmark (Hu et al. 2020): arxiv, products, mag, proteins; collab; molecules as molhiv, ppa.

From their folders `raw` and `split` as published.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, Groups, make_graph
from skeleton_cgl.graphs.options import existing, flag, one_of
from skeleton_cgl.graphs.source import GraphData, GraphSource
from skeleton_cgl.graphs.sources.ogb_files import PUBLISHED, read_collab, read_graphs, read_split, whole_numbers
from skeleton_cgl.reading.tables import numbers_in_pieces, read_numbers, read_text


@dataclass(frozen=True)
class _Form:
    """Where a data set keeps what, below `raw` and `split`, and whether it means every edge in both directions."""

    split: str
    both_ways: bool
    edges: str = ""
    nodes: str = ""
    labels: str = ""
    part: str = ""


_FORMS = {
    "arxiv": _Form("time", both_ways=False),
    "products": _Form("sales_ranking", both_ways=True),
    "proteins": _Form("species", both_ways=True),
    "mag": _Form("time", False, "relations/paper___cites___paper", "node-feat/paper", "node-label/paper", "paper"),
}
_SETS = {"mol": "scaffold", "ppa": "species"}
"""The sets of graphs, and what each is split by."""


class Ogb(GraphSource):
    """The graph, links or graphs of a folder such as `arxiv`, with its folders `raw` and `split`.

    dataset: arxiv, products, mag, proteins, collab, mol or ppa; by default what the folders look like. Of mag, the
    papers and the citations between them are read, and no other nodes or edges. Proteins have no features of their own:
    they get the mean of those of their edges, have 112 labels, and their species as groups. both_ways: whether every
    edge counts in both directions; by default as published, where arxiv and mag are directed; collab, molecules and ppa
    never are. Years, if there are any, are the times. Of collab, the links are those of its split; published pairs
    without a link of which another part has one are left out, and counted. Molecules (mol: molhiv, moltox21 …) have
    kinds of atoms and bonds; ppa, which has no features of nodes, gets their in- and out-degrees, and species as groups
    where `mapping/graphidx2speciesid.csv.gz` is there to tell them.
    """

    published = PUBLISHED

    def __init__(self, path: str | Path, dataset: str | None = None, both_ways: bool | None = None) -> None:
        self._folder = Path(path)
        self._dataset = dataset if dataset is None else one_of("dataset", dataset, (*_FORMS, "collab", *_SETS))
        self._both_ways = both_ways if both_ways is None else flag("both_ways", both_ways)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return _dataset_of(path) is not None

    def read(self) -> GraphData:
        dataset = self._dataset or _dataset_of(existing(self._folder, self.published))
        if dataset is None:
            raise InputError(
                f"{self._folder}: expected the folders raw and split of arxiv, products, mag, proteins, collab, "
                f"molecules or ppa; published at {self.published}"
            )
        if dataset in ("collab", *_SETS):
            if self._both_ways is not None:
                raise InputError(f"both_ways: of graphs of nodes alone; edges of {dataset} stand for both directions")
            return read_collab(self._folder) if dataset == "collab" else read_graphs(self._folder, dataset)
        return self._graph(dataset)

    def _graph(self, dataset: str) -> Graph:
        form = _FORMS[dataset]
        raw = self._folder / "raw"
        edges = whole_numbers(raw / form.edges / "edge.csv.gz", 2).T
        nodes = self._nodes(raw, dataset)
        _check_count(raw / form.edges / "num-edge-list.csv.gz", edges.shape[1], "edges")
        labels = whole_numbers(raw / form.labels / "node-label.csv.gz")
        _check_rows(raw, "node-label", len(labels), nodes)
        features = (
            self._mean_of_edges(raw / "edge-feat.csv.gz", edges, nodes)
            if dataset == "proteins"
            else read_numbers(existing(raw / form.nodes / "node-feat.csv.gz", self.published), np.float32)
        )
        _check_rows(raw, "node-feat", len(features), nodes)
        years = raw / form.nodes / "node_year.csv.gz"
        return make_graph(
            f"ogbn-{dataset}",
            edges,
            features,
            labels[:, 0] if labels.shape[1] == 1 else labels,
            groups=self._species(raw, nodes) if dataset == "proteins" else None,
            times=whole_numbers(years, 1)[:, 0] if years.is_file() else None,
            split=read_split(self._folder / "split" / form.split / form.part, nodes, "node"),
            both_ways=form.both_ways if self._both_ways is None else self._both_ways,
            where=str(self._folder),
        )

    def _nodes(self, raw: Path, dataset: str) -> int:
        if dataset != "mag":
            return int(whole_numbers(raw / "num-node-list.csv.gz", 1)[0, 0])
        path = existing(raw / "num-node-dict.csv.gz", self.published)
        counts = read_text(path)
        if not counts.get("paper", [""])[0].isdecimal():
            raise InputError(f"{path}: column 'paper': expected the number of papers")
        return int(counts["paper"][0])

    def _mean_of_edges(self, path: Path, edges: np.ndarray, nodes: int) -> np.ndarray:
        """Return for every node the mean of the features of the edges that it is an end of."""
        _check_ends(edges, nodes, self._folder / "raw" / "edge.csv.gz")
        sums: np.ndarray | None = None
        first = 0
        for piece in numbers_in_pieces(existing(path, self.published), np.float64):
            ends = edges[:, first : first + len(piece)]
            if ends.shape[1] < len(piece):
                break
            if sums is None:
                sums = np.zeros((nodes, piece.shape[1]))
            for column in range(piece.shape[1]):
                for end in ends:
                    sums[:, column] += np.bincount(end, piece[:, column], nodes)
            first += len(piece)
        if sums is None or first != edges.shape[1]:
            raise InputError(f"{path}: expected {edges.shape[1]} rows, one per edge")
        return sums / np.maximum(np.bincount(edges.ravel(), minlength=nodes), 1)[:, None]

    def _species(self, raw: Path, nodes: int) -> dict[str, Groups]:
        path = raw / "species.csv.gz"
        species = whole_numbers(path if path.is_file() else raw / "node_species.csv.gz", 1)[:, 0]
        names, numbers = np.unique(species, return_inverse=True)
        _check_rows(raw, "node_species", len(numbers), nodes)
        return {"species": Groups(numbers, tuple(map(str, names.tolist())))}


def _dataset_of(folder: Path) -> str | None:
    """Return which data set a folder looks like, None for none."""
    if not (folder / "raw").is_dir():
        return None
    if (folder / "raw" / _FORMS["mag"].edges).is_dir():
        return "mag"
    if (folder / "raw" / "graph-label.csv.gz").is_file():
        return next((name for name, split in _SETS.items() if (folder / "split" / split).is_dir()), None)
    if any((folder / "split" / "time").glob("*.pt")):
        return "collab"
    others = ("arxiv", "products", "proteins")
    return next((name for name in others if (folder / "split" / _FORMS[name].split).is_dir()), None)


def _check_count(path: Path, count: int, what: str) -> None:
    if path.is_file() and (claimed := int(read_numbers(path, np.int64, 1)[0, 0])) != count:
        raise InputError(f"{path}: says {claimed} {what}, found {count}")


def _check_rows(raw: Path, name: str, found: int, nodes: int) -> None:
    if found != nodes:
        raise InputError(f"{raw}: {name}.csv.gz: expected {nodes} rows, one per node, found {found}")


def _check_ends(edges: np.ndarray, nodes: int, path: Path) -> None:
    wrong = ((edges < 0) | (edges >= nodes)).any(axis=0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"{path}: row {row + 1}: an end is outside the nodes 0–{nodes - 1}")
