"""What a store holds of a study, as a user gets it: in percent, named, without what is only begun."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skeleton_cgl.analysis import accuracies, disparity, runs
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.engine.rows import RunRow, StudyRow
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from tests.analysis.made_scores import ORDERS, as_scores, learner, random_scores, run, without_queries
from tests.analysis.made_store import made_results, made_store
from tests.analysis.test_figures import swept_scores


def test_frames_are_in_percent_and_name_learners(tmp_path: Path) -> None:
    scores = random_scores()
    results = made_results(tmp_path, scores)
    pd.testing.assert_frame_equal(
        results.runs()[["AA", "AF", "bound", "validation_AA"]],
        100 * runs(scores)[["AA", "AF", "bound", "validation_AA"]],
    )
    found, expected = results.disparity("class"), disparity(scores, "class")
    counts = ["orders", "planned", "possible", "repeats", "R", "floor_orders", "left_out"]
    fractions = [name for name in expected if name.startswith(("AOPD", "MOPD", "expected"))]
    assert {"AOPD_cross", "MOPD_cross_std", "AOPD_floor_splits", "expected_MOPD_at_R"} < set(fractions)
    pd.testing.assert_frame_equal(found[fractions], 100 * expected[fractions])
    assert found[counts].equals(expected[counts])
    assert {*expected} == {"learner", "level", *counts, *fractions}
    assert list(found["method"]) == ["Bare", "Replay"]
    np.testing.assert_array_equal(results.accuracy()["accuracy"], 100 * accuracies(scores)["accuracy"])
    assert list(results.runs().columns[:3]) == ["backbone", "method", "learner"]


def test_no_cell_of_a_frame_holds_an_array(tmp_path: Path) -> None:
    results = made_results(tmp_path, random_scores())
    for frame in (results.runs(), results.accuracy(), results.disparity()):
        assert not any(isinstance(value, np.ndarray | dict | list) for value in frame.to_numpy().flat)


def test_a_swept_field_has_a_column(tmp_path: Path) -> None:
    results = made_results(tmp_path, swept_scores(["bare", "replay"]))
    assert list(results.runs()["backbone.width"]) == [128] * 4 + [32] * 4
    assert set(results.runs()["backbone"]) == {"GCN"}


def test_scores_come_out_of_a_store_as_they_went_in(tmp_path: Path) -> None:
    floors = [run([20] * 6, ORDERS[0], noise=1, floor=floor) for floor in ("seeds", "splits", "both")]
    scores = as_scores([run([10, 20, 30, 40, 50, 60], ORDERS[0]), run([70] * 6, ((0, 5), (1, 2)), "class"), *floors])
    results = made_results(tmp_path, scores)
    np.testing.assert_array_equal(results.scores.test, scores.test)
    assert (results.scores.runs, results.scores.learners) == (scores.runs, scores.learners)
    assert (results.planned_runs, results.finished_runs, results.units) == (6, 5, scores.units)


def test_begun_repeats_are_left_out_once_one_is_whole_and_it_says_which(tmp_path: Path) -> None:
    path = made_store(tmp_path / "x.db", random_scores(methods=["bare"], repeats=1, kinds=["task"], noise_runs=0))
    with Store(path) as store:
        whole = [each for each in store.runs(1) if each.repeat == 0]
        again = [RunRow(0, "task", 1, 0, each.order, each.keys) for each in whole[:2]]
        begun = RunRow(0, "task", 1, 0, ORDERS[5], ("absent",) * 3)
        study = StudyRow(0, "more", "{}", (), store.study().units, ORDERS[0])
        store.add_study(study, [learner(0)], [*whole, *again, begun])
    results = Results(path, "more")
    assert results.left_out == ["GCN, Bare, repeat 1: 2 of 3 runs finished, left out"]
    assert (results.planned_runs, results.finished_runs) == (9, 8)
    assert set(results.runs()["repeat"]) == {0}


def test_while_no_repeat_is_whole_the_furthest_counts_and_it_says_how_far(tmp_path: Path) -> None:
    scores = random_scores(noise_runs=0, kinds=["task"])
    places = {(each.learner, each.repeat): 4 if each.repeat == 1 else 2 for each in scores.runs if each.learner == 0}
    begun = scores.where(lambda each: ORDERS.index(each.order) < places.get((each.learner, each.repeat), 6))
    half = replace(begun, missing=tuple(each for each in scores.runs if each not in begun.runs))
    results = made_results(tmp_path, half)
    assert results.half_done == "4 of 6 planned orders (Bare)"
    assert results.left_out == ["GCN, Bare, repeat 0: 2 of 6 runs finished, left out"]
    assert results.told == ["half done: 4 of 6 planned orders (Bare)", *results.left_out]
    found = results.disparity().set_index("method")
    assert found[["orders", "planned", "repeats"]].to_numpy().tolist() == [[4, 6, 1], [6, 6, 2]]
    assert made_results(tmp_path, scores, "whole").told == []


def test_a_noise_floor_counts_if_it_is_whole_and_its_ordinary_run_counts(tmp_path: Path) -> None:
    path = made_store(tmp_path / "x.db", random_scores(methods=["bare"], repeats=1, kinds=["task"], noise_runs=2))
    with Store(path) as store:
        whole = [each for each in store.runs(1) if each.repeat == 0]
        noisy = [each for each in whole if each.noise]
        planned = [each for each in whole if not each.noise]
        planned += [replace(each, floor="seeds") for each in noisy]
        planned += [replace(each, order=ORDERS[1], floor="seeds") for each in noisy[:1]]
        planned += [RunRow(0, "task", 0, 2, ORDERS[1], ("absent",) * 3, "seeds")]
        store.add_study(StudyRow(0, "more", "{}", (), store.study().units, ORDERS[0]), [learner(0)], planned)
    results = Results(path, "more")
    assert results.left_out == ["GCN, Bare, repeat 0: 1 of 2 noise runs finished, left out"]
    assert {(each.order, each.floor) for each in results.scores.runs if each.noise} == {(ORDERS[0], "seeds")}
    assert results.disparity()[["R", "floor_orders"]].to_numpy().tolist() == [[3, 1]]


def test_the_number_of_queries_comes_with_the_scores(tmp_path: Path) -> None:
    scores = without_queries(random_scores(), 5)
    asked = made_results(tmp_path, scores).scores.asked
    np.testing.assert_array_equal(asked, np.tile([100] * 5 + [0], (len(scores.runs), 2, 1)))


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    only_noise = made_results(tmp_path, as_scores([run([50] * 6, ORDERS[0], noise=1)]))
    with pytest.raises(InputError, match=r"made\.db: no run of study 'made' is finished"):
        only_noise.check_finished()
    with pytest.raises(InputError, match="no study 'mad'; did you mean 'made'"):
        Results(tmp_path / "made.db", "mad")


def test_showing_results_does_not_wait_for_what_learning_needs() -> None:
    script = (
        "import sys; from skeleton_cgl.analysis import report, results, tables; from skeleton_cgl.cli import showing\n"
        "from skeleton_cgl.registry import FIGURES, METRICS; FIGURES.described(); METRICS.described()\n"
        "sys.exit(bool({'torch', 'dgl', 'h5py', 'dask'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, capture_output=True).returncode == 0


def test_a_table_does_not_wait_for_drawing() -> None:
    script = "import sys; from skeleton_cgl.analysis import results, tables; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, capture_output=True).returncode == 0
