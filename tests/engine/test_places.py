"""Where a store is: read where nothing can be written, and missed when it is gone."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from tests.engine.made_rows import made_record, made_study
from tests.engine.old_store import OLD, write_old_store

READ = """
import os, sys
from skeleton_cgl.engine.exchange import export
from skeleton_cgl.engine.status import describe_status, status_of, verified
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
if os.geteuid() == 0:
    # Permissions do not keep the superuser from writing.
    os.setgroups([])
    os.setuid(65534)
with Store(sys.argv[1], must_exist=True) as store:
    print(len(store.done()), export(store, sys.argv[2]), sorted(store.scores("accuracy")) == sorted(store.done()))
    try:
        store.add_check("digest")
    except InputError as error:
        print(error)
print(describe_status(status_of(sys.argv[1])).splitlines()[1].strip())
print(len(verified(sys.argv[1]).damages))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others can look into, which those of tests are not."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


def read_by_one_who_cannot_write(path: Path) -> list[str]:
    """Return what a process finds in a store that may write neither to it nor to its folder."""
    library = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory() as own:
        Path(own).chmod(0o777)
        path.chmod(0o444)
        path.parent.chmod(0o555)
        arguments = [sys.executable, "-c", READ, str(path), f"{own}/x.csv.gz"]
        environment = {**os.environ, "PYTHONPATH": str(library)}
        done = subprocess.run(arguments, check=False, capture_output=True, text=True, env=environment, cwd=own)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def write_store(path: Path) -> Store:
    planned = made_study()
    store = Store(path)
    store.add_study(planned.study, planned.learners, planned.runs)
    store.add([("stage", made_record(key)) for key in "ab"])
    return store


def test_a_store_is_read_where_nothing_can_be_written(folder: Path) -> None:
    write_store(folder / "x.db").close()
    before = (folder / "x.db").read_bytes()
    found = read_by_one_who_cannot_write(folder / "x.db")
    refusal = f"{folder / 'x.db'}: it, or its folder, cannot be written to"
    assert found == ["2 2 True", refusal, "2 of 2 stages done, 0 left", "0"]
    assert [file.name for file in folder.iterdir()] == ["x.db"]
    assert (folder / "x.db").read_bytes() == before


def test_an_old_store_is_read_where_it_cannot_be_upgraded(folder: Path) -> None:
    write_old_store(folder / "x.db", OLD)
    before = (folder / "x.db").read_bytes()
    found = read_by_one_who_cannot_write(folder / "x.db")
    assert found[0] == "15 15 True"
    assert found[2].startswith("15 of 16 stages done, 1 left")
    assert found[3] == "0"
    assert (folder / "x.db").read_bytes() == before


def test_what_a_killed_writer_left_in_its_log_is_read(folder: Path) -> None:
    with write_store(folder / "open.db"):
        for end in ("", "-wal"):
            shutil.copyfile(folder / f"open.db{end}", folder / f"x.db{end}")
    assert (folder / "x.db-wal").stat().st_size > 0
    assert read_by_one_who_cannot_write(folder / "x.db")[0] == "2 2 True"


def test_a_store_that_is_deleted_or_replaced_in_use_is_missed_and_rescued(tmp_path: Path) -> None:
    for number, other in enumerate((None, b"something else")):
        path = tmp_path / f"{number}.db"
        with write_store(path) as store:
            store.check_still_there()
            path.unlink()
            if other is not None:
                path.write_bytes(other)
            store.add([("stage", made_record("later"))])
            rescued = rf"deleted or replaced while it was in use; what it held is in {number}\.db\.rescued: "
            with pytest.raises(InputError, match=rescued):
                store.check_still_there()
        with Store(tmp_path / f"{number}.db.rescued", must_exist=True) as store:
            assert store.done() == {"a", "b", "later"}
            assert not store.verify().damages
        assert not path.exists() or path.read_bytes() == other
