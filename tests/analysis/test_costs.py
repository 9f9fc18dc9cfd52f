"""The columns of what a learner costs: its memory, and the seconds of an order."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.analysis.metric import Findings
from skeleton_cgl.analysis.rendering import FORMATS, render
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.scores import Scores, joined
from skeleton_cgl.analysis.table import Table
from skeleton_cgl.analysis.tables import study_table
from skeleton_cgl.engine.record import Kept, Made
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from tests.analysis.made_scores import ORDERS, as_scores
from tests.analysis.made_scores import run as made_run
from tests.analysis.made_store import made_store
from tests.conftest import Run

COLUMNS = ["memory", "seconds", "samples", "floats"]
METHODS = ("bare", "ewc", "replay")
Making = Callable[[str, int, int, int], tuple[float, Kept | None]]
"""From method, repeat, place of the order and step: the seconds of a stage, and what is kept after it."""


def usual(method: str, repeat: int, order: int, step: int) -> tuple[float, Kept | None]:
    """Return what grows with every step, and what depends on repeat and order too."""
    kept = {
        "bare": Kept(0, 0, 0),
        "ewc": Kept(0, 1_300_000 * step, 5_200_000 * step),
        "replay": Kept(16 * step, 50_000 * step, 200_000 * step + 2 * order),
    }
    return 1.0 + 10 * repeat + order + 100 * step, kept[method]


def scores_of(methods: tuple[str, ...] = METHODS) -> Scores:
    return as_scores(
        made_run([10 * place] * 6, order, method=method, repeat=repeat)
        for method in methods
        for repeat in (0, 1)
        for place, order in enumerate(ORDERS[:3])
    )


def store_of(path: Path, making: Making = usual, methods: tuple[str, ...] = METHODS) -> Path:
    """Write a store of three orders and two repeats of every method, whose stages cost what `making` says."""
    scores = scores_of(methods)

    def costing(key: str, made: Made) -> Made:
        of, step = scores.runs[int(key[:16])], 1 + int(key[16:])
        seconds, kept = making(methods[of.learner], of.repeat, ORDERS.index(of.order), step)
        return replace(made, seconds=seconds, kept=kept)

    return made_store(path, scores, made=costing)


def table_of(store: Path, *columns: str) -> Table:
    results = Results(store)
    return study_table(Findings(results.scores, "task", results.study), columns or COLUMNS)


def texts(table: Table, column: str) -> list[str]:
    return [cell.text for cell in table.column(column)]


def test_memory_is_that_after_the_last_lesson_in_words(tmp_path: Path) -> None:
    table = table_of(store_of(tmp_path / "x.db"))
    assert texts(table, "method") == ["Bare", "EWC", "Replay"]
    assert texts(table, "memory") == ["nothing", "3.9 M floats, 16 MB", "48 samples, 0.60 MB"]
    assert texts(table, "samples") == ["0", "0", "48"]
    assert texts(table, "floats") == ["0", "3.9 M", "0.15 M"]
    rows = json.loads(render(table, "json"))["rows"]
    # Of the orders 0, 1 and 2, the mean is that of 1.
    assert [row["memory_bytes"] for row in rows] == [0, 15_600_000, 600_002]
    assert [row["memory_samples"] for row in rows] == [0, 0, 48]
    assert [row["memory_floats"] for row in rows] == [0, 3_900_000, 150_000]


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        (Kept(0, 1, 8), "1 float, 8 B"),
        (Kept(0, 0, 8), "0 floats, 8 B"),
        (Kept(1, 250, 1012), "1 sample, 1.0 kB"),
        (Kept(0, 9_960, 39_840), "10 k floats, 40 kB"),
        (Kept(0, 99_999, 99_999), "100 k floats, 100 kB"),
        (Kept(12_345, 4_000_000, 32_000_000), "12,345 samples, 32 MB"),
        (Kept(0, 10**9, 4 * 10**9), "1.0 G floats, 4.0 GB"),
    ],
)
def test_a_memory_is_shown_in_the_unit_that_suits_it(tmp_path: Path, kept: Kept, text: str) -> None:
    store = store_of(tmp_path / "x.db", lambda *_: (1.0, kept), ("ewc",))
    assert texts(table_of(store), "memory") == [text]


def test_a_number_of_samples_that_differs_from_run_to_run_has_a_decimal(tmp_path: Path) -> None:
    def by_order(_: str, __: int, order: int, ___: int) -> tuple[float, Kept]:
        return 1.0, Kept(10 + (order == 2), 0, 80)

    table = table_of(store_of(tmp_path / "x.db", by_order, ("replay",)))
    assert texts(table, "samples") == ["10.3"]
    assert texts(table, "memory") == ["10.3 samples, 80 B"]


def test_seconds_are_of_all_stages_of_an_order_mean_over_orders_with_their_spread_over_repeats(tmp_path: Path) -> None:
    table = table_of(store_of(tmp_path / "x.db"))
    by_repeat = [np.mean([sum(usual("bare", r, o, s)[0] for s in (1, 2, 3)) for o in (0, 1, 2)]) for r in (0, 1)]
    expected = f"{np.mean(by_repeat):.1f} ± {np.std(by_repeat, ddof=1):.1f}"
    assert texts(table, "seconds") == [expected] * 3
    assert any("Stages that orders share count in each of them." in note for note in table.notes)


def test_stages_that_orders_share_count_in_each(tmp_path: Path) -> None:
    path = store_of(tmp_path / "x.db", methods=("bare",))
    with Store(path) as store:
        study, runs = store.study(), [each for each in store.runs(1) if each.repeat == 0]
        # Two orders that begin alike; the first stage is one.
        shared = replace(runs[1], keys=(runs[0].keys[0], *runs[1].keys[1:]))
        store.add_study(replace(study, name="shared", spec='{"name": "shared"}'), store.learners(1), [runs[0], shared])
        made = store.made_by_key([*runs[0].keys, *shared.keys])
    alone = [sum(made[key].seconds for key in each.keys) for each in (runs[0], shared)]
    results = Results(path, "shared")
    assert results.scores.costs is not None
    assert results.scores.costs.seconds.tolist() == alone


@pytest.mark.parametrize("kept", [None, Kept(None, None, 4096)])
def test_what_was_not_counted_leaves_an_empty_cell_and_a_note_that_says_whose(
    tmp_path: Path, kept: Kept | None
) -> None:
    def unknown(method: str, *where: int) -> tuple[float, Kept | None]:
        seconds, usually = usual(method, *where)
        # One record of an older release is enough: a mean over the others would be another number.
        return seconds, kept if method == "ewc" and where == (1, 2, 3) else usually

    table = table_of(store_of(tmp_path / "x.db", unknown))
    for column in ("memory", "samples", "floats"):
        assert texts(table, column)[1] == "–"
        assert "–" not in (texts(table, column)[0], texts(table, column)[2])
    assert "–" not in texts(table, "seconds")
    assert "EWC: what is kept was not counted in full when its records were made." in table.notes
    assert [cell.text for cell in table.sorted_by("-memory").column("method")] == ["Replay", "Bare", "EWC"]


@pytest.mark.parametrize("form", FORMATS)
def test_costs_are_shown_in_every_form(run: Run, tmp_path: Path, form: str) -> None:
    store = store_of(tmp_path / "x.db")
    code, text, _ = run("table", store, "--columns", "AA,memory,seconds", "--sort", "-memory", "--format", form)
    assert code == 0
    assert "nan" not in text.lower()
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [row["memory_bytes"] for row in rows] == ["15600000.0", "600002.0", "0.0"]
    elif form == "json":
        assert [row["method"] for row in json.loads(text)["rows"]] == ["EWC", "Replay", "Bare"]
    else:
        assert text.index("3.9 M floats, 16 MB") < text.index("48 samples, 0.60 MB") < text.index("nothing")


def test_costs_are_shown_only_when_they_are_asked_for(tmp_path: Path) -> None:
    results = Results(store_of(tmp_path / "x.db"))
    table = study_table(Findings(results.scores, "task", results.study))
    assert not {column.heading for column in table.columns} & set(COLUMNS)


def test_scores_of_which_no_cost_is_known_have_empty_cells() -> None:
    table = study_table(Findings(scores_of(("bare",))), COLUMNS)
    assert [texts(table, column) for column in COLUMNS] == [["–"]] * 4


def test_costs_go_with_their_runs(tmp_path: Path) -> None:
    scores = Results(store_of(tmp_path / "x.db")).scores
    assert scores.costs is not None
    last = scores.where(lambda each: each.repeat == 1).of_learner(2)
    assert last.costs is not None
    assert last.costs.bytes.tolist() == [600_000, 600_002, 600_004]
    first = scores.where(lambda each: each.repeat == 0)
    both = joined([first, scores.where(lambda each: each.repeat == 1)])
    assert both.costs is not None
    expected = dict(zip(scores.runs, scores.costs.seconds, strict=True))
    assert [expected[each] for each in both.runs] == both.costs.seconds.tolist()
    assert joined([first, replace(last, learners=scores.learners, costs=None)]).costs is None
    with pytest.raises(InputError, match="costs: expected those of 18 runs, found 9"):
        replace(scores, costs=first.costs)
