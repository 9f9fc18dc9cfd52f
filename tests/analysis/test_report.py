import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from skeleton_cgl import registry
from skeleton_cgl.analysis.metric import Beside, Findings
from skeleton_cgl.analysis.names import name_learners
from skeleton_cgl.analysis.rendering import html_rows
from skeleton_cgl.analysis.report import (
    Extras,
    facts,
    fingerprint_lines,
    report_page,
    report_tables,
    scatter_data,
    write_report,
)
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.tables import study_table
from skeleton_cgl.errors import InputError
from tests.analysis.made_scores import (
    CLASS_ORDER,
    ORDERS,
    UNITS,
    as_scores,
    learner,
    random_runs,
    random_scores,
    without_queries,
)
from tests.analysis.made_scores import (
    run as made_run,
)
from tests.analysis.made_store import made_results, made_store
from tests.conftest import Run

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
    scores = replace(random_scores(), units=(AWKWARD, *UNITS[1:]))
    return made_store(folder / "x.db", scores, name=AWKWARD)


@pytest.fixture(scope="module")
def page(store: Path) -> str:
    return report_page(Results(store))


def test_a_point_is_an_ordinary_run_with_its_own_numbers() -> None:
    finals = {ORDERS[0]: [90, 50, 40, 20, 100, 60], CLASS_ORDER: [10, 20, 30, 40, 50, 60]}
    runs = [
        made_run(finals[ORDERS[0]], ORDERS[0], method="replay"),
        made_run(finals[CLASS_ORDER], CLASS_ORDER, "class", method="bare", repeat=1),
        made_run([0] * 6, ORDERS[0], method="replay", noise=1),
    ]
    data = scatter_data(as_scores(runs))
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
    scores = without_queries(as_scores([made_run([50] * 6, ORDERS[0])]), 5)
    assert scatter_data(scores)["points"]["accuracy"] == [[0.5, 0.5, 0.5, 0.5, 0.5, None]]


def test_methods_look_as_in_the_figures() -> None:
    methods = ["zeta", "alpha", "replay", "bare", *"abcdef"]
    data = scatter_data(as_scores(made_run([50] * 6, ORDERS[0], method=method) for method in methods))
    named = name_learners(learner(number, method) for number, method in enumerate(methods))
    assert [method["colour"] for method in data["methods"]] == [name.colour for name in named]
    assert len({(method["colour"], method["symbol"]) for method in data["methods"][:8]}) == 8


def test_settings_are_told_apart() -> None:
    both = as_scores([*random_runs(backbone="b"), *random_runs(backbone="a")])
    data = scatter_data(both)
    assert data["backbones"] == ["b", "a"]
    assert set(data["points"]["backbone"][:32]) == {0}
    assert len(data["methods"]) == 2


