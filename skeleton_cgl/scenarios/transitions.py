"""How the latent tasks of a stream run into one another: which task every sample of a batch is drawn from (DRIFT).

Letters: K tasks in the sequence of an order, N_k samples of each, B samples a batch, B_k = ⌈N_k/B⌉ batches of a task, T
batches in all, t = 0 … T−1. All that is drawn comes from seeds of its own, named by the tasks it is about, so that two
orders have the same stream for as long as they mix the same.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, TypeAdapter

from skeleton_cgl.config import Checked
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order, Task
from skeleton_cgl.seeds import seed_of

Batches = list[np.ndarray]
"""The samples of every batch, by number."""
OVERLAP_BELOW = 0.9
"""τ: where no task has so large a share of a batch, tasks overlap. DRIFT does not state it; its figures fit 0.9."""
_EXAMINATIONS = 20
_NARROWEST = 1e-100
"""Narrower mixtures are no different, and of these the squares would be infinite."""


class Queue:
    """The samples of one latent task, drawn one after the other.

    Without replacement: in a random sequence, and in another as soon as all were drawn. With it: any, every time.
    """

    def __init__(self, task: Task, samples: np.ndarray, seed: int, replacement: bool) -> None:
        self.task = task
        self.samples = samples
        self._replacement = replacement
        self._random = np.random.default_rng(seed_of("queue", seed, *task))
        self._left = samples[:0]

    def __len__(self) -> int:
        return len(self.samples)

    def next(self, number: int) -> np.ndarray:
        """Return so many samples."""
        if self._replacement:
            return self._random.choice(self.samples, number)
        while len(self._left) < number:
            self._left = np.concatenate([self._left, self._random.permutation(self.samples)])
        drawn, self._left = self._left[:number], self._left[number:]
        return drawn


class Transition(Checked, ABC):
    """How tasks follow one another."""

    @abstractmethod
    def batches_of(self, queues: Sequence[Queue], size: int, seed: int) -> Batches:
        """Return the batches of tasks in the sequence of their queues; refuse what cannot be."""

    @abstractmethod
    def mixture(self, order: Order, lengths: Sequence[int], size: int) -> np.ndarray:
        """Return (T, K) the share of every task that is expected in every batch, from the numbers of samples N_k."""


class Hard(Transition):
    """Every batch is of one task; the last one of a task has what is left, and one sample more where that is alone."""

    name: Literal["hard"]

    def batches_of(self, queues: Sequence[Queue], size: int, seed: int) -> Batches:  # noqa: ARG002
        return [batch for queue in queues for batch in _cut(queue.next(len(queue)), size)]

    def mixture(self, order: Order, lengths: Sequence[int], size: int) -> np.ndarray:
        return np.repeat(np.eye(len(order)), _numbers_cut(lengths, size), axis=0)


class Gaussian(Transition):
    """Tasks come and go: at step t, task k has the share α_k(t) ∝ exp(−(t − μ_k)²/2σ²), μ_k = Σ_{i<k} B_i + B_k/2.

    A batch has n_k(t) samples of it: ⌊α_k B⌋, and one more for the largest remainders; of equal ones, the later task's.
    """

    name: Literal["gaussian"]
    sigma: float = Field(gt=0)

    def batches_of(self, queues: Sequence[Queue], size: int, seed: int) -> Batches:
        mixture = self.mixture(tuple(queue.task for queue in queues), [len(queue) for queue in queues], size)
        batches = []
        for step, counts in enumerate(largest_remainders(mixture, size)):
            drawn = np.concatenate([queue.next(count) for queue, count in zip(queues, counts, strict=True)])
            batches.append(np.random.default_rng(seed_of("batch", seed, step)).permutation(drawn))
        return batches

    def mixture(self, order: Order, lengths: Sequence[int], size: int) -> np.ndarray:  # noqa: ARG002
        """Return α, the softmax over tasks of −(t − μ_k)²/2σ²."""
        own = np.array(numbers_of_batches(lengths, size))
        centres = np.cumsum(own) - own / 2
        distances = np.square((np.arange(own.sum())[:, None] - centres) / max(self.sigma, _NARROWEST)) / 2
        likely = np.exp(distances.min(axis=1, keepdims=True) - distances)
        mixture: np.ndarray = likely / likely.sum(axis=1, keepdims=True)
        return mixture


class Global(Transition):
    """A share p of every task is spread over the whole stream.

    ⌊(1 − p) N_k⌋ samples stay with their task; the others of all tasks are pooled and dealt to the tasks in equal
    numbers. What a task then has comes shuffled, in batches of its own.
    """

    name: Literal["global"]
    share: float = Field(ge=0, le=1)

    def batches_of(self, queues: Sequence[Queue], size: int, seed: int) -> Batches:
        tasks = sorted(queue.task for queue in queues)
        drawn = {queue.task: queue.next(len(queue)) for queue in queues}
        staying = {task: self._staying(len(samples)) for task, samples in drawn.items()}
        # By the tasks themselves, not by their places: in another order every one is dealt the same.
        pool = np.concatenate([drawn[task][staying[task] :] for task in tasks])
        pool = np.random.default_rng(seed_of("pool", seed, *tasks)).permutation(pool)
        dealt = dict(zip(tasks, np.array_split(pool, len(tasks)), strict=True))
        batches = []
        for queue in queues:
            block = np.concatenate([drawn[queue.task][: staying[queue.task]], dealt[queue.task]])
            random = np.random.default_rng(seed_of("block", seed, queue.task, *tasks))
            batches += _cut(random.permutation(block), size)
        return batches

    def mixture(self, order: Order, lengths: Sequence[int], size: int) -> np.ndarray:
        staying = np.array([self._staying(length) for length in lengths])
        pooled = np.array(lengths) - staying
        dealt = dict(zip(sorted(order), map(len, np.array_split(np.arange(pooled.sum()), len(order))), strict=True))
        given = np.array([dealt[task] for task in order])
        samples = np.diag(staying) + given[:, None] * pooled / max(pooled.sum(), 1)
        shares = samples / samples.sum(axis=1, keepdims=True)
        return np.repeat(shares, _numbers_cut((staying + given).tolist(), size), axis=0)

    def _staying(self, length: int) -> int:
        # 0.9 of 10 is 9, also where 1 − 0.1 is a little less than 0.9.
        return int((1 - self.share) * length + 1e-9)


class Boundary(Transition):
    """Tasks mix at their borders: the last `batches` of one and the first of the next are pooled and dealt out again.

    The 2 · `batches` batches keep their sizes.
    """

    name: Literal["boundary"]
    batches: int = Field(ge=1)

    def batches_of(self, queues: Sequence[Queue], size: int, seed: int) -> Batches:
        windows = self._windows([len(queue) for queue in queues], size)
        batches = Hard(name="hard").batches_of(queues, size, seed)
        for window, (before, after) in zip(windows, pairwise(queues), strict=True):
            sizes = [len(batch) for batch in batches[window]]
            random = np.random.default_rng(seed_of("border", seed, before.task, after.task))
            pooled = random.permutation(np.concatenate(batches[window]))
            batches[window] = np.split(pooled, np.cumsum(sizes)[:-1])
        return batches

    def mixture(self, order: Order, lengths: Sequence[int], size: int) -> np.ndarray:
        mixture = Hard(name="hard").mixture(order, lengths, size)
        sizes = np.array([len(batch) for length in lengths for batch in _cut(np.arange(length), size)])
        for window in self._windows(lengths, size):
            mixture[window] = np.average(mixture[window], axis=0, weights=sizes[window])
        return mixture

    def _windows(self, lengths: Sequence[int], size: int) -> list[slice]:
        """Return the batches around every border; refuse more of them than half a task."""
        own = _numbers_cut(lengths, size)
        if 2 * self.batches > min(own):
            raise InputError(
                f"scenario: transition: batches: {self.batches} on either side of a border are more than half a task, "
                f"the shortest of which has {min(own)}"
            )
        borders = np.cumsum(own)[:-1].tolist()
        return [slice(border - self.batches, border + self.batches) for border in borders]


AnyTransition = Annotated[Hard | Gaussian | Global | Boundary, Field(discriminator="name")]
USUAL_TRANSITION = Gaussian(name="gaussian", sigma=20)
USUAL_BATCH = 10
"""How a stream is mixed that says nothing of it."""


def transition_fields(value: Any) -> Any:
    """Return the fields of a transition, which may be given by its name alone, or without it if it is the usual one."""
    if isinstance(value, dict) and value.keys() == {"sigma"}:
        # `transition.sigma` can be set, or swept over, where no transition is named.
        return {"name": USUAL_TRANSITION.name, **value}
    return {"name": value} if isinstance(value, str) else value


def transition_of(value: Any) -> Transition:
    """Return the transition of these fields, or of this name."""
    found: Transition = TypeAdapter(AnyTransition).validate_python(transition_fields(value))
    return found


def examined_after(batches: int, number: int | None = None, every: int | None = None) -> list[int]:
    """Return after how many batches all queries are asked, ascending; the last time, after all.

    That is evenly so many times, or after `every` so many batches; refused are more times than batches.
    """
    if every is not None:
        return [*range(every, batches, every), batches]
    times = number or min(_EXAMINATIONS, batches)
    if times > batches:
        raise InputError(f"scenario: examinations: {times} are more than the {batches} batches of the stream")
    return [round(place * batches / times) for place in range(1, times + 1)]


def numbers_of_batches(lengths: Sequence[int], size: int) -> list[int]:
    """Return B_k = ⌈N_k/B⌉ of every task."""
    return [ceil(length / size) for length in lengths]


def overlap_index(mixture: np.ndarray, below: float = OVERLAP_BELOW) -> float:
    """Return O(τ): the share of the steps of α (T, K) at which no task has a share of τ."""
    return float((mixture.max(axis=1) < below).mean())


def largest_remainders(mixture: np.ndarray, size: int) -> np.ndarray:
    """Return whole numbers (T, K) that sum to `size` at every step: ⌊α_k B⌋, and 1 for the largest remainders.

    Of equal remainders, that of the later task is the larger.
    """
    wanted = mixture * size
    counts = np.floor(wanted).astype(np.int64)
    # By remainder, then by place, both rising: the last ones get one more.
    sequence = np.argsort(wanted - counts, axis=1, kind="stable")
    missing = size - counts.sum(axis=1)
    places = np.arange(mixture.shape[1]) >= mixture.shape[1] - missing[:, None]
    np.put_along_axis(counts, sequence, np.take_along_axis(counts, sequence, axis=1) + places, axis=1)
    return counts


def _cut(samples: np.ndarray, size: int) -> Batches:
    """Return samples in batches; a rest of one sample joins the batch before it (BatchNorm needs two)."""
    borders = np.arange(size, len(samples), size)
    return np.split(samples, borders[:-1] if len(samples) % size == 1 else borders)


def _numbers_cut(lengths: Sequence[int], size: int) -> list[int]:
    """Return into how many batches so many samples are cut."""
    return [len(_cut(np.arange(length), size)) for length in lengths]
