"""One value for links: what `make_link_set` refuses, what it makes of defaults, and what its digest tells apart."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.items import NO_GROUP
from skeleton_cgl.graphs.link_set import LINKED, NO_CLASS, Groups, LinkSet, make_link_set, pair_keys

ENDS = np.array([[0, 1, 2, 3], [1, 2, 3, 3]])
NEGATIVES = np.array([[0, 2], [3, 0]])


def whole(**changes: Any) -> LinkSet:
    given: dict[str, Any] = {
        "name": "l",
        "nodes": 5,
        "ends": ENDS,
        "directed": True,
        "labels": np.array([0, 1, NO_CLASS, 1]),
        "classes": ("x", "y"),
        "features": np.arange(10.0).reshape(5, 2),
        "groups": {"land": Groups(np.array([0, 1, NO_GROUP, 1]), ("a", "b"))},
        "times": np.array([3, 1, 2, 1]),
        "split": np.array([0, 1, -1, 2]),
        "negatives": NEGATIVES,
        "negatives_split": np.array([1, 2]),
        "notes": ("as read",),
    }
    return make_link_set(**{**given, **changes})


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"nodes": 1}, "nodes: expected at least 2, found 1"),
    ({"nodes": 3, "features": None}, "links: edge 2, 2 – 3, has an end outside the nodes 0–2"),
    ({"ends": ENDS - 1}, "links: edge 0, -1 – 0, has an end outside"),
    ({"ends": ENDS * 1.0}, r"links: expected whole numbers \(2, E\), found float64"),
    ({"ends": ENDS.T}, r"links: expected whole numbers \(2, E\)"),
    ({"ends": ENDS[:, :0], "labels": None}, "links: expected at least one"),
    ({"features": np.ones((4, 2))}, "features: expected a row for each of 5 nodes, found 4"),
    ({"features": np.full((5, 1), np.nan)}, "features: node 0 has one that is not finite"),
    ({"labels": np.zeros(3)}, r"labels: expected one class \(4,\) or a row of labels \(4, K\) per link"),
    ({"labels": np.array([0, 1, 2, 1])}, "labels: expected -1 to 1, found 2 at link 2"),
    ({"labels": np.array([0, 1, 0.5, 1])}, "labels: expected a whole number, found 0.5 at link 2"),
    ({"labels": np.array([0, 0, 0, 0])}, "labels: no link has 'y'"),
    ({"labels": np.full(4, NO_CLASS), "classes": None}, "labels: no link has a class"),
    ({"labels": np.eye(4)[:, :2]}, "labels: expected one class per link, found many labels"),
    ({"classes": ("x", "x")}, "classes: two have the same name"),
    (
        {"groups": {"land": Groups(np.array([0, 1, 0, 2]), ("a", "b"))}},
        "groups 'land': expected -1 to 1, found 2",
    ),
    ({"groups": {"land": Groups(np.array([0, 1]), ("a", "b"))}}, "groups 'land': expected a whole number per link"),
    ({"times": np.array([1, 2, 3])}, r"times: expected one per link \(4,\)"),
    ({"times": np.array([1, 2, 3, 0.5])}, "times: expected a whole number, found 0.5 at link 3"),
    ({"split": np.array([0, 1, 3, 2])}, "split: expected -1 to 2, found 3 at link 2"),
    ({"negatives_split": None}, "negatives: expected pairs and the part of each, found the one without the other"),
    ({"negatives": None}, "negatives: expected pairs and the part of each, found the one without the other"),
    ({"negatives": NEGATIVES + 2}, "negatives: edge 0, 2 – 5, has an end outside the nodes 0–4"),
    ({"negatives_split": np.array([1, 3])}, "negatives_split: expected -1 to 2, found 3"),
    ({"negatives_split": np.array([1])}, "negatives_split: expected one per link"),
]


@pytest.mark.parametrize(("changes", "reason"), REFUSED)
def test_what_are_no_links_is_refused_with_the_field(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=f"^here: {reason}"):
        whole(where="here", **changes)


@given(st.data())
def test_a_pair_is_refused_as_link_and_as_negative_wherever_it_stands(data: st.DataObject) -> None:
    node = st.integers(0, 5)
    links = data.draw(st.lists(st.tuples(node, node), min_size=1, max_size=8))
    negatives = data.draw(st.lists(st.tuples(node, node), min_size=1, max_size=3))
    directed = data.draw(st.booleans())
    both = set(links) if directed else set(links) | {(b, a) for a, b in links}
    twice = [pair for pair in negatives if pair in both]
    given: dict[str, Any] = {
        "ends": np.array(links).T,
        "directed": directed,
        "negatives": np.array(negatives).T,
        "negatives_split": np.zeros(len(negatives), dtype=int),
    }
    if not twice:
        found = make_link_set("l", 6, **given)
        assert found.negatives is not None
        assert found.negatives.T.tolist() == [list(pair) for pair in negatives]
        return
    said = f"negatives: the pair {twice[0][0]} – {twice[0][1]} is listed as a link and as a negative"
    with pytest.raises(InputError, match=said):
        make_link_set("l", 6, **given)


@given(
    st.integers(2, 40).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=2))
    )
)
def test_pairs_have_the_same_number_only_if_they_are_the_same(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    nodes, pairs = drawn
    ends = np.array(pairs).T
    assert len(set(pair_keys(ends, nodes, directed=True))) == len(set(pairs))
    assert len(set(pair_keys(ends, nodes, directed=False))) == len({frozenset(pair) for pair in pairs})


def test_links_keep_the_sequence_they_are_given_in_and_may_repeat() -> None:
    ends = np.array([[3, 0, 3, 0], [1, 4, 1, 0]], dtype=np.uint8)
    links = make_link_set("l", 5, ends, directed=False)
    assert links.ends.tolist() == ends.tolist()
    assert (links.ends.dtype, len(links), links.item) == (np.int64, 4, "link")
    assert not links.many_labels


def test_without_labels_all_links_are_of_one_class() -> None:
    links = make_link_set("l", 4, ENDS, directed=False)
    assert (links.classes, links.labels.tolist()) == ((LINKED,), [0, 0, 0, 0])
    assert (links.features, links.times, links.split, links.negatives) == (None, None, None, None)
    assert not links.groups
    named = make_link_set("l", 4, ENDS, directed=False, labels=np.array([2.0, 0, NO_CLASS, 1]))
    assert (named.classes, named.labels.dtype) == (("class 0", "class 1", "class 2"), np.int64)


CHANGES: list[dict[str, Any]] = [
    {"nodes": 6, "features": None},
    {"directed": False},
    {"ends": ENDS[:, ::-1]},
    {"ends": ENDS[::-1], "negatives": None, "negatives_split": None},
    {"labels": np.array([0, 1, 0, 1])},
    {"classes": ("x", "z")},
    {"features": None},
    {"features": np.ones((5, 2))},
    {"groups": {}},
    {"groups": {"land": Groups(np.array([0, 1, 0, 1]), ("a", "b"))}},
    {"groups": {"land": Groups(np.array([0, 1, NO_GROUP, 1]), ("a", "c"))}},
    {"groups": {"ländle": Groups(np.array([0, 1, NO_GROUP, 1]), ("a", "b"))}},
    {"times": None},
    {"times": np.array([3, 1, 2, 2])},
    {"split": None},
    {"split": np.array([0, 1, 2, 2])},
    {"negatives": None, "negatives_split": None},
    {"negatives": NEGATIVES[:, ::-1]},
    {"negatives_split": np.array([2, 2])},
]


def test_the_digest_changes_with_every_field_and_not_with_name_or_notes() -> None:
    digests = {whole().digest, *(whole(**change).digest for change in CHANGES)}
    assert len(digests) == len(CHANGES) + 1
    assert whole(name="other", notes=()).digest == whole().digest
    assert whole(ends=ENDS.astype(np.int32), times=np.array([3.0, 1, 2, 1])).digest == whole().digest
    sparse = whole(features=csr_array(np.eye(5)))
    assert sparse.digest != whole(features=csr_array(np.eye(5)[::-1])).digest