def test_fields_within_fields_are_told_line_by_line(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results(store)
    inner = {"kind": "node", "split": {"by": "class", "ratios": [6, 2, 2]}}
    scenario = {"kind": "stream", "of": inner, "transition": {"name": "gaussian", "sigma": 2.5}, "empty": {}}
    monkeypatch.setattr(Results, "spec", {**results.spec, "scenario": scenario})
    (told,) = (fact.lines for fact in facts(results) if fact.name == "Scenario")
    assert told == (
        *("kind: stream", "of.kind: node", "of.split.by: class", "of.split.ratios: [6, 2, 2]"),
        *("transition: gaussian sigma=2.5", "empty: {}"),
    )


def test_what_was_run_is_told_without_naming_machines(store: Path, page: str) -> None:
    told = {fact.name: list(fact.lines) for fact in facts(Results(store))}
    stages = 3 * len(random_scores().runs)
    assert told["Study"] == [AWKWARD, "number 1 in its store", "made 2026-01-02 03:04 UTC"]
    assert told["Scenario"] == ["data: made.h5"]
    assert told["Data digest"] == ["digest of repeat 0", "digest of repeat 1"]
    assert told["Runs"] == [f"{stages // 3} of {stages // 3 + 1} finished"]
    assert told["Orders"] == ["6 task orders", "2 class orders"]
    assert told["Repeats"] == ["2, seeds 3–4"]
    assert told["Versions"] == ["skeleton_cgl 0.1.0", "torch 2.13.0"]
    assert told["Machines"] == ["2"]
    assert told["Fingerprints"] == ["repeats 0, 1: not noted"]
    assert told["Noise floor"] == ["seeds: 3 runs of 1 order per repeat"]
    assert told["Learning"] == [f"3 min 00 s of one worker in {stages} stages"]
    assert "machine-0" not in page


def test_fingerprints_are_listed_by_repeat_and_it_is_said_where_they_differ() -> None:
    one, other = (("processor", "X"), ("threads", "1")), (("processor", "Y"), ("threads", "1"))
    assert fingerprint_lines({0: [one, one]}) == ["processor X, threads 1"]
    assert fingerprint_lines({0: [one], 1: [one]}) == ["repeats 0, 1: processor X, threads 1"]
    assert fingerprint_lines({0: [one], 2: [other]}) == [
        "repeat 0: processor X, threads 1",
        "repeat 2: processor Y, threads 1",
        "repeats come from different machines; disparities are taken inside of a repeat",
    ]
    assert fingerprint_lines({0: [one], 2: [other, one]}) == [
        "repeats 0, 2: processor X, threads 1",
        "repeat 2: processor Y, threads 1",
        "mixed inside of repeat 2: rounding is part of its disparity",
    ]


def test_a_report_of_a_study_half_done_says_so_in_facts_tables_and_captions(tmp_path: Path) -> None:
    half = random_scores(methods=["bare"], noise_runs=0, kinds=["task"]).where(lambda each: each.order in ORDERS[:3])
    missing = tuple(replace(half.runs[0], order=order, repeat=repeat) for order in ORDERS[3:] for repeat in (0, 1))
    results = made_results(tmp_path, replace(half, missing=missing))
    told = {fact.name: list(fact.lines) for fact in facts(results)}
    assert "half done: 3 of 6 planned orders (Bare)" in told["Runs"]
    page = report_page(results)
    assert "<td>3 of 6 planned</td>" in page
    captions = [text for text in re.findall(r"<figcaption>.*?</figcaption>", page) if "Not drawn" not in text]
    assert captions
    assert all("Half done: 3 of 6 planned orders (Bare)." in text for text in captions)


def test_seeds_of_their_own_are_told(tmp_path: Path) -> None:
    results = made_results(tmp_path, random_scores(), seeds={"split": 7, "weights": None, "noise": 0})
    told = {fact.name: list(fact.lines) for fact in facts(results)}
    assert told["Repeats"] == ["2, seeds 3–4", "split from seed 7", "noise from seed 0"]


def test_notes_on_the_data_are_told(tmp_path: Path) -> None:
    results = made_results(tmp_path, random_scores())
    assert "Notes on the data" not in {fact.name for fact in facts(results)}
    results.study = replace(results.study, notes=("Two clips are the same.", "Ten are not."))
    told = {fact.name: fact.lines for fact in facts(results)}
    assert told["Notes on the data"] == ("Two clips are the same.", "Ten are not.")


@pytest.mark.parametrize("level", ["task", "class"])
def test_the_disparity_tables_say_what_the_table_command_says(store: Path, page: str, level: str) -> None:
    results = Results(store)
    expected = study_table(Findings(results.scores, level, results.study))
    assert html_rows(expected) in page
    assert report_tables(results)[["task", "class"].index(level) + 1] == expected


def test_one_order_has_no_disparity_and_says_so(tmp_path: Path) -> None:
    one = as_scores([made_run([50] * 6, ORDERS[0], repeat=repeat) for repeat in (0, 1)])
    for table in report_tables(made_results(tmp_path, one))[1:3]:
        assert table.column("AOPD")[0].is_empty
        assert "One order: no disparity." in table.notes


def test_published_values_are_shown_where_alike_and_else_the_reason(tmp_path: Path) -> None:
    results = made_results(tmp_path, random_scores())
    for table in report_tables(results, Extras(Beside("ucla")))[1:3]:
        assert any(note.startswith("Not set beside what was published: published: this study") for note in table.notes)
        assert "published AOPD" not in [column.heading for column in table.columns]
    for table in report_tables(results, Extras(Beside("ucla", anyway=True)))[1:3]:
        assert table.column("AOPD difference")[0].mark == "unlike"


OWN_METRIC = """
from skeleton_cgl.analysis import Entry, Metric, Scores

class Runs(Metric):
    heading = "number of runs"
    percent = False

    def measure(self, scores: Scores) -> Entry:
        return Entry(len(scores.runs))
"""
OWN_FIGURE = """
from matplotlib.figure import Figure
from skeleton_cgl.analysis.figure import StudyFigure
from skeleton_cgl.analysis.results import Results

class Count(StudyFigure[int]):
    title = "So many runs"
    meaning = "The number of runs, large."

    def __init__(self, plus: int = 0) -> None:
        self.plus = plus

    def compute(self, results: Results) -> int:
        return len(results.scores.runs) + self.plus

    def draw(self, value: int) -> Figure:
        figure = Figure()
        figure.text(0.5, 0.5, str(value))
        return figure
"""


def test_a_metric_and_a_figure_in_files_are_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "metric.py").write_text(OWN_METRIC)
    (tmp_path / "figure.py").write_text(OWN_FIGURE)
    store = made_store(tmp_path / "x.db", random_scores())
    extras = Extras(metrics=(str(tmp_path / "metric.py"),), figures=(str(tmp_path / "figure.py"),))
    write_report(store, tmp_path / "x.html", extras=extras)
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.count(">Number of runs</th>") == 2
    assert "<strong>So many runs.</strong> The number of runs, large." in page


