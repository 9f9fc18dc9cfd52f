"""Pre-training of a backbone without labels: for methods that then leave it as it is."""

from math import inf, isfinite
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from skeleton_cgl.learning.batchnorm import recalibrating
from skeleton_cgl.learning.method import LearningFailed
from skeleton_cgl.learning.optimizers import copied_into, make_optimizer
from skeleton_cgl.learning.stopping import Cuts
from skeleton_cgl.methods.deep_graph_infomax import DeepGraphInfomax
from skeleton_cgl.methods.info_graph import InfoGraph, WholeGraphs
from skeleton_cgl.process import seeded
from skeleton_cgl.scenarios.scenario import Experience

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


def pretrain(learner: "Learner", experience: Experience, epochs: int | None = None) -> None:
    """Train the backbone on what a lesson shows, labels unread: whole graphs by InfoGraph, all else by DGI.

    With the optimizer, rate, epochs and batches of the training recipe, its patience and plateau watching the loss
    itself; in the end the backbone is as after the epoch of the lowest mean loss. Head and optimizer of the learner
    stay what they are. What is drawn depends on the learner's seed and on what the lesson teaches alone.
    """
    with seeded(learner.seed_of_lesson("pretraining", experience)):
        whole_graphs = isinstance(experience.training.pool.whole(), WholeGraphs)
        objective = (InfoGraph if whole_graphs else DeepGraphInfomax)(learner, experience).to(
            learner.parameter_vector()
        )
        training = learner.backbone.training
        learner.model.zero_grad()
        try:
            _minimise(learner, objective, learner.training.epochs if epochs is None else epochs)
        finally:
            learner.model.zero_grad()
            learner.backbone.train(training)


def _minimise(learner: "Learner", objective: DeepGraphInfomax | InfoGraph, epochs: int) -> None:
    """Train backbone and objective; leave the backbone as after its best epoch."""
    backbone, recipe = learner.backbone, learner.training
    trained = [parameter for parameter in backbone.parameters() if parameter.requires_grad]
    optimizer = make_optimizer(recipe, [*trained, *objective.parameters()], learner.head)
    cuts = Cuts(recipe, optimizer)
    best: dict[str, Any] = {}
    lowest, since = inf, 0
    backbone.train()
    for _ in range(epochs):
        objective.begin_epoch()
        value = fmean(_step(objective, rows, optimizer) for rows in _batches(learner, objective))
        if not isfinite(value):
            raise LearningFailed(f"the loss of pre-training on {learner.lesson_in_words()} is {value}")
        since += 1
        if value < lowest:
            best, lowest, since = copied_into(best, backbone.state_dict()), value, 0
        if cuts.reach_floor(value) or (recipe.patience is not None and since >= recipe.patience):
            break
    if best:
        backbone.load_state_dict(best)
    if recipe.recalibrate:
        with recalibrating(backbone):
            for rows in _batches(learner, objective):
                objective.embed(rows)


def _step(objective: DeepGraphInfomax | InfoGraph, rows: Tensor, optimizer: torch.optim.Optimizer) -> float:
    optimizer.zero_grad()
    loss = objective.loss(rows)
    loss.backward()
    optimizer.step()
    return loss.item()


def _batches(learner: "Learner", objective: DeepGraphInfomax | InfoGraph) -> tuple[Tensor, ...]:
    """Return the rows of an epoch in random batches of about one size, each of two at least, as BatchNorm needs."""
    number = len(objective)
    size = learner.training.batch_size or objective.most or number
    return torch.randperm(number).tensor_split(max(min(-(-number // size), number // 2), 1))
