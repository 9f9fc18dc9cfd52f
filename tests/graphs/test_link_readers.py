"""Readers of links: a user's own, GEMSEC, Ask-Ubuntu and Wiki-CS, from files in the true form, and what is refused."""

import gzip
import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.datasets import open_graph
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.graphs.items import NO_GROUP
from skeleton_cgl.graphs.link_set import LINKED, NO_CLASS, Groups, LinkSet, make_link_set
from skeleton_cgl.graphs.sources.ask_ubuntu import AskUbuntu
from skeleton_cgl.graphs.sources.bitcoin import Bitcoin
from skeleton_cgl.graphs.sources.gemsec import Gemsec
from skeleton_cgl.graphs.sources.links_csv import LinksCsv
from skeleton_cgl.graphs.sources.wiki_cs import WikiCs
from tests.graphs.graph_checks import both_ways, dense, pairs

OWN = """source,target,label,time,part,group:land,group
ann,bob,trusts,2024-01-31,training,de,x
bob,"c, d",-1,2024-02-01,,,
7,ann,doubts,1970-01-01,test,at,x
ann,ann,trusts,1969-12-31,validation,de,
"""


def own_links(directed: bool = False) -> LinkSet:
    return make_link_set(
        "own",
        4,
        np.array([[0, 1, 3, 0], [1, 2, 0, 0]]),
        directed,
        np.array([1, NO_CLASS, 0, 1]),
        ("doubts", "trusts"),
        groups={
            "land": Groups(np.array([1, NO_GROUP, 0, 1]), ("at", "de")),
            "group": Groups(np.array([0, NO_GROUP, 0, NO_GROUP]), ("x",)),
        },
        times=np.array([19753, 19754, 0, -1]),
        split=np.array([0, -1, 2, 1]),
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["own.csv", "own.csv.gz"])
def test_own_links_are_rows_between_named_nodes(tmp_path: Path, name: str, directed: bool) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(OWN.encode()) if path.suffix == ".gz" else OWN.encode())
    links = open_graph(path, {"directed": directed})
    assert isinstance(links, LinkSet)
    assert links.name == "own"
    assert links.digest == own_links(directed).digest


