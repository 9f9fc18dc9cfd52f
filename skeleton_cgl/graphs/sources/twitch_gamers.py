"""Twitch gamers of 21 languages who follow one another (Rozemberczki and Sarkar 2021), to be told if affiliate."""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, Groups, make_graph
from skeleton_cgl.graphs.options import existing, flag
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.reading.tables import read_numbers, read_text

_EDGES, _NODES = "large_twitch_edges.csv", "large_twitch_features.csv"
_NUMBERS = ("views", "mature", "life_time", "dead_account", "affiliate", "numeric_id")
_OTHER = "OTHER"


class TwitchGamers(GraphSource):
    """The graph of large_twitch_edges.csv and large_twitch_features.csv in a folder.

    Features: views, divided by the most that any user has, mature, life_time (days) and dead_account. The group is the
    language, in the sequence of the alphabet with OTHER last. both_ways: a friendship has both directions, as it is
    published; False for one only, as BeGin has it.
    """

    published = "snap.stanford.edu/data/twitch_gamers.html"

    def __init__(self, path: str | Path, both_ways: bool = True) -> None:
        self._folder = Path(path)
        self._both_ways = flag("both_ways", both_ways)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return (path / _EDGES).is_file() or (path / _NODES).is_file()

    def read(self) -> Graph:
        existing(self._folder, self.published)
        edges, nodes = (existing(self._folder / name, self.published) for name in (_EDGES, _NODES))
        table = read_text(nodes)
        for name in (*_NUMBERS, "language"):
            if name not in table:
                raise InputError(f"{nodes}: column {name!r} is missing; found {', '.join(table)}")
        numbers = {name: _whole(nodes, name, table[name]) for name in _NUMBERS}
        places = np.argsort(numbers["numeric_id"])
        if (numbers["numeric_id"][places] != np.arange(len(places))).any():
            raise InputError(f"{nodes}: column 'numeric_id': expected the numbers 0 to {len(places) - 1}, each once")
        columns = {name: values[places] for name, values in numbers.items()}
        features = np.stack([columns[name] for name in ("views", "mature", "life_time", "dead_account")], axis=1)
        features = features.astype(np.float64)
        features[:, 0] /= max(features[:, 0].max(), 1)
        if not np.isin(columns["affiliate"], (0, 1)).all():
            raise InputError(f"{nodes}: column 'affiliate': expected 0 or 1")
        languages = np.array(table["language"])[places]
        names = sorted({*languages.tolist()}, key=lambda name: (name == _OTHER, name))
        return make_graph(
            "Twitch gamers",
            read_numbers(edges, np.int64, ("numeric_id_1", "numeric_id_2")).T,
            features,
            columns["affiliate"],
            ("not affiliate", "affiliate"),
            {"language": Groups(np.array([names.index(each) for each in languages.tolist()]), tuple(names))},
            both_ways=self._both_ways,
            where=str(edges),
        )


def _whole(path: Path, name: str, values: list[str]) -> np.ndarray:
    try:
        return np.array(values).astype(np.int64)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: column {name!r}: expected whole numbers: {error!s:.100}") from error
