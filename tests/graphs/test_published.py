"""Readers of published graphs: small files written in the true forms, and the real ones where they are at hand."""

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_matrix, save_npz

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import NO_CLASS
from skeleton_cgl.graphs.sources.csr_npz import CsrNpz
from skeleton_cgl.graphs.sources.musae_facebook import MusaeFacebook
from skeleton_cgl.graphs.sources.musae_twitch import MusaeTwitch
from skeleton_cgl.graphs.sources.ogb import Ogb
from skeleton_cgl.graphs.sources.pcg import Pcg
from skeleton_cgl.graphs.sources.planetoid import Planetoid
from skeleton_cgl.graphs.sources.reddit import Reddit
from skeleton_cgl.graphs.sources.roman_empire import RomanEmpire
from skeleton_cgl.graphs.sources.twitch_gamers import TwitchGamers
from skeleton_cgl.parts import TEST, TRAINING, UNUSED, VALIDATION
from tests.graphs.graph_checks import both_ways, dense, pairs
from tests.graphs.planetoid_files import write_planetoid
from tests.shared_data import FOLDER, needs

RANDOM = np.random.default_rng(0)
LANGUAGES = ("DE", "ENGB", "ES", "FR", "PTBR", "RU", "ZHTW")


def gaps(folder: Path) -> Path:
    """Move the last test node of a written Planetoid graph two places on, which leaves gaps as Citeseer has them."""
    places = (folder / "ind.cora.test.index").read_text().split()
    last = int(places[-1])
    (folder / "ind.cora.test.index").write_text("\n".join([str(last + 2), *places[:-1]]))
    tx = pickle.loads((folder / "ind.cora.tx").read_bytes())
    ty = pickle.loads((folder / "ind.cora.ty").read_bytes())
    first = [len(ty) - 1, *range(len(ty) - 1)]
    (folder / "ind.cora.tx").write_bytes(pickle.dumps(tx[first], protocol=2))
    (folder / "ind.cora.ty").write_bytes(pickle.dumps(ty[first], protocol=2))
    links = pickle.loads((folder / "ind.cora.graph").read_bytes())
    links |= {last: [last, 0], last + 1: [], last + 2: [last + 2, 1, 1]}
    (folder / "ind.cora.graph").write_bytes(pickle.dumps(links, protocol=2))
    return folder


def unpickled(folder: Path, part: str) -> Any:
    content = pickle.loads((folder / f"ind.cora.{part}").read_bytes())
    return content.toarray() if isinstance(content, csr_matrix) else content


