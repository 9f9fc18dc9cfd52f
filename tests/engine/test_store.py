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
from tests.engine.made_rows import made_record, made_study, rich_record
from tests.engine.old_store import OLD, write_old_store, write_store_2
from tests.engine.store_contract import Opener, StoreContract

STATE = sha256(b"state").digest() + b"state"


class TestANewStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Opener:
        return lambda: Store(tmp_path / "new" / "x.db")


class TestAStoreUpgradedFromVersion1(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Opener:
        write_old_store(tmp_path / "x.db", OLD)
        return lambda: Store(tmp_path / "x.db")


class TestAStoreUpgradedFromVersion2(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Opener:
        write_store_2(tmp_path / "x.db", made_study(keys=("x", "y")), [rich_record("x"), made_record("y")])
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


@pytest.mark.parametrize("version", [0, 5])
def test_a_store_of_an_unknown_version_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.executescript(f"CREATE TABLE something (x); PRAGMA user_version = {version};")
    before = (tmp_path / "x.db").read_bytes()
    with pytest.raises(InputError, match=rf"x\.db: a store of version {version}, this release reads 4"):
        Store(tmp_path / "x.db")
    assert (tmp_path / "x.db").read_bytes() == before


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


def test_a_damaged_state_is_removed_and_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    states = States(tmp_path / "states")
    for key, damage in {"flipped": lambda state: state[:-1] + b"E", "cut": lambda state: state[:20]}.items():
        states.write(key, STATE)
        file = tmp_path / "states" / f"{key}.safetensors"
        file.write_bytes(damage(STATE))
        assert not states.has(key)
        assert not file.exists()
        assert f"{key}.safetensors: damaged; removed, and its stage is learned again" in capsys.readouterr().err
        states.write(key, STATE)
        assert states.has(key)
        file.write_bytes(damage(STATE))
        assert states.read(key) is None


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_permissions_are_those_of_the_users_umask_and_states_are_the_owners(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with Store(tmp_path / "x.db") as store:
            store.add([("stage", made_record("k"))])
            store.states.write("k", STATE)
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.rglob("*")}
        write_old_store(tmp_path / "old.db", OLD).chmod(0o640)
        Store(tmp_path / "old.db").close()
    finally:
        os.umask(before)
    assert modes.pop("x.db.states") == 0o700
    assert len(modes) > 2
    assert set(modes.values()) == {0o666 & ~umask}
    assert (tmp_path / "old.db.v1").stat().st_mode & 0o777 == 0o640
