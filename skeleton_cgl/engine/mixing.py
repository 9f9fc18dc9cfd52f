"""Keeping a repeat to one kind of machine: its records are compared with each other, those of other repeats are not.

On another processor, or with other versions of what computes, the same stage comes to another record; a disparity over
records of both would in part be one of machines. The fingerprint of every record says where it was made.
"""

from collections.abc import Iterator

from skeleton_cgl.engine.fingerprint import fingerprint
from skeleton_cgl.engine.plan import Plan
from skeleton_cgl.engine.record import Facts
from skeleton_cgl.engine.schedule import Workers
from skeleton_cgl.engine.stage import Branch, Outcome
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.process import choose_device, settle


class Fingerprints:
    """The fingerprints of the records that a store has of a plan, by repeat."""

    def __init__(self, plan: Plan, store: Store) -> None:
        self._plan = plan
        self._store = store
        self._known: dict[int, set[Facts]] = {}
        self._unknown: dict[int, int] = {}
        keys: dict[int, list[str]] = {}
        for key, stage in plan.stages.items():
            keys.setdefault(stage.repeat, []).append(key)
        for repeat, own in keys.items():
            found = [made.fingerprint for made in store.made(own)]
            self._known[repeat] = {facts for facts in found if facts}
            self._unknown[repeat] = found.count(())

    def unknown(self) -> dict[int, int]:
        """Return, for repeats that have something to be learned, the records made before fingerprints were noted."""
        repeats = sorted({repeat for repeat, _ in self._to_learn(failed_too=True)})
        return {repeat: self._unknown[repeat] for repeat in repeats if self._unknown[repeat]}

    def refuse_here(self, failed_too: bool = False) -> None:
        """Refuse to go on in this process with repeats that were begun elsewhere; failed_too: with what failed, too."""
        settle()
        differing: dict[tuple[str, ...], list[int]] = {}
        for repeat, device in sorted(self._to_learn(failed_too)):
            words = self._difference(repeat, fingerprint(choose_device(device)))
            if words:
                differing.setdefault(words, []).append(repeat)
        if differing:
            raise InputError("\n".join(self._refusal(repeats, words) for words, repeats in differing.items()))

    def _to_learn(self, failed_too: bool) -> set[tuple[int, str]]:
        """Return the repeats that have something to be learned, each with the device it is learned on."""
        failed = set() if failed_too else self._store.failed().keys() & self._plan.stages.keys()
        skipped = {key for each in failed for key in self._plan.descendants(each)}
        left = self._plan.stages.keys() - self._store.done() - failed - skipped
        stages = (self._plan.stages[key] for key in left)
        return {(stage.repeat, self._plan.variants[stage.variant].training.device) for stage in stages}

    def add(self, outcome: Outcome) -> None:
        """Note where a stage was learned; refuse it where its repeat was begun elsewhere."""
        if outcome.record is None:
            return
        repeat, facts = self._plan.stages[outcome.key].repeat, outcome.record.made.fingerprint
        words = self._difference(repeat, facts)
        if words:
            raise InputError(self._refusal([repeat], words, f"at {outcome.record.made.host}"))
        self._known[repeat].add(facts)

    def _difference(self, repeat: int, facts: Facts) -> tuple[str, ...]:
        """Return, field by field, how the records of a repeat were made otherwise."""
        now, words = dict(facts), []
        for known in sorted(self._known[repeat] - {facts}):
            then = dict(known)
            fields = [field for field in {**then, **now} if then.get(field) != now.get(field)]
            words += [f"{field}: {then.get(field, 'none')} then, {now.get(field, 'none')} now" for field in fields]
        return tuple(dict.fromkeys(words))

    def _refusal(self, repeats: list[int], words: tuple[str, ...], where: str = "here") -> str:
        study, numbers = self._plan.study.name, ", ".join(map(str, repeats))
        return (
            f"{self._store.path}: study {study!r}: repeat {numbers}: begun otherwise than it would go on {where}: "
            f"{'; '.join(words)}. Records of both would be compared with each other, and rounding alone makes them "
            "differ. Go on where it was begun, use another store, or give --mix to have both; other repeats may be "
            "made anywhere"
        )


class Unmixed:
    """Workers whose results are taken only where they were learned where their repeat was begun."""

    def __init__(self, workers: Workers, fingerprints: Fingerprints) -> None:
        self._workers = workers
        self._fingerprints = fingerprints

    @property
    def room(self) -> int:
        return self._workers.room

    def hand_in(self, branch: Branch) -> None:
        self._workers.hand_in(branch)

    def results(self) -> Iterator[list[Outcome]]:
        for outcomes in self._workers.results():
            for outcome in outcomes:
                self._fingerprints.add(outcome)
            yield outcomes