@pytest.mark.parametrize("with_gaps", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
def test_planetoid_nodes_are_where_the_files_say(tmp_path: Path, with_gaps: bool, normalise: bool) -> None:
    folder = write_planetoid(tmp_path)
    if with_gaps:
        gaps(folder)
    graph = Planetoid(folder, normalise=normalise).read()
    allx, tx, ally, ty = (unpickled(folder, part) for part in ("allx", "tx", "ally", "ty"))
    features, labels = dict(enumerate(allx)), {n: int(row.argmax()) for n, row in enumerate(ally)}
    for place, row, one_hot in zip((folder / "ind.cora.test.index").read_text().split(), tx, ty, strict=True):
        features[int(place)], labels[int(place)] = row, int(one_hot.argmax())
    links = unpickled(folder, "graph")
    assert len(graph) == len(links) == len(labels) + 2 * with_gaps
    for node in range(len(graph)):
        expected = features.get(node, np.zeros(allx.shape[1]))
        if normalise and expected.sum():
            expected = (expected.astype(np.float64) / expected.sum()).astype(np.float32)
        assert (dense(graph)[node] == expected).all()
        assert graph.labels[node] == labels.get(node, NO_CLASS)
    assert pairs(graph) == both_ways({(n, other) for n, others in links.items() for other in others if n != other})
    training, known = len(unpickled(folder, "x")), len(allx)
    expected_parts = [TRAINING] * training + [VALIDATION] * (known - training)
    expected_parts += [TEST if node in labels else UNUSED for node in range(known, len(graph))]
    assert graph.split is not None
    assert graph.split.tolist() == expected_parts
    assert Planetoid.recognises(folder)
    assert not Planetoid.recognises(tmp_path / "none")


@needs("planetoid")
@pytest.mark.parametrize(
    ("dataset", "nodes", "features", "edges", "unused", "test"),
    [
        ("cora", 2708, 1433, 10556, 1068, [130, 91, 144, 319, 149, 103, 64]),
        ("citeseer", 3327, 3703, 9104, 1707, [77, 182, 181, 231, 169, 160]),
    ],
)
def test_planetoid_has_the_published_counts(
    dataset: str, nodes: int, features: int, edges: int, unused: int, test: list[int]
) -> None:
    graph = Planetoid(FOLDER / "planetoid", dataset).read()
    assert (graph.features.shape, graph.edges.shape) == ((nodes, features), (2, edges))
    assert (graph.edges[0] != graph.edges[1]).all()
    assert graph.split is not None
    assert np.bincount(graph.labels[graph.split == TEST]).tolist() == test
    assert np.bincount(graph.labels[graph.split == TRAINING]).tolist() == [20] * len(test)
    assert [(graph.split == part).sum() for part in (UNUSED, VALIDATION, TEST)] == [unused, 500, 1000]
    without = graph.labels == NO_CLASS
    assert without.sum() == (15 if dataset == "citeseer" else 0)
    sums = dense(graph).sum(axis=1)
    assert (sums[without] == 0).all()
    np.testing.assert_allclose(sums[~without], 1, rtol=1e-5)


def test_planetoid_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    def refuse(reason: str, part: str, content: Any, **options: Any) -> None:
        folder = write_planetoid(tmp_path)
        path = folder / f"ind.cora.{part}"
        path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol=2))
        with pytest.raises(InputError, match=reason):
            Planetoid(folder, **options).read()

    links = unpickled(write_planetoid(tmp_path), "graph")
    refuse("ind.cora.graph: node 0: neighbour 99999 is outside", "graph", links | {0: [99999]})
    refuse("ind.cora.graph: node 99999: expected a list", "graph", links | {99999: [0]})
    refuse("ind.cora.graph: expected lists of neighbours", "graph", [1, 2])
    refuse("test.index: expected numbers from 36 to 47, each once", "test.index", b"999999999999")
    refuse("test.index: expected a node number per line", "test.index", b"x")
    refuse("ind.cora.ally: row 0: expected one 1 among zeros", "ally", np.zeros((36, 4)))
    refuse("ind.cora.ty: expected 12 rows, found 3", "ty", np.eye(4)[:3])
    refuse("ind.cora.x: expected a sparse matrix", "x", np.eye(4))
    refuse("do not fit: x", "x", csr_matrix(np.eye(4)))
    refuse("ind.cora.allx: not a readable pickle", "allx", b"\x80\x02")
    write_planetoid(tmp_path)
    (tmp_path / "ind.cora.tx").unlink()
    with pytest.raises(InputError, match=r"ind.cora.tx: no such file or folder; published at github.com/kimiyoung"):
        Planetoid(tmp_path).read()
    with pytest.raises(InputError, match=r"no file ind\.NAME\.graph of cora, .* in it; published at"):
        Planetoid(tmp_path.parent).read()
    (tmp_path / "ind.citeseer.graph").touch()
    with pytest.raises(InputError, match="cora, citeseer are in it; choose one by `dataset`"):
        Planetoid(tmp_path).read()
    with pytest.raises(InputError, match="dataset: unknown 'corra'; did you mean 'cora'"):
        Planetoid(tmp_path, "corra")
    with pytest.raises(InputError, match="normalise: expected true or false, found 'no'"):
        Planetoid(tmp_path, normalise="no")  # type: ignore[arg-type]


