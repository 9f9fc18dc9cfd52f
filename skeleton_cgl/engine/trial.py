"""Trying a method before a study relies on it: does what it saves say all that it remembers?

The tree restores learners from the states of their parents. A method that keeps something between lessons and does not
save it would then learn as if it had kept nothing, and nobody would see it.
"""

import copy
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from skeleton_cgl.blame import blamed
from skeleton_cgl.engine.contents import attributes_of, differing
from skeleton_cgl.engine.identity import RECORD_VERSION
from skeleton_cgl.engine.plan import Plan, Stage
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.study import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import MOMENTS, Method, overrides
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.process import settle
from skeleton_cgl.scenarios.scenario import Experience, GivenBatches, Samples, Scenario

_EPOCHS, _SAMPLES, _BATCHES = 2, 8, 8
"""Enough for what is remembered to be felt."""


class NotRepeatable(InputError):
    """The same lessons, learned again from the same seeds, gave something else."""


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
    """Try the method of a stage on its first two lessons, a few samples and epochs; refuse one that forgets.

    False where it could not be tried: the method fails, which a stage will tell, the scenario has one lesson only, or
    the device gives other numbers every time.
    """
    settle()
    lessons = scenario.lessons(scenario.default)[:2]
    if len(lessons) < 2:
        return False
    short = {"epochs": min(_EPOCHS, study.training.epochs), "patience": None, "plateau": None}
    trial = study.model_copy(update={"training": study.training.model_copy(update=short)})
    first, second = (few(scenario.experience(lessons[: step + 1]), _SAMPLES) for step in range(2))
    new = partial(stage.new_learner, trial, scenario)
    try:
        refuse_forgetting(new, first, second)
    except NotRepeatable:
        if new().device.type == "cpu":
            raise
        return False
    except InputError:
        raise
    except (Exception, SystemExit):  # noqa: BLE001
        # Whatever a user's method raises, the stages that need it will tell where.
        return False
    return True


def few(experience: Experience, most: int) -> Experience:
    """Return an experience of at most so many samples; of a piece of a stream, the first batches, whole.

    One with a pace of another kind is left as it is.
    """
    if isinstance(experience.pace, GivenBatches):
        return _first_batches(experience, experience.pace.batches[:_BATCHES])
    if experience.pace is not None:
        return experience

    def some(samples: Samples) -> Samples:
        return samples.select(torch.arange(min(most, len(samples))))

    return replace(experience, training=some(experience.training), validation=some(experience.validation))


def _first_batches(experience: Experience, batches: tuple[Tensor, ...]) -> Experience:
    """Return an experience of these batches alone: also who learns it as a lesson has no other samples."""
    kept = torch.cat(batches)
    pace = GivenBatches(torch.arange(len(kept)).split([len(batch) for batch in batches]))
    return replace(experience, training=experience.training.select(kept), pace=pace)


