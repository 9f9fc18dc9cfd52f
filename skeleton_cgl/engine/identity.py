"""What decides a record, beside its seeds and its lessons: the part of a stage's key that is the same in a repeat.

Two studies that mean the same have the same identity, however their files spell it. What came while records were kept
is left out where it means "as before", so that old keys stay.
"""

from typing import Any

from skeleton_cgl.backbones.backbone import backbones_for
from skeleton_cgl.engine.study import Component, Study
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.process import choose_device
from skeleton_cgl.registry import METHODS, SCENARIOS
from skeleton_cgl.scenarios.scenario import Scenario

RECORD_VERSION = 2
"""Changes when every study would give other records; what changes some of them has a version of its own."""


def identity_of(study: Study, scenario: Scenario, backbone: Component, method: Component) -> dict[str, Any]:
    """Return what decides the records of a learner, in plain values; the scenario itself has a digest."""
    identity = {
        "version": RECORD_VERSION,
        "training": _training(study, scenario, method),
        "backbone": backbone.identity(backbones_for(scenario.facts.takes)),
        "method": method.identity(METHODS),
    }
    code = code_of_scenario(study)
    versions = {name: version for name, version in _versions(study, scenario).items() if version != 1}
    return {
        **identity,
        **({} if code is None else {"scenario code": code}),
        **({"versions": versions} if versions else {}),
    }


def code_of_scenario(study: Study) -> str | None:
    """Return a digest of the code of a user's own kind of scenario."""
    return SCENARIOS.code_of(_kind(study))


def _kind(study: Study) -> str:
    kind: str = study.scenario.get("kind", "skeleton")
    return kind


def _versions(study: Study, scenario: Scenario) -> dict[str, int]:
    return {
        "learner": Learner.version,
        "scenario": SCENARIOS.find(_kind(study)).version,
        "problem": getattr(scenario.problem, "version", 1),
    }


def _training(study: Study, scenario: Scenario, method: Component) -> dict[str, Any]:
    """Return the training recipe; a batch that holds all there is to learn from is written as none."""
    training = study.training.model_dump(mode="json", exclude=study.training.as_before)
    training["device"] = choose_device(study.training.device).type
    # Such a method watches them in any case; before it did, its patience had the other key.
    if study.training.patience is not None and METHODS.find(method.name).watches_all:
        training["patience_on"] = "seen"
    size = study.training.batch_size
    # A method of a user's own may learn from more samples than there are, some of them twice. A node of many labels is
    # in as many tasks as it has labels in, so that another order may have more samples than the default one.
    alike = METHODS.is_built_in(method.name) and scenario.unit_kind != "label"
    if size is not None and alike and size >= _samples(scenario):
        training["batch_size"] = None
    return training


def _samples(scenario: Scenario) -> int:
    """Return the number of training samples of all lessons of the default order."""
    lessons = scenario.lessons(scenario.default)
    return sum(len(scenario.experience(lessons[: step + 1]).training) for step in range(len(lessons)))