def write_twitch(folder: Path, published: bool = False) -> list[tuple[set[tuple[int, int]], dict[int, set[int]], str]]:
    """Write seven graphs as they circulate, or as SNAP has them; return links, features and mature users of each."""
    graphs = []
    for size, language in enumerate(LANGUAGES, start=3):
        place = folder / language if published else folder
        place.mkdir(exist_ok=True, parents=True)
        start = place / (f"musae_{language}" if published else language)
        links = {(0, size - 1), (1, 0)}
        lists = {node: {int(index) for index in RANDOM.integers(50, size=node)} for node in range(size)}
        mature = "".join(RANDOM.choice(["0", "1"], size=size))
        rows = [f"{900 + n},5,{mature[n] == '1'},7,{n == 0},{n}" for n in RANDOM.permutation(size)]
        if language == "FR":
            rows.append(rows[0].replace(",7,", ",8,"))
        text = "\n".join(["id,days,mature,views,partner,new_id", *rows])
        Path(f"{start}_target.csv").write_text(text)
        Path(f"{start}_edges.csv").write_text("from,to\n" + "\n".join(f"{a},{b}" for a, b in links) + "\n")
        content = {str(n): [*indices, *sorted(indices)[:1]] for n, indices in lists.items()}
        Path(f"{start}{'_features' if published else ''}.json").write_text(json.dumps(content))
        graphs.append((links, lists, mature))
    return graphs


@pytest.mark.parametrize("published", [False, True])
def test_twitch_is_one_graph_of_seven_languages(tmp_path: Path, published: bool) -> None:
    graphs = write_twitch(tmp_path, published)
    graph = MusaeTwitch(tmp_path).read()
    first, links, features, labels = 0, set(), [], ""
    for own_links, lists, mature in graphs:
        links |= {(a + first, b + first) for a, b in own_links}
        features += [lists[node] for node in range(len(mature))]
        labels += mature
        first += len(mature)
    assert pairs(graph) == both_ways(links)
    assert [set(np.flatnonzero(row).tolist()) for row in dense(graph)] == features
    assert set(np.unique(dense(graph))) == {0, 1}
    assert "".join(map(str, graph.labels)) == labels
    assert graph.classes == ("not mature", "mature")
    assert graph.groups["language"].names == LANGUAGES
    assert np.bincount(graph.groups["language"].numbers).tolist() == [len(mature) for *_, mature in graphs]
    partners = MusaeTwitch(tmp_path, "partner").read()
    assert np.flatnonzero(partners.labels).tolist() == [0, 3, 7, 12, 18, 25, 33]
    assert MusaeTwitch.recognises(tmp_path)
    assert not MusaeFacebook.recognises(tmp_path)


def test_twitch_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    def refuse(reason: str, name: str, content: str | None) -> None:
        write_twitch(tmp_path)
        if content is None:
            (tmp_path / name).unlink()
        else:
            (tmp_path / name).write_text(content)
        with pytest.raises(InputError, match=reason):
            MusaeTwitch(tmp_path).read()

    refuse("RU_edges.csv, RU_target.csv and RU.json are not all in it; published at snap", "RU.json", None)
    refuse("RU_edges.csv: row 2: 1 – 8 has an end outside the nodes 0–7", "RU_edges.csv", "from,to\n0,1\n1,8\n")
    refuse("RU_edges.csv: row 1, column 2: expected a whole number, found 'x'", "RU_edges.csv", "from,to\n0,x\n")
    refuse("RU_edges.csv: expected the columns from,to, found 'a,b'", "RU_edges.csv", "a,b\n0,1\n")
    refuse("RU_target.csv: column 'mature' is missing", "RU_target.csv", "new_id,partner\n0,True\n")
    rows = "new_id,mature\n" + "".join(f"{node},{'' if node == 5 else True}\n" for node in range(8))
    refuse("RU_target.csv: column 'mature': node 5: expected True or False, found ''", "RU_target.csv", rows)
    refuse("RU_target.csv: column 'new_id': 1 nodes, but none has", "RU_target.csv", "new_id,mature\n4,True\n")
    refuse("RU_target.csv: row 2: node 0 was told of before", "RU_target.csv", "new_id,mature\n0,True\n0,False\n")
    lists = {str(node): [] for node in range(8)}
    refuse("RU.json: node 7 is missing", "RU.json", json.dumps({k: v for k, v in lists.items() if k != "7"}))
    refuse("RU.json: node 3: expected a list of indices from 0", "RU.json", json.dumps(lists | {"3": [10**12]}))
    refuse("RU.json: node 3: expected a list of indices from 0", "RU.json", json.dumps(lists | {"3": [-1]}))
    refuse("RU.json: not valid JSON", "RU.json", "[" * 100_000)
    with pytest.raises(InputError, match="target: unknown 'maturity'; did you mean 'mature'"):
        MusaeTwitch(tmp_path, "maturity")


