"""Links of a user's own as one table, whose rows are links.

| column | what |
|---|---|
| source, target | what the ends are called: any text |
| label | optional: the class, text or number, -1 for none; without it, all that is asked is whether there is a link |
| time | optional: a whole number, or a date as 2024-01-31, which becomes days since 1970 |
| part | optional: training, validation, test, or nothing |
| group, group:NAME | optional: text, or nothing for a link that is part of the graph alone |
"""

from pathlib import Path

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.link_set import LinkSet
from skeleton_cgl.graphs.options import existing, flag
from skeleton_cgl.graphs.own import links_of_columns
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.reading.tables import first_rows, read_text

_ENDINGS = (".csv", ".csv.gz")
_OF_NODES = "edges.csv"
"""What the links of a graph of nodes are called, which have nodes.csv beside them and another reader."""


class LinksCsv(GraphSource):
    """The links of a CSV file, plain or gzipped, whose first line has the names source and target.

    Nodes are numbered as they appear. directed: whether a link leads from its source to its target alone.
    """

    def __init__(self, path: str | Path, directed: bool = False) -> None:
        self._path = Path(path)
        self._directed = flag("directed", directed)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        if not path.is_file() or not path.name.endswith(_ENDINGS) or path.name == _OF_NODES:
            return False
        return {"source", "target"} <= {name for row in first_rows(path, 1) for name in row}

    def read(self) -> LinkSet:
        if existing(self._path).is_dir():
            raise InputError(f"{self._path}: expected the path of a CSV file, found a folder")
        name = self._path.name.partition(".")[0]
        return links_of_columns(name, str(self._path), read_text(self._path), self._directed)
