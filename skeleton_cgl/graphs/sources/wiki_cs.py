"""Wiki-CS: articles on computer science and the links between them (Mernyei and Cangea 2020), in ten branches."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.options import existing, flag, whole
from skeleton_cgl.graphs.own import graph_of_arrays
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.reading.documents import read_json

_FILE = "data.json"
_FIELDS = ("features", "labels", "links")
_MASKS = ("train_masks", "val_masks", "test_mask")
_BEGINNING = re.compile(rb'\s*\{\s*"(features|labels|links|(train|val|stopping)_masks|test_mask)"')


class WikiCs(GraphSource):
    """The graph of data.json, or of its folder: features, labels, and the list of neighbours of every node.

    both_ways: a link counts in both directions, as is usual; False for the direction it is written in. mask: which of
    the published splits to take. The nodes of its `stopping_masks` are in no part.
    """

    published = "github.com/pmernyei/wiki-cs-dataset, file dataset/data.json"

    def __init__(self, path: str | Path, both_ways: bool = True, mask: int = 0) -> None:
        self._path = Path(path)
        self._both_ways = flag("both_ways", both_ways)
        self._mask = whole("mask", mask, 1000)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        path = path / _FILE if path.is_dir() else path
        if path.suffix != ".json" or not path.is_file():
            return False
        with path.open("rb") as file:
            return _BEGINNING.match(file.read(200)) is not None

    def read(self) -> Graph:
        path = existing(self._path, self.published)
        path = existing(path / _FILE, self.published) if path.is_dir() else path
        content = read_json(path)
        if not isinstance(content, Mapping):
            raise InputError(f"{path}: expected features, labels and links, found {type(content).__name__}")
        for field in _FIELDS:
            if not isinstance(content.get(field), list):
                raise InputError(f"{path}: {field}: expected a list, found {type(content.get(field)).__name__}")
        arrays = {
            "edges": _edges(content["links"], path),
            "features": _array(content["features"], "features", path),
            "labels": _array(content["labels"], "labels", path),
        }
        if len(content["links"]) != len(content["labels"]):
            raise InputError(
                f"{path}: links: expected a list for each of {len(content['labels'])} nodes, "
                f"found {len(content['links'])}"
            )
        for field in _MASKS:
            if field in content:
                arrays[field.replace("masks", "mask")] = self._chosen(content[field], field, path)
        return graph_of_arrays("Wiki-CS", str(path), arrays, self._both_ways)

    def _chosen(self, masks: Any, field: str, path: Path) -> np.ndarray:
        """Return the mask that was chosen, where there are several."""
        found = _array(masks, field, path)
        if not field.endswith("s"):
            return found
        if found.ndim != 2 or self._mask >= len(found):
            raise InputError(f"{path}: {field}: no split {self._mask}, there are {len(np.atleast_2d(found))}")
        chosen: np.ndarray = found[self._mask]
        return chosen


def _array(values: Any, field: str, path: Path) -> np.ndarray:
    expected = f"{path}: {field}: expected numbers in rows of one length"
    try:
        found = np.array(values)
    except (ValueError, OverflowError) as error:
        raise InputError(expected) from error
    if found.dtype.kind not in "biuf":
        raise InputError(expected)
    return found


def _edges(links: list[Any], path: Path) -> np.ndarray:
    """Return (2, E) from every node to its neighbours; refuse what is no neighbour."""
    for node, neighbours in enumerate(links):
        if not isinstance(neighbours, list) or not all(
            type(each) is int and 0 <= each < len(links) for each in neighbours
        ):
            raise InputError(f"{path}: links: node {node}: expected a list of nodes from 0 to {len(links) - 1}")
    sources = np.repeat(np.arange(len(links)), [len(neighbours) for neighbours in links])
    targets = np.array([each for neighbours in links for each in neighbours], dtype=np.int64)
    return np.stack([sources, targets])
