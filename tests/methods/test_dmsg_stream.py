"""DMSG on streams: who of a batch is picked, what is replayed, and that its noise is learned from step to step."""

import numpy as np
import pytest
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.diversity import farthest_first
from skeleton_cgl.methods.dmsg_stream import DMSGStream
from skeleton_cgl.methods.noise import log_softplus
from skeleton_cgl.scenarios.scenario import Samples
from tests.learning.learners import weights_of
from tests.methods.on_nodes import learner_of, lessons_of, nodes
from tests.methods.test_ssm_stream import cross_entropy, stream_of


class Watched(DMSGStream):
    """Notes of every step what came and what was replayed, and the loss beside one that is computed by hand."""

    def __init__(self, count: int = 30, replay: float = 20, adversarial: float = 1, variational: float = 3) -> None:
        super().__init__(count, replay, adversarial, variational)
        self.steps: list[tuple[Samples, Samples, set[int]]] = []
        self.losses: list[tuple[float, float]] = []

    def step_samples(self, learner: Learner, samples: Samples) -> Samples:
        before = set(self.memory["ids"].tolist()) if len(self.memory) else set()
        chosen = super().step_samples(learner, samples)
        self.steps.append((samples, chosen, before))
        return chosen

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        with learner.statistics_kept(), torch.no_grad():
            expected = self._by_hand(learner, batch)
        loss = super().loss(learner, batch)
        self.losses.append((loss.item(), expected))
        return loss

    def _by_hand(self, learner: Learner, batch: Batch) -> float:
        embeddings = learner.embeddings(batch.inputs).double()
        if not batch.sizes:
            return cross_entropy(head(learner, embeddings), batch.targets)
        parts = {name: value.double() for name, value in self.noise(learner).learned()["weights"].items()}
        size = batch.sizes[0]
        mean, targets = embeddings[size:], batch.targets[size:]
        generator = torch.Generator().manual_seed(learner.seed_of_draw("noise", self.memory.drawn))
        epsilon = torch.randn(mean.shape, generator=generator).double()
        spread = (1 + (10 * (mean @ parts["spread.weight"].T + parts["spread.bias"])).exp()).log() / 10
        made = mean + spread * epsilon
        hidden = torch.cat([made, mean]) @ parts["discriminator.0.weight"].T + parts["discriminator.0.bias"]
        found = (hidden.relu() @ parts["discriminator.2.weight"].T + parts["discriminator.2.bias"])[:, 0].sigmoid()
        told_apart = -torch.cat([found[: len(made)].log(), (1 - found[len(made) :]).log()]).mean()
        alike, likely = targets[:, None] == targets, (made @ made.T).sigmoid()
        pairs = torch.where(alike, likely, 1 - likely).log()[~torch.eye(len(made), dtype=torch.bool)]
        of_pairs = -pairs.mean() if len(pairs) else torch.tensor(0.0)
        divergence = (mean**2 + spread**2 - 1 - 2 * spread.log()).sum(dim=1).mean() / 2 / np.log(2)
        plain, again = (
            cross_entropy(head(learner, each), some)
            for each, some in ((embeddings[:size], batch.targets[:size]), (made, targets))
        )
        return plain + self.replay * again + float(told_apart) + self.variational * float(of_pairs + divergence)


class Plain(DMSGStream):
    """The loss of the batch and, twenty times, that of what is replayed as it is."""

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        super().loss(learner, batch)
        losses = learner.losses_of_parts(learner.outputs(batch.inputs), batch)
        return losses[0] + 20 * sum(losses[1:])


def head(learner: Learner, embeddings: Tensor) -> Tensor:
    rows = learner.head.rows.detach().double()
    return embeddings @ rows[:, :-1].T + rows[:, -1]


WATCHED = f"{__name__}:Watched"


