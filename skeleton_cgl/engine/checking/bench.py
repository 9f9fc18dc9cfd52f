"""The bench a method or backbone is checked on: small data, short lessons, learners made alike."""

import copy
import json
import sys
from functools import cache

from skeleton_cgl.backbones.backbone import Backbone, make_backbone
from skeleton_cgl.engine.checking.fresh import FreshProcesses
from skeleton_cgl.engine.checking.subject import Subject
from skeleton_cgl.engine.contents import content_of, outside_of
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.trial import few
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import Method, make_method
from skeleton_cgl.learning.training import Training
from skeleton_cgl.process import settle
from skeleton_cgl.scenarios.lessons import Prefix, tokens
from skeleton_cgl.scenarios.made_up import Setting, made_up_clips, made_up_graph
from skeleton_cgl.scenarios.scenario import Experience, Scenario
from skeleton_cgl.scenarios.settings import make_scenario
from skeleton_cgl.seeds import seed_of

_LESSONS, _SAMPLES, _EPOCHS = 3, 32, 2
_MADE_UP = {"clips": made_up_clips, "graph": made_up_graph}


class Bench:
    """Small data and short lessons for a subject; every learner that it makes is the same.

    fresh: other processes, which learn the same meanwhile. outside: what modules and classes held before any learned.
    """

    def __init__(self, subject: Subject, fresh: FreshProcesses) -> None:
        self.subject = subject
        self.fresh = fresh
        self.outside = outside_of(subject.found)
        self.scenario = self.new_scenario(self.setting)

    @property
    def setting(self) -> Setting:
        """What all is tried in: class-il, unless a method needs tasks to be revealed."""
        return "task-il" if "revealed task" in getattr(self.subject.found, "needs", ()) else "class-il"

    def new_scenario(self, setting: Setting) -> Scenario:
        """Return the data as they were made, whatever became of them elsewhere."""
        return copy.deepcopy(_data(self.subject.data, setting))

    @property
    def lessons(self) -> Prefix:
        return self.scenario.lessons(self.scenario.default)[:_LESSONS]

    def experience(self, prefix: Prefix, scenario: Scenario | None = None) -> Experience:
        return few((scenario or self.scenario).experience(prefix), _SAMPLES)

    def component(self, seed: int = 0) -> Method | Backbone:
        """Return the subject made by itself."""
        name, parameters = self.subject.name, self.subject.parameters
        if self.subject.kind == "method":
            return make_method(name, parameters)
        return make_backbone(name, parameters, self.scenario.facts, seed)

    def learner(
        self, scenario: Scenario | None = None, epochs: int = _EPOCHS, seed: int = 0, method: str = "bare"
    ) -> Learner:
        """Return a new learner of the subject, together with `method`, or with a GCN."""
        subject, width = self.subject, {"width": 16}
        own = subject.kind == "method"
        return make_learner(
            scenario or self.scenario,
            backbone="gcn" if own else subject.name,
            method=subject.name if own else method,
            training=Training(epochs=epochs, learning_rate=0.01, batch_size=16, device="cpu"),
            seed=seed,
            backbone_parameters=width if own else subject.parameters,
            method_parameters=subject.parameters if own else {},
        )

    def learn(self, learner: Learner, prefix: Prefix) -> None:
        """Let a learner learn the last lesson of a prefix, from a seed that the prefix decides."""
        learner.learn(self.experience(prefix), seed_of("check", tokens(prefix)))

    def alone(self, lessons: Prefix) -> str:
        """Return what becomes of a new learner by these lessons, as `outcome` tells."""
        learner = self.learner()
        for step in range(len(lessons)):
            self.learn(learner, lessons[: step + 1])
        return self.outcome(learner, lessons)

    def outcome(self, learner: Learner, lessons: Prefix) -> str:
        """Return a digest of what a learner has become, and of what it answers."""
        answers = learner.answer(self.scenario.queries(lessons))
        return content_of([learner.model, learner.optimizer.state_dict()["state"], answers])


@cache
def _data(data: str, setting: Setting) -> Scenario:
    scenario = _MADE_UP[data](setting) if data in _MADE_UP else make_scenario({"data": data, "setting": setting}, 0)
    if len(scenario.default) < 2:
        raise InputError(f"{data}: at least two tasks are needed to check on")
    return scenario


def learn_alone() -> None:
    """In a new process: read a subject from the standard input, and print what its lessons come to."""
    settle()
    subject = Subject(**json.load(sys.stdin))
    bench = Bench(subject, FreshProcesses(subject))
    print(bench.alone(bench.lessons))
