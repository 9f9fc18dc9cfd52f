"""RomanEmpire and the other heterophilous graphs (Platonov et al. 2023): one `.npz` with ten splits."""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.graphs.options import existing, whole
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.parts import NAMES, UNUSED
from skeleton_cgl.reading.npy import fields_of, plain_array

_SPLITS = 10
_MASKS = ("train_masks", "val_masks", "test_masks")


class RomanEmpire(GraphSource):
    """The graph of a file such as roman_empire.npz: node_features, node_labels, edges (E, 2) and three arrays of masks.

    mask: which of the ten published splits, from 0. A link has both directions.
    """

    published = "github.com/yandex-research/heterophilous-graphs, folder data"

    def __init__(self, path: str | Path, mask: int = 0) -> None:
        self._path = Path(path)
        self._mask = whole("mask", mask, _SPLITS)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return "node_features" in fields_of(path)

    def read(self) -> Graph:
        path = existing(self._path, self.published)
        edges = plain_array(path, "edges")
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise InputError(f"{path}: array 'edges': expected (E, 2), found {edges.shape}")
        labels = plain_array(path, "node_labels")
        if labels.ndim != 1:
            raise InputError(f"{path}: array 'node_labels': expected one per node, found {labels.shape}")
        split = np.full(len(labels), UNUSED)
        for part, name in enumerate(_MASKS):
            masks = plain_array(path, name)
            if masks.dtype != bool or masks.ndim != 2 or masks.shape[1] != len(labels) or self._mask >= len(masks):
                raise InputError(
                    f"{path}: array {name!r}: expected masks ({_SPLITS}, {len(labels)}), "
                    f"found {masks.dtype} {masks.shape}"
                )
            members = masks[self._mask]
            if (split[members] != UNUSED).any():
                raise InputError(f"{path}: array {name!r}: a {NAMES[part]} node is in another part already")
            split[members] = part
        return make_graph(
            path.stem, edges.T, plain_array(path, "node_features"), labels, split=split, both_ways=True, where=str(path)
        )
