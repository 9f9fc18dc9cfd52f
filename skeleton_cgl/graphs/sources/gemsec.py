"""Facebook pages of eight categories that like one another (GEMSEC, Rozemberczki et al. 2019), to be linked again."""

from pathlib import Path

import numpy as np

from skeleton_cgl.graphs.link_set import Groups, LinkSet, make_link_set
from skeleton_cgl.graphs.options import existing, flag
from skeleton_cgl.graphs.rows import check_ids
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.reading.tables import read_numbers

_CATEGORIES = ("artist", "athletes", "company", "government", "new_sites", "politician", "public_figure", "tvshow")
_COLUMNS = ("node_1", "node_2")


class Gemsec(GraphSource):
    """The links of artist_edges.csv and seven files more in a folder, each a category and a graph apart.

    The group is the category. A link has no direction, and pages have no features. shared_nodes: the last page of every
    file is also the first of the next, so that adjacent categories are linked by one page, as BeGin has it.
    """

    published = "snap.stanford.edu/data/gemsec-Facebook.html"

    def __init__(self, path: str | Path, shared_nodes: bool = False) -> None:
        self._folder = Path(path)
        self._shared_nodes = flag("shared_nodes", shared_nodes)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return any((path / f"{category}_edges.csv").is_file() for category in _CATEGORIES)

    def read(self) -> LinkSet:
        existing(self._folder, self.published)
        links: list[np.ndarray] = []
        first = nodes = 0
        for category in _CATEGORIES:
            path = existing(self._folder / f"{category}_edges.csv", self.published)
            ids = read_numbers(path, np.int64, _COLUMNS)
            for column, values in zip(_COLUMNS, ids.T, strict=True):
                check_ids(path, column, values, 0)
            links.append(ids.T + first)
            nodes = first + int(ids.max()) + 1
            first = nodes - self._shared_nodes
        sizes = [each.shape[1] for each in links]
        return make_link_set(
            "Facebook",
            nodes,
            np.concatenate(links, axis=1),
            False,
            groups={"category": Groups(np.repeat(np.arange(len(links)), sizes), _CATEGORIES)},
            notes=("the last page of a category is the first of the next",) if self._shared_nodes else (),
            where=str(self._folder),
        )
