import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from skeleton_cgl import Results
from skeleton_cgl.analysis import disparity, disparity_table
from skeleton_cgl.analysis.report import facts, report_page, scatter_data, write_report
from skeleton_cgl.analysis.report_tables import disparity_levels, performance_table, variance_table
from skeleton_cgl.errors import InputError
from tests.analysis.made_records import CLASS_ORDER, ORDERS, as_records, random_records, run_records
from tests.analysis.made_store import UNITS, made_store

AWKWARD = """</script><script>alert("1")</script> & 'x'"""


class Page(HTMLParser):
    """The elements of a page with their attributes and texts, and the rows of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.elements[-1][0] if self.elements else "", data))

    def inside(self, tag: str) -> list[str]:
        return [text for within, text in self.texts if within == tag and text.strip()]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    return made_store(folder / "x.db", random_records(), name=AWKWARD, units=(AWKWARD, *UNITS[1:]))


@pytest.fixture(scope="module")
def page(store: Path) -> str:
    return report_page(Results(store))


def test_a_point_is_an_ordinary_run_with_its_own_numbers() -> None:
    finals = {ORDERS[0]: [90, 50, 40, 20, 100, 60], CLASS_ORDER: [10, 20, 30, 40, 50, 60]}
    runs = [
        run_records(finals[ORDERS[0]], ORDERS[0], method="replay"),
        run_records(finals[CLASS_ORDER], CLASS_ORDER, "class", method="bare", repeat=1),
        run_records([0] * 6, ORDERS[0], method="replay", noise=1),
    ]
    data = scatter_data(as_records(runs), UNITS)
    points = data["points"]
    assert [method["name"] for method in data["methods"]] == ["Bare", "Replay"]
    assert points["method"] == [1, 0]
    assert [data["orders"][place] for place in points["order"]] == [[[0, 1], [2, 3], [4, 5]], [[0, 3], [2, 5], [1, 4]]]
    assert points["kind"] == ["task", "class"]
    assert points["repeat"] == [0, 1]
    assert points["accuracy"] == [[0.9, 0.5, 0.4, 0.2, 1, 0.6], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]]
    assert points["AA"] == [0.6, 0.35]
    # The records before the last step hold (final + 37 · steps left) mod 101; the best of each task counts.
    first = max((90 + 74) % 101 + (50 + 74) % 101, (90 + 37) % 101 + (50 + 37) % 101) / 200 - (90 + 50) / 200
    second = ((40 + 37) % 101 + (20 + 37) % 101) / 200 - (40 + 20) / 200
    assert points["AF"][0] == pytest.approx((first + second) / 2, abs=5e-5)
    assert data["bounds"] == {3: [1.5, 0.0]}
    assert json.loads(json.dumps(data, allow_nan=False))["units"] == list(UNITS)


def test_a_class_without_queries_has_no_accuracy() -> None:
    records = as_records([run_records([50] * 6, ORDERS[0])])
    for confusion in records["test"]:
        confusion[5] = 0
    assert scatter_data(records, UNITS)["points"]["accuracy"] == [[0.5, 0.5, 0.5, 0.5, 0.5, None]]


def test_methods_look_as_in_the_figures() -> None:
    from skeleton_cgl.analysis.plots.style import looks

    methods = ["zeta", "alpha", "replay", "bare", *"abcdef"]
    data = scatter_data(as_records(run_records([50] * 6, ORDERS[0], method=method) for method in methods), UNITS)
    assert [method["colour"] for method in data["methods"]] == [look.colour for look in looks(methods).values()]
    assert len({(method["colour"], method["symbol"]) for method in data["methods"][:8]}) == 8


def test_what_was_run_is_told_without_naming_machines(store: Path, page: str) -> None:
    told = dict(facts(Results(store)))
    records = len(random_records())
    assert told["Study"] == [AWKWARD, "number 1 in its store", "made 2026-01-02 03:04 UTC"]
    assert told["Scenario"] == ["data: made.h5"]
    assert told["Data digest"] == ["digest of repeat 0", "digest of repeat 1"]
    assert told["Runs"] == [f"{records // 3} of {records // 3 + 1} finished"]
    assert told["Orders"] == ["6 task orders", "2 class orders"]
    assert told["Repeats"] == ["2, seeds 3–4"]
    assert told["Versions"] == ["skeleton_cgl 0.1.0", "torch 2.13.0"]
    assert told["Machines"] == ["2"]
    assert told["Learning"] == [f"{round(1.5 * records / 60)} min of one worker in {records} stages"]
    assert "machine-0" not in page


@pytest.mark.parametrize("level", ["task", "class"])
def test_the_disparity_tables_say_what_the_table_command_says(level: str) -> None:
    records = random_records()
    expected = json.loads(disparity_table(disparity(records, level), "json", "ucla"))["rows"]
    table = disparity_levels(records, "ucla")[["task", "class"].index(level)]
    assert [row[0][0] for row in table.rows] == ["Bare", "Replay"]
    for row, numbers in zip(table.rows, expected, strict=True):
        cells = dict(zip(table.header, row, strict=True))
        for measure in ("AOPD", "MOPD"):
            mean, std = numbers[measure], numbers[f"{measure}_std"]
            assert cells[measure] == (f"{mean:.1f} ± {std:.1f}", numbers[f"{measure}_mark"])
            assert cells[f"{measure} floor"][0] == f"{numbers[f'{measure}_floor']:.1f}"
            difference = f"{numbers[f'{measure}_difference']:+.1f}".replace("-", "−")
            assert cells[f"{measure} difference"][0] == difference
        assert cells["R"][0] == "3"


def test_intervals_stand_where_orders_are_a_sample() -> None:
    task, by_class = disparity_levels(random_records())
    assert "AOPD interval" not in task.header
    assert "AOPD interval" in by_class.header
    fewer = random_records()
    fewer = fewer[(fewer["method"] == "bare") | (fewer["order"].map(lambda order: order != ORDERS[5]))]
    task, _ = disparity_levels(fewer)
    interval = [row[task.header.index("AOPD interval")][0] for row in task.rows]
    assert interval[0] == "exact"
    assert re.fullmatch(r"[\d.]+–[\d.]+", interval[1])


def test_the_performance_table_is_over_ordinary_runs() -> None:
    runs = [run_records([final] * 6, order) for final, order in zip((10, 50), ORDERS, strict=False)]
    table = performance_table(as_records([*runs, run_records([99] * 6, ORDERS[0], noise=1)]))
    assert table.header[:5] == ["Method", "Runs", "AA", "AA lowest", "AA highest"]
    assert [text for text, _ in table.rows[0][:5]] == ["Bare", "2", "30.0", "10.0", "50.0"]


def test_one_run_explains_nothing() -> None:
    table = variance_table(as_records([run_records([50] * 6, ORDERS[0])]))
    assert table.rows == []
    assert table.notes == ["Not computed: too few orders, or all end alike."]


def test_backbones_are_named_if_there_are_several() -> None:
    records = random_records(noise_runs=0)
    both = pd.concat([records.assign(backbone="b"), records.assign(backbone="a")])
    for table in (performance_table(both), *disparity_levels(both), variance_table(both)):
        assert [[text for text, _ in row[:2]] for row in table.rows] == [
            *(["b", "Bare"], ["b", "Replay"]),
            *(["a", "Bare"], ["a", "Replay"]),
        ]
    assert scatter_data(both, UNITS)["backbones"] == ["b", "a"]


def test_one_order_has_no_disparity() -> None:
    records = as_records([run_records([50] * 6, ORDERS[0], repeat=repeat) for repeat in (0, 1)])
    for table in disparity_levels(records):
        assert (table.rows, len(table.notes)) == ([], 1)
        assert "disparity needs at least two orders" in table.notes[0]


def test_the_page_needs_nothing_else(page: str) -> None:
    elements = Page(page).elements
    assert not [attributes for tag, attributes in elements if tag in ("link", "iframe", "object", "base")]
    addresses = [attributes[name] for _, attributes in elements for name in ("src", "href") if name in attributes]
    assert {address[:19] for address in addresses if not address.startswith("#")} == {"data:image/svg+xml;"}
    policy = next(attributes["content"] for tag, attributes in elements if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'; ")
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy


def test_awkward_names_stay_text(page: str) -> None:
    parsed = Page(page)
    assert [tag for tag, _ in parsed.elements].count("script") == 3
    assert parsed.inside("h1") == [AWKWARD]
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert json.loads(data)["units"][0] == AWKWARD
    assert len(json.loads(data)["points"]["AA"]) == 32


def test_the_same_store_gives_the_same_bytes(store: Path, page: str, tmp_path: Path) -> None:
    write_report(store, tmp_path / "x.html")
    assert (tmp_path / "x.html").read_bytes() == page.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]


def test_what_cannot_be_compared_is_told_instead_of_tabled(tmp_path: Path) -> None:
    records = random_records(noise_runs=0, kinds=("task",))
    uneven = records[(records["repeat"] == 0) | (records["order"].map(lambda order: order != ORDERS[5]))]
    page = report_page(Results(made_store(tmp_path / "x.db", uneven)))
    assert "Not computed: records: backbone gcn, method bare: every repeat needs the same orders" in page
    shorter = pd.concat([records, as_records([run_records([50] * 6, ORDERS[0][:2])])])
    page = report_page(Results(made_store(tmp_path / "y.db", shorter)))
    assert "Not drawn: records: every order must arrange the same class units" in page


def test_refused_are_studies_without_a_finished_run_and_other_names(store: Path, tmp_path: Path) -> None:
    noise = made_store(tmp_path / "x.db", as_records([run_records([50] * 6, ORDERS[0], noise=1)]), name="only noise")
    with pytest.raises(InputError, match=r"x\.db: no run of study 'only noise' is finished"):
        write_report(noise, tmp_path / "x.html")
    with pytest.raises(InputError, match=r"x\.htm: a report is called NAME\.html"):
        write_report(store, tmp_path / "x.htm")
    with pytest.raises(InputError, match="no study 'absent'"):
        write_report(store, tmp_path / "x.html", study="absent")
    assert [path.name for path in tmp_path.glob("*.htm*")] == []
