"""Twitch users of seven languages who follow one another (MUSAE), as one graph of seven parts without links between."""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, Groups, make_graph
from skeleton_cgl.graphs.options import existing, one_of
from skeleton_cgl.graphs.rows import rows_of_indices
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.graphs.sources.musae import MusaeFiles

_LANGUAGES = ("DE", "ENGB", "ES", "FR", "PTBR", "RU", "ZHTW")


class MusaeTwitch(GraphSource):
    """The graphs LANGUAGE_edges.csv, LANGUAGE_target.csv, LANGUAGE.json of a folder, or of a folder per language.

    target: `mature` or `partner`, the class to tell. The group is the language. Features are what users like, play and
    where they live: 1 at the indices of their list. A link has both directions. Two French users stand twice in their
    table, with the same classes: one node each.
    """

    published = "snap.stanford.edu/data/twitch-social-networks.html"

    def __init__(self, path: str | Path, target: str = "mature") -> None:
        self._folder = Path(path)
        self._target = one_of("target", target, ("mature", "partner"))

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return any(MusaeFiles.are_begun(path, language) for language in _LANGUAGES)

    def read(self) -> Graph:
        existing(self._folder, self.published)
        links: list[np.ndarray] = []
        labels: list[int] = []
        sizes: list[int] = []
        lists: list[list[int]] = []
        places: list[str] = []
        for language in _LANGUAGES:
            files = MusaeFiles.find(self._folder, language)
            if files is None:
                raise InputError(
                    f"{self._folder}: {language}_edges.csv, {language}_target.csv and {language}.json are not all in "
                    f"it; published at {self.published}"
                )
            told = files.targets("new_id", (self._target,))
            links.append(files.links(("from", "to"), len(told)) + sum(sizes))
            labels.extend(self._label(files.target, node, each[self._target]) for node, each in enumerate(told))
            own_lists, own_places = files.lists(len(told))
            lists.extend(own_lists)
            places.extend(own_places)
            sizes.append(len(told))
        return make_graph(
            "Twitch",
            np.concatenate(links, axis=1),
            rows_of_indices(lists, places),
            np.array(labels),
            (f"not {self._target}", self._target),
            {"language": Groups(np.repeat(np.arange(len(_LANGUAGES)), sizes), _LANGUAGES)},
            both_ways=True,
            where=str(self._folder),
        )

    def _label(self, path: Path, node: int, value: str) -> int:
        if value not in ("True", "False"):
            raise InputError(
                f"{path}: column {self._target!r}: node {node}: expected True or False, found {value!r:.40}"
            )
        return int(value == "True")
