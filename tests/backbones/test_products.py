"""Products by oneDNN are products: in value and gradients of any order, and only where they suit."""

import pytest
import torch
from torch import Tensor

from skeleton_cgl.backbones import products
from skeleton_cgl.backbones.graphs.gcn import GCN
from skeleton_cgl.backbones.products import times


def slopes_of(found: Tensor, left: Tensor, right: Tensor) -> list[Tensor]:
    """Return the gradients by both factors, and those of their size by both."""
    first = torch.autograd.grad(found.sin().sum(), (left, right), create_graph=True)
    return [*first, *torch.autograd.grad(sum(each.square().sum() for each in first), (left, right))]


def test_a_product_and_its_gradients_are_those_in_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_WORTH_IT", 1)
    torch.manual_seed(0)
    left, right = (torch.randn(*shape, requires_grad=True) for shape in ((300, 7), (7, 12)))
    doubled = [each.detach().double().requires_grad_() for each in (left, right)]
    found, expected = times(left, right), doubled[0] @ doubled[1]
    assert ("_Times" in type(found.grad_fn).__name__) == products._is_there()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    wanted = slopes_of(expected, *doubled)
    for one, other in zip(slopes_of(found, left, right), wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-3)


def test_other_kinds_of_numbers_and_small_ones_are_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    small = torch.randn(4, 4, requires_grad=True)
    assert "_Times" not in type(times(small, small).grad_fn).__name__
    monkeypatch.setattr(products, "_WORTH_IT", 1)
    double = small.double()
    assert torch.equal(times(double, double), double @ double)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert times(small, small).dtype == torch.bfloat16


def test_nodes_by_themselves_stay_with_the_products_their_records_are_of() -> None:
    assert {layer.times for layer in GCN(3).layers} == {torch.matmul}
    assert {layer.times for layer in GCN(3, rows="pairs").layers} == {times}
