"""Where stages are learned: in this process, or by Dask in many."""

import logging
import pickle
import queue
import re
import signal
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from skeleton_cgl.engine.plan import Plan, Stage
from skeleton_cgl.engine.stage import Branch, EpochProgress, Failure, Outcome, learn_branch
from skeleton_cgl.engine.study import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.userfiles import UserFile, loaded_files

WITHOUT_WORKERS_SECONDS = 300.0
"""How long a run whose workers are all lost waits for others."""

LOSSES = 3
"""So many workers lost with one branch, the last of them with no other at work, and the branch has failed."""

_COUNT_AGAIN_SECONDS = 5.0
"""How often a cluster is asked how many workers it has; they may come and go."""

_LOOK_SECONDS = 0.2
"""How often it is looked whether workers are back."""

_SCENARIOS = 4
"""So many scenarios are kept by every worker at a time: those of a noise floor's splits are many, and come in turn."""

_TELL_SECONDS = 2.0
"""How often a worker tells of the epoch it is at."""

_CONNECT_SECONDS = 10
"""How long a scheduler may take to answer."""

_ADDRESS = re.compile(r"(?:[a-z]+://)?(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")

_DASK = {
    # Looks at every worker a hundred times a second, which costs some percent of it.
    "distributed.worker.profile.enabled": False,
    # The last messages are kept for debugging, by default a thousand; ours carry states of learners.
    "distributed.admin.low-level-log-length": 10,
    # Who learns is told of every worker lost, and decides what is tried again.
    "distributed.scheduler.allowed-failures": 0,
    # Dask cannot do without its servers of pages, but with nothing on them.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}

_LEARNING = threading.Lock()
"""Held while a stage is learned: random generators and settings belong to a process, and so one stage at a time."""


def check_address(address: str) -> None:
    """Refuse what cannot be the address of a scheduler."""
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match[1]) < 1 << 16:
        raise InputError(f"cluster: {address!r}: expected the address of a scheduler, such as tcp://127.0.0.1:8786")


class InProcess:
    """One worker: this process. A stage is learned when its result is asked for; `epoch` is told of its epochs."""

    def __init__(self, plan: Plan, epoch: EpochProgress | None = None) -> None:
        self._plan = plan
        self._epoch = epoch
        self._waiting: list[Branch] = []

    @property
    def room(self) -> int:
        return 1 - len(self._waiting)

    def hand_in(self, branch: Branch) -> None:
        self._waiting.append(branch)

    def results(self) -> Iterator[list[Outcome]]:
        while self._waiting:
            branch = self._waiting.pop()
            yield learn_branch(*self._plan.setting(branch.stages[0]), branch, self._epoch)

    def __enter__(self) -> "InProcess":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@dataclass(frozen=True)
class _Task:
    """A branch handed in, and how many workers were lost while they had it."""

    branch: Branch
    losses: int = 0

    @property
    def suspect(self) -> bool:
        return self.losses >= LOSSES - 1


