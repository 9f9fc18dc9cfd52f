"""Facebook pages that like one another (MUSAE), to be told by their type."""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, Groups, make_graph
from skeleton_cgl.graphs.options import existing
from skeleton_cgl.graphs.rows import rows_of_indices
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.graphs.sources.musae import MusaeFiles


class MusaeFacebook(GraphSource):
    """The graph facebook_edges.csv, facebook_target.csv, facebook.json of a folder, with or without `musae_` before.

    Classes, and groups "page type", are the four types in the sequence of the alphabet. Features are words of a page's
    description: 1 at the indices of its list. A link has both directions; pages that like themselves have a loop.
    """

    published = "snap.stanford.edu/data/facebook-large-page-page-network.html"

    def __init__(self, path: str | Path) -> None:
        self._folder = Path(path)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return MusaeFiles.are_begun(path, "facebook")

    def read(self) -> Graph:
        files = MusaeFiles.find(existing(self._folder, self.published), "facebook")
        if files is None:
            raise InputError(
                f"{self._folder}: facebook_edges.csv, facebook_target.csv and facebook.json are not all in it; "
                f"published at {self.published}"
            )
        types = [each["page_type"] for each in files.targets("id", ("page_type",))]
        if "" in types:
            raise InputError(f"{files.target}: column 'page_type': node {types.index('')} has none")
        names, numbers = np.unique(types, return_inverse=True)
        classes = tuple(map(str, names))
        return make_graph(
            "Facebook",
            files.links(("id_1", "id_2"), len(types)),
            rows_of_indices(*files.lists(len(types))),
            numbers,
            classes,
            {"page type": Groups(numbers, classes)},
            both_ways=True,
            where=str(self._folder),
        )
