"""Where stages are learned: in this process, or by Dask in many."""

import pickle
import queue
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from skeleton_cgl.engine.plan import Plan, Stage
from skeleton_cgl.engine.stage import Branch, EpochProgress, Outcome, learn_branch
from skeleton_cgl.engine.study import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.userfiles import UserFile, loaded_files

_COUNT_AGAIN_SECONDS = 5.0
"""How often a cluster is asked how many workers it has; they may come and go."""

_TELL_SECONDS = 2.0
"""How often a worker tells of the epoch it is at."""

_DASK = {
    # Looks at every worker a hundred times a second, which costs some percent of it.
    "distributed.worker.profile.enabled": False,
    # The last messages are kept for debugging, by default a thousand; ours carry states of learners.
    "distributed.admin.low-level-log-length": 10,
}


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


class DaskWorkers:
    """Workers of a Dask cluster: a local one of `count` processes, or the one whose scheduler is at `address`.

    Scenarios reach every worker once. A stage whose worker is lost is learned again by another. `epoch` is told now and
    then of the epochs of long stages.
    """

    def __init__(
        self, plan: Plan, count: int = 1, address: str | None = None, epoch: EpochProgress | None = None
    ) -> None:
        import dask
        from dask.distributed import Client, LocalCluster

        self._plan = plan
        dask.config.set(_DASK)
        self._cluster: Any = None
        if address is None:
            with _ignoring_interrupts():
                self._cluster = LocalCluster(
                    n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
                )
        try:
            self._client = Client(self._cluster or address, timeout="30s")
        except OSError as error:
            raise InputError(f"cluster: no scheduler answers at {address}: {error}") from error
        self._count, self._counted = 0, -_COUNT_AGAIN_SECONDS
        self._data: dict[int, Any] = {}
        self._in_flight: set[Any] = set()
        self._finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._topic = f"epochs {uuid.uuid4()}"
        if epoch is not None:
            self._client.subscribe_topic(self._topic, lambda event: epoch(plan.stages[event[1][0]], *event[1][1:]))

    @property
    def room(self) -> int:
        """Two branches per worker, so that none waits for the driver."""
        if time.monotonic() > self._counted + _COUNT_AGAIN_SECONDS:
            self._count, self._counted = sum(self._client.nthreads().values()), time.monotonic()
        return max(2 * self._count, 1) - len(self._in_flight)

    def hand_in(self, branch: Branch) -> None:
        study, scenario = self._plan.setting(branch.stages[0])
        if id(scenario) not in self._data:
            self._data[id(scenario)] = self._client.scatter(_Sent(scenario), broadcast=True, hash=False)
        told = (self._topic, _TELL_SECONDS)
        future = self._client.submit(_learn_and_tell, study, self._data[id(scenario)], branch, *told, pure=False)
        self._in_flight.add(future)
        future.add_done_callback(self._finished.put)

    def results(self) -> Iterator[list[Outcome]]:
        from concurrent.futures import CancelledError

        future = self._next()
        self._in_flight.discard(future)
        try:
            yield future.result()
        except CancelledError as error:
            raise InputError(f"cluster: lost ({error}); what is done is kept, the same command goes on") from error

    def _next(self) -> Any:
        while True:
            try:
                return self._finished.get(timeout=0.2)
            except queue.Empty:
                continue

    def __enter__(self) -> "DaskWorkers":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


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

    return learn_branch(study, sent.scenario, branch, tell)
