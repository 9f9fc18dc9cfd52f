"""Ask-Ubuntu: users who answer or comment on one another (Paranjape et al. 2017), to be linked month by month."""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.items import NO_GROUP
from skeleton_cgl.graphs.link_set import Groups, LinkSet, make_link_set, pair_keys
from skeleton_cgl.graphs.options import existing, whole
from skeleton_cgl.graphs.rows import check_ids
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.reading.tables import LAST_SECOND, check_column, read_numbers

_FILES = ("sx-askubuntu.txt", "sx-askubuntu.txt.gz")
_COLUMNS = ("from", "to", "time")


class AskUbuntu(GraphSource):
    """The links of sx-askubuntu.txt, plain or gzipped, or of its folder: rows of two users and a time, between blanks.

    Two users are linked, without a direction, from their first contact on; those with themselves are left out. Users
    are numbered in the sequence of their ids. Times are calendar months (UTC), 0 for that of the earliest contact;
    links of the first `base_months` are in no group, those after in the groups "month".
    """

    published = "snap.stanford.edu/data/sx-askubuntu.html"

    def __init__(self, path: str | Path, base_months: int = 18) -> None:
        self._path = Path(path)
        self._base_months = whole("base_months", base_months, 1000)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return (path.is_file() and path.name in _FILES) or any((path / name).is_file() for name in _FILES)

    def read(self) -> LinkSet:
        path = existing(self._path, self.published)
        if path.is_dir():
            path = next((path / name for name in _FILES if (path / name).is_file()), path / _FILES[1])
        table = read_numbers(existing(path, self.published), np.int64, len(_COLUMNS), " ")
        for column, values in zip(_COLUMNS[:2], table.T, strict=False):
            check_ids(path, column, values, 0)
        seconds = table[:, 2]
        check_column(path, "time", seconds, (seconds >= 0) & (seconds <= LAST_SECOND), "seconds since 1970")
        months = seconds.astype("datetime64[s]").astype("datetime64[M]")
        others = np.flatnonzero(table[:, 0] != table[:, 1])
        if not len(others):
            raise InputError(f"{path}: expected contacts between two users, found none")
        users, numbers = np.unique(table[others, :2].T, return_inverse=True)
        ends = numbers.reshape(2, -1)
        first = _first_contacts(ends, len(users), seconds[others])
        own_months = months[others[first]]
        times = (own_months - months.min()).astype(np.int64)
        later = times >= self._base_months
        if not later.any():
            raise InputError(f"{path}: base_months: no link is later than {self._base_months} months")
        names, places = np.unique(own_months[later], return_inverse=True)
        groups = np.full(len(first), NO_GROUP)
        groups[later] = places
        notes = []
        if alone := len(table) - len(others):
            notes.append(f"{alone} contacts of users with themselves are left out")
        if base := int((~later).sum()):
            notes.append(f"{base} links of the first {self._base_months} months are in no group")
        return make_link_set(
            "Ask-Ubuntu",
            len(users),
            ends[:, first],
            False,
            groups={"month": Groups(groups, tuple(map(str, names)))},
            times=times,
            notes=tuple(notes),
            where=str(path),
        )


def _first_contacts(ends: np.ndarray, users: int, seconds: np.ndarray) -> np.ndarray:
    """Return the rows that are the first contact of their pair, in the sequence of the file; of equals, the upper."""
    by_time = np.argsort(seconds, kind="stable")
    _, places = np.unique(pair_keys(ends, users, directed=False)[by_time], return_index=True)
    return np.sort(by_time[places])