def test_own_links_need_no_more_than_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("target,source\n10,9\n9,10\n")
    links = LinksCsv(path).read()
    assert (links.nodes, links.ends.tolist(), links.classes) == (2, [[0, 1], [1, 0]], (LINKED,))
    assert (links.times, links.split, dict(links.groups)) == (None, None, {})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("label,time", "lable,time", "unknown column 'lable'; did you mean 'label'?"),
        ("part,", "weight,", "unknown column 'weight'; known: group, group:NAME, label, part"),
        ("group:land", "groups:land", "unknown column 'groups:land'; did you mean 'group'"),
        ("group:land", "group:group", "columns 'group' and 'group:group': expected one of them"),
        ("source", "from", "column 'source' is missing; found from, target, label"),
        ("target", "label", "column 3: expected a name of its own, found 'label'"),
        ("7,ann,", "7,,", "column 'target': row 3: expected what a node is called, found ''"),
        ("7,ann,doubts", "7,ann,", "column 'label': row 3: expected a class, or -1 for none, found ''"),
        ("7,ann,doubts", "7,ann,NaN", "column 'label': row 3: expected a class, or -1 for none, found 'NaN'"),
        ("1970-01-01", "soon", "column 'time': row 3: expected a date as 2024-01-31 like the first, found 'soon'"),
        (",test,", ",tests,", "column 'part': row 3: expected training, validation, test or nothing, found 'tests'"),
        (",at,x", ",\x07,x", "column 'group:land': row 3: expected the name of a group, or nothing, found"),
        (",at,x", ",at", "row 3: expected 7 values, found 6"),
        (OWN, "", "expected a line of names and at least one row"),
        (OWN, "source,target\n", "expected a line of names and at least one row"),
        (OWN, "source,target\na,a\n", "nodes: expected at least 2, found 1"),
        (OWN, "source,target,group\na,b,\n", "column 'group': row 1: .* found a name in no row"),
        (OWN, "source,target,label\na,b,-1\n", "labels: no link has a class"),
    ],
)
def test_a_table_that_holds_no_links_is_refused_with_column_and_row(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    assert old in OWN
    path = tmp_path / "own.csv"
    path.write_text(OWN.replace(old, new, 1))
    with pytest.raises(InputError, match=f"own.csv: {reason}"):
        LinksCsv(path).read()


def test_a_csv_is_recognised_by_the_only_reader_it_is_meant_for(tmp_path: Path) -> None:
    def readers(text: str, name: str = "a.csv") -> list[type]:
        (tmp_path / name).write_text(text)
        return [each for each in (Bitcoin, LinksCsv) if each.recognises(tmp_path / name)]

    assert readers(OWN) == [LinksCsv]
    assert readers("source,target,label,time\n1,2,3,4\n") == [LinksCsv]
    assert readers("1,2,3,4\n") == [Bitcoin]
    assert readers("FROM,TO,RATING,TIME\n1,2,3,4.5\n") == [Bitcoin]
    for text in ("smiles,label\nC,1\n", "source,smiles\na,C\n", "", "\x00\xff"):
        assert readers(text) == []
    assert readers("source,target\na,b\n", "edges.csv") == [], "is of a graph whose nodes are classified"
    with pytest.raises(InputError, match="expected the path of a CSV file, found a folder"):
        LinksCsv(tmp_path).read()
    with pytest.raises(InputError, match="directed: expected true or false, found 'no'"):
        LinksCsv(tmp_path, directed="no")  # type: ignore[arg-type]


CATEGORIES = ("artist", "athletes", "company", "government", "new_sites", "politician", "public_figure", "tvshow")


def write_gemsec(folder: Path) -> list[list[tuple[int, int]]]:
    """Write eight files of a few links each; return these."""
    graphs = []
    for size, category in enumerate(CATEGORIES, start=2):
        links = [(0, size), *((node, size - node) for node in range(size - 1))]
        rows = "".join(f"{a},{b}\n" for a, b in links)
        (folder / f"{category}_edges.csv").write_text(f"node_1,node_2\n{rows}")
        graphs.append(links)
    return graphs


@pytest.mark.parametrize("shared_nodes", [False, True])
def test_gemsec_has_a_graph_per_category_apart_unless_nodes_are_shared(tmp_path: Path, shared_nodes: bool) -> None:
    graphs = write_gemsec(tmp_path)
    links = open_graph(tmp_path, {"shared_nodes": shared_nodes})
    assert isinstance(links, LinkSet)
    expected, sets, first = [], [], 0
    for graph in graphs:
        own = [(a + first, b + first) for a, b in graph]
        expected += own
        sets.append({end for link in own for end in link})
        first = max(sets[-1]) + (0 if shared_nodes else 1)
    assert [tuple(link) for link in links.ends.T.tolist()] == expected
    assert links.nodes == max(max(each) for each in sets) + 1
    assert [len(a & b) for a, b in pairwise(sets)] == [int(shared_nodes)] * 7
    assert (links.directed, links.features, links.classes) == (False, None, (LINKED,))
    assert links.groups["category"].names == CATEGORIES
    assert links.groups["category"].numbers.tolist() == [n for n, graph in enumerate(graphs) for _ in graph]
    assert bool(links.notes) == shared_nodes


def test_gemsec_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for text, reason in (
        ("node_1,node_2\n0,1\n-1,2\n", "row 2: node_1: expected an id from 0 to 10,000,000, found -1"),
        ("node_1,node_2\n0,99999999\n", "row 1: node_2: expected an id from 0 to 10,000,000, found 99999999"),
        ("node_1,node_2\n0,x\n", "row 1, column 2: expected a whole number, found 'x'"),
        ("node_1,node_2\n0,\n", "row 1, column 2: expected a whole number, found nothing"),
        ("id_1,id_2\n0,1\n", "expected the columns node_1,node_2, found 'id_1,id_2'"),
        ("node_1,node_2\n", "cannot be read: No columns"),
        ("", "expected the columns node_1,node_2, found ''"),
    ):
        write_gemsec(tmp_path)
        (tmp_path / "company_edges.csv").write_text(text)
        with pytest.raises(InputError, match=f"company_edges.csv: {reason}"):
            Gemsec(tmp_path).read()
    (tmp_path / "company_edges.csv").unlink()
    assert Gemsec.recognises(tmp_path)
    with pytest.raises(InputError, match=r"company_edges.csv: no such file or folder; published at snap"):
        Gemsec(tmp_path).read()


def at(year: int, month: int, day: int = 1) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp())