def test_a_figure_in_a_file_is_drawn_and_one_of_a_package_is_listed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_figure.py").write_text(OWN_FIGURE)
    store = made_store(tmp_path / "x.db", random_scores())
    out = tmp_path / "own.png"
    assert run("draw", tmp_path / "own_figure.py", store, "--set", "plus=2", "--out", out) == (0, "", "")
    assert out.read_bytes().startswith(b"\x89PNG")
    installed = tmp_path / "own_figure-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: own_figure\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[skeleton_cgl.figures]\nhow-many = own_figure:Count\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry._entry_points.cache_clear()
    try:
        code, listed, _ = run("ls", "figures")
        assert code == 0
        assert "how-many" in listed
        assert "[plus]" in listed
        write_report(store, tmp_path / "y.html")
        assert "So many runs" in (tmp_path / "y.html").read_text(encoding="utf-8")
    finally:
        registry._entry_points.cache_clear()


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
    tasks = random_scores(noise_runs=0, kinds=("task",))
    uneven = tasks.where(lambda each: each.repeat == 0 or each.order != ORDERS[5])
    page = report_page(made_results(tmp_path, uneven))
    assert "Every repeat needs the same orders, found 6 in repeat 0 and 5 in repeat 1" in page
    shorter = as_scores([*random_runs(noise_runs=0, kinds=("task",)), made_run([50] * 6, ORDERS[0][:2], "class")])
    page = report_page(made_results(tmp_path, shorter, "shorter"))
    assert "Left out: 1 order of other classes than most." in page
    one = report_page(made_results(tmp_path, as_scores([made_run([50] * 6, ORDERS[0])]), "one"))
    assert "Not drawn: only one order was run; this compares orders" in one


def test_refused_are_studies_without_a_finished_run_and_other_names(store: Path, tmp_path: Path) -> None:
    noise = made_store(tmp_path / "x.db", as_scores([made_run([50] * 6, ORDERS[0], noise=1)]), name="only noise")
    with pytest.raises(InputError, match=r"x\.db: no run of study 'only noise' is finished"):
        write_report(noise, tmp_path / "x.html")
    with pytest.raises(InputError, match=r"x\.htm: a report is called NAME\.html"):
        write_report(store, tmp_path / "x.htm")
    with pytest.raises(InputError, match="no study 'absent'"):
        write_report(store, tmp_path / "x.html", study="absent")
    assert [path.name for path in tmp_path.glob("*.htm*")] == []
