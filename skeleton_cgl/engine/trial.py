"""Trying a method before a study relies on it: does what it saves say all that it remembers?

The tree restores learners from the states of their parents. A method that keeps something between lessons and does not
save it would then learn as if it had kept nothing, and nobody would see it.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import partial, wraps
from importlib.metadata import version
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from skeleton_cgl.engine.plan import RECORD_VERSION, Plan, Stage
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.study import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import MOMENTS, Method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.process import settle
from skeleton_cgl.scenarios.scenario import Experience, Samples, Scenario

_EPOCHS, _SAMPLES = 2, 32
"""Enough for what is remembered to be felt."""


def refuse_forgetful_methods(plan: Plan, store: Store, progress: bool = False) -> None:
    """Try every method of a plan that has something left to learn; refuse one that does not save what it remembers.

    What was found right is noted in the store by the digests of method and backbone, so that it is tried once.
    """
    done = store.done()
    untried: dict[str, Stage] = {}
    for key, stage in plan.stages.items():
        row = plan.learners[stage.learner]
        content = f"{row.method.digest} {row.backbone.digest} {RECORD_VERSION} {version('skeleton_cgl')}"
        digest = hashlib.sha256(content.encode()).hexdigest()
        if key not in done and digest not in untried and not store.checked(digest):
            untried[digest] = stage
    for digest, stage in tqdm(untried.items(), "trying methods", unit=" methods", leave=False, disable=not progress):
        if saves_what_it_remembers(*plan.setting(stage), stage):
            store.add_check(digest)


def saves_what_it_remembers(study: Study, scenario: Scenario, stage: Stage) -> bool:
    """Learn a second lesson twice, going on and from the saved state; refuse a method for which the two differ.

    False where it could not be tried: the method fails, which a stage will tell, or the scenario has one lesson only.
    """
    settle()
    lessons = scenario.lessons(scenario.default)[:2]
    short = {"epochs": min(_EPOCHS, study.training.epochs), "patience": None}
    trial = study.model_copy(update={"training": study.training.model_copy(update=short)})
    if len(lessons) < 2:
        return False
    first, second = (_few(scenario.experience(lessons[: step + 1])) for step in range(2))
    new = partial(stage.new_learner, trial, scenario)
    try:
        going_on, restored = new(), new()
        going_on.learn(first, seed=0)
        restored.restore(from_bytes(to_bytes(going_on.state())))
        forgotten = _differences(going_on.method, restored.method)
        for learner in (going_on, restored):
            learner.learn(second, seed=1)
        alike = to_bytes(going_on.state()) == to_bytes(restored.state())
    except (Exception, SystemExit):  # noqa: BLE001
        # Whatever a user's method raises, the stages that need it will tell where.
        return False
    if not alike:
        raise InputError(_explained(new(), first, forgotten))
    return True


def _few(experience: Experience) -> Experience:
    """Return an experience of some of its samples; one with a pace of its own is short already."""
    if experience.pace is not None:
        return experience

    def some(samples: Samples) -> Samples:
        return samples.select(torch.arange(min(_SAMPLES, len(samples))))

    return replace(experience, training=some(experience.training), validation=some(experience.validation))


def _explained(learner: Learner, experience: Experience, forgotten: list[str]) -> str:
    """Return what a forgetful method forgets, and the moment in which it began to remember it."""
    name = type(learner.method).__name__
    with _watched(learner.method) as changed:
        learner.learn(experience, seed=0)
    lost = [
        f"`{attribute}` of {name} changed in `{changed[attribute]}` and is not in `state()`"
        for attribute in forgotten
        if attribute in changed
    ]
    why = "; ".join(lost) or f"{name} remembers something that is not in `state()`"
    return f"method {name}: going on from its saved state is not going on: {why}"


def _differences(one: Method, other: Method) -> list[str]:
    """Return the attributes in which two methods differ."""
    mine, others = (vars(method) for method in (one, other))
    return sorted(name for name in {*mine, *others} if _content(mine.get(name)) != _content(others.get(name)))


@contextmanager
def _watched(method: Method) -> Iterator[dict[str, str]]:
    """Give, for every attribute of the method that changes within, the last moment in which it did."""
    changed: dict[str, str] = {}

    def watch(moment: str) -> None:
        usual = getattr(method, moment)

        @wraps(usual)
        def watched(*values: Any) -> Any:
            before = {name: _content(value) for name, value in vars(method).items() if name not in MOMENTS}
            found = usual(*values)
            for name, value in vars(method).items():
                if name not in MOMENTS and before.get(name) != _content(value):
                    changed[name] = moment
            return found

        setattr(method, moment, watched)

    for moment in MOMENTS:
        watch(moment)
    try:
        yield changed
    finally:
        for moment in MOMENTS:
            delattr(method, moment)


def _content(value: Any, within: tuple[int, ...] = ()) -> Any:
    """Return what a value holds, in a form that can be compared."""
    if isinstance(value, Tensor):
        content = value.detach().cpu().contiguous()
        return (str(content.dtype), tuple(content.shape), content.reshape(-1).view(torch.uint8).numpy().tobytes())
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if id(value) in within or isinstance(value, Learner | ModuleType):
        return type(value).__name__
    inside = (*within, id(value))
    if isinstance(value, dict):
        return {_hashable(key): _content(entry, inside) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_content(entry, inside) for entry in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, nn.Module):
        return _content(dict(value.state_dict()), inside)
    if is_dataclass(value) and not isinstance(value, type):
        return [_content(getattr(value, field.name), inside) for field in fields(value)]
    if hasattr(value, "__dict__") and not callable(value):
        return _content(vars(value), inside)
    return repr(type(value))


def _hashable(key: Any) -> str:
    return repr(key)