CONTACTS = [
    (5, 90, at(2009, 1, 31)),
    (90, 5, at(2010, 8)),
    (700, 700, at(2010, 6)),
    (8, 5, at(2010, 6, 30)),
    (90, 8, at(2012, 2, 29)),
    (8, 5, at(2012, 2)),
    (90, 5, at(2009, 1, 3)),
    (8, 1000, at(2010, 7)),
    (700, 700, at(2009, 2)),
]


def write_contacts(path: Path, contacts: list[tuple[int, int, int]]) -> Path:
    content = "".join(f"{a} {b} {second}\n" for a, b, second in contacts).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["sx-askubuntu.txt", "sx-askubuntu.txt.gz"])
def test_users_of_ask_ubuntu_are_linked_from_their_first_contact(tmp_path: Path, name: str) -> None:
    path = write_contacts(tmp_path / name, CONTACTS)
    links = AskUbuntu(path).read()
    # Users 5, 8, 90 and 1000; 700 meets nobody else.
    assert (links.nodes, links.directed, links.classes) == (4, False, (LINKED,))
    assert links.ends.T.tolist() == [[1, 0], [2, 1], [2, 0], [1, 3]]
    assert links.times is not None
    assert links.times.tolist() == [17, 37, 0, 18]
    assert links.groups["month"].names == ("2010-07", "2012-02")
    assert links.groups["month"].numbers.tolist() == [NO_GROUP, 1, NO_GROUP, 0]
    assert links.notes == (
        "2 contacts of users with themselves are left out",
        "2 links of the first 18 months are in no group",
    )
    for place in (path, tmp_path):
        found = open_graph(place)
        assert found.digest == links.digest
    all_months = AskUbuntu(path, base_months=0).read()
    assert all_months.groups["month"].names == ("2009-01", "2010-06", "2010-07", "2012-02")


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, at(1972, 1))), min_size=1, max_size=40
    ).filter(lambda rows: any(a != b for a, b, _ in rows))
)
def test_every_pair_of_users_is_linked_once_at_the_time_of_its_earliest_contact(
    tmp_path_factory: pytest.TempPathFactory, contacts: list[tuple[int, int, int]]
) -> None:
    path = write_contacts(tmp_path_factory.mktemp("ubuntu") / "sx-askubuntu.txt", contacts)
    links = AskUbuntu(path, base_months=0).read()
    months = [datetime.fromtimestamp(second, UTC) for *_, second in contacts]
    numbers = [12 * month.year + month.month for month in months]
    users = sorted({end for a, b, _ in contacts if a != b for end in (a, b)})
    earliest: dict[frozenset[int], int] = {}
    for (a, b, _), number in zip(contacts, numbers, strict=True):
        if a != b:
            pair = frozenset((users.index(a), users.index(b)))
            earliest[pair] = min(earliest.get(pair, number), number)
    assert links.times is not None
    found = {frozenset(ends): time for ends, time in zip(links.ends.T.tolist(), links.times.tolist(), strict=True)}
    assert found == {pair: number - min(numbers) for pair, number in earliest.items()}
    assert len(links) == len(earliest)


