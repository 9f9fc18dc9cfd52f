"""MAS* against a plain record of its steps: what it holds, what it adds to the loss, and that it is Bare without."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Batch, Learner, Model
from skeleton_cgl.learning.method import Method, make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.bare import Bare
from skeleton_cgl.methods.mas_star import MASStar
from skeleton_cgl.methods.plateaus import PlateauDetector
from skeleton_cgl.scenarios.scenario import Samples
from tests.core.cases import CASES, STREAM, Case, study_of
from tests.learning.by_hand import inputs_of
from tests.learning.learners import learn_tasks, small_learner, weights_of
from tests.methods.test_importance import Named, gradients_by_name, named
from tests.methods.test_step_replay import first_run
from tests.scenarios.small import SETTINGS, lesson, scenario_of

EAGER: dict[str, Any] = {"window": 2, "mean": 9.0, "variance": 9.0, "hard": 5, "recent": 14, "strength": 20.0}
"""A plateau as soon as the window is full, and after every peak."""
PAIRS = ((5, 2), (0, 4), (1, 3))
"""Of a class that is alone among its answers the loss is zero, which is a plateau."""


@dataclass
class Step:
    """A step as it was seen from outside. columns: those that each of its samples is answered among."""

    samples: Samples
    before: Model
    after: Model
    loss: float
    columns: list[list[int]]


class Recording(PlateauDetector):
    """A detector that writes down what it is given."""

    def __init__(self, detector: PlateauDetector) -> None:
        super().__init__(detector.window, detector.mean, detector.variance)
        self.given: list[float] = []

    def finds_plateau(self, loss: float) -> bool:
        self.given.append(loss)
        return super().finds_plateau(loss)


class Watched(MASStar):
    """MAS* that writes down every step, and does nothing else."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.detector = self.recording = Recording(self.detector)
        self.steps: list[Step] = []
        self.held: list[tuple[int, Named, Named]] = []

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        before = copy.deepcopy(learner.model)
        found = super().loss(learner, batch)
        columns = [row.nonzero()[:, 0].tolist() for row in batch.among]
        assert self._samples is not None
        self.steps.append(Step(self._samples, before, before, found.item(), columns))
        return found

    def step_done(self, learner: Learner, batch: Batch) -> None:
        statistics = [buffer.clone() for buffer in learner.backbone.buffers()]
        training, drawn = learner.backbone.training, torch.random.get_rng_state()
        super().step_done(learner, batch)
        assert learner.backbone.training == training
        assert torch.equal(torch.random.get_rng_state(), drawn)
        assert all(map(torch.equal, learner.backbone.buffers(), statistics))
        self.steps[-1].after = copy.deepcopy(learner.model)
        if self.anchor is not None:
            size = sum(value.numel() for value in learner.parameters())
            parts = (torch.cat([part, part.new_zeros(size - len(part))]) for part in vars(self.anchor).values())
            self.held.append((self.consolidations, *(named(part, learner) for part in parts)))


def on_stream(method: Method, folder: Path, every: int = 3) -> Iterator[Learner]:
    """Yield a learner with this method after every piece of the stream."""
    study = study_of(replace(STREAM, scenario={**STREAM.scenario, "every": every}), folder, methods=["bare"])
    _, scenario, stages = first_run(study)
    learner = stages[0].new_learner(study, scenario)
    learner.method = method
    for stage in stages:
        learner.learn(scenario.experience(stage.prefix), stage.seed(study))
        yield learner


def in_task_il(method: Method, small: Path) -> Learner:
    """Return a learner of clips, whose samples are answered among the classes of their tasks, after three tasks."""
    scenario = scenario_of(small, "task-il")
    learner = small_learner(scenario, batch_size=6)
    learner.method = method
    return learn_tasks(learner, scenario, *PAIRS)


def losses_by_hand(step: Step) -> list[float]:
    """Return log Σ_c exp z_c − z_y for every sample, of the model as it was before the step, while it learned."""
    outputs = copy.deepcopy(step.before).train()(inputs_of(step.samples, step.before.backbone))
    targets = [step.before.head.outputs.index(label) for label in step.samples.labels.tolist()]
    rows = zip(outputs, targets, step.columns, strict=True)
    return [(row[columns].exp().sum().log() - row[target]).item() for row, target, columns in rows]


def balanced(losses: list[float], labels: list[int]) -> float:
    by_class = [[loss for loss, label in zip(losses, labels, strict=True) if label == kind] for kind in set(labels)]
    return sum(sum(each) / len(each) for each in by_class) / len(by_class)


