"""NYC-Taxi as BeGin has it (Ko et al. 2022): a graph of the city's zones for every hour, weekday or weekend.

A folder `new` of a file a day, `2018_1_31.pt`: sources (e,), targets (e,), zones counted from 0, and customers (e, 24)
by hour; and the table of zones that the city publishes, `lookup.csv` or `taxi+_zone_lookup.csv`, with a column Borough.
"""

import re
from datetime import date
from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph_set import GraphSet, make_graph_set
from skeleton_cgl.graphs.options import existing
from skeleton_cgl.graphs.pieces import Piece, joined, make_piece
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.tables import read_text
from skeleton_cgl.reading.tensors import array_of, load_tensors

_TABLES = ("lookup.csv", "taxi+_zone_lookup.csv", "taxi_zone_lookup.csv")
_BOROUGHS = ("Bronx", "Brooklyn", "EWR", "Manhattan", "Queens", "Staten Island", "Unknown")
_DAY = re.compile(r"(\d{4})_(\d{1,2})_(\d{1,2})\.pt")
_HOURS = 24
_FRIDAY = 4


class NycTaxi(GraphSource):
    """The graphs of such a folder, hour by hour; times are quarters by their first month, as 201801.

    Nodes are the zones, their features one-hot which of the seven groups of boroughs a zone is in. An edge is there in
    an hour with customers, and from every zone to itself as far as the file lists it; its feature is their number. The
    files of four years make about 74 million edges, which take several gigabytes; a folder may have some days alone.
    """

    published = "github.com/ShinhwanKang/BeGin"

    def __init__(self, path: str | Path) -> None:
        self._folder = Path(path)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return any(_DAY.fullmatch(file.name) for file in (path / "new").glob("*.pt"))

    def read(self) -> GraphSet:
        boroughs = self._boroughs()
        days = sorted((_date(file), file) for file in existing(self._folder / "new", self.published).glob("*.pt"))
        if not days:
            raise InputError(f"{self._folder / 'new'}: no file as 2018_1_31.pt in it; published at {self.published}")
        graphs = [piece for _, file in days for piece in _hours(file, boroughs)]
        weekend = [int(day.weekday() > _FRIDAY) for day, _ in days]
        quarters = [day.year * 100 + (day.month - 1) // 3 * 3 + 1 for day, _ in days]
        return make_graph_set(
            "NYC-Taxi",
            labels=np.repeat(weekend, _HOURS),
            classes=("weekday", "weekend"),
            times=np.repeat(quarters, _HOURS),
            where=str(self._folder),
            **joined(graphs),
        )

    def _boroughs(self) -> np.ndarray:
        """Return (zones, 7): one-hot the group of boroughs of every zone."""
        found = [path for name in _TABLES if (path := existing(self._folder, self.published) / name).is_file()]
        if not found:
            raise InputError(f"{self._folder}: none of {', '.join(_TABLES)} is in it")
        columns = read_text(found[0])
        if "Borough" not in columns:
            raise InputError(f"{found[0]}: column 'Borough' is missing; found {shown(', '.join(columns))}")
        # Younger tables say of one of the two unknown zones that none applies.
        names = ["Unknown" if name == "N/A" else name for name in columns["Borough"]]
        for row, name in enumerate(names):
            if name not in _BOROUGHS:
                raise InputError(
                    f"{found[0]}: row {row + 1}: column 'Borough': expected one of {', '.join(_BOROUGHS)}, "
                    f"found {shown(name)}"
                )
        return np.eye(len(_BOROUGHS), dtype=np.float32)[[_BOROUGHS.index(name) for name in names]]


def _date(path: Path) -> date:
    found = _DAY.fullmatch(path.name)
    try:
        if found:
            return date(*map(int, found.groups()))
    except ValueError:
        pass
    raise InputError(f"{path}: expected a file called by its day, as 2018_1_31.pt")


def _hours(path: Path, boroughs: np.ndarray) -> list[Piece]:
    """Return the graphs of a day."""
    content = load_tensors(path)
    if not isinstance(content, list | tuple) or len(content) != 3:
        raise InputError(f"{path}: expected sources, targets and customers, found {shown(type(content).__name__)}")
    names = ("sources", "targets", "customers")
    sources, targets, customers = (array_of(f"{path}: {name}", each) for name, each in zip(names, content, strict=True))
    if sources.ndim != 1 or targets.shape != sources.shape or customers.shape != (len(sources), _HOURS):
        raise InputError(
            f"{path}: expected sources (e,), targets (e,) and customers (e, {_HOURS}), "
            f"found {sources.shape}, {targets.shape} and {customers.shape}"
        )
    ends, loops = np.stack([sources, targets]), sources == targets
    found = []
    for hour, counts in enumerate(customers.T):
        there = (counts > 0) | loops
        where = f"{path}: hour {hour}"
        found.append(make_piece(where, boroughs, ends[:, there], counts[there, None].astype(np.float32)))
    return found