@needs("twitch")
def test_twitch_has_the_published_counts() -> None:
    graph = MusaeTwitch(FOLDER / "twitch", "partner").read()
    sizes = [9498, 7126, 4648, 6549, 1912, 4385, 2772]
    links = [153138, 35324, 59382, 112666, 31299, 37304, 63462]
    languages = graph.groups["language"].numbers
    assert graph.features.shape == (sum(sizes), 3170)
    assert np.bincount(languages).tolist() == sizes
    assert (languages[graph.edges[0]] == languages[graph.edges[1]]).all()
    assert np.bincount(languages[graph.edges[0]]).tolist() == [2 * count for count in links]


@needs("facebook")
def test_facebook_has_the_published_counts() -> None:
    graph = MusaeFacebook(FOLDER / "facebook").read()
    assert (graph.features.shape, graph.edges.shape[1]) == ((22470, 4714), 2 * 170823 + 179)
    assert (graph.edges[0] == graph.edges[1]).sum() == 179
    assert graph.classes == graph.groups["page type"].names == ("company", "government", "politician", "tvshow")
    assert np.bincount(graph.labels).tolist() == [6495, 6880, 5768, 3327]
    inside = graph.labels[graph.edges[0]] == graph.labels[graph.edges[1]]
    links = inside & (graph.edges[0] < graph.edges[1])
    assert np.bincount(graph.labels[graph.edges[0][links]]).tolist() == [20034, 81340, 36891, 12968]


def test_facebook_pages_are_told_by_their_type(tmp_path: Path) -> None:
    (tmp_path / "musae_facebook_edges.csv").write_text("id_1,id_2\n0,1\n2,2\n")
    (tmp_path / "musae_facebook_target.csv").write_text(
        'id,facebook_id,page_name,page_type\n0,9,"A, B",tvshow\n2,8,Č,company\n1,7,"say ""hi""",tvshow\n'
    )
    (tmp_path / "musae_facebook_features.json").write_text('{"1": [3, 1], "0": [], "2": [0]}')
    graph = MusaeFacebook(tmp_path).read()
    assert pairs(graph) == {(0, 1), (1, 0), (2, 2)}
    assert dense(graph).tolist() == [[0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 0, 0]]
    assert (graph.labels.tolist(), graph.classes) == ([1, 1, 0], ("company", "tvshow"))
    assert MusaeFacebook.recognises(tmp_path)
    (tmp_path / "musae_facebook_target.csv").write_text("id,page_type\n0,\n1,a\n2,b\n")
    with pytest.raises(InputError, match="column 'page_type': node 0 has none"):
        MusaeFacebook(tmp_path).read()


def write_gamers(folder: Path, rows: list[str] | None = None) -> Path:
    head = "views,mature,life_time,created_at,updated_at,numeric_id,dead_account,language,affiliate"
    rows = rows or [
        "50,1,969,2016-02-16,2018-10-12,1,0,OTHER,1",
        "200,0,2699,2011-05-19,2018-10-08,0,1,ZH,0",
        "10,1,3,2011-05-19,2018-10-08,2,0,DE,1",
    ]
    (folder / "large_twitch_features.csv").write_text("\n".join([head, *rows]))
    (folder / "large_twitch_edges.csv").write_text("numeric_id_1,numeric_id_2\n0,1\n2,0\n")
    return folder


