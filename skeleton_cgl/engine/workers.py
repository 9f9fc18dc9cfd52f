"""Where stages are learned: in this process, or by Dask in many."""

import queue
from collections.abc import Iterator
from typing import Any

from skeleton_cgl.engine.stage import Branch, EpochProgress, Outcome, learn_branch
from skeleton_cgl.engine.study import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.scenario import Scenario


class InProcess:
    """One worker: this process. A stage is learned when its result is asked for; `epoch` is told of its epochs."""

    def __init__(self, study: Study, scenarios: list[Scenario], epoch: EpochProgress | None = None) -> None:
        self._study = study
        self._scenarios = scenarios
        self._epoch = epoch
        self._waiting: list[tuple[Branch, int]] = []

    @property
    def room(self) -> int:
        return 1 - len(self._waiting)

    def hand_in(self, branch: Branch, repeat: int) -> None:
        self._waiting.append((branch, repeat))

    def results(self) -> Iterator[list[Outcome]]:
        while self._waiting:
            branch, repeat = self._waiting.pop()
            yield learn_branch(self._study, self._scenarios[repeat], branch, self._epoch)

    def __enter__(self) -> "InProcess":
        return self

    def __exit__(self, *_: object) -> None:
        pass


class DaskWorkers:
    """Workers of a Dask cluster: a local one of `count` processes, or the one whose scheduler is at `address`.

    Scenarios reach every worker once. A stage whose worker is lost is learned again by another.
    """

    def __init__(self, study: Study, scenarios: list[Scenario], count: int = 1, address: str | None = None) -> None:
        from dask.distributed import Client, LocalCluster

        self._study = study
        self._scenarios = scenarios
        self._cluster: Any = None
        if address is None:
            self._cluster = LocalCluster(
                n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
            )
        try:
            self._client = Client(self._cluster or address, timeout="30s")
        except OSError as error:
            raise InputError(f"cluster: no scheduler answers at {address}: {error}") from error
        self._data: dict[int, Any] = {}
        self._in_flight: set[Any] = set()
        self._finished: queue.SimpleQueue[Any] = queue.SimpleQueue()

    @property
    def room(self) -> int:
        """Two branches per worker, so that none waits for the driver."""
        workers = sum(self._client.nthreads().values())
        return max(2 * workers, 1) - len(self._in_flight)

    def hand_in(self, branch: Branch, repeat: int) -> None:
        if repeat not in self._data:
            self._data[repeat] = self._client.scatter(self._scenarios[repeat], broadcast=True, hash=False)
        future = self._client.submit(learn_branch, self._study, self._data[repeat], branch, pure=False)
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