class DaskWorkers:
    """Workers of a Dask cluster: a local one of `count` processes, or the one whose scheduler is at `address`.

    A local cluster listens on this machine alone, to those who have the credentials made for it. A scenario reaches a
    worker once, unless many others were needed since. A branch whose worker is lost is learned again by another; one
    that was lost LOSSES times, the last time with no other branch at work, has failed. Workers that are all lost are
    waited for; a local cluster replaces them. `epoch` is told now and then of the epochs of long stages; `watch` is
    called while results are waited for, and ends the run by raising.
    """

    def __init__(
        self,
        plan: Plan,
        count: int = 1,
        address: str | None = None,
        epoch: EpochProgress | None = None,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        import dask
        from dask.distributed import Client

        self._plan = plan
        self._watch = watch
        dask.config.set(_DASK)
        self._address = address
        self._cluster: Any = _local_cluster(count) if address is None else None
        self._client = Client(self._cluster) if address is None else _client_of(address)
        self._count, self._counted = 0, -_COUNT_AGAIN_SECONDS
        self._without_since: float | None = None
        self._had_workers = False
        self._data: dict[int, Any] = {}
        self._waiting: deque[_Task] = deque()
        self._in_flight: dict[Any, _Task] = {}
        self._finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._topic = f"epochs {uuid.uuid4()}"
        if epoch is not None:
            self._client.subscribe_topic(self._topic, lambda event: epoch(plan.stages[event[1][0]], *event[1][1:]))

    @property
    def room(self) -> int:
        """Two branches per worker, so that none waits for the driver."""
        return max(2 * self._workers(), 1) - len(self._in_flight) - len(self._waiting)

    def hand_in(self, branch: Branch) -> None:
        self._waiting.append(_Task(branch))
        self._submit_waiting()

    def results(self) -> Iterator[list[Outcome]]:
        from concurrent.futures import CancelledError

        from dask.distributed import KilledWorker

        while True:
            future = self._next()
            task = self._in_flight.pop(future)
            try:
                outcomes = future.result()
            except KilledWorker as error:
                outcomes = self._lost(task, error.allowed_failures + 1)
            except CancelledError as error:
                if getattr(error, "reason", None) == "scheduler-connection-lost":
                    raise self._no_scheduler() from error
                # The data went with the last worker that had them.
                outcomes = self._lost(task, 1)
            if outcomes:
                yield outcomes
                return

    def _lost(self, task: _Task, losses: int) -> list[Outcome]:
        """Put a branch whose worker is lost first among the waiting, or return that it has failed."""
        self._counted = -_COUNT_AGAIN_SECONDS
        if not task.suspect:
            self._waiting.appendleft(replace(task, losses=task.losses + losses))
            return []
        reason = f"WorkerLost: {LOSSES} processes ended while they learned it: out of memory, a crash, or os._exit?"
        return [Outcome(task.branch.stages[-1].key, failure=Failure(reason, ""))]

    def _next(self) -> Any:
        """Return the next future that is finished; meanwhile hand on what waits for workers, and watch."""
        while True:
            self._watch()
            self._submit_waiting()
            try:
                return self._finished.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue

    def _submit_waiting(self) -> None:
        """Hand what waits on to Dask, if there are workers; a suspect only when nothing else is at work."""
        while self._waiting and not any(task.suspect for task in self._in_flight.values()):
            task = self._waiting[0]
            if task.suspect and self._in_flight:
                return
            if not self._workers() or (data := self._sent(task)) is None:
                self._wait_without_workers()
                return
            self._without_since = None
            self._waiting.popleft()
            study, _ = self._plan.setting(task.branch.stages[0])
            told = (self._topic, _TELL_SECONDS)
            future = self._client.submit(_learn_and_tell, study, data, task.branch, *told, pure=False)
            self._in_flight[future] = task
            future.add_done_callback(self._finished.put)

    def _sent(self, task: _Task) -> Any:
        """Return the scenario of a branch as the workers have it; None where no worker is left to send it to."""
        _, scenario = self._plan.setting(task.branch.stages[0])
        sent = self._data.get(id(scenario))
        if sent is None or sent.status != "finished":
            try:
                sent = self._client.scatter(_Sent(scenario), broadcast=True, hash=False)
            except OSError:
                return None
            self._data[id(scenario)] = sent
            while len(self._data) > _SCENARIOS:
                # Workers forget it when none of the branches they have needs it.
                del self._data[next(iter(self._data))]
        return sent

    def _workers(self) -> int:
        """Return the number of worker processes; threads do not count, since a process learns one stage at a time."""
        if not self._count or time.monotonic() > self._counted + _COUNT_AGAIN_SECONDS:
            try:
                self._count, self._counted = len(self._client.nthreads()), time.monotonic()
            except OSError as error:
                raise self._no_scheduler() from error
            self._had_workers |= self._count > 0
        return self._count

    def _wait_without_workers(self) -> None:
        """Say at first that workers are waited for, and give up where they were lost and do not come back."""
        now = time.monotonic()
        if self._without_since is None:
            self._without_since = now
            print(f"cluster: no worker {'left' if self._had_workers else 'yet'}, waiting for one", file=sys.stderr)
        if self._had_workers and now - self._without_since > WITHOUT_WORKERS_SECONDS:
            raise InputError(
                f"cluster: all workers are lost, and none came within {WITHOUT_WORKERS_SECONDS:.0f} s; "
                "what is done is kept: start some, and the same command goes on"
            )

    def _no_scheduler(self) -> InputError:
        where = f"the scheduler at {self._address}" if self._address else "the local scheduler"
        return InputError(f"cluster: lost: {where} is gone; what is done is kept: start it, the same command goes on")

    def __enter__(self) -> "DaskWorkers":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def _client_of(address: str) -> Any:
    """Connect to the scheduler at `address`; refuse one that does not answer in time."""
    from dask.distributed import Client

    connected: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def connect() -> None:
        try:
            connected.put(Client(address, timeout=_CONNECT_SECONDS))
        except (OSError, ValueError) as error:
            connected.put(error)

    # In a thread of its own, since Dask waits for ever where something listens and says nothing.
    threading.Thread(target=connect, daemon=True).start()
    try:
        client = connected.get(timeout=2 * _CONNECT_SECONDS)
    except queue.Empty:
        client = TimeoutError("something listens there and says nothing")
    if isinstance(client, Exception):
        raise InputError(f"cluster: no scheduler answers at {address}: {client}") from client
    return client


def _local_cluster(count: int) -> Any:
    """Start `count` worker processes, which talk on 127.0.0.1 in TLS, with a key that is made here and kept nowhere."""
    from dask.distributed import LocalCluster

    with _ignoring_interrupts():
        return LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            host="127.0.0.1",
            security=True,
            # Without an address Dask's pages take port 8787, and warn where another run has it.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            # A worker that ends is told of by the driver, if it matters.
            silence_logs=logging.CRITICAL,
        )


@dataclass(frozen=True)
class _Sent:
    """A scenario that goes from process to process; each first loads the files of a user's own it may be defined in."""

    scenario: Scenario

    def __reduce__(self) -> tuple[Callable[..., "_Sent"], tuple[Any, ...]]:
        return _received, (loaded_files(), pickle.dumps(self.scenario))


def _received(files: tuple[UserFile, ...], content: bytes) -> _Sent:
    for file in files:
        file.module()
    return _Sent(pickle.loads(content))


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes started meanwhile do not mind Ctrl-C, which a terminal sends to them too: the driver decides."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def _learn_and_tell(study: Study, sent: _Sent, branch: Branch, topic: str, seconds: float) -> list[Outcome]:
    """On a worker: learn a branch, and tell the scheduler every so many seconds which epoch of which stage it is at."""
    from dask.distributed import get_worker

    worker = get_worker()
    told = time.monotonic()

    def tell(stage: Stage, epoch: int, loss: float) -> None:
        nonlocal told
        if time.monotonic() - told >= seconds:
            told = time.monotonic()
            worker.log_event(topic, (stage.key, epoch, loss))

    with _LEARNING:
        return learn_branch(study, sent.scenario, branch, tell)