def test_gamers_are_told_if_affiliate_by_language(tmp_path: Path) -> None:
    graph = TwitchGamers(write_gamers(tmp_path)).read()
    assert dense(graph).tolist() == [[1, 0, 2699, 1], [0.25, 1, 969, 0], [np.float32(0.05), 1, 3, 0]]
    assert graph.labels.tolist() == [0, 1, 1]
    assert graph.groups["language"].names == ("DE", "ZH", "OTHER")
    assert graph.groups["language"].numbers.tolist() == [1, 2, 0]
    assert pairs(graph) == both_ways({(0, 1), (2, 0)})
    assert pairs(TwitchGamers(tmp_path, both_ways=False).read()) == {(0, 1), (2, 0)}
    assert TwitchGamers.recognises(tmp_path)
    for rows, reason in (
        (["x,0,1,a,b,0,0,DE,1"], "column 'views': expected whole numbers"),
        (["1,0,1,a,b,3,0,DE,1"], "column 'numeric_id': expected the numbers 0 to 0"),
        (["1,0,1,a,b,0,0,DE,2"], "column 'affiliate': expected 0 or 1"),
    ):
        with pytest.raises(InputError, match=f"large_twitch_features.csv: {reason}"):
            TwitchGamers(write_gamers(tmp_path, rows)).read()
    (tmp_path / "large_twitch_edges.csv").unlink()
    with pytest.raises(InputError, match=r"large_twitch_edges.csv: no such file or folder; published at snap"):
        TwitchGamers(tmp_path).read()


def write_pcg(folder: Path, edges: str = "0,1\n1,0\n2,0\n", labels: str = "0,1\n1,1\n0,0\n") -> Path:
    (folder / "edges_undir.csv").write_text(edges)
    (folder / "features.csv").write_text("-1.5,2\n0.1,3e-2\n7,8\n")
    (folder / "labels.csv").write_text(labels)
    return folder


def test_pcg_has_many_labels(tmp_path: Path) -> None:
    graph = Pcg(write_pcg(tmp_path)).read()
    assert pairs(graph) == {(0, 1), (1, 0), (2, 0)}
    assert (dense(graph) == np.array([[-1.5, 2], [0.1, 3e-2], [7, 8]], dtype=np.float32)).all()
    assert graph.labels.tolist() == [[0, 1], [1, 1], [0, 0]]
    assert Pcg.recognises(tmp_path)
    for files, reason in (
        ({"edges": "0,1\n0,7\n"}, "edges: edge 1, 0 – 7, has an end outside the nodes 0–2"),
        ({"edges": "0,1\n0\n"}, "edges_undir.csv: row 2, column 2: expected a whole number, found nothing"),
        ({"edges": "0,1\n0,1,2\n"}, "edges_undir.csv: cannot be read: .*Expected 2 fields in line 2, saw 3"),
        ({"edges": "0\n"}, "edges_undir.csv: expected 2 columns, found 1"),
        ({"edges": ""}, "edges_undir.csv: cannot be read: No columns to parse"),
        ({"labels": "0,1\n1,2\n0,0\n"}, "labels: expected 0 or 1, found 2 as label 1 of node 1"),
        ({"labels": "0,1\n1,\n0,0\n"}, "labels.csv: row 2, column 2: expected a whole number, found nothing"),
        ({"labels": "0,1\n1,0\n"}, "labels.csv: expected 3 rows, as features.csv has, found 2"),
    ):
        with pytest.raises(InputError, match=reason):
            Pcg(write_pcg(tmp_path, **files)).read()


@needs("pcg")
def test_pcg_has_the_published_counts() -> None:
    graph = Pcg(FOLDER / "pcg").read()
    assert (graph.features.shape, graph.labels.shape, graph.edges.shape) == ((3233, 32), (3233, 15), (2, 74702))
    assert pairs(graph) == both_ways(pairs(graph))
    assert graph.labels.sum() / len(graph) == pytest.approx(1.93, abs=0.005)


