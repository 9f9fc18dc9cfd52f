"""Workers: what they listen to, that threads change no number, and that losing them costs nothing but time."""

import os
import signal
import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
import yaml
from dask.distributed import Client, LocalCluster
from distributed.security import Security

from skeleton_cgl.engine import workers as engine_workers
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.engine.schedule import Driver
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.workers import _SCENARIOS, DaskWorkers, check_address
from skeleton_cgl.errors import InputError
from skeleton_cgl.process import settle
from tests.conftest import Run
from tests.engine.studies import contents, small_archive, small_study

# Dask's scheduler leaves closing some of its sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

FAILING = """
import os
import sys

from skeleton_cgl.learning.method import Method


class Failing(Method):
    def begin_lesson(self, learner, experience):
        (label,) = experience.lesson.units
        if label == 4:
            raise ValueError("four")
        if label == 5:
            return {}["five"]
        if label == 6:
            return self.six
        if label == 7:
            assert label < 7, "seven"
        if label == 8:
            sys.exit(0)
        if label == 9:
            os._exit(0)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workers")


def test_a_local_cluster_listens_on_this_machine_alone_and_to_none_without_its_credentials(folder: Path) -> None:
    plan = make_plan(small_study(folder, methods=["bare"]))
    with DaskWorkers(plan, 2) as workers:
        driver = psutil.Process()
        listening = {
            connection.laddr
            for process in (driver, *driver.children(recursive=True))
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
        assert len(listening) >= 1 + 2
        assert {address.ip for address in listening} == {"127.0.0.1"}
        address = workers._cluster.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        port = address.rpartition(":")[2]
        with pytest.raises(OSError, match="tcp"):
            Client(f"tcp://127.0.0.1:{port}", timeout=1)
        with pytest.raises(OSError, match="tls"):
            Client(address, security=Security.temporary(), timeout=1)
        assert not any(_serves_a_page(f"http://{each.ip}:{each.port}/{page}") for each in listening for page in PAGES)


def test_more_scenarios_than_workers_keep_at_a_time_change_no_record(folder: Path, tmp_path: Path) -> None:
    splits = {"runs": 4, "orders": 1, "kinds": ["splits"]}
    study = small_study(folder, methods=["bare"], noise_floor=splits, repeats=2)
    assert len(make_plan(study).divided) > _SCENARIOS
    study.run(tmp_path / "one.db", progress=False)
    study.run(tmp_path / "two.db", progress=False, workers=2)
    assert contents(tmp_path / "two.db") == contents(tmp_path / "one.db")


def test_a_store_deleted_while_workers_learn_a_long_stage_ends_the_run(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    plan = make_plan(small_study(folder, methods=["bare"], training={"epochs": 20_000, "device": "cpu"}))
    with Store(path) as store, DaskWorkers(plan, 2, watch=store.check_still_there) as workers:
        path.unlink()
        with pytest.raises(InputError, match=r"x\.db: deleted or replaced while it was in use"):
            Driver(plan, store, workers).run()


PAGES = ("", "info/main/workers.html", "json/identity.json", "metrics", "health", "status")


def _serves_a_page(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError, ValueError):
        return False
    except Exception:  # noqa: BLE001 — TLS where HTTP was asked for is no page either
        return False


def test_threads_of_a_worker_change_no_record_since_a_process_learns_one_stage_at_a_time(
    folder: Path, tmp_path: Path
) -> None:
    study = small_study(folder, methods=["bare", "replay", "ewc"])
    study.run(tmp_path / "one.db", progress=False)
    plan = make_plan(study)
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=4, processes=True, memory_limit=0, dashboard_address="127.0.0.1:0"
        ) as cluster,
        DaskWorkers(plan, address=cluster.scheduler_address) as workers,
        Store(tmp_path / "four.db") as store,
    ):
        assert workers.room == 2
        assert Driver(plan, store, workers).run().learned == 24
    assert contents(tmp_path / "four.db") == contents(tmp_path / "one.db")


def test_every_thread_that_trains_is_settled() -> None:
    from threadpoolctl import threadpool_info

    found = []

    def count() -> None:
        settle()
        # SciPy's own OpenBLAS, where it is loaded, does not let any thread but the first be asked.
        found.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp")

    thread = threading.Thread(target=count)
    thread.start()
    thread.join()
    assert set(found) == {1}


def test_workers_lost_one_by_one_and_all_at_once_change_nothing(folder: Path, tmp_path: Path) -> None:
    study = small_study(folder, methods=["bare", "ewc"])
    study.run(tmp_path / "undisturbed.db", progress=False)
    plan = make_plan(study)
    with Store(tmp_path / "killed.db") as store, DaskWorkers(plan, 2) as workers:
        learned = []

        def kill(stage: object) -> None:
            learned.append(stage)
            pids = [worker.pid for worker in workers._cluster.workers.values()]
            for pid in {1: pids[:1], 6: pids}.get(len(learned), []):
                os.kill(pid, signal.SIGKILL)

        summary = Driver(plan, store, workers, finished=kill).run()
    assert (summary.learned, summary.failures) == (16, {})
    assert contents(tmp_path / "killed.db") == contents(tmp_path / "undisturbed.db")


@pytest.mark.parametrize("workers", [1, 2])
def test_whatever_a_method_does_in_a_stage_is_told_and_the_other_branches_go_on(
    run: Run, tmp_path: Path, workers: int
) -> None:
    own = tmp_path / "failing.py"
    own.write_text(FAILING)
    # One that ends its process ends a driver that is its own worker, too.
    labels = range(4, 9 if workers == 1 else 10)
    fields = {
        "scenario": {"data": str(small_archive(tmp_path)), "classes_per_task": 1, "preparation": {"frames": 8}},
        "backbone": {"name": "gcn", "width": 8},
        "methods": [str(own)],
        "orders": {"given": [*([[label], [0]] for label in labels), [[0], [1]]]},
        "training": {"epochs": 1},
    }
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump(fields))
    code, printed, errors = run("run", study, "--store", tmp_path / "x.db", "--workers", workers)
    assert code == 1
    assert f"2 stages learned; 1 of {len(labels) + 1} runs" in printed
    assert f"{len(labels)} stages failed, {len(labels)} below them were skipped" in errors
    reasons = {
        4: f"ValueError: four ({own}, line 12, in `begin_lesson` of Failing)",
        5: f"KeyError: 'five' ({own}, line 14, in `begin_lesson` of Failing)",
        6: f"AttributeError: 'Failing' object has no attribute 'six' ({own}, line 16, in `begin_lesson` of Failing)",
        7: f"AssertionError: seven ({own}, line 18, in `begin_lesson` of Failing)",
        8: f"SystemExit: 0 ({own}, line 20, in `begin_lesson` of Failing)",
        9: "WorkerLost: 3 processes ended while they learned it",
    }
    for label in labels:
        (line,) = [line for line in errors.splitlines() if reasons[label] in line]
        assert f"{label}" in line.partition(reasons[label])[0]
    assert "Traceback" not in errors
    _, told, _ = run("status", tmp_path / "x.db")
    assert all(reasons[label] in told for label in labels)


def test_what_is_no_address_is_refused_before_anything_is_tried(run: Run, folder: Path, tmp_path: Path) -> None:
    for address in (
        "hello",
        "tcp://hello",
        "tcp://hello:0",
        "tcp://hello:99999",
        "tcp://:8786",
        "a b:1",
        "http://x/y:1",
    ):
        with pytest.raises(InputError, match=r"cluster: .*expected the address of a scheduler"):
            check_address(address)
    for address in ("localhost:8786", "tcp://127.0.0.1:8786", "tls://node-1.cluster:80", "tcp://[::1]:8786"):
        check_address(address)
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump({"scenario": {"data": str(small_archive(folder))}, "methods": ["bare"]}))
    code, printed, errors = run("run", study, "--store", tmp_path / "x.db", "--cluster", "hello")
    assert (code, printed, errors.count("\n")) == (2, "", 1)
    assert "cluster: 'hello': expected the address of a scheduler, such as tcp://127.0.0.1:8786" in errors
    assert not (tmp_path / "x.db").exists()


def test_a_scheduler_that_does_not_answer_is_waited_for_a_while(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_workers, "_CONNECT_SECONDS", 0.5)
    plan = make_plan(small_study(folder, methods=["bare"]))
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(InputError, match=f"cluster: no scheduler answers at {address}"):
            DaskWorkers(plan, address=address)


def test_workers_that_do_not_come_back_and_a_scheduler_that_is_gone_end_a_run_with_what_to_do(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_workers, "WITHOUT_WORKERS_SECONDS", 0.5)
    monkeypatch.setattr(engine_workers, "_CONNECT_SECONDS", 1)
    plan = make_plan(small_study(folder, methods=["bare"]))
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Store(tmp_path / "x.db") as store,
    ):
        with DaskWorkers(plan, address=cluster.scheduler_address) as workers:
            driver = Driver(plan, store, workers, finished=lambda _: cluster.scale(0))
            with pytest.raises(
                InputError, match=r"all workers are lost, and none came within 0 s; what is done is kept"
            ):
                driver.run()
        with DaskWorkers(plan, address=cluster.scheduler_address) as workers:
            cluster.close()
            with pytest.raises(InputError, match=r"cluster: lost: the scheduler at .* is gone; what is done is kept"):
                Driver(plan, store, workers).run()
