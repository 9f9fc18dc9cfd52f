"""The reader of Bitcoin-OTC: small files in the true form, the real one where it is at hand, and what is refused."""

import gzip
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.datasets import open_graph
from skeleton_cgl.graphs.link_set import NO_CLASS, LinkSet
from skeleton_cgl.graphs.sources.bitcoin import Bitcoin
from skeleton_cgl.reading.tables import first_rows
from tests.shared_data import FOLDER, needs

DAY = 86_400
RATINGS = [-10, -9, -1, 1, 2, 3, 4, 5, 6, 10]
BANDS = [0, 1, 1, NO_CLASS, NO_CLASS, 2, 3, 4, 5, 5]
HEADER = "FROM_NODE,TO_NODE,TRUST_INDEX,TIME_SINCE_EPOCH\n"


def rows(changes: dict[int, str] | None = None) -> list[str]:
    """Return a rating of every kind, each twenty days after the one before; `changes` are whole rows by number."""
    found = [
        f"{1 + place},{2 + place},{rating},{1_289_241_911 + 20 * DAY * place}.72836"
        for place, rating in enumerate(RATINGS)
    ]
    for row, text in (changes or {}).items():
        found[row - 1] = text
    return found


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("header", ["", HEADER, "SOURCE,TARGET,RATING,TIME\n"])
@pytest.mark.parametrize("name", ["soc-sign-bitcoinotc.csv", "soc-sign-bitcoinotc.csv.gz"])
def test_ratings_are_directed_links_with_or_without_names_and_gzipped(tmp_path: Path, name: str, header: str) -> None:
    path = write(tmp_path / name, header + "\n".join(rows({3: "9,20,-1,1292697911.5"})) + "\n")
    links = Bitcoin(path).read()
    assert (links.name, links.nodes, links.directed, links.features) == ("Bitcoin-OTC", 20, True, None)
    expected = [[place, place + 1] for place in range(10)]
    expected[2] = [8, 19]
    assert links.ends.T.tolist() == expected
    assert links.labels.tolist() == BANDS
    assert links.classes == ("-10", "-9 to -1", "3", "4", "5", "6 to 10")
    assert links.notes == (
        "8 of 20 nodes have no rating",
        "2 ratings of 1 and 2 have no class, and are part of the graph alone",
    )
    for place in (path, tmp_path):
        assert Bitcoin.recognises(place)
        found = open_graph(place)
        assert isinstance(found, LinkSet)
        assert found.digest == links.digest


def test_signs_label_every_rating(tmp_path: Path) -> None:
    links = Bitcoin(write(tmp_path / "ratings.csv", "\n".join(rows())), labels="sign").read()
    assert links.classes == ("positive", "negative")
    assert links.labels.tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert links.name == "ratings"


@given(
    seconds=st.lists(st.integers(0, 400 * DAY), min_size=6, max_size=30),
    fraction=st.sampled_from(["", ".0", ".99999"]),
    periods=st.integers(1, 3),
)
def test_times_are_the_nearest_fortnights_and_periods_follow_them(
    tmp_path_factory: pytest.TempPathFactory, seconds: list[int], fraction: str, periods: int
) -> None:
    # Bounds of two fortnights are hit, where half-even decides.
    seconds = [*seconds, min(seconds) + 7 * DAY, min(seconds) + 21 * DAY]
    text = "\n".join(f"1,2,{-1 if place else 1},{second}{fraction}" for place, second in enumerate(seconds))
    path = write(tmp_path_factory.mktemp("bitcoin") / "a.csv", text)
    bins = [round(Fraction(second - min(seconds), 14 * DAY)) for second in seconds]
    expected = [periods * sum(other <= each for other in bins) // (len(bins) + 1) for each in bins]
    if set(expected) != set(range(periods)):
        with pytest.raises(InputError, match=r"a.csv: periods: "):
            Bitcoin(path, "sign", periods).read()
        return
    links = Bitcoin(path, "sign", periods).read()
    assert links.times is not None
    assert links.times.tolist() == bins
    assert links.groups["period"].numbers.tolist() == expected
    days = [np.datetime64(second, "s").astype("datetime64[D]") for second in seconds]
    for number, name in enumerate(links.groups["period"].names):
        own = [day for day, period in zip(days, expected, strict=True) if period == number]
        assert name == f"{min(own)} – {max(own)}"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1,2,11,5", "row 4: rating: expected a whole number, -10 to -1 or 1 to 10, found 11, a rating outside the ba"),
        ("1,2,-11,5", "row 4: rating: .*found -11, a rating outside the bands"),
        ("1,2,0,5", "row 4: rating: .*found 0, a rating outside the bands"),
        ("1,2,3.5,5", "row 4: rating: .*found 3.5, a rating outside the bands"),
        ("1,2,,5", "row 4: rating: .*found nothing"),
        ("1,2,inf,5", "row 4: rating: .*found inf"),
        ("1,2,good,5", "row 4, column 3: expected a number, found 'good'"),
        ("0,2,1,5", "row 4: from: expected an id from 1 to 10,000,000, found 0"),
        ("1,2.5,1,5", "row 4: to: expected an id .*found 2.5"),
        ("1,99999999999,1,5", "row 4: to: .*found 99999999999"),
        ("1,2,1,-5", "row 4: time: expected seconds since 1970, found -5"),
        ("1,2,1,1e300", "row 4: time: expected seconds since 1970, found 1e\\+300"),
        ("1,2,1,", "row 4: time: expected seconds since 1970, found nothing"),
        ("1,2,1", "row 4: time: expected seconds since 1970, found nothing"),
        ("1,2,1,5,6", "cannot be read: .*Expected 4 fields in line"),
    ],
)
@pytest.mark.parametrize("header", ["", HEADER])
def test_a_row_that_is_no_rating_is_refused_with_file_row_and_field(
    tmp_path: Path, header: str, row: str, reason: str
) -> None:
    path = write(tmp_path / "soc-sign-bitcoinotc.csv", header + "\n".join(rows({4: row})) + "\n")
    with pytest.raises(InputError, match=f"soc-sign-bitcoinotc.csv: {reason}"):
        Bitcoin(path).read()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read: No columns"),
        (HEADER, "cannot be read: No columns"),
        ("1,2,3\n1,2,3\n", "expected 4 columns, found 3"),
        ("x,2,3,4\n1,2,3,4\n", "row 1, column 1: expected a number, found 'x'"),
        ("1,2,1,5\n2,3,1,9\n", "labels: no link has '-10'"),
        ("1,1,1,5\n1,1,1,9\n", "nodes: expected at least 2, found 1"),
    ],
)
def test_a_file_that_holds_no_ratings_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path / "soc-sign-bitcoinotc.csv", text)
    with pytest.raises(InputError, match=f"soc-sign-bitcoinotc.csv: {reason}"):
        Bitcoin(path, periods=1).read()


