"""DMSG: which nodes are picked, what they are replayed as, and who learns what from it."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence
from torch.nn import functional

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.diversity import unlike
from skeleton_cgl.methods.dmsg import DMSG
from skeleton_cgl.methods.noise import Noise, Reversed, variational_loss
from tests.learning.learners import weights_of
from tests.methods.on_nodes import SMALL, learned, learner_of, lessons_of, nodes


def brute_force(likely: np.ndarray, targets: np.ndarray, count: int, others: float) -> list[set[int]]:
    """Return the picks of every class, every distance computed anew for every candidate."""
    picked: dict[int, list[int]] = {}
    for label in np.unique(targets):
        members = np.flatnonzero(targets == label)
        picked[label] = [max(members, key=lambda row: likely[row, label])]
    for _ in range(count - 1):
        for label, own in picked.items():
            candidates = [row for row in np.flatnonzero(targets == label) if row not in own]

            def worth(row: int, label: int = label) -> float:
                distances = {
                    each: min(np.linalg.norm(likely[row] - likely[pick]) for pick in picks)
                    for each, picks in picked.items()
                }
                return distances[label] + others * sum(far for each, far in distances.items() if each != label)

            if candidates:
                own.append(max(candidates, key=worth))
    return [set(rows) for rows in picked.values()]


@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.parametrize("count", [1, 2, 6, 30])
def test_picks_are_those_of_brute_force_and_no_two_are_the_same(count: int, others: float) -> None:
    random = np.random.default_rng(count)
    targets = random.choice(5, size=60, p=[0, 0.4, 0.3, 0.2, 0.1])
    likely = random.dirichlet(np.ones(5), size=60)
    found = unlike(torch.from_numpy(likely), torch.from_numpy(targets), count, others).tolist()
    assert len(set(found)) == len(found) == np.minimum(np.bincount(targets), count).sum()
    by_class = [{row for row in found if targets[row] == label} for label in np.unique(targets)]
    assert by_class == brute_force(likely, targets, count, others)


def test_nodes_are_picked_by_the_probabilities_that_queries_would_be_answered_with() -> None:
    scenario = nodes()
    learner = learned(learner_of(scenario, "dmsg", {"count": 5}), scenario, 2)
    ids, labels, _ = learner.state()["method"]["memory"].values()
    training = lessons_of(scenario)[1].training
    with learner.answering(), torch.no_grad():
        likely = learner.outputs(learner.inputs(training)).softmax(dim=1).double().numpy()
    expected = set().union(*brute_force(likely, training.labels.numpy(), 5, 2))
    assert set(ids[10:].tolist()) == set(training.ids[sorted(expected)].tolist())
    assert labels.bincount().tolist() == [5, 5, 5, 5]


class PlainReplay(DMSG):
    """The loss of the lesson and, twenty times, that of the memory as it is."""

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        losses = learner.losses_of_parts(learner.outputs(batch.inputs), batch)
        return losses[0] + 20 * sum(losses[1:])


@pytest.mark.parametrize("setting", ["class-il", "task-il"])
def test_without_spread_and_without_its_losses_it_is_plain_replay(setting: str) -> None:
    """The linear map is made to give −50 for all embeddings, of which softplus is 0 to the last bit."""
    scenario = nodes(setting)
    parameters = {"count": 4, "adversarial": 0, "variational": 0}
    spread = learned(learner_of(scenario, "dmsg", parameters), scenario, 2).state()
    narrow = from_bytes(to_bytes(spread))
    narrow["method"]["noise"]["weights"]["spread.weight"].zero_()
    narrow["method"]["noise"]["weights"]["spread.bias"].fill_(-50)

    def after(state: dict, method: str = "dmsg") -> Tensor:
        learner = learner_of(scenario, method, parameters)
        learner.restore(state)
        learner.learn(lessons_of(scenario)[2], 7)
        return weights_of(learner)

    plain = f"{__name__}:{PlainReplay.__name__}"
    torch.testing.assert_close(after(narrow), after(narrow, plain), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(after(spread), after(narrow, plain), atol=1e-3)


@pytest.mark.parametrize("mapped", [-50.0, -9.0, -8.8, -7.9, -6.0])
def test_a_spread_of_next_to_nothing_leaves_weights_finite(mapped: float) -> None:
    """Of −9, σ is 8·10⁻⁴¹: there is a number for it, and none for 1/σ."""
    scenario = nodes()
    state = from_bytes(to_bytes(learned(learner_of(scenario, "dmsg", {"count": 4}), scenario, 2).state()))
    state["method"]["noise"]["weights"]["spread.weight"].zero_()
    state["method"]["noise"]["weights"]["spread.bias"].fill_(mapped)
    learner = learner_of(scenario, "dmsg", {"count": 4})
    learner.restore(state)
    learner.learn(lessons_of(scenario)[2], 7)
    assert weights_of(learner).isfinite().all()
    assert all(value.isfinite().all() for value in learner.state()["method"]["noise"]["weights"].values())


def noise_of(learner: Learner, seed: int = 0) -> Noise:
    torch.manual_seed(seed)
    return Noise(learner, {})


def test_the_spread_is_a_softplus_of_a_linear_map() -> None:
    noise = noise_of(learner_of(nodes(), "dmsg", {}))
    mean = torch.randn(5, 6)
    weights = noise.learned()["weights"]
    mapped = mean.double() @ weights["spread.weight"].double().T + weights["spread.bias"].double()
    torch.testing.assert_close(noise.spread(mean).double(), (1 + (10 * mapped).exp()).log() / 10, atol=1e-6, rtol=1e-5)


def test_what_is_before_the_discriminator_learns_against_it_and_itself_learns_to_tell() -> None:
    noise = noise_of(learner_of(nodes(), "dmsg", {}))
    made, mean = (torch.randn(5, 6).requires_grad_() for _ in range(2))
    weights = {name: value.clone().requires_grad_() for name, value in noise.learned()["weights"].items()}
    hidden = functional.linear(
        torch.cat([made, mean]), weights["discriminator.0.weight"], weights["discriminator.0.bias"]
    )
    found = functional.linear(hidden.relu(), weights["discriminator.2.weight"], weights["discriminator.2.bias"])
    wanted = torch.tensor([1.0] * 5 + [0.0] * 5)
    by_hand = -(wanted * found[:, 0].sigmoid().log() + (1 - wanted) * (1 - found[:, 0].sigmoid()).log()).mean()
    loss = noise.told_apart(made, mean)
    torch.testing.assert_close(loss, by_hand)
    expected = torch.autograd.grad(by_hand, [made, mean, weights["discriminator.0.weight"]])
    loss.backward()
    own = dict(noise.parts.named_parameters())["discriminator.0.weight"]
    for sign, one, other in zip((-1, -1, 1), (made.grad, mean.grad, own.grad), expected, strict=True):
        assert other.abs().max() > 0
        torch.testing.assert_close(one, sign * other)


def test_reversing_changes_no_value() -> None:
    value = torch.randn(3, 4)
    assert torch.equal(Reversed.apply(value), value)


def test_the_variational_loss_is_of_pairs_and_of_the_distance_from_a_standard_normal() -> None:
    random = torch.Generator().manual_seed(0)
    made, mean = (torch.randn(4, 3, generator=random) for _ in range(2))
    spread, targets = torch.rand(4, 3, generator=random) + 0.1, [2, 0, 2, 1]
    losses = []
    for one in range(4):
        for other in range(4):
            if one != other:
                likely = float(torch.sigmoid(made[one] @ made[other]))
                losses.append(-np.log(likely if targets[one] == targets[other] else 1 - likely))
    divergence = kl_divergence(Normal(mean, spread), Normal(0.0, 1.0)).sum(dim=1).mean() / np.log(2)
    expected = torch.tensor(np.mean(losses)) + divergence
    found = variational_loss(made, mean, spread, torch.tensor(targets))
    torch.testing.assert_close(found.double(), expected.double(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("part", ["spread.weight", "discriminator.0.weight"])
def test_both_the_spread_and_the_discriminator_learn(part: str) -> None:
    """From lesson to lesson, from where they were."""
    scenario = nodes()
    learner, seen = learner_of(scenario, "dmsg", SMALL["dmsg"], learning_rate=1e-4), []
    for step, experience in enumerate(lessons_of(scenario)):
        learner.learn(experience, step)
        noise = learner.state()["method"]["noise"]
        seen.append(noise["weights"][part] if noise else None)
    assert seen[0] is None
    # Adam goes a rate at most in each of three steps.
    assert 0 < (seen[2] - seen[1]).abs().max() < 4e-4


def test_the_noise_learns_at_the_rate_that_the_learner_has_at_present() -> None:
    learner = learner_of(nodes(), "dmsg", {}, learning_rate=0.01)
    noise = noise_of(learner)
    for rate in (0.01, 0.001):
        learner.optimizer.param_groups[0]["lr"] = rate
        before = noise.parts["spread"].bias.detach().clone()
        noise.spread(torch.ones(2, 6)).sum().backward()
        noise.step(learner)
        torch.testing.assert_close(
            (before - noise.parts["spread"].bias).detach(), torch.full((6,), rate), rtol=0.2, atol=0
        )


@pytest.mark.parametrize(("reset", "steps"), [(False, 6), (True, 3)])
def test_the_optimizer_of_the_noise_lives_as_long_as_that_of_the_learner(reset: bool, steps: int) -> None:
    scenario = nodes()
    learner = learned(learner_of(scenario, "dmsg", SMALL["dmsg"], reset_optimizer=reset), scenario, 3)
    counts = {int(each["step"]) for each in learner.state()["method"]["noise"]["optimizer"].values()}
    assert counts == {steps}


def test_the_noise_begins_alike_whatever_was_taught_before() -> None:
    found = []
    scenario = nodes()
    for order in (((0, 1), (2, 3)), ((4, 5), (0, 1))):
        learner = learner_of(scenario, "dmsg", SMALL["dmsg"], learning_rate=1e-12)
        prefix = scenario.lessons(order)
        for step in range(2):
            learner.learn(scenario.experience(prefix[: step + 1]), step)
        found.append(learner.state()["method"]["noise"]["weights"]["spread.weight"])
    torch.testing.assert_close(*found, atol=1e-8, rtol=0)


def test_the_first_lesson_is_that_of_bare_to_the_bit() -> None:
    scenario = nodes()
    found, bare = (learned(learner_of(scenario, method, {}), scenario, 1) for method in ("dmsg", "bare"))
    assert torch.equal(weights_of(found), weights_of(bare))


class Weighed(DMSG):
    """Notes the loss of every step beside what it is made of, computed with the same noise."""

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        drawn = torch.get_rng_state()
        parts = []
        for weights in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)):
            torch.set_rng_state(drawn)
            self.replay, self.adversarial, self.variational = weights
            with learner.statistics_kept():
                parts.append(super().loss(learner, batch).item())
        torch.set_rng_state(drawn)
        if len(self.memory):
            self.expected = self._variational(learner, batch).item()
        torch.set_rng_state(drawn)
        self.replay, self.adversarial, self.variational = 20, 1, 3
        loss = super().loss(learner, batch)
        self.seen = loss.item(), parts
        return loss

    def _variational(self, learner: Learner, batch: Batch) -> Tensor:
        """Return the variational loss of what is remembered, by the labels it is remembered with."""
        with learner.statistics_kept():
            mean = learner.embeddings(batch.inputs)[-self.samples_kept() :]
        spread = self._learning.spread(mean)
        made = mean + spread * torch.randn_like(spread)
        return variational_loss(made, mean, spread, self.memory.state()["labels"])


def test_the_loss_is_the_weighted_sum_of_its_parts() -> None:
    scenario = nodes()
    learner = learned(learner_of(scenario, f"{__name__}:{Weighed.__name__}", SMALL["dmsg"]), scenario, 2)
    loss, (plain, *more) = learner.method.seen
    replayed, told_apart, variational = (each - plain for each in more)
    assert min(replayed, told_apart, variational) > 0
    assert variational == pytest.approx(learner.method.expected, rel=1e-4)
    assert loss == pytest.approx(plain + 20 * replayed + told_apart + 3 * variational, rel=1e-4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"count": 0}, "count 0 is not a whole number of at least 1"),
        *(({name: -1}, "must not be negative") for name in ("replay", "adversarial", "variational", "others")),
    ],
)
def test_parameters_without_meaning_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_method("dmsg", parameters)
