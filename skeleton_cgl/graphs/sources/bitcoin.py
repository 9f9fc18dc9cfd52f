"""Bitcoin-OTC: dated ratings of how far users of a market trust one another (Kumar et al. 2016), to be told by band."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.link_set import NO_CLASS, Groups, LinkSet, make_link_set
from skeleton_cgl.graphs.options import existing, one_of
from skeleton_cgl.graphs.rows import check_ids
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.tables import LAST_SECOND, check_column, first_rows, read_numbers

_NAMES = {"soc-sign-bitcoinotc": "Bitcoin-OTC", "soc-sign-bitcoinalpha": "Bitcoin-Alpha"}
_ENDINGS = (".csv", ".csv.gz")
_COLUMNS = ("from", "to", "rating", "time")

_BANDS = {"-10": (-10, -10), "-9 to -1": (-9, -1), "3": (3, 3), "4": (4, 4), "5": (5, 5), "6 to 10": (6, 10)}
"""The classes of BeGin: lowest and highest rating. What lies between, 1 and 2, is in none."""

_SIGNS = ("positive", "negative")
_HIGHEST = 10
_FORTNIGHT = 14 * 86_400


class Bitcoin(GraphSource):
    """The links of soc-sign-bitcoinotc.csv, plain or gzipped, with or without a line of names, or of its folder.

    A row is from, to, rating and time. Node i has the id i + 1; ids that no row has are nodes without links. labels:
    "bands", six of the ratings as BeGin has them, 1 and 2 in none; "sign", positive or negative. Times are 14 days long
    and counted from the first rating, a rating being at the nearest. periods: how many the ratings are divided into,
    each time in one, as nearly equal as BeGin has them; the groups "period" are called by their first and last day.
    """

    published = "snap.stanford.edu/data/soc-sign-bitcoin-otc.html"

    def __init__(self, path: str | Path, labels: str = "bands", periods: int = 7) -> None:
        self._path = Path(path)
        self._labels = one_of("labels", labels, ("bands", "sign"))
        if isinstance(periods, bool) or not isinstance(periods, int) or periods < 1:
            raise InputError(f"periods: expected a whole number from 1, found {shown(periods)}")
        self._periods = periods

    @classmethod
    def recognises(cls, path: Path) -> bool:
        if path.is_dir():
            return _file_in(path) is not None
        if not path.is_file() or not path.name.endswith(_ENDINGS):
            return False
        rows = first_rows(path, 2)
        named = bool(rows) and not _are_numbers(rows[0])
        # A table that says which column is the source is of a user's own.
        own = named and {"source", "target"} <= set(rows[0])
        return not own and all(len(row) == len(_COLUMNS) for row in rows) and any(map(_are_numbers, rows))

    def read(self) -> LinkSet:
        path = existing(self._path, self.published)
        if path.is_dir():
            found = _file_in(path)
            if found is None:
                raise InputError(f"{path}: no soc-sign-bitcoinotc.csv in it; published at {self.published}")
            path = found
        ends, ratings, seconds = _columns(path)
        nodes = int(ends.max())
        times = np.rint((seconds - seconds.min()) / _FORTNIGHT).astype(np.int64)
        labels, classes = (_bands(ratings), tuple(_BANDS)) if self._labels == "bands" else (1 * (ratings < 0), _SIGNS)
        notes = []
        if unused := nodes - len(np.unique(ends)):
            notes.append(f"{unused} of {nodes} nodes have no rating")
        if without := int((labels == NO_CLASS).sum()):
            notes.append(f"{without} ratings of 1 and 2 have no class, and are part of the graph alone")
        return make_link_set(
            _NAMES.get(path.name.partition(".")[0], path.name.partition(".")[0]),
            nodes,
            ends - 1,
            True,
            labels,
            classes,
            groups={"period": _periods(times, seconds, self._periods, path)},
            times=times,
            notes=tuple(notes),
            where=str(path),
        )


def _file_in(folder: Path) -> Path | None:
    names = (f"{name}{ending}" for name in _NAMES for ending in _ENDINGS)
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _are_numbers(row: list[str]) -> bool:
    try:
        return bool(np.isfinite([float(word) for word in row]).all())
    except ValueError:
        return False


def _columns(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ends (2, L) as ids, ratings (L,) and seconds (L,), all whole; refuse others, with row and column."""
    first = first_rows(path, 1)
    # Where even the first row is no row of numbers, the reader of numbers tells what is wrong with it.
    named = bool(first) and len(first[0]) == len(_COLUMNS) and not any(_are_numbers([word]) for word in first[0])
    table = read_numbers(path, np.float64, first[0] if named else len(_COLUMNS))

    for column, ids in zip(("from", "to"), table[:, :2].T, strict=True):
        check_ids(path, column, ids, 1)
    ratings, times = table[:, 2:].T
    fit = (ratings == np.floor(ratings)) & (np.abs(ratings) <= _HIGHEST) & (ratings != 0)
    check_column(path, "rating", ratings, fit, "a whole number, -10 to -1 or 1 to 10", ", a rating outside the bands")
    check_column(path, "time", times, (times >= 0) & (times <= LAST_SECOND), "seconds since 1970")
    return table[:, :2].T.astype(np.int64), ratings.astype(np.int64), times.astype(np.int64)


def _bands(ratings: np.ndarray) -> np.ndarray:
    labels = np.full(len(ratings), NO_CLASS)
    for label, (lowest, highest) in enumerate(_BANDS.values()):
        labels[(ratings >= lowest) & (ratings <= highest)] = label
    return labels


def _periods(times: np.ndarray, seconds: np.ndarray, periods: int, path: Path) -> Groups:
    """Return the period of every rating: floor(P c / (L + 1)) of the c ratings up to and including those of its time.

    Refused: more periods than there are ratings for.
    """
    _, places, counts = np.unique(times, return_inverse=True, return_counts=True)
    if periods > len(counts):
        raise InputError(f"{path}: periods: {len(counts)} different times do not make {periods} periods")
    numbers = (periods * np.cumsum(counts) // (len(times) + 1))[places]
    filled = len(np.unique(numbers))
    if filled < periods:
        raise InputError(f"{path}: periods: {periods} are too many, {periods - filled} of them would be empty")
    return Groups(
        numbers,
        tuple(f"{_day(seconds[numbers == n].min())} – {_day(seconds[numbers == n].max())}" for n in range(periods)),
    )


def _day(second: np.int64) -> str:
    return datetime.fromtimestamp(int(second), UTC).date().isoformat()
