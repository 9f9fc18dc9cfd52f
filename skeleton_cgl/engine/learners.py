"""Making a learner for a scenario, and refusing what does not fit together."""

from collections.abc import Mapping
from typing import Any

from skeleton_cgl.backbones.backbone import Backbone, embedding_width, make_backbone
from skeleton_cgl.backbones.head import Head
from skeleton_cgl.backbones.joins import join_of, joined_width
from skeleton_cgl.backbones.model import Model
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.feed import Feed
from skeleton_cgl.learning.learner import Learner, ready_device
from skeleton_cgl.learning.method import Method, make_method, needs_of
from skeleton_cgl.learning.training import Training
from skeleton_cgl.process import seeded
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.seeds import seed_of

_MISSING = {
    "borders": "lessons with a beginning and an end; the scenario is a stream without",
    "revealed task": "queries that reveal their task (task-il); in this scenario they do not",
    "new classes": "lessons that bring classes or labels of their own (class-il, task-il); in this one they do not",
    "one class": "samples of one class each; in this scenario they are not",
    "graphs": "samples in graphs whose nodes have features; in this scenario they are not",
    "nodes": "samples that are nodes of one graph; in this scenario they are not",
}
BACKBONE_NEEDS = {
    "edge attention": "edge_attention(inputs)",
    "aggregated features": "aggregated(inputs)",
    "gates": "gated()",
    "evolving weights": "evolve(snapshots)",
}
"""Needs that a backbone meets, and the method by which it does."""


def make_learner(
    scenario: Scenario,
    backbone: str = "gcn",
    method: str = "bare",
    training: Training | None = None,
    seed: int = 0,
    backbone_parameters: Mapping[str, Any] | None = None,
    method_parameters: Mapping[str, Any] | None = None,
    noise_seed: int | None = None,
) -> Learner:
    """Return a learner for a scenario; refuse what does not fit together.

    Its first weights are drawn from `seed`, what it draws while it learns from `noise_seed`, by default the same.
    """
    training = training or Training()
    _refuse_neighbours_of_all(training, scenario, method)
    # Before the backbone is tried: an instruction set can be chosen until the first computation.
    device = ready_device(training)
    # Not queries: where periods follow one another, nothing can be asked before the first.
    samples = scenario.experience(scenario.lessons(scenario.default)[:1]).training
    with seeded(seed_of("parts", seed)):
        module = make_backbone(backbone, backbone_parameters or {}, scenario.facts, seed)
        feed = Feed(module, device, training.fan_outs)
        tried = feed.inputs(samples.pool, samples.ids[:2])
        width = embedding_width(module, tried)
        if training.fan_outs is not None:
            embedding_width(module, feed.training_inputs(samples.pool, samples.ids[:2]))
        made = make_method(method, method_parameters or {})
    _refuse_unmet_needs(made, scenario, module)
    join = join_of(module, scenario.facts)
    # On a stream nobody is to know how many classes are to come.
    known = scenario.outputs if "borders" in scenario.offers else None
    head = Head(joined_width(module, join, tried, width), seed, known)
    model = Model(module, head, join, width)
    lessons = len(scenario.lessons(scenario.default)) if "borders" in scenario.offers else None
    learner = Learner(model, made, training, scenario.problem, seed if noise_seed is None else noise_seed, lessons)
    made.fits(learner)
    return learner


def _refuse_neighbours_of_all(training: Training, scenario: Scenario, method: str) -> None:
    """Refuse to draw neighbours where all samples of a lesson are one batch; on a stream the batches are its own."""
    in_lessons = "borders" in scenario.offers or METHODS.find(method).offline
    if training.fan_outs is not None and training.batch_size is None and in_lessons:
        raise InputError("training: fan_outs: give a batch_size as well; neighbours are drawn for batches of nodes")


def _refuse_unmet_needs(method: Method, scenario: Scenario, backbone: Backbone) -> None:
    name = type(method).__name__
    for need in sorted(needs_of(method)):
        if need in BACKBONE_NEEDS:
            wanted = BACKBONE_NEEDS[need]
            if not hasattr(backbone, wanted.partition("(")[0]):
                raise InputError(f"method {name} needs a backbone with `{wanted}`; {type(backbone).__name__} has none")
        elif need not in _MISSING:
            known = ", ".join(sorted([*_MISSING, *BACKBONE_NEEDS]))
            raise InputError(f"method {name}: needs {need!r}, which nothing offers; known: {known}")
        elif need not in scenario.offers:
            raise InputError(f"method {name} needs {_MISSING[need]}")