def test_options_and_places_that_there_are_not_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "\n".join(rows()))
    given: list[tuple[dict[str, Any], str]] = [
        ({"labels": "band"}, "labels: unknown 'band'; did you mean 'bands'"),
        ({"periods": 0}, "periods: expected a whole number from 1, found 0"),
        ({"periods": True}, "periods: expected a whole number from 1, found True"),
        ({"periods": 10**30}, "a.csv: periods: 10 different times do not make 10"),
    ]
    for options, reason in given:
        with pytest.raises(InputError, match=reason):
            Bitcoin(path, **options).read()
    assert len(Bitcoin(path, periods=10).read().groups["period"].names) == 10
    late = "\n".join([*(f"1,2,{rating},5" for rating in RATINGS), f"1,2,1,{20 * DAY}"])
    with pytest.raises(InputError, match=r"a.csv: periods: 2 are too many, 1 of them would be empty"):
        Bitcoin(write(path, late), periods=2).read()
    with pytest.raises(InputError, match=r"none: no such file or folder; published at snap"):
        Bitcoin(tmp_path / "none").read()
    with pytest.raises(InputError, match=r"no soc-sign-bitcoinotc.csv in it; published at snap"):
        Bitcoin(tmp_path).read()


def test_only_four_columns_of_numbers_are_recognised(tmp_path: Path) -> None:
    for text in (
        "source,target,label,time\n1,2,3,4\n",
        "smiles,a,b,c\nC,1,2,3\n",
        "1,2,3\n",
        "1,2,3,x\n",
        "a,b,c,d\n",
        "",
        '"',
    ):
        assert not Bitcoin.recognises(write(tmp_path / "a.csv", text)), text
    assert Bitcoin.recognises(write(tmp_path / "a.csv", "1,2,3,4.5\n"))
    assert not Bitcoin.recognises(write(tmp_path / "a.txt", "1,2,3,4.5\n"))
    assert not Bitcoin.recognises(tmp_path)
    assert not Bitcoin.recognises(tmp_path / "none.csv")
    (tmp_path / "a.csv.gz").write_bytes(b"\x1f\x8b nothing")
    assert not Bitcoin.recognises(tmp_path / "a.csv.gz")


def test_the_first_rows_are_those_of_the_table_or_none(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", '\ufeff"a ""b"", c",d\n\n1,2\n3,4\n')
    assert first_rows(path, 2) == [['a "b", c', "d"], ["1", "2"]]
    assert first_rows(path, 9) == [['a "b", c', "d"], ["1", "2"], ["3", "4"]]
    assert first_rows(tmp_path, 2) == []


@needs("bitcoin-otc")
def test_the_real_ratings_have_the_published_counts() -> None:
    links = Bitcoin(FOLDER / "bitcoin-otc").read()
    assert (len(links), links.nodes) == (35592, 6005)
    assert len(np.unique(links.ends)) == 6005 - 124
    assert (links.labels == NO_CLASS).sum() == 25610
    assert np.bincount(links.labels[links.labels >= 0]).tolist() == [2413, 1150, 2561, 967, 1268, 1623]
    assert np.bincount(links.groups["period"].numbers).tolist() == [4811, 5341, 4654, 4852, 5443, 5288, 5203]
    assert links.times is not None
    for time in np.unique(links.times):
        assert len(set(links.groups["period"].numbers[links.times == time])) == 1
    signs = Bitcoin(FOLDER / "bitcoin-otc", "sign").read()
    assert signs.labels.sum() == 2413 + 1150
    assert (signs.ends == links.ends).all()