@dataclass
class ByHand:
    """Ω and θ* by the name of a parameter, from the steps alone."""

    method: Watched
    omega: Named
    anchor: Named
    consolidations: int = 0

    def penalty(self, model: Model) -> float:
        """λ/2 Σ Ω (θ − θ*)², one parameter after the other, without rows of the head that came later."""
        total = 0.0
        for name, value in model.named_parameters():
            if name in self.anchor:
                known = len(self.anchor[name])
                total += float((self.omega[name] * (value.detach()[:known] - self.anchor[name]) ** 2).sum())
        return self.method.strength / 2 * total

    def consolidate(self, model: Model, samples: Samples, columns: list[list[int]]) -> None:
        answering = copy.deepcopy(model).eval()
        outputs = answering(inputs_of(samples, model.backbone))
        entries = [row[column] for row, among in zip(outputs, columns, strict=True) for column in among]
        mean_square = torch.stack(entries).square().sum() / len(entries)
        self.consolidations += 1
        k = self.consolidations
        for name, gradient in gradients_by_name(answering, mean_square).items():
            past = torch.zeros_like(gradient)
            if name in self.omega:
                past[: len(self.omega[name])] = self.omega[name]
            self.omega[name] = (k - 1) / k * past + gradient.abs() / k
        self.anchor = {name: value.detach().clone() for name, value in model.named_parameters()}


def follow(method: Watched) -> int:
    """Check every step of a method against what follows from the steps before; return how often the head had grown."""
    hand = ByHand(method, {}, {})
    detector = PlateauDetector(method.detector.window, method.detector.mean, method.detector.variance)
    seen: dict[int, tuple[float, Samples, list[int]]] = {}
    held = iter(method.held)
    sizes = []
    penalties = []
    for step, given in zip(method.steps, method.recording.given, strict=True):
        losses = losses_by_hand(step)
        task_loss, penalty = balanced(losses, step.samples.labels.tolist()), hand.penalty(step.before)
        assert step.loss == pytest.approx(task_loss + penalty, rel=1e-4, abs=1e-6)
        for row in sorted(range(len(losses)), key=lambda row: losses[row]):
            one = step.samples.select(torch.tensor([row]))
            seen.pop(int(one.ids), None)
            seen[int(one.ids)] = losses[row], one, step.columns[row]
        penalties.append(penalty)
        watched = task_loss + penalty if method.watched == "total" else task_loss
        assert given == pytest.approx(watched, rel=1e-4, abs=1e-6)
        if detector.finds_plateau(watched):
            chosen = sorted(list(seen.values())[-method.memory.recent :], key=lambda one: -one[0])[: method.memory.hard]
            columns = [among for *_, among in chosen]
            if int(step.samples.step[0]) == -1:
                # What reveals nothing is answered among all that has been met by now.
                columns = [step.columns[0] for _ in chosen]
            ids = torch.tensor([int(one.ids) for _, one, _ in chosen])
            samples = replace(step.samples, ids=ids)
            if method.kind == "batch":
                samples, columns = step.samples, step.columns
            hand.consolidate(step.after, samples, columns)
            sizes.append(len(step.after.head.outputs))
        if hand.consolidations:
            count, anchor, omega = next(held)
            assert count == hand.consolidations
            for name in hand.omega:
                known = len(hand.omega[name])
                largest = float(hand.omega[name].max())
                torch.testing.assert_close(omega[name][:known], hand.omega[name], rtol=1e-3, atol=1e-4 * largest)
                assert not omega[name][known:].any()
                assert torch.equal(anchor[name][:known], hand.anchor[name])
    assert next(held, None) is None
    assert max(penalties) > 0.01
    assert method.consolidations == hand.consolidations == len(sizes)
    return len(set(sizes))


@pytest.mark.parametrize("importance", ["hard", "batch"])
@pytest.mark.parametrize("watched", ["task", "total"])
def test_what_is_held_and_what_it_adds_to_the_loss_are_as_computed_by_hand(
    importance: str, watched: str, tmp_path: Path
) -> None:
    """The head grows between consolidations."""
    method = Watched(**EAGER, importance=importance, watched=watched)
    *_, _ = on_stream(method, tmp_path)
    assert follow(method) > 1
    assert method.consolidations > 2


@pytest.mark.parametrize("importance", ["hard", "batch"])
def test_in_task_il_the_outputs_of_other_tasks_do_not_count(importance: str, small: Path) -> None:
    """Also of clips from several epochs, of which each is among the recent ones once."""
    method = Watched(**{**EAGER, "window": 1}, importance=importance)
    in_task_il(method, small)
    assert follow(method) > 1
    assert method.consolidations > 2


def test_a_loss_that_is_low_and_stays_so_is_consolidated_once(small: Path) -> None:
    """Of one class alone the loss is zero."""
    scenario = scenario_of(small)
    learner = learn_tasks(small_learner(scenario, "mas-star", epochs=4), scenario, (0,))
    assert learner.method.consolidations == 0
    learner = learn_tasks(small_learner(scenario, "mas-star", epochs=40), scenario, (0,))
    assert learner.method.consolidations == 1
    assert learner.method.samples_kept() == len(lesson(scenario, (0,)).training)