def zipped(path: Path, rows: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = (
        rows if isinstance(rows, str) else "".join(",".join(map(str, row)) + "\n" for row in np.asarray(rows).tolist())
    )
    path.write_bytes(gzip.compress(text.encode()))


def write_ogb(folder: Path, dataset: str) -> dict[str, np.ndarray]:
    """Write the raw and split folders of a small graph in the true form; return what is in them."""
    nodes, count = 7, 11
    random = np.random.default_rng(3)
    content = {
        "edge": random.integers(nodes, size=(count, 2)),
        "node-feat": random.normal(size=(nodes, 4)).round(6),
        "node-label": random.permutation(nodes)[:, None] % 3,
        "node_year": 2000 + random.integers(9, size=(nodes, 1)),
    }
    split, part = {"arxiv": "time", "products": "sales_ranking", "proteins": "species", "mag": "time"}[dataset], ""
    raw = folder / "raw"
    places = dict.fromkeys(content, raw)
    zipped(raw / "num-node-list.csv.gz", [[nodes]])
    if dataset == "mag":
        part, places = "paper", dict.fromkeys(content, raw / "node-feat" / "paper")
        places |= {"edge": raw / "relations" / "paper___cites___paper", "node-label": raw / "node-label" / "paper"}
        (raw / "num-node-list.csv.gz").unlink()
        zipped(raw / "num-node-dict.csv.gz", f"author,field_of_study,institution,paper\n12,13,14,{nodes}\n")
        zipped(raw / "relations" / "author___writes___paper" / "edge.csv.gz", [[11, 3]])
    if dataset == "proteins":
        del content["node-feat"], content["node_year"]
        content["edge"] = content["edge"] % (nodes - 1)
        content["node-label"] = (random.random((nodes, 112)) < 0.5).astype(int)
        content["node-label"][0] = 1
        content["edge-feat"] = random.random((count, 8)).round(3)
        content["node_species"] = np.array([4932, 3702, 4932, 511145, 3702, 3702, 4932])[:, None]
        places |= {"edge-feat": raw, "node_species": raw}
    if dataset == "products":
        del content["node_year"]
    for name, rows in content.items():
        zipped(places[name] / f"{name}.csv.gz", rows)
    zipped(places["edge"] / "num-edge-list.csv.gz", [[count]])
    for name, members in (("train", [4, 0, 6]), ("valid", [1]), ("test", [2, 5])):
        zipped(folder / "split" / split / part / f"{name}.csv.gz", [[node] for node in members])
    return content


@pytest.mark.parametrize("dataset", ["arxiv", "products", "mag", "proteins"])
def test_ogb_graphs_are_read_from_their_raw_folders(tmp_path: Path, dataset: str) -> None:
    content = write_ogb(tmp_path, dataset)
    assert Ogb.recognises(tmp_path)
    graph = Ogb(tmp_path).read()
    assert graph.name == f"ogbn-{dataset}"
    links = {(source, target) for source, target in content["edge"].tolist()}
    assert pairs(graph) == (both_ways(links) if dataset in ("products", "proteins") else links)
    assert pairs(Ogb(tmp_path, both_ways=True).read()) == both_ways(links)
    assert graph.split is not None
    assert graph.split.tolist() == [0, 1, 2, -1, 0, 2, 0]
    if dataset == "proteins":
        expected = np.zeros((7, 8))
        for node in range(7):
            ends = [
                row
                for row, pair in zip(content["edge-feat"], content["edge"], strict=True)
                for end in pair
                if end == node
            ]
            expected[node] = np.mean(ends, axis=0) if ends else 0
        np.testing.assert_allclose(dense(graph), expected, rtol=1e-6)
        assert (dense(graph)[6] == 0).all(), "a protein without edges"
        assert (graph.labels == content["node-label"]).all()
        assert graph.groups["species"].names == ("3702", "4932", "511145")
        assert graph.groups["species"].numbers.tolist() == [1, 0, 1, 2, 0, 0, 1]
    else:
        assert (dense(graph) == content["node-feat"].astype(np.float32)).all()
        assert graph.labels.tolist() == content["node-label"][:, 0].tolist()
    assert (graph.times is None) == (dataset in ("products", "proteins"))
    if graph.times is not None:
        assert graph.times.tolist() == content["node_year"][:, 0].tolist()


def test_ogb_folders_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    def refuse(reason: str, dataset: str, name: str, rows: Any) -> None:
        folder = tmp_path / reason[:12].replace("/", "")
        write_ogb(folder, dataset)
        if rows is None:
            (folder / name).unlink()
        elif isinstance(rows, bytes):
            (folder / name).write_bytes(rows)
        else:
            zipped(folder / name, rows)
        with pytest.raises(InputError, match=reason):
            Ogb(folder).read()

    refuse("edges: edge 0, 0 – 7, has an end outside", "arxiv", "raw/edge.csv.gz", [[0, 7]] * 11)
    refuse("edge.csv.gz: row 1: an end is outside the nodes 0–6", "proteins", "raw/edge.csv.gz", [[0, 7]] * 11)
    refuse("edge-feat.csv.gz: expected 11 rows, one per edge", "proteins", "raw/edge-feat.csv.gz", [[1.0] * 8] * 12)
    refuse("num-edge-list.csv.gz: says 12 edges, found 11", "arxiv", "raw/num-edge-list.csv.gz", [[12]])
    refuse("node-label.csv.gz: expected 99 rows, one per node, found 7", "arxiv", "raw/num-node-list.csv.gz", [[99]])
    refuse(f"raw: node-label.csv.gz: expected {10**15} rows", "proteins", "raw/num-node-list.csv.gz", [[10**15]])
    refuse("raw/edge.csv.gz: no such file or folder; published at ogb", "arxiv", "raw/edge.csv.gz", None)
    refuse("edge.csv.gz: cannot be read", "products", "raw/edge.csv.gz", gzip.compress(b"0,1\n" * 999)[:-12])
    refuse("train.csv.gz: row 1: 7 is outside", "arxiv", "split/time/train.csv.gz", [[7]])
    refuse("test.csv.gz: node 0 is in another part", "arxiv", "split/time/test.csv.gz", [[0]])
    refuse("features: node 0 has one that is not finite", "arxiv", "raw/node-feat.csv.gz", [[np.nan]] * 7)
    refuse("node-label.csv.gz: row 1, column 1: expected a whole number", "arxiv", "raw/node-label.csv.gz", "x\n" * 7)
    refuse("column 'paper': expected the number of papers", "mag", "raw/num-node-dict.csv.gz", "paper\nx\n")
    assert not Ogb.recognises(tmp_path)
    with pytest.raises(InputError, match="expected the folders raw and split of arxiv"):
        Ogb(tmp_path).read()


def write_csr(path: Path, **changes: Any) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    links = (random.random((6, 6)) < 0.4).astype(np.float32)
    links[0, 0] = 1
    features = random.integers(3, size=(6, 5)).astype(np.float32)
    content: dict[str, Any] = {"labels": np.array([0, 2, 1, 0, 2, 1])}
    for prefix, matrix in (("adj", csr_matrix(links)), ("attr", csr_matrix(features))):
        parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
        content |= {f"{prefix}_{part}": value for part, value in parts.items()}
    content["idx_to_class"] = np.array({0: "a"}, dtype=object)
    content |= changes
    np.savez(path, **{name: value for name, value in content.items() if value is not None})
    return links, features


def test_sparse_rows_of_an_npz_are_read(tmp_path: Path) -> None:
    path = tmp_path / "cora_full.npz"
    links, features = write_csr(path)
    assert CsrNpz.recognises(path)
    expected = {(int(source), int(target)) for source, target in np.argwhere(links)}
    graph = CsrNpz(path).read()
    assert pairs(graph) == both_ways(expected)
    assert (dense(graph) == features).all()
    assert graph.labels.tolist() == [0, 2, 1, 0, 2, 1]
    assert graph.name == "cora_full"
    assert pairs(CsrNpz(path, both_ways=False, loops=False).read()) == {(a, b) for a, b in expected if a != b}
    dense_features = {f"attr_{part}": None for part in ("data", "indices", "indptr", "shape")}
    write_csr(path, **dense_features, attr_matrix=features)
    assert (dense(CsrNpz(path).read()) == features).all()
    for changes, reason in (
        (
            {"labels": np.array(["a"] * 6, dtype=object)},
            "array 'labels': expected numbers or text, found Python objects",
        ),
        ({"labels": None}, "array 'labels' is missing"),
        ({"adj_indices": np.full(int(links.sum()), 9)}, "arrays 'adj_…': a sparse matrix has entries outside"),
        ({"adj_shape": np.array([10**12, 10**12])}, "array 'adj_shape': 1,000,000,000,000 columns, at most"),
        ({"attr_shape": np.array([6, 10**9])}, "array 'attr_shape': 1,000,000,000 columns, at most"),
        ({"attr_indptr": np.zeros(7, dtype=int)}, "arrays 'attr_…': a sparse matrix has rows that do not follow"),
        ({"attr_matrix": np.array(3.0)}, r"array 'adj_shape': \(6, 6\), but features \(\)"),
        ({"attr_shape": np.array([6.0, 5.0])}, "array 'attr_shape': expected two whole numbers"),
    ):
        write_csr(path, **changes)
        with pytest.raises(InputError, match=f"cora_full.npz: {reason}"):
            CsrNpz(path).read()


def test_reddit_is_read_from_its_two_files(tmp_path: Path) -> None:
    features = RANDOM.normal(size=(5, 3))
    row, col = np.array([0, 1, 4, 2]), np.array([1, 0, 2, 4])
    np.savez(
        tmp_path / "reddit_data.npz",
        feature=features,
        label=np.array([0, 1, 1, 0, 2]),
        node_types=np.array([1, 3, 2, 1, 3]),
        node_ids=np.arange(5),
    )
    save_npz(tmp_path / "reddit_graph.npz", coo_matrix((np.ones(4), (row, col)), shape=(5, 5)))
    assert Reddit.recognises(tmp_path)
    graph = Reddit(tmp_path).read()
    assert pairs(graph) == {(0, 1), (1, 0), (4, 2), (2, 4)}
    assert (dense(graph) == features.astype(np.float32)).all()
    assert graph.split is not None
    assert (graph.labels.tolist(), graph.split.tolist()) == ([0, 1, 1, 0, 2], [0, 2, 1, 0, 2])
    np.savez(tmp_path / "reddit_data.npz", feature=features, label=np.arange(5), node_types=np.arange(5))
    with pytest.raises(InputError, match=r"reddit_data.npz: array 'node_types': expected 1, 2 or 3"):
        Reddit(tmp_path).read()
    (tmp_path / "reddit_graph.npz").unlink()
    with pytest.raises(InputError, match=r"reddit_graph.npz: no such file or folder; published at data.dgl.ai"):
        Reddit(tmp_path).read()


def test_the_roman_empire_has_ten_splits(tmp_path: Path) -> None:
    path = tmp_path / "roman_empire.npz"
    features, edges = RANDOM.normal(size=(6, 3)).astype(np.float32), np.array([[0, 1], [2, 3], [5, 5]])
    parts = np.stack([RANDOM.permutation([0, 0, 1, 2, 2, 1]) for _ in range(10)])
    masks = {name: parts == part for part, name in enumerate(("train_masks", "val_masks", "test_masks"))}
    content = {"node_features": features, "node_labels": np.array([0, 1, 2, 0, 1, 2]), "edges": edges, **masks}
    np.savez(path, **content)
    assert RomanEmpire.recognises(path)
    for mask in (0, 9):
        graph = RomanEmpire(path, mask).read()
        assert graph.split is not None
        assert graph.split.tolist() == parts[mask].tolist()
    assert pairs(graph) == {(0, 1), (1, 0), (2, 3), (3, 2), (5, 5)}
    assert (dense(graph) == features).all()
    assert graph.labels.tolist() == [0, 1, 2, 0, 1, 2]
    with pytest.raises(InputError, match="mask: expected a whole number from 0 to 9, found 10"):
        RomanEmpire(path, 10)
    np.savez(path, **{**content, "test_masks": masks["train_masks"]})
    with pytest.raises(InputError, match="array 'test_masks': a test node is in another part already"):
        RomanEmpire(path).read()
    np.savez(path, **{**content, "val_masks": masks["val_masks"][:, :4]})
    with pytest.raises(InputError, match=r"array 'val_masks': expected masks \(10, 6\), found bool \(10, 4\)"):
        RomanEmpire(path).read()
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"roman_empire.npz: array 'edges': cannot be read"):
        RomanEmpire(path).read()
