"""What backbones promise. Each of these is tried on made backbones as the learner would call them."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from skeleton_cgl.backbones.backbone import Backbone, embedding_width, make_backbone
from skeleton_cgl.engine.checking import of_learners
from skeleton_cgl.engine.checking.bench import Bench
from skeleton_cgl.engine.checking.promise import Broken, promise
from skeleton_cgl.engine.contents import content_of
from skeleton_cgl.learning.feed import Feed
from skeleton_cgl.scenarios.inputs import Clips, Inputs

_ACTORS = 2
_ASKED = 8

_RANDOM: dict[str, Callable[[], Any]] = {
    "torch": torch.get_rng_state,
    "numpy": lambda: np.random.get_state(legacy=False),  # noqa: NPY002
    "random": random.getstate,
}


def _new(bench: Bench, seed: int = 0) -> Backbone:
    return make_backbone(bench.subject.name, bench.subject.parameters, bench.scenario.facts, seed)


def _asked(bench: Bench, backbone: Backbone, rows: int | slice = slice(_ASKED)) -> Inputs:
    """Return some samples as the backbone gets them, a copy every time."""
    samples = bench.experience(bench.lessons[:1]).training
    ids = samples.ids[rows].reshape(-1)
    return Feed(backbone, torch.device("cpu")).inputs(samples.pool, ids)


@promise("arranges clips without weights, each by itself, and leaves them as they are")
def arranges(bench: Bench) -> str:
    backbone = _new(bench)
    if type(backbone).arrange is Backbone.arrange:
        return "has no `arrange`"
    whole = _whole(bench)
    before = content_of(whole.content)
    arranged = whole.arranged(backbone.arrange)
    if content_of(whole.content) != before:
        raise Broken("`arrange` writes into what it is given; work on a copy (`clone()`)")
    if content_of(whole.arranged(_new(bench, seed=1).arrange).content) != content_of(arranged.content):
        raise Broken(
            "`arrange` gives something else when the first weights are others; what it returns is kept for all"
        )
    rows = torch.arange(0, len(whole), 3)
    if whole.independent and not _alike(whole.rows(rows).arranged(backbone.arrange), arranged.rows(rows)):
        raise Broken(
            "`arrange` makes something else of a clip when others are there; it would know of clips not yet met"
        )
    return ""


def _whole(bench: Bench) -> Inputs:
    """Return the clips of the data set, or its graph, not yet arranged."""
    return bench.experience(bench.lessons[:1], bench.new_scenario(bench.setting)).training.pool.whole()


def _alike(one: Inputs, other: Inputs) -> bool:
    mine, others = (each.content if isinstance(each.content, tuple) else (each.content,) for each in (one, other))
    return all(_close(*pair) for pair in zip(mine, others, strict=True))


def _close(one: Tensor, other: Tensor) -> bool:
    """Return whether two are the same but for their last bits, in which sums over more or fewer rows differ."""
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-3, atol=1e-4)


@promise("gives one embedding per clip, and per actor of a clip")
def gives_embeddings(bench: Bench) -> str:
    backbone = _new(bench)
    asked = _asked(bench, backbone)
    width = embedding_width(backbone, asked)
    for inputs in (asked.rows(torch.arange(1)), *_with_actors(bench, backbone)):
        if embedding_width(backbone, inputs) != width:
            raise Broken(f"the width of the embeddings depends on the number of clips: {width} for {len(asked)}")
    backbone.train()
    found = tuple(backbone(asked.content).shape)
    if found != (len(asked) * asked.places, width):
        raise Broken(f"embeddings are {found} while training, and {(len(asked) * asked.places, width)} while answering")
    return f"{width} wide"


def _with_actors(bench: Bench, backbone: Backbone) -> list[Inputs]:
    whole = _whole(bench)
    if not isinstance(whole, Clips) or whole.actors > 1 or not isinstance(whole.parts, Tensor):
        return []
    pairs = whole.parts[: _ACTORS * _ASKED].unflatten(0, (-1, _ACTORS))
    return [Clips(pairs, _ACTORS).arranged(backbone.arrange)]


@promise("draws no random numbers while answering")
def draws_nothing_while_answering(bench: Bench) -> str:
    backbone = _new(bench).eval()
    with torch.no_grad():
        before = {name: content_of(state()) for name, state in _RANDOM.items()}
        first = backbone(_asked(bench, backbone).content)
        drawn = [name for name, state in _RANDOM.items() if content_of(state()) != before[name]]
        if drawn:
            raise Broken(
                f"`forward` draws from {' and '.join(drawn)} in the mode of answering; is it dropout? `nn.Dropout` "
                "knows the mode, and `functional.dropout` needs training=self.training"
            )
        if not torch.equal(backbone(_asked(bench, backbone).content), first):
            raise Broken("`forward` gives something else for the same clips when it is asked again")
    return ""


@promise("answers the same whichever others are asked with it")
def answers_each_by_itself(bench: Bench) -> str:
    """BatchNorm uses running statistics while answering, and leaves them alone; while training, those of the batch."""
    learner = bench.learner()
    bench.learn(learner, bench.lessons[:1])
    backbone = learner.backbone.eval()
    asked = _asked(bench, backbone)
    saved = content_of(backbone)
    with torch.no_grad():
        together = backbone(asked.content)
        if content_of(backbone) != saved:
            raise Broken("answering changes the backbone; statistics and the like are for `if self.training`")
        for row in range(len(asked)):
            alone = backbone(_asked(bench, backbone, row).content)
            if not _close(alone, together.unflatten(0, (-1, asked.places))[row]):
                raise Broken(
                    "a clip alone has another embedding than among others; while answering, take no statistics over "
                    "the batch (BatchNorm with its running statistics)"
                )
    backbone.train()
    for name, module in backbone.named_modules():
        if isinstance(module, _BatchNorm) and not module.training:
            raise Broken(f"BatchNorm `{name}` stays in the mode of answering while training, and never sees the data")
    return ""


@promise("gives an attention of edges that TWP can use", essential=False)
def attends_to_edges(bench: Bench) -> str:
    if not hasattr(bench.subject.found, "edge_attention"):
        return "has no `edge_attention`, so that TWP refuses it"
    learner = bench.learner()
    bench.learn(learner, bench.lessons[:1])
    batch = learner.batch(bench.experience(bench.lessons[:1]).training)
    found = learner.edge_attention(batch.inputs)
    if not isinstance(found, list) or not found or not all(isinstance(layer, Tensor) for layer in found):
        raise Broken(f"`edge_attention` has to return a list with a tensor per layer, found {type(found).__name__}")
    norm = torch.cat([layer.flatten() for layer in found]).norm()
    if not norm.isfinite():
        raise Broken("`edge_attention` gives numbers that are not finite")
    if not norm.requires_grad or not learner.gradient_of(norm).any():
        raise Broken("`edge_attention` does not depend on the weights differentiably; do not detach it")
    twp = bench.learner(method="twp")
    for step in (1, 2):
        bench.learn(twp, bench.lessons[:step])
    return f"{len(found)} layers"


CHECKS = (
    of_learners.is_made,
    arranges,
    gives_embeddings,
    draws_nothing_while_answering,
    of_learners.learns,
    answers_each_by_itself,
    attends_to_edges,
    of_learners.leaves_data_alone,
    of_learners.repeats_itself,
    of_learners.keeps_nothing_outside,
    of_learners.saves_what_it_remembers,
    of_learners.is_the_same_in_a_tree,
)
