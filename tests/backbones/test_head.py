"""The head: classes get their outputs when they appear, and start the same wherever that is."""

import pytest
import torch

from skeleton_cgl.backbones.head import Head
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Unit, units_named

NAMES = ("walk", "sit", "stand", "throw", "carry")


def make_head(*tasks: tuple[int, ...], seed: int = 0, names: tuple[str, ...] = NAMES) -> Head:
    head = Head(8, seed, units_named(names))
    for task in tasks:
        head.meet(task)
    return head


def row_of(head: Head, label: int) -> torch.Tensor:
    return head.rows[head.columns(torch.tensor([label]))[0]].detach()


def test_columns_are_in_order_of_appearance() -> None:
    head = make_head((4, 1), (3,), (0, 2))
    assert head.outputs == [1, 4, 3, 0, 2]
    labels = torch.tensor([2, 1, 4, 4, 0, 3])
    assert head.columns(labels).tolist() == [4, 0, 1, 1, 3, 2]


def test_outputs_are_a_linear_function_per_class() -> None:
    head = make_head((4, 1), (3,))
    embeddings = torch.randn(6, 8)
    outputs = head(embeddings)
    assert outputs.shape == (6, 3)
    for column, label in enumerate(head.outputs):
        row = row_of(head, label)
        torch.testing.assert_close(outputs[:, column], embeddings @ row[:-1] + row[-1])


def test_growing_keeps_what_was_learned_and_meeting_again_adds_nothing() -> None:
    head = make_head((4, 1))
    with torch.no_grad():
        head.rows += 3
    learned = head.rows.detach().clone()
    assert head.meet((1, 4)) == 0
    assert head.meet((4, 0, 2)) == 2
    torch.testing.assert_close(head.rows[:2], learned, rtol=0, atol=0)
    assert head.rows.requires_grad
    assert len(list(head.parameters())) == 1


def test_a_class_starts_the_same_wherever_it_comes_in_the_order() -> None:
    one, other = make_head((0, 1), (2, 3)), make_head((3,), (2,), (1, 4), (0,))
    for label in range(4):
        assert torch.equal(row_of(one, label), row_of(other, label))


def test_a_start_belongs_to_the_name_and_the_seed() -> None:
    head = make_head((0, 1, 2))
    renumbered = make_head((0, 1, 2), names=("stand", "walk", "sit"))
    assert torch.equal(row_of(head, 2), row_of(renumbered, 0))
    assert not torch.equal(row_of(head, 0), row_of(head, 1))
    assert not torch.equal(row_of(head, 0), row_of(make_head((0,), seed=1), 0))


def test_starts_are_spread_like_those_of_a_linear_layer() -> None:
    head = Head(400, 0, units_named(map(str, range(50))))
    head.meet(range(50))
    bound = 400**-0.5
    assert head.rows.abs().max() <= bound
    torch.testing.assert_close(head.rows.std().item(), bound / 3**0.5, rtol=0.02, atol=0)


def test_starts_neither_use_nor_change_global_randomness() -> None:
    torch.manual_seed(1)
    first = make_head((0, 1))
    after = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(after, torch.rand(1))
    assert torch.equal(first.rows, make_head((0, 1)).rows)


def test_a_start_belongs_to_the_key_of_a_class_and_not_to_what_people_call_it() -> None:
    head = Head(8, 0, [Unit("walk", "Gehen"), Unit("sit", "Walk")])
    head.meet((0, 1))
    named = make_head((0, 1))
    assert torch.equal(head.rows, named.rows)


@pytest.mark.parametrize("output", [5, 99, -1])
def test_an_output_that_is_not_known_is_refused_and_adds_nothing(output: int) -> None:
    head = make_head((3, 1))
    with pytest.raises(InputError, match=rf"head: no output {output}; known are 0–4"):
        head.meet((0, output))
    assert head.outputs == [1, 3]
    assert len(head.rows) == 2


@pytest.mark.parametrize("label", [0, 2, 5, 99, -1])
def test_a_label_not_met_is_refused(label: int) -> None:
    head = make_head((3, 1), (4,))
    with pytest.raises(InputError, match=r"label outside the classes met so far, \[1, 3, 4\]"):
        head.columns(torch.tensor([1, label]))


def test_a_head_that_met_nothing_refuses_every_label_and_answers_nothing() -> None:
    head = make_head()
    with pytest.raises(InputError, match=r"met so far, \[\]"):
        head.columns(torch.tensor([0]))
    assert head(torch.randn(3, 8)).shape == (3, 0)


def test_a_restored_head_is_the_one_whose_state_it_took() -> None:
    head = make_head((4, 1), (3,))
    other = make_head((0, 2))
    other.restore(head.outputs, head.rows.detach())
    embeddings = torch.randn(2, 8)
    assert torch.equal(head(embeddings), other(embeddings))
    assert other.columns(torch.tensor([1, 3, 4])).tolist() == [0, 2, 1]
    other.meet((0,))
    assert head.outputs == [1, 4, 3]
    assert torch.equal(row_of(other, 0), row_of(make_head((0,)), 0))


def test_a_head_restored_to_nothing_has_forgotten_its_classes() -> None:
    head = make_head((4, 1))
    head.restore([], torch.empty(0, 9))
    with pytest.raises(InputError, match=r"met so far, \[\]"):
        head.columns(torch.tensor([1]))
