"""What the forms of the Open Graph Benchmark share, and its links and sets of graphs: collab, molecules, ppa."""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph_set import GraphSet, Groups, make_graph_set
from skeleton_cgl.graphs.items import ItemKind
from skeleton_cgl.graphs.link_set import LinkSet, make_link_set, pair_keys
from skeleton_cgl.graphs.options import existing
from skeleton_cgl.parts import TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.tables import read_numbers, read_text
from skeleton_cgl.reading.tensors import array_of, load_arrays, load_tensors

PUBLISHED = "ogb.stanford.edu/docs"
_PARTS = {"train": TRAINING, "valid": VALIDATION, "test": TEST}
_ATOMS = (119, 5, 12, 12, 10, 6, 6, 2, 2)
"""Kinds of element, chirality, degree, charge, hydrogens, radical electrons, hybridisation, aromatic, in a ring."""
_BONDS = (5, 6, 2)
"""Kinds of bond, stereo configuration, conjugated."""


def whole_numbers(path: Path, columns: int | None = None) -> np.ndarray:
    """Return a table of whole numbers; refuse a file that is not there."""
    return read_numbers(existing(path, PUBLISHED), np.int64, columns)


def read_split(folder: Path, count: int, item: ItemKind) -> np.ndarray:
    """Return (I,) the part of every item, of the lists of items in a folder; refuse one in two parts, or outside."""
    split = np.full(count, UNUSED)
    for name, part in _PARTS.items():
        path = folder / f"{name}.csv.gz"
        members = whole_numbers(path, 1)[:, 0]
        wrong = (members < 0) | (members >= count)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"{path}: row {row + 1}: {members[row]} is outside the {item}s 0–{count - 1}")
        taken = split[members] != UNUSED
        if taken.any():
            raise InputError(f"{path}: {item} {members[np.argmax(taken)]} is in another part already")
        split[members] = part
    return split


def read_collab(folder: Path) -> LinkSet:
    """Return the links of collab: those of `split/time`, by year, without a direction, several between two authors.

    Pairs without a link are those published for validation and test, but for such as have one, which are counted.
    """
    raw, split = folder / "raw", folder / "split" / "time"
    features = read_numbers(existing(raw / "node-feat.csv.gz", PUBLISHED), np.float32)
    nodes = int(whole_numbers(raw / "num-node-list.csv.gz", 1)[0, 0])
    if len(features) != nodes:
        raise InputError(f"{raw}: node-feat.csv.gz: expected {nodes} rows, one per node, found {len(features)}")
    parts = {name: _pairs(split / f"{name}.pt", asked=name != "train") for name in _PARTS}
    ends = np.concatenate([each["edge"] for each in parts.values()]).T
    unlinked = [parts[name]["edge_neg"] for name in ("valid", "test")]
    negatives = np.concatenate(unlinked).T
    apart = ~np.isin(pair_keys(negatives, nodes, False), pair_keys(ends, nodes, False))
    linked = int((~apart).sum())
    return make_link_set(
        "ogbl-collab",
        nodes,
        ends,
        directed=False,
        features=features,
        times=np.concatenate([each["year"] for each in parts.values()]),
        split=np.repeat(list(_PARTS.values()), [len(each["edge"]) for each in parts.values()]),
        negatives=negatives[:, apart],
        negatives_split=np.repeat([VALIDATION, TEST], [len(each) for each in unlinked])[apart],
        notes=(f"{linked} published pairs without a link have one in another part, and are left out",)
        if linked
        else (),
        where=str(folder),
    )


