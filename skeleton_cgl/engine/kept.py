"""How much a method keeps between lessons, counted from what it saves: what is not in its state, it does not keep."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from torch import Tensor

from skeleton_cgl.engine.record import Kept
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import Method
from skeleton_cgl.scenarios.scenario import Experience, Samples

_BYTES_OF_INPUTS = 4
"""Of a floating-point number among the inputs of a sample."""
_BYTES_OF_NUMBERS = 8
"""Of a number that stands by itself, not in a tensor."""

_FLOATS_PER_SAMPLE: dict[tuple[str, bytes], float] = {}
"""By pool and ids: to ask for all of a pool copies it."""


def kept_by(method: Method, experience: Experience) -> Kept:
    """Return what a method keeps after a lesson.

    A sample kept by number costs what the inputs of a training sample of the lesson are made of, on the mean: without
    them a number would stand for nothing.
    """
    samples = _samples_kept(method)
    by_number = samples if not method.by_content else 0
    inputs = round(by_number * _floats_per_sample(experience.training)) if by_number else 0
    floats, size = inputs, inputs * _BYTES_OF_INPUTS
    for value in _leaves(method.state()):
        floats += _floats_in(value)
        size += _bytes_of(value)
    return Kept(samples, floats, size)


def _samples_kept(method: Method) -> int:
    samples: Any = method.samples_kept()
    if not isinstance(samples, int) or isinstance(samples, bool) or samples < 0:
        name = type(method).__name__
        raise InputError(f"method {name}: `samples_kept` gives {samples!r}; expected a whole number from 0 on")
    return samples


def _floats_per_sample(training: Samples) -> float:
    """Return how many floating-point numbers the inputs of a training sample are made of, on the mean."""
    if not len(training):
        return 0
    wanted = (training.pool.digest, sha256(training.ids.cpu().numpy().tobytes()).digest())
    if wanted not in _FLOATS_PER_SAMPLE:
        _FLOATS_PER_SAMPLE[wanted] = training.pool.whole().floats_of(training.ids) / len(training)
    return _FLOATS_PER_SAMPLE[wanted]


def _leaves(value: Any) -> Iterator[Any]:
    """Yield all that nested dicts and lists hold."""
    if isinstance(value, dict | list | tuple):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _leaves(entry)
    else:
        yield value


def _floats_in(value: Any) -> int:
    if isinstance(value, Tensor):
        # A complex number is two.
        return value.numel() * (2 if value.is_complex() else int(value.is_floating_point()))
    return int(isinstance(value, float))


def _bytes_of(value: Any) -> int:
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, str):
        return len(value.encode())
    return _BYTES_OF_NUMBERS if isinstance(value, int | float) else 0
