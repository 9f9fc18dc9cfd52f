"""What every store promises, as a class of tests; a subclass gives `open_store`, which opens one and the same store.

The store may hold other things before; nothing here asks that it is empty.
"""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.engine.record import Kept, Record
from skeleton_cgl.engine.store import NotReproducible, Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.measures import Measure, accuracy_measure
from tests.engine.made_rows import ORDER, made_record, made_study, rich_record, same

Opener = Callable[[], Store]

KILLED_WHILE_ADDING = """
import os, signal, sys
from skeleton_cgl.engine.store import Store
from tests.engine.made_rows import made_record
def records():
    for number in range(100):
        yield "stage", made_record(f"killed {number}")
    os.kill(os.getpid(), signal.SIGKILL)
with Store(sys.argv[1]) as store:
    store.add([("stage", made_record("before"))])
    store.add(records())
"""


class StoreContract:
    """Subclass it with a fixture `open_store`."""

    @pytest.fixture
    def store(self, open_store: Opener) -> Iterator[Store]:
        with open_store() as store:
            yield store

    def test_a_record_comes_back_as_it_was_to_the_last_bit(self, store: Store, open_store: Opener) -> None:
        rich = rich_record("rich")
        older = Record("older", rich.scores, replace(rich.made, kept=Kept(None, None, 0)))
        given = [made_record("plain"), rich, older, Record("bare", (), made_record("x").made)]
        store.add([("stage", record) for record in given])
        with open_store() as other:
            for record in given:
                found = other.record(record.key)
                assert same(found, record)
                assert found.made.created
            keys = ["rich", "unknown", "plain"]
            assert [record.key for record in other.records(keys)] == ["rich", "plain"]
            assert {record.key for record in other.records()} == other.done() >= {"plain", "rich", "bare"}
        with pytest.raises(KeyError, match="unknown"):
            store.record("unknown")

    def test_a_record_offered_again_must_say_the_same(self, store: Store) -> None:
        first = rich_record("k")
        store.add([("stage", first)])
        later = replace(first.made, seconds=99.0, host="there", created="2030-01-01")
        store.add([("stage", Record("k", first.scores[::-1], later))])
        assert same(store.record("k"), first)
        counts = first.scores[0].counts
        assert counts is not None
        changed = accuracy_measure("test", counts + np.eye(3, dtype=int))
        with pytest.raises(NotReproducible, match=r"bare 0,1 > 2: learned again, it gave another record; .* on there"):
            store.add([("bare 0,1 > 2", Record("k", (changed, *first.scores[1:]), later))])
        with pytest.raises(NotReproducible):
            store.add([("stage", Record("k", first.scores[:-1], later))])
        assert same(store.record("k"), first)

    def test_what_is_added_is_there_wholly_or_not_at_all(self, store: Store) -> None:
        store.add([("stage", made_record("k", seed=1))])
        before = store.done()
        with pytest.raises(NotReproducible):
            store.add([("stage", made_record("new")), ("stage", made_record("k", seed=2))])
        assert store.done() == before
        studies = store.studies()
        with pytest.raises(NotReproducible):
            store.take_over([made_study("new")], [("s", made_record("new")), ("s", made_record("k", seed=2))])
        assert store.done() == before
        assert store.studies() == studies
        store.take_over([made_study("new")], [("s", made_record("new")), ("s", made_record("k", seed=1))])
        assert store.done() == before | {"new"}
        assert store.study("new").number not in {study.number for study in studies}

    def test_a_process_killed_while_it_adds_leaves_what_was_there(self, store: Store) -> None:
        before = store.done()
        place = {**os.environ, "PYTHONPATH": "."}
        arguments = [sys.executable, "-c", KILLED_WHILE_ADDING, str(store.path)]
        killed = subprocess.run(arguments, check=False, cwd=Path(__file__).parents[2], env=place)
        assert killed.returncode == -9
        assert store.done() == before | {"before"}
        store.add([("stage", made_record("after"))])

    def test_several_writers_wait_for_each_other(self, store: Store, open_store: Opener) -> None:
        before = store.done()

        def write(name: str) -> None:
            with open_store() as own:
                for number in range(20):
                    own.add([("stage", made_record(f"{name} {number}")), ("stage", made_record("shared"))])

        writers = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert store.done() == before | {"shared"} | {f"{name} {number}" for name in "abcd" for number in range(20)}

    def test_a_study_is_kept_once_with_its_learners_and_runs(self, store: Store, open_store: Opener) -> None:
        given = made_study("new", methods=("bare", "ewc"))
        number = store.add_study(given.study, given.learners, given.runs)
        renamed = replace(given.study, number=77)
        assert store.add_study(renamed, given.learners, given.runs) == number
        other_data = replace(given.study, digests=("d3",))
        assert store.add_study(other_data, given.learners[:1], ()) != number
        with open_store() as other:
            found = other.study(number)
            assert found == replace(given.study, number=number, created=found.created)
            assert found.created
            assert other.learners(number) == list(given.learners)
            assert len(set(other.learners(number))) == 2
            assert other.runs(number) == list(given.runs)
            assert [study.name for study in other.studies()].count("new") == 2

    def test_a_study_is_found_by_name_or_number_the_latest_first(self, store: Store) -> None:
        given = made_study("new")
        first = store.add_study(given.study, (), ())
        second = store.add_study(replace(given.study, digests=()), (), ())
        assert store.study("new").number == store.study().number == second
        assert store.study(first).number == store.study(str(first)).number == first
        with pytest.raises(InputError, match=r"no study 'nwe'; did you mean 'new'"):
            store.study("nwe")

    def test_scores_are_those_of_the_records_that_have_the_metric(self, store: Store) -> None:
        rich, plain = rich_record("rich"), made_record("plain")
        only_test = Record("only test", (Measure("test", "f1", np.ones(2), np.ones(2, dtype=int)),), plain.made)
        store.add([("stage", record) for record in (rich, plain, only_test)])
        f1 = store.scores("f1")
        assert "plain" not in f1
        assert "only test" not in f1
        for part, values in zip(("test", "validation"), f1["rich"], strict=True):
            np.testing.assert_array_equal(values, rich.measure(part, "f1").values)
        np.testing.assert_array_equal(
            store.scores("accuracy")["plain"][1], plain.measure("validation", "accuracy").values
        )
        np.testing.assert_array_equal(store.asked("f1", "rich"), rich.measure("test", "f1").asked)

    def test_how_records_came_about_is_told_once_per_stage(self, store: Store) -> None:
        store.add([("stage", made_record(key, seconds=seconds)) for key, seconds in (("a", 1.0), ("b", 2.0))])
        assert [made.seconds for made in store.made(["b", "a", "unknown", "b"])] == [2.0, 1.0]

    def test_failures_are_kept_until_they_are_forgotten(self, store: Store, open_store: Opener) -> None:
        store.add_failure("a", "bare 0,1", "out of memory")
        store.add_failure("a", "bare 0,1", "loss is not finite")
        store.add_failure("b", "bare 2", "other")
        with open_store() as other:
            assert other.failed().items() >= {"a": "loss is not finite", "b": "other"}.items()
        store.forget_failures(["a"])
        assert "a" not in store.failed()
        assert store.failed()["b"] == "other"

    def test_checks_of_methods_are_remembered(self, store: Store, open_store: Opener) -> None:
        assert not store.checked("digest")
        store.add_check("digest")
        store.add_check("digest")
        with open_store() as other:
            assert other.checked("digest")
            assert not other.checked("another")

    def test_a_full_disk_ends_with_a_message_and_an_intact_store(self, store: Store, open_store: Opener) -> None:
        store.add([("stage", made_record("k"))])
        before = store.done()
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(InputError, match=r"database or disk is full; nothing was written"):
            store.add_failure("f", "bare 0,1", "x" * 10**7)
        with open_store() as other:
            assert other.done() == before
            assert "f" not in other.failed()

    @pytest.mark.parametrize("table", ["studies", "learners", "runs", "records"])
    def test_a_row_that_was_changed_in_any_column_is_refused_by_name(
        self, store: Store, open_store: Opener, table: str
    ) -> None:
        given = made_study("new")
        number = store.add_study(given.study, given.learners, given.runs)
        store.add([("stage", rich_record("k"))])
        names = {"studies": str(number), "learners": f"{number} 0", "runs": f"{number} 0", "records": "k"}
        column_of = {"studies": "id", "records": "key"}
        named = f"{column_of.get(table, 'study')} = {number if table != 'records' else repr('k')}"

        def read_all() -> None:
            with open_store() as other:
                list(other.records())
                for study in {study.number for study in other.studies()} | {number}:
                    other.learners(study)
                    other.runs(study)

        read_all()
        with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
            columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
            keys = {"id", "study", "run", "learner", "key"} if table != "runs" else {"study", "run"}
            for column in set(columns) - keys:
                ((value,),) = connection.execute(f"SELECT {column} FROM {table} WHERE {named}")
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {named}", (_flipped(value),))
                message = rf"{store.path.name}: table {table}, row {names[table]}(, answers)?: damaged"
                with pytest.raises(InputError, match=message):
                    read_all()
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {named}", (value,))
        read_all()

    def test_damaged_text_and_exchanged_scores_are_noticed(self, store: Store) -> None:
        store.add([("stage", made_record("a", seed=1)), ("stage", made_record("b", seed=2))])
        with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
            exchange = "UPDATE records SET scores = (SELECT scores FROM records WHERE key = 'b') WHERE key = 'a'"
            connection.execute(exchange)
            connection.execute("UPDATE records SET host = CAST(x'ff68' AS TEXT) WHERE key = 'b'")
        for key in "ab":
            with pytest.raises(InputError, match=rf"table records, row {key}: damaged"):
                store.record(key)
        with pytest.raises(InputError, match=r"table records, row a: damaged"):
            store.scores("accuracy")

    @pytest.mark.parametrize(
        ("measure", "reason"),
        [
            (Measure("test", "f1", np.ones(3), np.ones(2, dtype=int)), r"expected values \(U,\), .*\(3,\), \(2,\)"),
            (Measure("test", "f1", np.ones(2), np.ones(2)), r"expected whole numbers from 0 on, found float64"),
            (Measure("test", "f1", np.ones(2), np.array([1, -1])), r"expected whole numbers from 0 on, .* -1 among"),
        ],
    )
    def test_scores_of_unfit_shape_or_type_are_refused(self, store: Store, measure: Measure, reason: str) -> None:
        with pytest.raises(InputError, match=reason):
            store.add([("stage", Record("unfit", (measure,), made_record("x").made))])
        assert "unfit" not in store.done()

    def test_orders_of_runs_come_back_as_orders(self, store: Store) -> None:
        given = made_study("new")
        number = store.add_study(given.study, given.learners, given.runs)
        assert store.runs(number)[0].order == store.study(number).default == ORDER


def _flipped(value: object) -> object:
    """Return another value of the same type, as near as one flipped bit."""
    if isinstance(value, bytes):
        return value[:-1] + bytes([value[-1] ^ 1])
    if isinstance(value, str):
        return value[:-1] + chr(ord(value[-1:] or "a") ^ 1)
    assert isinstance(value, int | float)
    return value + 1