def test_a_peak_of_the_loss_lets_the_next_plateau_be_consolidated(small: Path) -> None:
    """With a second class the loss rises, and falls again; with no more of either nothing comes."""
    scenario = scenario_of(small)
    learner = small_learner(scenario, "mas-star", {"strength": 0}, epochs=200, learning_rate=0.05)
    counts = []
    for stage, order in enumerate((((0,),), ((0,), (3,)))):
        learner.learn(lesson(scenario, *order), stage)
        counts.append(learner.method.consolidations)
    assert counts == [1, 2]


def test_before_the_first_consolidation_and_in_the_step_after_it_mas_star_is_bare_to_the_bit(tmp_path: Path) -> None:
    """The seventh step is the first with a penalty, which is then at its minimum: zero."""
    eager = MASStar(**{**EAGER, "window": 6})
    runs = zip(on_stream(eager, tmp_path, every=1), on_stream(Bare(), tmp_path, every=1), strict=True)
    alike = [torch.equal(weights_of(found), weights_of(bare)) for found, bare in runs]
    assert alike == [True] * 7 + [False] * 11
    assert eager.consolidations


def states_without_method(learner: Learner) -> bytes:
    state = learner.state()
    del state["method"]
    return to_bytes(state)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    ("parameters", "consolidates"),
    [({"mean": 1e-9}, False), ({**EAGER, "strength": 0}, True), ({**EAGER, "variance": 1e-30}, False)],
    ids=["mean never falls", "no strength", "variance never falls"],
)
def test_without_plateaus_or_without_strength_mas_star_is_bare_for_ever(
    parameters: dict, consolidates: bool, setting: str, small: Path, tmp_path: Path
) -> None:
    method = MASStar(**parameters)
    *_, found = on_stream(method, tmp_path)
    *_, bare = on_stream(Bare(), tmp_path)
    assert states_without_method(found) == states_without_method(bare)
    assert bool(method.consolidations) == consolidates
    scenario = scenario_of(small, setting)
    for recipe in ({"batch_size": 6}, {"patience": 2, "epochs": 6}):
        learners = [
            small_learner(scenario, "mas-star", parameters, **recipe),
            small_learner(scenario, **recipe),
        ]
        clips, plain = (states_without_method(learn_tasks(learner, scenario, *PAIRS)) for learner in learners)
        assert clips == plain


@pytest.mark.parametrize("importance", ["hard", "batch"])
@pytest.mark.parametrize("watched", ["task", "total"])
def test_saved_and_restored_after_every_step_of_a_stream_it_learns_the_same_to_the_bit(
    importance: str, watched: str, tmp_path: Path
) -> None:
    parameters = {**EAGER, "importance": importance, "watched": watched}
    *_, whole = on_stream(MASStar(**parameters), tmp_path, every=18)
    counts = []
    for learner in on_stream(MASStar(**parameters), tmp_path, every=1):
        saved = from_bytes(to_bytes(learner.state()))
        counts.append(learner.method.consolidations)
        learner.method = MASStar(**parameters)
        learner.restore(saved)
    expected, found = whole.state(), learner.state()
    assert len(expected.pop("taught")) == 1
    assert len(found.pop("taught")) == 18
    assert to_bytes(found) == to_bytes(expected)
    assert counts[-1] > 2
    assert learner.method.samples_kept() == (14 if importance == "hard" else 0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_importance_of_a_batch_is_finite_and_felt_on_every_problem(case: Case, tmp_path: Path) -> None:
    """The hard buffer is tried beside the memories of other methods."""
    study = study_of(case, tmp_path, methods=[{"name": "mas-star", **EAGER, "importance": "batch"}])
    _, scenario, stages = first_run(study)
    learner = stages[0].new_learner(study, scenario)
    for stage in stages:
        learner.learn(scenario.experience(stage.prefix), stage.seed(study))
    assert learner.method.anchor.importance.isfinite().all()
    assert learner.method.anchor.importance.any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"strength": -1}, "strength -1 is negative"),
        ({"window": 0}, "window 0 is not a whole number of at least 1"),
        ({"window": 2.5}, "window 2.5 is not a whole number of at least 1"),
        ({"mean": 0}, "mean must be positive, found 0"),
        ({"variance": -0.1}, "variance must be positive, found -0.1"),
        ({"importance": "bach"}, "unknown importance 'bach'; did you mean 'batch'"),
        ({"watched": "totl"}, "unknown watched 'totl'; did you mean 'total'"),
        ({"hard": 0}, "hard 0 is not a whole number of at least 1"),
        ({"recent": 0}, "recent 0 is not a whole number of at least 1"),
        ({"recent": 19}, "hard 20 is more than the last 19 samples they are chosen from"),
    ],
)
def test_wrong_parameters_are_refused_in_words(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=rf"^method 'mas-star': {message}"):
        make_method("mas-star", parameters)