def _pairs(path: Path, asked: bool) -> dict[str, np.ndarray]:
    """Return edge (L, 2), year (L,) and, of parts that are asked about, edge_neg (M, 2).

    Tensors or, as OGB writes them, arrays of NumPy.
    """
    existing(path, PUBLISHED)
    try:
        content = load_tensors(path)
    except InputError:
        content = load_arrays(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a dict of tensors, found {type(content).__name__}")
    found: dict[str, np.ndarray] = {}
    for field in ("edge", "year", *(("edge_neg",) if asked else ())):
        if field not in content:
            raise InputError(f"{path}: {field!r} is missing; found {shown(', '.join(map(str, content)))}")
        array = array_of(f"{path}: {field!r}", content[field])
        fits = array.shape == (len(found["edge"]),) if field == "year" else array.ndim == 2 and array.shape[1] == 2
        if not fits or array.dtype.kind not in "iu":
            shape = "(L,), one per link" if field == "year" else "(L, 2)"
            raise InputError(f"{path}: {field!r}: expected whole numbers {shape}, found {array.dtype} {array.shape}")
        found[field] = array.astype(np.int64)
    return found


def read_graphs(folder: Path, dataset: str) -> GraphSet:
    """Return molecules, with their kinds of atoms and bonds, or protein graphs, with the degrees of nodes and species.

    Every edge is given once and stands for both directions. Labels of one column are classes, of several are labels,
    of which some may be missing.
    """
    raw, molecules = folder / "raw", dataset == "mol"
    sizes = whole_numbers(raw / "num-node-list.csv.gz", 1)[:, 0]
    counts = whole_numbers(raw / "num-edge-list.csv.gz", 1)[:, 0]
    if len(counts) != len(sizes):
        raise InputError(f"{raw}: num-edge-list.csv.gz: expected {len(sizes)} rows, one per graph, found {len(counts)}")
    edges = _edges(raw / "edge.csv.gz", sizes, counts)
    nodes = int(sizes.sum())
    kind: type[np.generic] = np.int64 if molecules else np.float32
    if molecules:
        features = whole_numbers(raw / "node-feat.csv.gz", len(_ATOMS))
        _check_rows(raw / "node-feat.csv.gz", len(features), nodes, "node")
    else:
        degrees = np.bincount(edges.ravel(), minlength=nodes)
        features = np.stack([degrees, degrees], axis=1)
    edge_features = read_numbers(existing(raw / "edge-feat.csv.gz", PUBLISHED), kind)
    _check_rows(raw / "edge-feat.csv.gz", len(edge_features), edges.shape[1], "edge")
    labels = read_numbers(existing(raw / "graph-label.csv.gz", PUBLISHED), np.float32)
    _check_rows(raw / "graph-label.csv.gz", len(labels), len(sizes), "graph")
    return make_graph_set(
        f"ogbg-{folder.name if molecules and folder.name.startswith('mol') else dataset}",
        np.concatenate([[0], np.cumsum(sizes)]),
        edges,
        features,
        labels[:, 0] if labels.shape[1] == 1 else labels,
        codes=_ATOMS if molecules else None,
        edge_features=edge_features,
        edge_codes=_BONDS if molecules else None,
        groups=None if molecules else _species(folder / "mapping" / "graphidx2speciesid.csv.gz", len(sizes)),
        split=read_split(folder / "split" / ("scaffold" if molecules else "species"), len(sizes), "graph"),
        both_ways=True,
        where=str(folder),
    )


def _edges(path: Path, sizes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return (2, E), nodes counted over all graphs; in the file they are counted in every graph."""
    edges = whole_numbers(path, 2).T
    if min(counts.min(initial=0), sizes.min(initial=0)) < 0:
        raise InputError(f"{path.parent}: num-node-list or num-edge-list: a number is negative")
    _check_rows(path, edges.shape[1], int(counts.sum()), "edge")
    outside = ((edges < 0) | (edges >= np.repeat(sizes, counts))).any(axis=0)
    if outside.any():
        row = int(np.argmax(outside))
        graph = int(np.searchsorted(np.cumsum(counts), row, side="right"))
        raise InputError(f"{path}: row {row + 1}: an end is outside the nodes 0–{sizes[graph] - 1} of graph {graph}")
    return edges + np.repeat(np.cumsum(sizes) - sizes, counts)


def _species(path: Path, graphs: int) -> dict[str, Groups] | None:
    """Return the species of every graph, where the file that tells them is there."""
    if not path.is_file():
        return None
    columns = read_text(path)
    if "species id" not in columns:
        raise InputError(f"{path}: column 'species id' is missing; found {', '.join(columns)}")
    _check_rows(path, len(columns["species id"]), graphs, "graph")
    names, numbers = np.unique(columns["species id"], return_inverse=True)
    return {"species": Groups(numbers, tuple(map(str, names.tolist())))}


def _check_rows(path: Path, found: int, expected: int, item: str) -> None:
    if found != expected:
        raise InputError(f"{path}: expected {expected} rows, one per {item}, found {found}")
