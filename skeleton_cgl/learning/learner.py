"""The learner: backbone, head, method and optimizer, all that changes by learning.

A learner sees experiences and queries and never a scenario. Its randomness comes from the seed each task is learned
with; nothing else in it is drawn, so that state, experience and seed decide what is learned to the last bit.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.backbone import Backbone, embedding_width, make_backbone
from skeleton_cgl.backbones.head import ClassHead
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import METHODS, LearningFailed, Method
from skeleton_cgl.learning.training import Training
from skeleton_cgl.process import choose_device, ensure_bfloat16_works
from skeleton_cgl.scenarios.lessons import Task, as_task
from skeleton_cgl.scenarios.scenario import Experience, Queries, Samples, Scenario
from skeleton_cgl.seeds import seed_of

_ANSWERED_AT_ONCE = 1024


@dataclass(frozen=True)
class Batch:
    """Samples on their way through the learner.

    labels (N,) are classes, columns (N,) their outputs; weights (N,) make classes count equally and sum to 1; allowed
    (N, outputs) are the outputs a sample's answer may be among, None where all may.
    """

    inputs: Any
    labels: Tensor
    columns: Tensor
    weights: Tensor
    allowed: Tensor | None

    def __len__(self) -> int:
        return len(self.labels)


class Model(nn.Module):
    """Backbone and head in one: inputs to outputs."""

    def __init__(self, backbone: Backbone, head: ClassHead) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, inputs: Any) -> Tensor:
        return self.head(self.backbone(inputs))


class Learner:
    """Learns tasks one after the other and answers queries.

    Refused when it is made: a backbone that gives no embedding per sample, a method that does not support the setting.
    """

    def __init__(
        self,
        backbone: Backbone,
        head: ClassHead,
        method: Method,
        training: Training,
        setting: str,
        seed: int,
    ) -> None:
        if setting not in method.settings:
            raise InputError(
                f"method {type(method).__name__} is defined for {', '.join(method.settings)}, not for {setting}"
            )
        self.device = _ready_device(training)
        self.model = Model(backbone, head).to(self.device)
        self.backbone = backbone
        self.head = head
        self.method = method
        self.training = training
        self.setting = setting
        self._seed = seed
        self.tasks: list[Task] = []
        self.optimizer = self._new_optimizer()
        method.check(self)

    def learn(self, experience: Experience, seed: int, progress: Callable[[int, float], None] | None = None) -> None:
        """Learn one task; `progress` is told every epoch and its mean loss. Fails when the loss is not finite."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._meet(experience)
            self.method.begin_task(self, experience)
            self._train(self.method.training_samples(self, experience), experience.validation, progress)
            self.method.end_task(self, experience)
        self.backbone.eval()

    def _meet(self, experience: Experience) -> None:
        labels = experience.training.labels.unique().tolist()
        self.tasks.append(as_task({*experience.task, *labels}))
        if self.training.reset_optimizer:
            self.head.meet(self.tasks[-1])
            self.optimizer = self._new_optimizer()
            return
        before = self.head.rows
        if self.head.meet(self.tasks[-1]):
            self._replace_in_optimizer(before, self.head.rows)

    def _train(self, samples: Samples, validation: Samples, progress: Callable[[int, float], None] | None) -> None:
        best = BestEpoch(self, validation) if self.training.patience else None
        whole = self.batch(samples, training=True) if self._same_batch_every_epoch(samples) else None
        for epoch in range(self.training.epochs):
            self.backbone.train()
            losses = []
            for batch in [whole] if whole is not None else self._batches(samples):
                losses.append(self._step(batch))
            if progress:
                progress(epoch, fmean(losses))
            if best and best.is_over(self.training.patience):
                break
        if best:
            best.restore()

    def _same_batch_every_epoch(self, samples: Samples) -> bool:
        return not samples.pool.augmented and (self.training.batch_size or len(samples)) >= len(samples)

    def _batches(self, samples: Samples) -> Iterator[Batch]:
        """Yield batches in random order; a rest of one sample joins the batch before it (BatchNorm needs two)."""
        size = min(self.training.batch_size or len(samples), len(samples))
        shuffled = torch.randperm(len(samples))
        borders = [*range(0, len(samples), size), len(samples)]
        if len(borders) > 2 and borders[-1] - borders[-2] == 1:
            del borders[-2]
        for start, end in pairwise(borders):
            yield self.batch(samples.select(shuffled[start:end]), training=True)

    def _step(self, batch: Batch) -> float:
        self.optimizer.zero_grad()
        loss = self.method.loss(self, batch)
        value = loss.item()
        if not torch.isfinite(loss):
            raise LearningFailed(f"the loss of task {self.tasks[-1]} is {value}")
        loss.backward()
        self.method.gradients_ready(self)
        self.optimizer.step()
        return value

    def batch(self, samples: Samples, training: bool = False) -> Batch:
        """Return samples as a batch of this learner."""
        labels = samples.labels
        _, kinds, counts = labels.unique(return_inverse=True, return_counts=True)
        return Batch(
            inputs=_to(samples.pool.inputs(samples.ids, self.backbone, training), self.device),
            labels=labels,
            columns=self.head.columns(labels).to(self.device),
            weights=(1 / (counts[kinds] * len(counts)).float()).to(self.device),
            allowed=self._allowed(labels).to(self.device) if self.setting == "task-il" else None,
        )

    def _allowed(self, labels: Tensor) -> Tensor:
        """Return (N, outputs) bool: the outputs of the task each label was learned in."""
        table = torch.zeros(max(self.head.classes) + 1, len(self.head.classes), dtype=torch.bool)
        for task in self.tasks:
            columns = self.head.columns(torch.tensor(task))
            for label in task:
                table[label, columns] = True
        return table[labels]

    def outputs(self, inputs: Any) -> Tensor:
        """Return (N, outputs) float32 for a batch's inputs, computed in the precision of the training recipe."""
        lower = self.training.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=lower):
            outputs = self.model(inputs)
        return outputs.float() if lower else outputs

    def task_loss(self, batch: Batch) -> Tensor:
        """Return the cross-entropy of a batch over all classes met (task-il: over each sample's task)."""
        return self.cross_entropy(self.outputs(batch.inputs), batch)

    def cross_entropy(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return −Σᵢ wᵢ log softmax(outputsᵢ)[columnᵢ] with the batch's weights: classes count equally."""
        if batch.allowed is not None:
            outputs = outputs.masked_fill(~batch.allowed, -torch.inf)
        return (functional.cross_entropy(outputs, batch.columns, reduction="none") * batch.weights).sum()

    def answer(self, queries: Queries, classes: int) -> Tensor:
        """Return (queries, classes) the outputs for every query, −∞ for classes never met."""
        self.backbone.eval()
        answers = torch.full((len(queries), classes), -torch.inf)
        with torch.no_grad():
            for start in range(0, len(queries), _ANSWERED_AT_ONCE):
                ids = queries.ids[start : start + _ANSWERED_AT_ONCE]
                outputs = self.outputs(_to(queries.pool.inputs(ids, self.backbone), self.device))
                answers[start : start + len(ids), self.head.classes] = outputs.cpu()
        return answers

    def parameters(self) -> list[nn.Parameter]:
        """Return the trainable parameters, those of the head last: earlier vectors are beginnings of later ones."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def parameter_vector(self) -> Tensor:
        """Return all trainable parameters as one vector, differentiably."""
        return torch.cat([parameter.flatten() for parameter in self.parameters()])

    def gradient_of(self, value: Tensor) -> Tensor:
        """Return the gradient of `value` by all trainable parameters as one vector."""
        parameters = self.parameters()
        gradients = torch.autograd.grad(value, parameters, allow_unused=True)
        pairs = zip(parameters, gradients, strict=True)
        return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in pairs])

    def gradient_vector(self) -> Tensor:
        """Return the gradients at hand as one vector."""
        parameters = self.parameters()
        return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters])

    def set_gradient(self, vector: Tensor) -> None:
        """Put another gradient in the place of the one at hand."""
        parameters = self.parameters()
        for parameter, part in zip(parameters, vector.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = part.view_as(parameter).clone()

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Within: dropout and BatchNorm as in a step of training, but without a trace in the running statistics."""
        training = self.backbone.training
        self.backbone.train()
        try:
            with self.statistics_kept():
                yield
        finally:
            self.backbone.train(training)

    @contextmanager
    def statistics_kept(self) -> Iterator[None]:
        """Within: what passes through the backbone leaves no trace in BatchNorm's running statistics."""
        kept = [buffer.clone() for buffer in self.backbone.buffers()]
        try:
            yield
        finally:
            for buffer, value in zip(self.backbone.buffers(), kept, strict=True):
                buffer.copy_(value)

    def seed_of_task(self, purpose: str, task: Task) -> int:
        """Return a seed that depends on the learner's seed and on the classes of a task, not on what came before."""
        return seed_of(purpose, self._seed, *sorted(self.head.name(label) for label in task))

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Within: no dropout, BatchNorm with its running statistics, as when queries are answered."""
        training = self.backbone.training
        self.backbone.eval()
        try:
            yield
        finally:
            self.backbone.train(training)

    def _new_optimizer(self) -> torch.optim.Optimizer:
        settings = {"lr": self.training.learning_rate, "weight_decay": self.training.weight_decay}
        if self.training.optimizer == "sgd":
            return torch.optim.SGD(self.parameters(), **settings)
        return torch.optim.Adam(self.parameters(), fused=True, **settings)

    def _replace_in_optimizer(self, before: nn.Parameter, after: nn.Parameter) -> None:
        """Let the optimizer go on with a head that has grown: its memory of the new rows is zero."""
        group = self.optimizer.param_groups[0]
        group["params"] = [after if parameter is before else parameter for parameter in group["params"]]
        state = self.optimizer.state.pop(before, {})
        for name, value in state.items():
            if value.shape == before.shape:
                state[name] = torch.cat([value, torch.zeros_like(after[len(before) :])])
        if state:
            self.optimizer.state[after] = state

    def state(self) -> dict[str, Any]:
        """Return everything a learner is, as tensors and plain values that later learning leaves alone."""
        return copy.deepcopy(
            {
                "backbone": dict(self.backbone.state_dict()),
                "classes": self.head.classes,
                "rows": self.head.rows.detach(),
                "tasks": [list(task) for task in self.tasks],
                "optimizer": self.optimizer.state_dict()["state"],
                "method": self.method.state(),
            }
        )

    def restore(self, state: dict[str, Any]) -> None:
        """Become the learner whose `state` this is; learning on is bit-identical to never having stopped."""
        self.backbone.load_state_dict(state["backbone"])
        self.head.restore(state["classes"], state["rows"])
        self.tasks = [as_task(task) for task in state["tasks"]]
        self.optimizer = self._new_optimizer()
        groups = self.optimizer.state_dict()["param_groups"]
        # An optimizer changes what it is given in place; the other parts are copied or never changed.
        self.optimizer.load_state_dict({"state": copy.deepcopy(state["optimizer"]), "param_groups": groups})
        self.method.restore(state["method"])


def _ready_device(training: Training) -> torch.device:
    device = choose_device(training.device)
    if training.precision == "bfloat16" and device.type == "cpu":
        ensure_bfloat16_works()
    return device


def _to(inputs: Any, device: torch.device) -> Any:
    """Return inputs on a device; what has no `to` stays."""
    if isinstance(inputs, tuple):
        return tuple(_to(part, device) for part in inputs)
    return inputs.to(device) if hasattr(inputs, "to") else inputs


class BestEpoch:
    """Early stopping: the weights of the epoch with the lowest validation loss."""

    def __init__(self, learner: Learner, validation: Samples) -> None:
        self._learner = learner
        self._batch = learner.batch(validation)
        self._lowest = torch.inf
        self._weights: dict[str, Tensor] = {}
        self._since = 0

    def is_over(self, patience: int) -> bool:
        """Look at the learner after an epoch; return whether the loss has not improved for `patience` epochs."""
        with self._learner.answering(), torch.no_grad():
            loss = float(self._learner.task_loss(self._batch))
        if not isfinite(loss):
            raise LearningFailed(f"the validation loss of task {self._learner.tasks[-1]} is {loss}")
        if loss < self._lowest:
            self._lowest, self._since = loss, 0
            self._weights = copy.deepcopy(self._learner.model.state_dict())
        else:
            self._since += 1
        return self._since >= patience

    def restore(self) -> None:
        self._learner.model.load_state_dict(self._weights)


def make_learner(
    scenario: Scenario,
    backbone: str = "gcn",
    method: str = "bare",
    training: Training | None = None,
    seed: int = 0,
    backbone_parameters: dict[str, Any] | None = None,
    method_parameters: dict[str, Any] | None = None,
) -> Learner:
    """Return a learner for a scenario, its first weights drawn from `seed`; refuse what does not fit together."""
    training = training or Training()
    # Before the backbone is tried: an instruction set can be chosen until the first computation.
    _ready_device(training)
    module = make_backbone(backbone, backbone_parameters or {}, scenario.backbone_arguments(), seed)
    queries = scenario.queries()
    few = queries.ids[:2]
    width = embedding_width(module, queries.pool.inputs(few, module), len(few))
    head = ClassHead(width, seed, scenario.units)
    return Learner(
        module,
        head,
        METHODS.make(method, method_parameters or {}),
        training,
        scenario.setting,
        seed,
    )
