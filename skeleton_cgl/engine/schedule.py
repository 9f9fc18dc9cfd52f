"""The driver: takes a plan, drops what the store has, hands out the rest stage by stage, and writes what comes back.

The driver alone writes. A stage becomes ready when its parent's state is there; of those ready, the plan says whose
turn it is. The states of stages whose branches are not finished are kept: more of them the more at random the orders
are taken, which costs room on the disk and no stage more.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from skeleton_cgl.engine.plan import Plan, Stage, Turn
from skeleton_cgl.engine.stage import Branch, Failure, Outcome
from skeleton_cgl.engine.store import Store


class Workers(Protocol):
    """Where branches are learned; `room` is how many more may be handed in before results are waited for."""

    @property
    def room(self) -> int: ...

    def hand_in(self, branch: Branch) -> None: ...

    def results(self) -> Iterator[list[Outcome]]:
        """Yield what is finished; wait until something is."""
        ...


@dataclass
class Summary:
    """What a run of a study came to. notes: of every note on stages it learned, how many stages of which method."""

    learned: int = 0
    failures: dict[str, Failure] = field(default_factory=dict)
    skipped: int = 0
    interrupted: bool = False
    notes: dict[str, Counter[str]] = field(default_factory=dict)

    def count_learned(self, stage: Stage, notes: Sequence[str]) -> None:
        """Count a stage that was learned, and the notes on it."""
        self.learned += 1
        for note in notes:
            self.notes.setdefault(note, Counter())[str(stage.method)] += 1


class Driver:
    """Runs a plan through workers into a store.

    `stop` is asked before every hand-out; once it says so nothing more is handed out, and what is in flight is waited
    for. `finished` is told of every stage that was learned.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        workers: Workers,
        stop: Callable[[], bool] = lambda: False,
        finished: Callable[[Stage], None] = lambda _stage: None,
    ) -> None:
        self._plan = plan
        self._store = store
        self._workers = workers
        self._stop = stop
        self._finished = finished
        self._done = store.done() & plan.stages.keys()
        self._failed = store.failed().keys() & plan.stages.keys()
        self._wanted = self._stages_to_learn()
        self._ready: list[tuple[Turn, str]] = []
        self._in_flight = 0
        self.summary = Summary()

    @property
    def to_learn(self) -> int:
        """The number of stages to be learned, those included that are learned again for their state alone."""
        return len(self._wanted)

    def _stages_to_learn(self) -> set[str]:
        """Return the stages without a record, and those whose state is needed by one and no longer there."""
        skipped = {key for failed in self._failed for key in self._plan.descendants(failed)}
        wanted = self._plan.stages.keys() - self._done - self._failed - skipped
        for key in list(wanted):
            parent = self._plan.stages[key].parent
            while parent is not None and parent not in wanted and not self._store.states.has(parent):
                wanted.add(parent)
                parent = self._plan.stages[parent].parent
        return wanted

    def run(self) -> Summary:
        """Learn what is wanted; return what it came to."""
        for key in self._wanted:
            parent = self._plan.stages[key].parent
            if parent is None or parent not in self._wanted:
                self._make_ready(key)
        while True:
            while self._ready and self._workers.room and not self._stop():
                self._hand_out(self._plan.stages[heapq.heappop(self._ready)[1]])
            if not self._in_flight:
                break
            for outcomes in self._workers.results():
                self._store.check_still_there()
                self._in_flight -= 1
                for outcome in outcomes:
                    self._take(outcome)
        self.summary.interrupted = bool(self._wanted) or self._stop()
        self._remove_finished_states()
        return self.summary

    def _make_ready(self, key: str) -> None:
        heapq.heappush(self._ready, (self._plan.turns[key], key))

    def _hand_out(self, stage: Stage) -> None:
        """Hand out a stage with the state it starts from; where that is gone, with the stages that lead to it."""
        chain, state = [stage], None
        while chain[0].parent is not None:
            state = self._store.states.read(chain[0].parent)
            if state is not None:
                break
            chain.insert(0, self._plan.stages[chain[0].parent])
        kept = frozenset(each.key for each in chain if self._children_wanted(each.key))
        self._workers.hand_in(Branch(tuple(chain), state, kept))
        self._in_flight += 1

    def _children_wanted(self, key: str) -> list[str]:
        return [child for child in self._plan.children.get(key, []) if child in self._wanted]

    def _take(self, outcome: Outcome) -> None:
        stage = self._plan.stages[outcome.key]
        if outcome.key not in self._wanted:
            # Learned again for its state alone: what else goes on from there finds it.
            if outcome.state is not None:
                self._store.states.write(outcome.key, outcome.state)
            return
        self._wanted.discard(outcome.key)
        if outcome.record is None:
            failure = outcome.failure or Failure("no record", "")
            self._store.add_failure(stage.key, str(stage), failure.reason)
            self.summary.failures[str(stage)] = failure
            below = set(self._plan.descendants(outcome.key)) & self._wanted
            self._wanted -= below
            self.summary.skipped += len(below)
        else:
            children = self._children_wanted(outcome.key)
            if children and outcome.state is not None:
                self._store.states.write(outcome.key, outcome.state)
            self._store.add([(str(stage), outcome.record)])
            self._done.add(outcome.key)
            self.summary.count_learned(stage, outcome.notes)
            for key in children:
                self._make_ready(key)
        self._finished(stage)
        self._remove_state_of_parent(stage)

    def _remove_state_of_parent(self, stage: Stage) -> None:
        siblings = self._plan.children.get(stage.parent, [])
        if stage.parent is not None and not any(key in self._wanted for key in siblings):
            self._store.states.remove(stage.parent)

    def _remove_finished_states(self) -> None:
        for key in self._plan.stages:
            if not self._children_wanted(key):
                self._store.states.remove(key)
        self._store.states.tidy()