def test_contacts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sx-askubuntu.txt"
    for text, reason in (
        ("1 2 5\n1 -2 5\n", "row 2: to: expected an id from 0"),
        ("1 2 5\n1 3 -5\n", "row 2: time: expected seconds since 1970, found -5"),
        ("1 2 5\n1 3 999999999999\n", "row 2: time: expected seconds since 1970, found 999999999999"),
        ("1 2 5\n1 3 noon\n", "row 2, column 3: expected a whole number, found 'noon'"),
        ("1 2 5\n1 3\n", "row 2, column 3: expected a whole number, found nothing"),
        ("1,2,5\n", "expected 3 columns, found 1"),
        ("", "cannot be read: No columns"),
        ("1 1 5\n", "expected contacts between two users, found none"),
        ("1 2 5\n", "base_months: no link is later than 18 months"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=f"sx-askubuntu.txt: {reason}"):
            AskUbuntu(path).read()
    with pytest.raises(InputError, match="base_months: expected a whole number from 0 to 999, found -1"):
        AskUbuntu(path, base_months=-1)
    path.unlink()
    with pytest.raises(InputError, match=r"sx-askubuntu.txt.gz: no such file or folder; published at snap"):
        AskUbuntu(tmp_path).read()


def write_wiki(folder: Path, **changes: Any) -> Path:
    content: dict[str, Any] = {
        "features": [[0.5, -1.0], [2, 0], [1e-3, 7.25], [0, 0]],
        "labels": [2, 0, 0, 1],
        "links": [[1, 2], [0], [], [3, 1, 1]],
        "train_masks": [[True, False, False, False], [False, True, False, False]],
        "stopping_masks": [[False, False, True, False], [False, False, False, False]],
        "val_masks": [[False, True, False, False], [True, False, False, False]],
        "test_mask": [False, False, False, True],
        **changes,
    }
    path = folder / "data.json"
    path.write_text(json.dumps({field: value for field, value in content.items() if value is not None}))
    return path


def test_wiki_cs_is_a_graph_of_articles(tmp_path: Path) -> None:
    path = write_wiki(tmp_path)
    links = {(0, 1), (0, 2), (1, 0), (3, 3), (3, 1)}
    expected = np.array([[0.5, -1.0], [2, 0], [1e-3, 7.25], [0, 0]], dtype=np.float32)
    for place in (path, tmp_path):
        graph = open_graph(place)
        assert isinstance(graph, Graph)
        assert pairs(graph) == both_ways(links)
        assert (dense(graph) == expected).all()
        assert (graph.labels.tolist(), graph.classes) == ([2, 0, 0, 1], ("class 0", "class 1", "class 2"))
        assert graph.split is not None
        assert graph.split.tolist() == [0, 1, -1, 2]
    other = WikiCs(path, both_ways=False, mask=1).read()
    assert pairs(other) == links
    assert other.split is not None
    assert other.split.tolist() == [1, 0, -1, 2]
    plain = WikiCs(write_wiki(tmp_path, train_masks=None, val_masks=None, test_mask=None)).read()
    edges = np.array(sorted(links)).T
    assert plain.digest == make_graph("", edges, expected, np.array([2, 0, 0, 1]), both_ways=True).digest


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"links": None}, "links: expected a list, found NoneType"),
        ({"labels": {}}, "labels: expected a list, found dict"),
        ({"links": [[1], [4], [], []]}, "links: node 1: expected a list of nodes from 0 to 3"),
        ({"links": [[1], [True], [], []]}, "links: node 1: expected a list of nodes from 0 to 3"),
        ({"links": [[1], "0", [], []]}, "links: node 1: expected a list of nodes from 0 to 3"),
        ({"links": [[1], [0]]}, "links: expected a list for each of 4 nodes, found 2"),
        ({"features": [[1], [2], [3, 4], [5]]}, "features: expected numbers in rows of one length"),
        ({"features": [[1], [2], ["x"], [5]]}, "features: expected numbers in rows of one length"),
        ({"features": [[1], [2], [float("nan")], [5]]}, "features: node 2 has one that is not finite"),
        ({"features": [[1.0], [2], [10**400], [5]]}, "features: expected numbers in rows of one length"),
        ({"labels": [0, 10**30, 1, 1]}, "labels: expected numbers in rows of one length"),
        ({"features": [[1], [2], [3]]}, "labels: expected one class"),
        ({"labels": [0, 0.5, 1, 1]}, "labels: expected a whole number, found 0.5 at node 1"),
        ({"labels": [0, None, 1, 1]}, "labels: expected numbers in rows of one length"),
        ({"train_masks": [[True, True, False, False]]}, "array 'val_mask': node 1 is in another part already"),
        ({"train_masks": [[2, 0, 0, 0]]}, "array 'train_mask': expected true or false for every node"),
        ({"val_masks": [True, False, False, False]}, "val_masks: no split 0"),
        ({"val_masks": []}, "val_masks: no split 0"),
    ],
)
def test_a_wiki_cs_that_is_no_graph_is_refused_with_the_field(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=f"data.json: {reason}"):
        WikiCs(write_wiki(tmp_path, **changes)).read()


def test_json_that_is_no_wiki_cs_is_neither_recognised_nor_read(tmp_path: Path) -> None:
    path = write_wiki(tmp_path)
    with pytest.raises(InputError, match="train_masks: no split 2, there are 2"):
        WikiCs(path, mask=2).read()
    for text, reason in (
        ("", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[1]", "expected features, labels and links, found list"),
        ('{"nodes": []}', "features: expected a list, found NoneType"),
    ):
        path.write_text(text)
        assert not WikiCs.recognises(path)
        assert not WikiCs.recognises(tmp_path)
        with pytest.raises(InputError, match=f"data.json: {reason}"):
            WikiCs(path).read()
    path.unlink()
    assert not WikiCs.recognises(tmp_path)
    with pytest.raises(InputError, match=r"data.json: no such file or folder; published at github.com/pmernyei"):
        WikiCs(tmp_path).read()
