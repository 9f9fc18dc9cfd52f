import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from skeleton_cgl.engine.states import States
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from tests.engine.made_rows import made_record
from tests.engine.old_store import OLD, write_old_store
from tests.engine.store_contract import Opener, StoreContract

STATE = sha256(b"state").digest() + b"state"


class TestANewStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Opener:
        return lambda: Store(tmp_path / "new" / "x.db")


class TestAnUpgradedStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Opener:
        write_old_store(tmp_path / "x.db", OLD)
        return lambda: Store(tmp_path / "x.db")


def test_a_store_that_must_exist_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.db: no such store"):
        Store(tmp_path / "x.db", must_exist=True)
    assert list(tmp_path.iterdir()) == []


def test_a_store_without_studies_says_so(tmp_path: Path) -> None:
    with Store(tmp_path / "x.db") as store, pytest.raises(InputError, match=r"x\.db: no study in it"):
        store.study()


def test_what_is_no_store_or_cannot_be_written_to_is_reported(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_text("this is no store, but text that is longer than the head of one. " * 20)
    with pytest.raises(InputError, match=r"no\.db: the store cannot be used: file is not a database"):
        Store(tmp_path / "no.db")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"x\.db: .*; nothing was written"):
        Store(tmp_path / "file" / "x.db")


@pytest.mark.parametrize("version", [0, 4])
def test_a_store_of_an_unknown_version_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.executescript(f"CREATE TABLE something (x); PRAGMA user_version = {version};")
    before = (tmp_path / "x.db").read_bytes()
    with pytest.raises(InputError, match=rf"x\.db: a store of version {version}, this release reads 3"):
        Store(tmp_path / "x.db")
    assert (tmp_path / "x.db").read_bytes() == before


def test_a_file_damaged_anywhere_gives_a_message_or_what_it_held(tmp_path: Path) -> None:
    with Store(tmp_path / "x.db") as store:
        store.add([("stage", made_record(f"{number:032}", number)) for number in range(30)])
        expected = {key: values[0].tolist() for key, values in store.scores("accuracy").items()}
    whole = (tmp_path / "x.db").read_bytes()
    refused = 0
    for place in range(100, len(whole), 211):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        (tmp_path / "y.db").write_bytes(damaged)
        try:
            with Store(tmp_path / "y.db") as store:
                found = {key: values[0].tolist() for key, values in store.scores("accuracy").items()}
        except InputError:
            refused += 1
        else:
            assert found.items() <= expected.items()
    assert refused > 10


def test_half_written_states_of_killed_processes_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "x.db.states"
    states = States(folder)
    states.tidy()
    states.write("k", STATE)
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    (folder / f".a.safetensors.{killed.pid}.unfinished").touch()
    (folder / f".b.safetensors.{os.getpid()}.unfinished").touch()
    states.tidy()
    assert sorted(file.name for file in folder.iterdir()) == [
        f".b.safetensors.{os.getpid()}.unfinished",
        "k.safetensors",
    ]
    assert states.has("k")
    assert states.read("k") == STATE
    states.remove("k")
    assert states.read("k") is None
    (folder / f".b.safetensors.{os.getpid()}.unfinished").unlink()
    states.tidy()
    assert not folder.exists()


def test_states_that_cannot_be_written_are_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"; nothing was written"):
        States(tmp_path / "file" / "states").write("k", STATE)