def refuse_forgetting(new: Callable[[], Learner], first: Experience, second: Experience) -> None:
    """Learn a second lesson twice, going on and from the saved state; refuse a learner for which the two differ.

    new: returns the same learner every time. The message names what is forgotten, and the moment it last changed in.
    Refused as well: a state that cannot be saved or restored, and a learner that does not repeat itself.
    """
    going_on = new()
    going_on.learn(first, seed=0)
    saved = _saved(going_on)
    restored = _restored(new, saved)
    of_method = differing(attributes_of(going_on.method), attributes_of(restored.method))
    of_backbone = differing(attributes_of(going_on.backbone), attributes_of(restored.backbone))
    gives_back = _saved(restored) == saved
    wanted = _after(going_on, second)
    if _after(restored, second) == wanted:
        return
    again = new()
    with _watched(again.method) as changed:
        again.learn(first, seed=0)
    remembered = _copied(vars(again.method), again, first)
    if _after(again, second) != wanted:
        raise NotRepeatable(
            f"method {_name(again.method)} with backbone {_name(again.backbone)}: the same lessons, learned again from "
            "the same seeds, gave something else; draw random numbers from torch, or from a generator of your own with "
            "the seed `learner.seed_of_lesson`, and keep nothing in modules and classes"
        )

    def goes_on_with(names: set[str]) -> bool:
        learner = _restored(new, saved)
        given = {name: remembered[name] for name in names & remembered.keys()}
        vars(learner.method).update(_copied(given, learner, first))
        return _after(learner, second) == wanted

    felt = _without_which(goes_on_with, {_first(path) for path in of_method})
    why = "and is not in `state()`" if gives_back else "and does not come back from `restore` as it was"
    lost = [
        f"`{path}` of {_name(again.method)} changed in `{changed[path]}` {why}"
        for path in of_method
        if path in changed and _first(path) in felt
    ]
    lost += [f"`{path}` of {_name(again.backbone)} changed and is not in `state_dict()`" for path in of_backbone]
    who = f"backbone {_name(again.backbone)}" if of_backbone and not of_method else f"method {_name(again.method)}"
    if not lost:
        who = f"method {_name(again.method)} with backbone {_name(again.backbone)}"
        lost = ["something is remembered that neither `state()` nor `state_dict()` has"]
    raise InputError(f"{who}: going on from its saved state is not going on: {'; '.join(lost)}")


def _without_which(goes_on_with: Callable[[set[str]], bool], names: set[str]) -> set[str]:
    """Return the names that have to be remembered: without any one of them, going on is not going on."""
    needed = set(names)
    for name in sorted(names) if len(names) > 1 else ():
        if goes_on_with(needed - {name}):
            needed.discard(name)
    return needed


def _copied(attributes: dict[str, Any], learner: Learner, experience: Experience) -> dict[str, Any]:
    """Return copies of a method's attributes, the data not copied; none where one of them cannot be copied."""
    shared = (learner, experience.training.pool)
    try:
        return copy.deepcopy(attributes, {id(each): each for each in shared})
    except TypeError:
        return {}


def _saved(learner: Learner) -> bytes:
    with _told(learner):
        return to_bytes(learner.state())


def _restored(new: Callable[[], Learner], saved: bytes) -> Learner:
    learner = new()
    with _told(learner):
        learner.restore(from_bytes(saved))
    return learner


def _after(learner: Learner, experience: Experience) -> bytes:
    """Return what a learner is after a lesson."""
    learner.learn(experience, seed=1)
    return _saved(learner)


@contextmanager
def _told(learner: Learner) -> Iterator[None]:
    """Turn an error while a state is saved or restored into one message: in a tree, nothing could go on from there."""
    try:
        yield
    except (Exception, SystemExit) as error:
        words = str(error) if isinstance(error, InputError) else blamed(error, learner.method, learner.backbone)
        raise InputError(f"method {_name(learner.method)}: cannot be saved and restored: {words}") from error


@contextmanager
def _watched(method: Method) -> Iterator[dict[str, str]]:
    """Give, for every attribute of the method that changes within, the last moment in which it did."""
    changed: dict[str, str] = {}

    def watch(moment: str) -> None:
        usual = getattr(method, moment)

        @wraps(usual)
        def watched(*values: Any) -> Any:
            before = attributes_of(method, without=MOMENTS)
            found = usual(*values)
            changed.update(dict.fromkeys(differing(before, attributes_of(method, without=MOMENTS)), moment))
            return found

        setattr(method, moment, watched)

    # All steps are within `learn_lesson`: as it is by default, what changes in it changes in one of the others.
    watched_for = [moment for moment in MOMENTS if moment != "learn_lesson" or overrides(type(method), moment)]
    for moment in watched_for:
        watch(moment)
    try:
        yield changed
    finally:
        for moment in watched_for:
            delattr(method, moment)


def _first(path: str) -> str:
    """Return the attribute of a method that a way into a helper object begins with."""
    return path.partition(".")[0]


def _name(component: object) -> str:
    return type(component).__name__
