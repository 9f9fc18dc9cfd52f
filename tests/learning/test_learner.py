"""The learner: its loss, its head and optimizer through a sequence, batches, early stopping, failures, randomness."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import LearningFailed, Method
from skeleton_cgl.learning.state import to_bytes
from skeleton_cgl.learning.training import Training
from skeleton_cgl.methods import SHARED
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.scenario import Experience, GivenBatches, Samples, join
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.skeletons import Augmentation
from tests.learning.by_hand import inputs_of
from tests.learning.learners import (
    ORDER,
    answers_after_every_stage,
    assert_same_to_the_bit,
    learn_tasks,
    small_learner,
    weights_of,
)
from tests.scenarios.small import SETTINGS, lesson, scenario_of


class Watching(Method):
    """Bare, with what it saw written down: the learner before every task, and every batch."""

    def __init__(self) -> None:
        self.beginnings: list[dict] = []
        self.batches: list[Batch] = []

    def begin_lesson(self, learner: Learner, experience: Experience) -> None:  # noqa: ARG002
        rows = learner.head.rows
        self.beginnings.append(
            {
                "rows": {label: row.detach().clone() for label, row in zip(learner.head.outputs, rows, strict=True)},
                "optimizer": {name: value.clone() for name, value in learner.optimizer.state.get(rows, {}).items()},
            }
        )

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        self.batches.append(batch)
        return super().loss(learner, batch)


WATCHING = f"{__name__}:Watching"


@pytest.mark.parametrize("setting", SETTINGS)
def test_classes_count_equally_and_each_sample_is_among_what_the_setting_allows(small: Path, setting: str) -> None:
    """The loss of an unbalanced batch of two tasks, sample by sample."""
    scenario = scenario_of(small, setting)
    learner = small_learner(scenario)
    learn_tasks(learner, scenario, (4, 1), (0, 5, 2))
    rows = {4: 7, 1: 1, 0: 3, 2: 2}
    seen = join([lesson(scenario, (4, 1)).training, lesson(scenario, (4, 1), (0, 5, 2)).training])
    parts = [seen.select((seen.labels == label).nonzero()[:count, 0]) for label, count in rows.items()]
    samples = join(parts)
    batch = learner.batch(samples)
    outputs = learner.outputs(batch.inputs)
    task_of = {4: (4, 1), 1: (4, 1), 0: (0, 5, 2), 2: (0, 5, 2)}
    expected = 0.0
    for label, output in zip(samples.labels.tolist(), outputs, strict=True):
        among = task_of[label] if setting == "task-il" else (4, 1, 0, 5, 2)
        likely = {other: output[learner.head.outputs.index(other)] for other in among}
        loss = torch.stack(list(likely.values())).logsumexp(dim=0) - likely[label]
        expected = expected + loss / rows[label] / len(rows)
    torch.testing.assert_close(learner.task_loss(batch), expected)
    torch.testing.assert_close(float(batch.weights.sum()), 1.0)


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_one_optimizer_lives_through_the_sequence_unless_it_is_reset(small: Path, optimizer: str, reset: bool) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, optimizer=optimizer, reset_optimizer=reset, epochs=3)
    first = learner.optimizer
    learn_tasks(learner, scenario, *ORDER)
    assert (learner.optimizer is first) != reset
    assert {id(parameter) for group in learner.optimizer.param_groups for parameter in group["params"]} == {
        id(parameter) for parameter in learner.parameters()
    }
    if optimizer == "adam":
        steps = {int(state["step"]) for state in learner.optimizer.state.values()}
        assert steps == {3 if reset else 9}


def test_the_memory_of_adam_grows_with_the_head_and_keeps_what_it_knows(small: Path) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, WATCHING)
    before = []
    for stage in range(len(ORDER)):
        learner.learn(lesson(scenario, *ORDER[: stage + 1]), stage)
        before.append({name: value.clone() for name, value in learner.optimizer.state[learner.head.rows].items()})
    for stage in (1, 2):
        at_start = learner.method.beginnings[stage]["optimizer"]
        met = sum(len(task) for task in ORDER[:stage])
        for name in ("exp_avg", "exp_avg_sq"):
            assert before[stage - 1][name].any()
            assert torch.equal(at_start[name][:met], before[stage - 1][name])
            assert len(at_start[name]) == met + len(ORDER[stage])
            assert not at_start[name][met:].any()
        assert at_start["step"] == before[stage - 1]["step"] == 3 * stage
    assert learner.method.beginnings[0]["optimizer"] == {}


def test_adam_goes_on_as_one_adam_over_a_head_that_was_there_from_the_start(small: Path) -> None:
    """By hand: one Adam, all rows there from the beginning, and rows not yet met without gradient and thus unmoved."""
    scenario = scenario_of(small)
    learner = small_learner(scenario, WATCHING)
    tasks = ((0, 1), (2, 3))
    learn_tasks(learner, scenario, *tasks)
    start = small_learner(scenario)
    start.head.meet((0, 1))
    start.head.meet((2, 3))
    optimizer = torch.optim.Adam(start.model.parameters(), lr=0.01)
    for stage, task in enumerate(tasks):
        samples = lesson(scenario, task).training
        seen = 2 * (stage + 1)
        for _ in range(3):
            start.backbone.train()
            outputs = start.model(inputs_of(samples, start.backbone))[:, :seen]
            counts = torch.bincount(samples.labels, minlength=seen).float()
            weight = torch.where(counts > 0, 1 / counts, 0)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(outputs, samples.labels, weight=weight).backward()
            optimizer.step()
    torch.testing.assert_close(weights_of(learner), weights_of(start), atol=1e-4, rtol=1e-4)


def test_a_class_starts_with_the_same_row_in_every_order(small: Path) -> None:
    scenario = scenario_of(small)
    starts: dict[int, Tensor] = {}
    for order in (((0, 1), (2, 3), (4, 5)), ((5,), (3, 0, 4), (2,), (1,))):
        learner = small_learner(scenario, WATCHING, epochs=1)
        for stage, task in enumerate(order):
            learner.learn(lesson(scenario, *order[: stage + 1]), stage)
            for label in task:
                row = learner.method.beginnings[-1]["rows"][label]
                assert torch.equal(row, starts.setdefault(label, row))
    assert len({tuple(row.tolist()) for row in starts.values()}) == 6
    other = small_learner(scenario, WATCHING, epochs=1, seed=1)
    other.learn(lesson(scenario, (0,)), 0)
    assert not torch.equal(other.method.beginnings[0]["rows"][0], starts[0])


def test_a_label_that_a_lesson_does_not_announce_is_refused(small: Path) -> None:
    scenario = scenario_of(small)
    announced, more = lesson(scenario, (0, 1)), lesson(scenario, (0, 1, 5))
    with pytest.raises(InputError, match=r"label outside the classes met so far, \[0, 1\]"):
        small_learner(scenario).learn(replace(announced, training=more.training), 0)


def test_answers_are_given_for_every_output_and_minus_infinity_where_never_met(small: Path) -> None:
    scenario = scenario_of(small)
    answers = answers_after_every_stage(small_learner(scenario), scenario, [(5, 1), (0,)])
    for answer, met in zip(answers, ([1, 5], [0, 1, 5]), strict=True):
        assert answer.shape == (len(scenario.queries(())), 6)
        assert answer[:, met].isfinite().all()
        assert answer[:, [label for label in range(6) if label not in met]].isneginf().all()


def test_answers_are_the_same_however_many_queries_are_asked_at_once(small: Path) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario)
    learner.learn(lesson(scenario, (3, 1)), 0)
    queries = scenario.queries(())
    rows = [torch.tensor([row]) for row in range(len(queries))]
    alone = [learner.answer(replace(queries, ids=queries.ids[row], step=queries.step[row])) for row in rows]
    torch.testing.assert_close(learner.answer(queries), torch.cat(alone))
    many = replace(queries, ids=queries.ids.repeat(60), step=queries.step.repeat(60))
    torch.testing.assert_close(learner.answer(many), torch.cat(alone).repeat(60, 1))


@pytest.mark.parametrize("patience", [1, 3])
def test_early_stopping_goes_back_to_the_best_epoch(small: Path, patience: int) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, patience=patience, epochs=40, learning_rate=0.02)
    learner.learn(lesson(scenario, (0, 1)), 0)
    experience = lesson(scenario, (0, 1), (2, 3, 4))
    validation, losses, weights = learner_batch(learner, experience), [], []

    def look(_: int, __: float) -> None:
        losses.append(validation())
        weights.append({name: value.clone() for name, value in learner.model.state_dict().items()})

    learner.learn(experience, 1, look)
    best = losses.index(min(losses))
    assert len(losses) == min(40, best + 1 + patience)
    assert 0 < best < 39
    assert validation() == losses[best] < losses[-1]
    assert all(torch.equal(value, weights[best][name]) for name, value in learner.model.state_dict().items())


def learner_batch(learner: Learner, experience: Experience) -> Callable[[], float]:
    """Return a function that gives the validation loss of the learner as it is."""

    def loss() -> float:
        with learner.answering(), torch.no_grad():
            return float(learner.task_loss(learner.batch(experience.validation)))

    return loss


def test_without_patience_all_epochs_are_learned(small: Path) -> None:
    scenario = scenario_of(small)
    seen = []
    learner = small_learner(scenario, epochs=7, learning_rate=0.1)
    learner.learn(lesson(scenario, (0, 1)), 0, lambda epoch, loss: seen.append((epoch, loss)))
    assert [epoch for epoch, _ in seen] == list(range(7))
    assert seen[-1][1] < seen[0][1]


def numbers_of(batch: Batch, everything: Tensor) -> list[int]:
    """Return which of all clips are in a batch."""
    return [int((everything == clip).flatten(1).all(dim=1).nonzero()) for clip in batch.inputs.parts[0]]


@pytest.mark.parametrize("size", [2, 3, 5, 6, 7, 12, 13, 24, 25, 26])
def test_every_sample_is_in_one_batch_of_every_epoch_and_none_is_alone(small: Path, size: int) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, WATCHING, batch_size=size, epochs=2)
    experience = lesson(scenario, (0, 1, 2))
    experience = replace(experience, training=experience.training.select(torch.arange(25)))
    ids = experience.training.ids
    told = []
    learner.learn(experience, 0, lambda _, loss: told.append(loss))
    everything = experience.training.pool.whole().arranged(learner.backbone.arrange).parts[0]
    sizes = [len(batch) for batch in learner.method.batches]
    expected = [size] * (25 // size) + ([25 % size] if 25 % size else [])
    if expected[-1] == 1:
        expected = [*expected[:-2], size + 1]
    assert sizes == expected * 2
    half = len(sizes) // 2
    epochs = [
        [number for batch in batches for number in numbers_of(batch, everything)]
        for batches in (learner.method.batches[:half], learner.method.batches[half:])
    ]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(ids.tolist())
    if size < 25:
        assert epochs[0] != epochs[1]
    for batch in learner.method.batches:
        numbers = numbers_of(batch, everything)
        truth = dict(zip(ids.tolist(), experience.training.labels.tolist(), strict=True))
        assert batch.targets.tolist() == [truth[number] for number in numbers]
    assert len(told) == 2


def test_a_batch_larger_than_the_task_is_the_whole_task(small: Path) -> None:
    scenario = scenario_of(small)
    whole = answers_after_every_stage(small_learner(scenario), scenario)
    assert_same_to_the_bit(answers_after_every_stage(small_learner(scenario, batch_size=500), scenario), whole)


def test_progress_tells_the_mean_loss_of_an_epoch(small: Path) -> None:
    class Counting(Method):
        def __init__(self) -> None:
            self.losses: list[float] = []

        def loss(self, learner: Learner, batch: Batch) -> Tensor:
            loss = super().loss(learner, batch)
            self.losses.append(loss.item())
            return loss

    scenario = scenario_of(small)
    learner = small_learner(scenario, batch_size=6, epochs=3)
    learner.method, told = Counting(), []
    learner.learn(lesson(scenario, (0, 1)), 0, lambda _, loss: told.append(loss))
    each = torch.tensor(learner.method.losses, dtype=torch.float64).view(3, -1)
    assert each.shape[1] > 2
    torch.testing.assert_close(torch.tensor(told, dtype=torch.float64), each.mean(dim=1))


def test_a_loss_that_is_not_finite_fails_and_says_so(small: Path) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, learning_rate=1e30, optimizer="sgd", epochs=20)
    before = torch.get_rng_state()
    with pytest.raises(LearningFailed, match=r"the loss of lesson 1 \(wave, nod\) is (nan|inf)"):
        learner.learn(lesson(scenario, (0, 1)), 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_validation_loss_that_is_not_finite_fails_and_says_so(small: Path, tmp_path: Path) -> None:
    (tmp_path / "fragile.py").write_text(
        "import torch\n"
        "from skeleton_cgl.backbones.clips.gcn import GCN\n"
        "class Fragile(GCN):\n"
        "    def __init__(self, features, layout):\n"
        "        super().__init__(features, layout, 6)\n"
        "    def forward(self, inputs):\n"
        "        embeddings = super().forward(inputs)\n"
        "        return embeddings if self.training else embeddings * torch.inf\n"
    )
    scenario = scenario_of(small)
    learner = small_learner(scenario, backbone=str(tmp_path / "fragile.py"), patience=2)
    with pytest.raises(LearningFailed, match=r"the validation loss of lesson 1 \(wave, nod\) is nan"):
        learner.learn(lesson(scenario, (0, 1)), 0)


def test_learning_depends_on_its_seed_and_on_no_other_randomness(small: Path) -> None:
    """Dropout, augmentation and mini-batches draw; the global random state neither matters nor moves."""
    scenario = SkeletonScenario(small, augmentation=Augmentation())

    def learned(seed: int, before: Callable[[], object]) -> bytes:
        before()
        state = torch.get_rng_state()
        learner = small_learner(scenario, backbone="stgcn", batch_size=6, epochs=2)
        learner.backbone.blocks[0].dropout.p = 0.4
        learner.learn(lesson(scenario, (0, 1)), seed)
        learner.answer(scenario.queries(()))
        assert torch.equal(torch.get_rng_state(), state)
        return to_bytes(learner.state())

    with torch.random.fork_rng():
        first = learned(3, lambda: torch.manual_seed(1))
        assert learned(3, lambda: torch.manual_seed(2)) == first
        assert learned(3, lambda: learned(5, lambda: torch.rand(7))) == first
        assert learned(4, lambda: None) != first


def test_the_first_weights_follow_the_seed_of_the_learner(small: Path) -> None:
    scenario = scenario_of(small)
    first, again, other = (small_learner(scenario, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(weights_of(first), weights_of(again))
    assert not torch.equal(weights_of(first), weights_of(other))


def test_unknown_methods_and_parameters_are_refused_with_the_nearest_name(small: Path) -> None:
    scenario = scenario_of(small)
    with pytest.raises(InputError, match="unknown method 'ecw'; did you mean 'ewc'"):
        small_learner(scenario, "ecw")
    with pytest.raises(InputError, match="method 'ewc': unknown parameter 'strenght'; did you mean 'strength'"):
        small_learner(scenario, "ewc", {"strenght": 3})
    with pytest.raises(InputError, match="method 'bare': unknown parameter 'strength'"):
        small_learner(scenario, "bare", {"strength": 3})
    with pytest.raises(InputError, match="unknown backbone 'gnc'; did you mean 'gcn'"):
        small_learner(scenario, backbone="gnc")


def test_what_methods_share_is_no_method() -> None:
    names = METHODS.names()
    assert {"bare", "ewc", "gem", "joint", "lwf", "mas", "replay", "twp"} <= set(names)
    assert not {name.replace("_", "-") for name in SHARED} & set(names)
    for name in names:
        METHODS.find(name)


class Remembering(Method):
    """Adds, to every step, the samples of the step before."""

    def __init__(self) -> None:
        self.before: list[Samples] = []
        self.seen: list[list[int]] = []

    def step_samples(self, learner: Learner, samples: Samples) -> Samples:  # noqa: ARG002
        self.before.append(samples)
        return join(self.before[-2:])

    def step_done(self, learner: Learner, batch: Batch) -> None:
        self.seen.append(labels_of(batch, learner))


def labels_of(batch: Batch, learner: Learner) -> list[int]:
    return [learner.head.outputs[column] for column in batch.targets.tolist()]


def streamed(experience: Experience, *sizes: int) -> Experience:
    """Return a lesson whose training samples come once, in batches of these sizes."""
    batches = torch.arange(sum(sizes)).split(list(sizes))
    return replace(
        experience, training=experience.training.select(torch.arange(sum(sizes))), pace=GivenBatches(tuple(batches))
    )


def test_a_piece_of_a_stream_is_gone_through_once_in_its_batches_and_has_no_borders(small: Path) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, WATCHING, epochs=50, batch_size=3, patience=1)
    experience = streamed(lesson(scenario, (0, 1)), 4, 2, 7)
    told: list[int] = []
    learner.learn(experience, 0, lambda epoch, _: told.append(epoch))
    assert told == [0]
    labels = experience.training.labels.split([4, 2, 7])
    assert [labels_of(batch, learner) for batch in learner.method.batches] == [part.tolist() for part in labels]
    assert learner.method.beginnings == []


def test_on_a_stream_the_head_meets_a_class_when_a_sample_first_tells_of_it(small: Path) -> None:
    """So that what is learned does not depend on where the stream is cut into lessons."""
    scenario = scenario_of(small)
    training = lesson(scenario, (0, 1, 5)).training
    by_class = torch.cat([(training.labels == label).nonzero()[:3, 0] for label in (5, 0, 1)])
    samples = training.select(by_class)
    whole = replace(lesson(scenario, (0, 1, 5)), training=samples, pace=GivenBatches(torch.arange(9).split(3)))
    learner = small_learner(scenario, WATCHING)
    learner.learn(whole, 0)
    assert [batch.among.shape[1] for batch in learner.method.batches] == [1, 2, 3]
    assert learner.head.outputs == [5, 0, 1]
    cut = small_learner(scenario)
    for first, last in ((0, 3), (3, 9)):
        rows = torch.arange(first, last)
        pace = GivenBatches(torch.arange(last - first).split(3))
        cut.learn(replace(whole, training=samples.select(rows), pace=pace), 0)
    assert torch.equal(weights_of(cut), weights_of(learner))


def test_a_method_adds_to_the_step_of_a_stream_what_it_remembers(small: Path) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, f"{__name__}:Remembering")
    experience = streamed(lesson(scenario, (0, 1)), 4, 2, 7)
    learner.learn(experience, 0)
    labels = experience.training.labels.tolist()
    assert learner.method.seen == [labels[:4], labels[:6], labels[4:13]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"learning_rate": 0},
        {"weight_decay": -1},
        {"batch_size": 1},
        {"optimizer": "adamw"},
        {"patience": 0},
        {"patience_on": "all"},
        {"head_steps": "none"},
        {"device": "tpu"},
        {"precision": "float16"},
        {"epoch": 3},
    ],
)
def test_recipes_that_cannot_be_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Training(**wrong)


def test_weight_decay_pulls_weights_to_zero(small: Path) -> None:
    scenario = scenario_of(small)
    norms = []
    for decay in (0, 0.5):
        learner = small_learner(scenario, weight_decay=decay, optimizer="sgd", epochs=10)
        learner.learn(lesson(scenario, (0, 1)), 0)
        norms.append(weights_of(learner).norm())
    assert norms[1] < norms[0]
