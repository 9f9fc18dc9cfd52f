"""The learner: backbone, head, method and optimizer, all that changes by learning.

A learner sees experiences and queries and never a scenario. Its randomness comes from the seed each lesson is learned
with; nothing else in it is drawn, so that state, experience and seed decide what is learned to the last bit.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from statistics import fmean
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from skeleton_cgl.backbones.model import Model
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.batchnorm import normalising, recalibrating, used
from skeleton_cgl.learning.feed import Feed
from skeleton_cgl.learning.method import LearningFailed, Method, overrides
from skeleton_cgl.learning.optimizers import clear_gradients, grow, make_optimizer, remind
from skeleton_cgl.learning.stopping import BestEpoch
from skeleton_cgl.learning.training import Recipe, Training
from skeleton_cgl.process import choose_device, ensure_bfloat16_works, seeded
from skeleton_cgl.scenarios.inputs import Inputs, ReadOut, together
from skeleton_cgl.scenarios.problem import Problem, scopes
from skeleton_cgl.scenarios.scenario import Experience, Pace, Queries, Samples
from skeleton_cgl.seeds import seed_of

_ANSWERED_AT_ONCE = 1024

_SETTLING_STEPS = 70
UNSETTLED = (
    f"stopped within {_SETTLING_STEPS} steps: validation in evaluation mode says nothing until BatchNorm's running "
    "statistics have settled, which takes more than 100 on row-normalised features; set training.recalibrate=true or a "
    "longer patience"
)
"""Noted of a lesson that validation ended early."""

Progress = Callable[[int, float], None]
"""Told every epoch and its mean loss."""


@dataclass(frozen=True)
class Batch:
    """Samples on their way through the learner.

    targets: what their outputs should be, in columns of the head; weights (N,) sum to 1; among (N, outputs) bool: the
    outputs a sample's answer may be among. sizes: where samples of several origins were joined, how many are of each.
    """

    inputs: Inputs
    targets: Tensor
    weights: Tensor
    among: Tensor
    sizes: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.weights)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Batch":
        # Nothing writes into a batch; a copy of who holds one may hold the same.
        return self


@dataclass(frozen=True)
class Taught:
    """What a learner was told of a lesson: names of what it taught, and the outputs it owns."""

    keys: tuple[str, ...]
    outputs: tuple[int, ...]


class Learner:
    """Learns lessons one after the other and answers queries.

    lessons: how many there will be, where that is known. first_pass: whether the samples of the present step are met
    for the first time in the lesson, not in a later epoch. version: raised when learning, the head or the training
    recipe come to other numbers; keys have it.
    """

    version: ClassVar[int] = 1

    def __init__(
        self,
        model: Model,
        method: Method,
        training: Training,
        problem: Problem,
        seed: int,
        lessons: int | None = None,
    ) -> None:
        self.device = ready_device(training)
        self.model = model.to(self.device)
        self.backbone, self.head = model.backbone, model.head
        self.method = method
        self.training = training
        self.problem = problem
        self.lessons = lessons
        self.first_pass = True
        self.taught: list[Taught] = []
        self.notes: list[str] = []
        self.optimizer = self._new_optimizer()
        self._validated: list[tuple[Tensor, Tensor, Tensor]] = []
        self._first = copy.deepcopy(self.backbone.state_dict())
        self._seed = seed
        self._lesson: tuple[Experience, Progress | None] | None = None
        self._scopes: tuple[object, Tensor] | None = None
        self._feed = Feed(self.backbone, self.device, training.fan_outs)

    def learn(self, experience: Experience, seed: int, progress: Progress | None = None) -> None:
        """Learn one lesson; `progress` is told every epoch and its mean loss. Fails when the loss is not finite.

        Afterwards `notes` has what is to be known of how it was learned, and leaves its worth in doubt.
        """
        self.notes = []
        with seeded(seed), self._feed.untouched():
            self.taught.append(Taught(experience.keys, ()))
            if experience.pace is None or self.method.offline:
                self._lesson = experience, progress
                self._learn_all_of(experience)
                self._lesson = None
            else:
                self._pass_through(experience.training, experience.pace, progress)
        self.backbone.eval()

    def _pass_through(self, samples: Samples, pace: Pace, progress: Progress | None) -> None:
        """Learn a piece of a stream: a step for every batch, of which the method hears when it comes, and not before.

        Nothing of it is watched, recalibrated or restored: where a stream is cut into pieces must not matter.
        """
        self.first_pass = True
        self.backbone.train()
        for epoch, batches in enumerate(pace.epochs(samples)):
            losses = []
            for rows in batches:
                drawn = samples.select(rows)
                self._meet(self.problem.outputs_of(drawn.labels))
                losses.append(self._step(self.batch(self.method.step_samples(self, drawn), training=True)))
            if progress:
                progress(epoch, fmean(losses))

    def _learn_all_of(self, experience: Experience) -> None:
        """Learn a lesson that has a beginning and an end."""
        streamed = experience.pace is not None
        self._meet(self.problem.outputs_of(experience.training.labels) if streamed else experience.outputs)
        if self.training.reset_optimizer:
            self.reset_optimizer()
        self.method.begin_lesson(self, experience)
        self.method.learn_lesson(self, experience)
        self.method.end_lesson(self, experience)
        if self._watches_past:
            validation = experience.validation
            self._validated.append((validation.ids, validation.labels, validation.step))

    @property
    def _watches_past(self) -> bool:
        """Whether validation samples of past lessons are watched, and so kept."""
        return self.training.watches_past or (self.training.watches and self.method.watches_all)

    def start_over(self) -> None:
        """Go back to the first weights, of the outputs met as well, with a new optimizer; the method stays as it is."""
        self.backbone.load_state_dict(self._first)
        self.head.start_over()
        self.reset_optimizer()

    def reset_optimizer(self) -> None:
        """Go on with a new optimizer, of the parameters that are to be trained now."""
        self.optimizer = self._new_optimizer()

    def _meet(self, outputs: Sequence[int]) -> None:
        """Have outputs in the head, as some that the lesson being learned teaches."""
        told = self.taught[-1]
        self.taught[-1] = Taught(told.keys, tuple(dict.fromkeys((*told.outputs, *outputs))))
        before = self.head.rows
        if self.head.meet(outputs):
            grow(self.optimizer, before, self.head.rows)

    def train(self, samples: Samples, epochs: int | None = None) -> None:
        """Train on samples as the recipe says, or for so many epochs; for methods, while a lesson is learned."""
        if self._lesson is None:
            raise InputError("a learner trains while it learns a lesson: call `train` in `learn_lesson`")
        experience, progress = self._lesson
        best = self._best_epoch(experience.validation) if self.training.watches else None
        recalibrates = self.training.recalibrate
        rows, drawn, stepped, batch = None, samples, None, None
        steps, seen = 0, list[Samples]()
        for epoch, batches in enumerate(Recipe(self.training, epochs).epochs(samples)):
            self.first_pass = epoch == 0
            self.backbone.train()
            losses, seen = [], []
            for turn in batches:
                # The same rows again make the same batch, unless the method has others for the step.
                if turn is not rows:
                    rows, drawn = turn, samples.select(turn)
                chosen = self.method.step_samples(self, drawn)
                if batch is None or chosen is not stepped:
                    stepped, batch = chosen, self.batch(chosen, training=True)
                losses.append(self._step(batch))
                seen.append(chosen)
            steps += len(losses)
            if progress:
                progress(epoch, fmean(losses))
            if best and batch:
                if recalibrates:
                    self._recalibrate(seen, batch)
                if best.is_over():
                    self._note_stop(steps)
                    break
        if best:
            best.restore()
        elif recalibrates and batch:
            self._recalibrate(seen, batch)

    def _best_epoch(self, validation: Samples) -> BestEpoch:
        pool = together(validation.pool)
        return BestEpoch(self, validation, [Samples(pool, *columns) for columns in self._validated])

    def _recalibrate(self, epoch: Sequence[Samples], latest: Batch) -> None:
        """Set BatchNorm's running statistics to those of an epoch's batches, as training sees them."""
        if not normalising(self.backbone):
            return
        # Inputs that are drawn are drawn alike every epoch, and without a trace.
        with seeded(0), recalibrating(self.backbone):
            for samples in epoch:
                inputs = latest.inputs if len(epoch) == 1 else self._feed.training_inputs(samples.pool, samples.ids)
                self.outputs(inputs)

    def _note_stop(self, steps: int) -> None:
        """Note that validation ended a lesson after so many steps, if it may have known too little for that."""
        if steps <= _SETTLING_STEPS and not self.training.recalibrate and any(map(used, normalising(self.backbone))):
            self.notes.append(UNSETTLED)

    def _step(self, batch: Batch) -> float:
        clear_gradients(self.optimizer)
        loss = self.method.loss(self, batch)
        value = loss.item()
        if not isfinite(value):
            raise LearningFailed(f"the loss of {self.lesson_in_words()} is {value}")
        loss.backward()
        self.method.gradients_ready(self)
        self.optimizer.step()
        self.method.step_done(self, batch)
        return value

    def lesson_in_words(self) -> str:
        """Return the lesson being learned as messages call it."""
        return f"lesson {len(self.taught)} ({', '.join(self.taught[-1].keys)})"

    def batch(self, samples: Samples, training: bool = False) -> Batch:
        """Return samples as a batch of this learner; `training`: as training sees them."""
        feed = self._feed.training_inputs if training else self._feed.inputs
        return replace(self._batch(feed(samples.pool, samples.ids), samples.labels, samples.step), sizes=samples.sizes)

    def batch_of(self, inputs: Inputs, labels: Tensor, step: Tensor) -> Batch:
        """Return inputs of a method's own making, as a pool has them, as a batch; labels and steps as samples have."""
        return self._batch(self.arranged(inputs), labels, step)

    def _batch(self, inputs: Inputs, labels: Tensor, step: Tensor) -> Batch:
        targets = self.problem.targets(labels, self.head)
        return Batch(
            inputs=inputs,
            targets=targets.to(self.device),
            weights=self.problem.weights(targets).to(self.device),
            among=self.scopes()[step].to(self.device),
        )

    def inputs(self, of: Samples | Queries) -> Inputs:
        """Return samples or queries as they enter the backbone."""
        return self._feed.inputs(of.pool, of.ids)

    def arranged(self, inputs: Inputs) -> Inputs:
        """Return inputs of a method's own making, as a pool has them, as they enter the backbone; they are not kept."""
        return self._feed.arranged(inputs)

    def plain(self, of: Samples | Queries, hops: int = 0, read_out: ReadOut = "mean") -> Tensor:
        """Return (N, F) what is known of samples or queries without a backbone; see `Inputs.plain`."""
        return self._feed.plain(of.pool, of.ids, hops, read_out)

    def scopes(self) -> Tensor:
        """Return (lessons + 1, outputs) bool: the columns of every lesson taught; in the last row, all."""
        told = (tuple(self.taught), tuple(self.head.outputs))
        if self._scopes is None or self._scopes[0] != told:
            # Once a lesson, not once a step: a stream has tiny steps and many lessons.
            columns = [self.columns_of(taught) for taught in self.taught]
            self._scopes = told, scopes(columns, len(self.head.outputs))
        return self._scopes[1]

    def columns_of(self, taught: Taught) -> list[int]:
        """Return the columns of the outputs of a lesson."""
        columns: list[int] = self.head.columns(torch.tensor(taught.outputs)).tolist()
        return columns

    def outputs(self, inputs: Inputs, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return (N, outputs) float32 for a batch's inputs, computed in the precision of the training recipe.

        weights: parameters and buffers of the model, by name, to be taken instead of its own. Of the head these may be
        other rows, and as many outputs then.
        """
        lower = self.training.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=lower):
            if weights is None:
                outputs: Tensor = self.model(inputs)
            else:
                outputs = functional_call(self.model, dict(weights), (inputs,))
        rows = self.head.rows if weights is None else weights.get("head.rows", self.head.rows)
        if outputs.shape != (expected := (len(inputs), len(rows))):
            raise InputError(f"outputs: expected {expected}, one row per query, found {tuple(outputs.shape)}")
        return outputs.float() if lower else outputs

    def outputs_apart(self, inputs: Inputs) -> Tensor:
        """Return the outputs of inputs that pass beside a step's own, without a trace in running statistics.

        One sample alone passes as queries do: BatchNorm needs two for statistics of their own.
        """
        if len(inputs) == 1:
            with self.answering():
                return self.outputs(inputs)
        # Not put back afterwards, as `statistics_kept` does: that would be before the gradient is taken.
        return self.outputs(inputs, {name: buffer.clone() for name, buffer in self.model.named_buffers()})

    def embeddings(self, inputs: Inputs) -> Tensor:
        """Return (N, width) what the head is given for a batch's inputs, computed in the recipe's precision."""
        lower = self.training.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=lower):
            embeddings = self.model.embed(inputs)
        return embeddings.float() if lower else embeddings

    def edge_attention(self, inputs: Inputs) -> list[Tensor]:
        """Return, per layer, the attention of every edge; for methods that need "edge attention"."""
        attention: Callable[[Any], list[Tensor]] = self.backbone.edge_attention  # type: ignore[assignment]
        return attention(inputs.content)

    @torch.no_grad()
    def aggregated(self, inputs: Inputs) -> Tensor:
        """Return (N, F) what a backbone aggregates over neighbours, before it learns anything of it.

        For methods that need "aggregated features": nodes without neighbours that have them as features get the same
        embeddings.
        """
        aggregate: Callable[[Any], Tensor] = self.backbone.aggregated  # type: ignore[assignment]
        return aggregate(inputs.content)

    def task_loss(self, batch: Batch) -> Tensor:
        """Return the problem's loss of a batch, each sample answered among what it reveals."""
        return self.loss_of(self.outputs(batch.inputs), batch)

    def loss_of(self, outputs: Tensor, batch: Batch, among: Tensor | None = None) -> Tensor:
        """Return Σᵢ wᵢ·lossᵢ of a batch's outputs with its weights, answered `among` these columns only, if given."""
        allowed = batch.among if among is None else batch.among & among
        return (self.problem.losses(outputs, batch.targets, allowed) * batch.weights).sum()

    def losses_of_parts(self, outputs: Tensor, batch: Batch) -> list[Tensor]:
        """Return the loss of each of the origins that a batch's samples are of, its weights among them alone."""
        sizes = list(batch.sizes or (len(batch),))
        parts = zip(*(table.split(sizes) for table in (outputs, batch.targets, batch.among)), strict=True)
        problem = self.problem
        return [
            (problem.losses(found, targets, among) * problem.weights(targets)).sum() for found, targets, among in parts
        ]

    def answer(self, queries: Queries, seed: int = 0) -> Tensor:
        """Return (queries, `head.span`) the outputs for every query, −∞ for what was never met.

        seed: decides what a backbone may draw meanwhile.
        """
        self.backbone.eval()
        answers = torch.full((len(queries), self.head.span), -torch.inf)
        with seeded(seed), self._feed.untouched(), torch.no_grad():
            for step, rows in self._asked_together(queries):
                asked = Queries(queries.pool, queries.ids[rows], queries.step[rows])
                outputs = self.method.answer(self, asked, step)
                answers[rows[:, None], self.head.outputs] = outputs.to(answers)
        return answers

    def _asked_together(self, queries: Queries) -> Iterator[tuple[int, Tensor]]:
        """Yield the rows of queries that are answered at once, with the step that all of them reveal.

        A method that answers as the model does need not know the step: its queries are asked whatever they reveal.
        """
        steps = queries.step if overrides(type(self.method), "answer") else torch.full_like(queries.step, -1)
        for step in steps.unique().tolist():
            rows = (steps == step).nonzero()[:, 0]
            independent = self._feed.inputs(queries.pool, queries.ids[rows[:1]]).independent
            yield from ((step, some) for some in rows.split(_ANSWERED_AT_ONCE if independent else len(rows)))

    def parameters(self) -> list[nn.Parameter]:
        """Return the trainable parameters, those of the head last: earlier vectors are beginnings of later ones."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def parameter_vector(self) -> Tensor:
        """Return all trainable parameters as one vector, differentiably."""
        return torch.cat([parameter.flatten() for parameter in self.parameters()])

    def gradient_of(self, value: Tensor, retain_graph: bool = False) -> Tensor:
        """Return the gradient of `value` by all trainable parameters as one vector."""
        parameters = self.parameters()
        gradients = torch.autograd.grad(value, parameters, retain_graph=retain_graph, allow_unused=True)
        pairs = zip(parameters, gradients, strict=True)
        return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in pairs])

    def gradients_of(self, values: Sequence[Tensor]) -> Tensor:
        """Return (L, P) the gradients of L values by all trainable parameters; they may be of one graph."""
        parameters = self.parameters()
        sizes = [parameter.numel() for parameter in parameters]
        found = torch.zeros(len(values), sum(sizes), device=self.device)
        for row, value in zip(found, values, strict=True):
            gradients = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
            for part, gradient in zip(row.split(sizes), gradients, strict=True):
                if gradient is not None:
                    part.copy_(gradient.flatten())
        return found

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

    def seed_of(self, purpose: str) -> int:
        """Return a seed that depends on the learner's seed alone: the same in all orders that start alike."""
        return seed_of(purpose, self._seed)

    def seed_of_lesson(self, purpose: str, experience: Experience) -> int:
        """Return a seed that depends on the learner's seed and on what a lesson teaches, not on what came before."""
        return seed_of(purpose, self._seed, *sorted(experience.keys))

    def seed_of_draw(self, purpose: str, number: int) -> int:
        """Return a seed that depends on the learner's seed and on a count of the method's own: for draws in steps.

        The generators that a lesson seeds begin anew with every piece of a stream; a count goes on wherever it is cut.
        """
        return seed_of(purpose, self._seed, number)

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
        return make_optimizer(self.training, self.parameters(), self.head)

    def state(self) -> dict[str, Any]:
        """Return everything a learner is, as tensors and plain values that later learning leaves alone."""
        state = {
            "backbone": dict(self.backbone.state_dict()),
            "outputs": self.head.outputs,
            "rows": self.head.rows.detach(),
            "taught": [[list(taught.keys), list(taught.outputs)] for taught in self.taught],
            "optimizer": self.optimizer.state_dict()["state"],
            "method": self.method.state(),
        }
        if self._watches_past:
            state["validated"] = [list(columns) for columns in self._validated]
        return copy.deepcopy(state)

    def restore(self, state: dict[str, Any]) -> None:
        """Become the learner whose `state` this is; learning on is bit-identical to never having stopped."""
        self.backbone.load_state_dict(state["backbone"])
        self.head.restore(state["outputs"], state["rows"])
        self.taught = [Taught(tuple(keys), tuple(outputs)) for keys, outputs in state["taught"]]
        self.optimizer = self._new_optimizer()
        # Here and there what is given is copied, or never changed.
        remind(self.optimizer, state["optimizer"])
        self._validated = [(ids, labels, step) for ids, labels, step in state.get("validated", [])]
        self.method.restore(state["method"])


def ready_device(training: Training) -> torch.device:
    """Return the device of a recipe, ready for its precision."""
    device = choose_device(training.device)
    if training.precision == "bfloat16" and device.type == "cpu":
        ensure_bfloat16_works()
    return device