def learned(method: str, steps: int = 10, batch: int = 8, **parameters: float) -> Learner:
    """Return a learner of a short stream: half of it of the first classes, half of the next."""
    scenario = nodes()
    learner = learner_of(scenario, method, parameters)
    for step, lesson in enumerate(lessons_of(scenario)[:2]):
        learner.learn(stream_of(lesson.training.select(torch.arange(batch * steps // 2)), batch), step)
    return learner


@pytest.mark.parametrize("count", [1, 5, 10, 20])
def test_every_pick_is_the_farthest_from_those_before_and_no_two_are_the_same(count: int) -> None:
    random = np.random.default_rng(count)
    likely, targets = random.dirichlet(np.ones(4), size=20), random.integers(0, 4, 20)
    found = farthest_first(torch.from_numpy(likely), torch.from_numpy(targets), count).tolist()
    assert len(set(found)) == len(found) == count
    assert found[0] == max(range(20), key=lambda row: likely[row, targets[row]])
    for place in range(1, count):
        others = [row for row in range(20) if row not in found[:place]]
        least = {row: min(np.linalg.norm(likely[row] - likely[pick]) for pick in found[:place]) for row in others}
        assert found[place] == max(least, key=least.__getitem__)


def test_picks_of_samples_that_are_all_alike_are_distinct() -> None:
    found = farthest_first(torch.full((9, 3), 1 / 3), torch.arange(9) % 3, 5).tolist()
    assert len(set(found)) == len(found) == 5


@pytest.mark.parametrize("batch", [8, 5, 1])
def test_half_of_every_batch_is_offered_and_no_more_is_kept_than_asked_for(batch: int) -> None:
    learner = learned(WATCHED, batch=batch, count=9)
    memory, steps = learner.method.memory, learner.method.steps
    assert memory.seen == sum((len(samples) + 1) // 2 for samples, _, _ in steps)
    assert learner.method.samples_kept() == len(memory) == min(9, memory.seen)
    assert set(memory["ids"].tolist()) <= {sample for samples, _, _ in steps for sample in samples.ids.tolist()}


def test_those_are_picked_that_are_unlike_in_the_pass_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def noted(likely: Tensor, targets: Tensor, count: int) -> Tensor:
        seen.append((likely, targets, farthest_first(likely, targets, count)))
        return seen[-1][2]

    monkeypatch.setattr("skeleton_cgl.methods.dmsg_stream.farthest_first", noted)
    scenario = nodes()
    learner, twin = (learner_of(scenario, name, {"count": 500} if name != "bare" else {}) for name in (WATCHED, "bare"))
    samples = lessons_of(scenario)[0].training.select(torch.arange(8))
    learner.learn(stream_of(samples), 0)
    twin.head.meet(sorted(set(samples.labels.tolist())))
    with twin.observing(), torch.no_grad():
        expected = twin.outputs(twin.inputs(samples)).softmax(dim=1)
    ((likely, targets, picked),) = seen
    torch.testing.assert_close(likely, expected)
    assert targets.tolist() == [learner.head.outputs.index(label) for label in samples.labels.tolist()]
    assert learner.method.memory["ids"].tolist() == samples.ids[picked].tolist()
    assert len(picked) == 4


def test_every_pick_is_kept_with_probability_m_over_all_of_them() -> None:
    """All probabilities alike, so that picks are the first four of a batch of eight."""
    scenario = nodes()
    samples = lessons_of(scenario)[0].training.select(torch.arange(32))
    learner, counts, trials = learner_of(scenario, "dmsg-stream", {}), torch.zeros(360), 2000
    for trial in range(trials):
        learner._seed, learner.method = trial, make_method("dmsg-stream", {"count": 4})
        for rows in torch.arange(32).split(8):
            method, some = learner.method, samples.select(rows)
            method._offered, method._likely = some, torch.full((8, 6), 1 / 6)
            blank = torch.zeros(8, dtype=torch.int64)
            method.step_done(learner, Batch(None, blank, torch.ones(8) / 8, torch.ones(8, 6, dtype=torch.bool)))
        counts[learner.method.memory["ids"]] += 1
    assert int((counts > 0).sum()) == 16
    # The standard deviation is √(2000 · 1/4 · 3/4) = 19.4.
    assert (counts[counts > 0] - trials / 4).abs().max() < 4 * 19.4


def test_as_many_as_came_are_replayed_of_those_kept_before() -> None:
    for batch in (8, 3):
        for samples, chosen, before in learned(WATCHED, batch=batch, count=9).method.steps:
            again = chosen.ids[len(samples) :].tolist()
            assert len(again) == len(set(again)) == min(len(samples), len(before))
            assert set(again) <= before


@pytest.mark.parametrize("batch", [8, 2, 1])
def test_the_loss_is_the_weighted_sum_of_its_parts(batch: int) -> None:
    losses = learned(WATCHED, batch=batch).method.losses
    assert len(losses) > 5
    for found, expected in losses:
        assert found == pytest.approx(expected, rel=1e-3)


def test_before_anything_is_replayed_it_is_bare_to_the_bit() -> None:
    scenario = nodes()
    samples = lessons_of(scenario)[0].training
    found = []
    for steps in (1, 2):
        pair = [learner_of(scenario, name, {}) for name in ("dmsg-stream", "bare")]
        for learner in pair:
            learner.learn(stream_of(samples.select(torch.arange(8 * steps))), 0)
        found.append(torch.equal(*map(weights_of, pair)))
    assert found == [True, False]


def test_without_spread_and_without_its_losses_it_is_plain_replay() -> None:
    """The linear map is made to give −50 for all embeddings, of which softplus is 0 to the last bit."""
    parameters = {"adversarial": 0, "variational": 0}
    spread = learned("dmsg-stream", **parameters).state()
    narrow = from_bytes(to_bytes(spread))
    narrow["method"]["noise"]["weights"]["spread.weight"].zero_()
    narrow["method"]["noise"]["weights"]["spread.bias"].fill_(-50)

    def after(state: dict, method: str = "dmsg-stream") -> Tensor:
        scenario = nodes()
        learner = learner_of(scenario, method, parameters)
        learner.restore(state)
        # The running statistics of BatchNorm are none of the weights: Plain's second pass is seen in them alone.
        learner.learn(stream_of(lessons_of(scenario)[2].training.select(torch.arange(32))), 7)
        return weights_of(learner)

    plain = f"{__name__}:{Plain.__name__}"
    torch.testing.assert_close(after(narrow), after(narrow, plain), atol=1e-4, rtol=1e-4)
    assert not torch.allclose(after(spread), after(narrow, plain), atol=1e-3)


@pytest.mark.parametrize("part", ["spread.weight", "spread.bias", "discriminator.0.weight", "discriminator.2.bias"])
def test_the_noise_and_the_discriminator_learn_at_every_step(part: str) -> None:
    before, after = (learned("dmsg-stream", steps).state()["method"]["noise"] for steps in (2, 10))
    assert (after["weights"][part] - before["weights"][part]).abs().max() > 1e-3
    assert {int(each["step"]) for each in after["optimizer"].values()} == {9}


def test_the_noise_is_drawn_anew_at_every_step_and_leaves_torchs_generator_alone() -> None:
    learner = learned("dmsg-stream")
    method, spread = learner.method, torch.ones(3, 6)
    before = torch.random.get_rng_state()
    first = method.drawn(learner, spread)
    assert torch.equal(method.drawn(learner, spread), first)
    method.memory.drawn += 1
    assert not torch.equal(method.drawn(learner, spread), first)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_spread_too_small_for_a_logarithm_has_one_all_the_same() -> None:
    mapped = torch.tensor([-300.0, -50, -9, -7.9, -1, 0, 2], requires_grad=True)
    found = log_softplus(mapped)
    expected = np.log(np.log1p(np.exp(10 * mapped.detach().double().numpy()[2:])) / 10)
    np.testing.assert_allclose(found[2:].detach(), expected, rtol=1e-5)
    assert found[:2].tolist() == pytest.approx([-3000 - np.log(10), -500 - np.log(10)])
    found.sum().backward()
    np.testing.assert_allclose(mapped.grad[:4], 10, rtol=1e-3)


def test_where_the_spread_is_nothing_the_loss_stays_finite_and_it_widens_again() -> None:
    state = learned("dmsg-stream").state()
    state["method"]["noise"]["weights"]["spread.weight"].zero_()
    state["method"]["noise"]["weights"]["spread.bias"].fill_(-50)
    scenario = nodes()
    learner = learner_of(scenario, "dmsg-stream", {})
    learner.restore(state)
    learner.learn(stream_of(lessons_of(scenario)[2].training.select(torch.arange(32))), 7)
    assert (learner.state()["method"]["noise"]["weights"]["spread.bias"] > -50).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"count": 0}, "count 0 is not a whole number of at least 1"),
        ({"count": 2.5}, "count 2.5 is not a whole number"),
        *(({name: -1}, f"{name} -1 is negative") for name in ("replay", "adversarial", "variational")),
        ({"replay": float("inf")}, "replay must be a finite number, found inf"),
        ({"others": 2}, "unknown parameter 'others'"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=f"method 'dmsg-stream': {message}"):
        make_method("dmsg-stream", parameters)
