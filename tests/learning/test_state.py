"""A learner's state: copied, saved and restored exactly, and never more than tensors and plain values."""

import io
import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.skeletons import Augmentation
from tests.learning.learners import METHODS, ORDER, seed_for, small_learner
from tests.scenarios.small import SETTINGS, lesson, scenario_of

RECIPES = {
    "adam": {},
    "sgd": {"optimizer": "sgd", "learning_rate": 0.001},
    "adam, mini-batches": {"batch_size": 6},
    "sgd, mini-batches": {"batch_size": 6, "optimizer": "sgd", "learning_rate": 0.001, "weight_decay": 0.01},
    "early stopping": {"patience": 1, "epochs": 4, "learning_rate": 0.1},
    "early stopping on all seen": {"patience": 1, "patience_on": "seen", "epochs": 4, "learning_rate": 0.1},
    "reset": {"reset_optimizer": True},
    "own steps": {"head_steps": "own"},
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("method", METHODS)
def test_learning_on_from_a_saved_state_is_as_never_having_stopped(small: Path, method: str, setting: str) -> None:
    """For every recipe: the state after two tasks, saved and taken up by a new learner, leads to the same bytes."""
    scenario = scenario_of(small, setting)
    experiences = [lesson(scenario, *ORDER[: stage + 1]) for stage in range(len(ORDER))]
    for recipe in RECIPES.values():
        recipe = {"epochs": 2} | recipe
        straight = small_learner(scenario, method, METHODS[method], **recipe)
        for stage in (0, 1):
            straight.learn(experiences[stage], seed_for(stage))
        saved = to_bytes(straight.state())
        straight.learn(experiences[2], seed_for(2))
        resumed = small_learner(scenario, method, METHODS[method], **recipe)
        resumed.restore(from_bytes(saved))
        assert to_bytes(resumed.state()) == saved
        resumed.learn(experiences[2], seed_for(2))
        assert to_bytes(resumed.state()) == to_bytes(straight.state())


@pytest.mark.parametrize("method", METHODS)
def test_a_state_is_a_copy_that_later_learning_leaves_alone(small: Path, method: str) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, method, METHODS[method])
    learner.learn(lesson(scenario, (0, 1)), 0)
    state = learner.state()
    before = to_bytes(state)
    answers = learner.answer(scenario.queries(()))
    learner.learn(lesson(scenario, (0, 1), (2, 3)), 1)
    assert to_bytes(state) == before
    after = to_bytes(learner.state())
    learner.restore(state)
    assert torch.equal(learner.answer(scenario.queries(())), answers)
    learner.learn(lesson(scenario, (0, 1), (2, 3)), 1)
    assert to_bytes(learner.state()) == after
    assert to_bytes(state) == before


def test_a_learner_goes_back_to_its_beginning(small: Path) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, "gem", METHODS["gem"])
    beginning = learner.state()
    learner.learn(lesson(scenario, (5, 2)), 0)
    after = to_bytes(learner.state())
    learner.restore(beginning)
    learner.learn(lesson(scenario, (5, 2)), 0)
    assert to_bytes(learner.state()) == after


def test_augmentation_and_dropout_are_resumed_alike(small: Path) -> None:
    scenario = SkeletonScenario(small, augmentation=Augmentation())
    learner = small_learner(scenario, "replay", backbone="stgcn")
    learner.backbone.blocks[0].dropout.p = 0.5
    learner.learn(lesson(scenario, (0, 1)), 0)
    state = from_bytes(to_bytes(learner.state()))
    learner.learn(lesson(scenario, (0, 1), (2, 3)), 1)
    after = to_bytes(learner.state())
    torch.rand(3)
    learner.restore(state)
    learner.learn(lesson(scenario, (0, 1), (2, 3)), 1)
    assert to_bytes(learner.state()) == after


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=12,
)


@settings(max_examples=40)
@given(state=st.dictionaries(st.text() | st.integers(), PLAIN))
def test_plain_values_come_back_as_they_went(state: dict) -> None:
    assert from_bytes(to_bytes(state)) == state


def bits(tensor: torch.Tensor) -> list[int]:
    return tensor.flatten().view(torch.uint8).tolist()


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([1.0, -0.0, torch.nan, torch.inf]),
        torch.arange(6).reshape(2, 3).T,
        torch.zeros(0, 65),
        torch.tensor(3.0),
        torch.tensor([True, False]),
        torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0)).contiguous(
            memory_format=torch.channels_last
        ),
        torch.tensor([1.5], dtype=torch.bfloat16),
        torch.tensor([1e-300], dtype=torch.float64),
    ],
)
def test_tensors_come_back_to_the_bit(tensor: torch.Tensor) -> None:
    found = from_bytes(to_bytes({"a": [tensor, {"b": tensor}]}))
    for one in (found["a"][0], found["a"][1]["b"]):
        assert one.dtype == tensor.dtype
        assert one.shape == tensor.shape
        assert bits(one) == bits(tensor)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": print}, "found builtin_function_or_method"),
        ({"a": [object()]}, "found object"),
        ({"a": {1, 2}}, "found set"),
        ({"a": b"bytes"}, "found bytes"),
        ({"a": {"b": torch.nn.Linear(1, 1)}}, "found Linear"),
        ({(1, 2): 3}, "keys are text or whole numbers, found tuple"),
    ],
)
def test_a_state_that_holds_more_than_plain_data_is_refused(state: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        to_bytes(state)


STATE = to_bytes({"rows": torch.arange(12.0), "tasks": [[0, 1], [2]], "name": "x"})


@given(size=st.integers(0, len(STATE) - 1))
def test_a_truncated_state_is_refused(size: int) -> None:
    with pytest.raises(InputError, match="damaged"):
        from_bytes(STATE[:size])


@given(place=st.integers(0, len(STATE) - 1), change=st.integers(1, 255))
def test_a_changed_byte_is_noticed(place: int, change: int) -> None:
    damaged = bytearray(STATE)
    damaged[place] ^= change
    with pytest.raises(InputError, match="damaged"):
        from_bytes(bytes(damaged))


class Dangerous:
    ran = False

    def __reduce__(self):
        return setattr, (Dangerous, "ran", True)


@settings(max_examples=20)
@given(content=st.binary())
def test_other_bytes_are_refused_and_no_code_in_them_runs(content: bytes) -> None:
    with pytest.raises(InputError, match="damaged"):
        from_bytes(content)
    saved = io.BytesIO()
    torch.save({"a": Dangerous()}, saved)
    for dangerous in (pickle.dumps(Dangerous()), saved.getvalue()):
        with pytest.raises(InputError, match="damaged"):
            from_bytes(dangerous)
    assert not Dangerous.ran
