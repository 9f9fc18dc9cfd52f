"""GEM's projection is the nearest vector of the cone, whatever the size and the position of the gradients."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from skeleton_cgl.methods.gem import project

SIZES = st.sampled_from([1e-30, 1e-8, 1.0, 1e8, 1e30])


@st.composite
def gradients(draw: st.DrawFn, most_tasks: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Draw a gradient (P,) and memories (tasks, P): random, parallel, opposite and zero rows of many sizes."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    length = draw(st.integers(1, 30))
    g = random.normal(size=length) * draw(SIZES)
    rows = []
    for _ in range(draw(st.integers(1, most_tasks))):
        kind = draw(st.sampled_from(["random", "random", "against", "parallel", "opposite", "zero"]))
        row = random.normal(size=length)
        if kind == "against":
            row = 0.3 * row - g / np.linalg.norm(g)
        elif kind in ("parallel", "opposite"):
            row = (rows[random.integers(len(rows))] if rows else g) * (-1 if kind == "opposite" else 1)
            row = row / (np.linalg.norm(row) or 1)
        rows.append(np.zeros(length) if kind == "zero" else row * draw(SIZES))
    return g, np.array(rows)


def projected(g: np.ndarray, rows: np.ndarray, margin: float) -> np.ndarray:
    return project(torch.from_numpy(g), torch.from_numpy(rows), margin).numpy()


def units(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1))[lengths[:, 0] > 0]


@settings(max_examples=300)
@given(drawn=gradients(), margin=st.sampled_from([0, 0.5, 5]))
def test_the_projection_meets_its_optimality_conditions(drawn: tuple, margin: float) -> None:
    """With v = margin + u, u ≥ 0, the program asks for the vector x of {x: Gx ≥ 0} nearest to y = g + margin·Σ g_τ.

    It is the one that is feasible, differs from y by a non-negative combination of the rows, and is square to that
    difference (complementary: what pushes is at the border).
    """
    g, rows = drawn
    x = projected(g, rows, margin)
    if (rows @ g >= 0).all():
        np.testing.assert_array_equal(x, g)
        return
    y = g + margin * rows.sum(axis=0)
    scale = np.linalg.norm(g) + margin * np.linalg.norm(rows, axis=1).sum()
    directions = units(rows)
    assert (directions @ x).min() >= -1e-4 * scale
    _, residual = nnls(directions.T, (x - y) / scale)
    assert residual < 1e-4
    assert abs(x @ (x - y)) <= 1e-4 * scale**2


@settings(max_examples=150)
@given(drawn=gradients(most_tasks=4), margin=st.sampled_from([0, 0.5]))
def test_the_projection_is_the_nearest_of_all_corners(drawn: tuple, margin: float) -> None:
    """The nearest point of the cone lies where some of its borders meet: try all sets of borders."""
    g, rows = drawn
    if (rows @ g >= 0).all():
        return
    y = g + margin * rows.sum(axis=0)
    scale = np.linalg.norm(g) + margin * np.linalg.norm(rows, axis=1).sum()
    directions, y = units(rows), y / scale
    candidates = []
    for size in range(len(directions) + 1):
        for chosen in combinations(range(len(directions)), size):
            border = directions[list(chosen)]
            point = y - np.linalg.pinv(border, rcond=1e-7) @ border @ y if chosen else y
            if (directions @ point >= -1e-7).all():
                candidates.append(point)
    nearest = min(candidates, key=lambda point: np.linalg.norm(point - y))
    np.testing.assert_allclose(projected(g, rows, margin) / scale, nearest, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e-30, 1, 1e30])
def test_one_memory_takes_away_what_is_against_it(size: float, dtype: torch.dtype) -> None:
    """With one memory and no margin: g − ⟨g, m⟩/⟨m, m⟩ m; in the precision it came in."""
    g = torch.tensor([1.0, -2.0, 0.5], dtype=dtype) * size
    memory = torch.tensor([0.0, 3.0, 4.0], dtype=dtype) * size
    found = project(g, memory[None], margin=0)
    assert found.dtype == dtype
    torch.testing.assert_close(found / size, torch.tensor([1, -1.52, 1.14], dtype=dtype), atol=1e-6, rtol=1e-5)


def test_the_margin_is_the_least_weight_of_a_memory() -> None:
    g, memory = torch.tensor([1.0, -1.0]), torch.tensor([[0.0, 2.0]])
    torch.testing.assert_close(project(g, memory, margin=0.25), torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(project(g, memory, margin=0.5), torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(project(g, memory, margin=3), torch.tensor([1.0, 5.0]))


def test_a_gradient_that_agrees_is_returned_itself() -> None:
    g = torch.tensor([1.0, 2.0])
    for memories in ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0]], [[2.0, -1.0]]):
        assert project(g, torch.tensor(memories), margin=5) is g
    zero = torch.zeros(2)
    assert project(zero, torch.tensor([[-1.0, 0.0]]), margin=5) is zero


def test_opposite_memories_leave_what_is_square_to_both() -> None:
    found = project(torch.tensor([3.0, 1.0]), torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), margin=0)
    torch.testing.assert_close(found, torch.tensor([0.0, 1.0]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("tasks", [50, 200])
def test_many_equal_memories_are_one(tasks: int) -> None:
    random = np.random.default_rng(0)
    g, memory = random.normal(size=100), random.normal(size=100)
    memory *= -np.sign(memory @ g)
    one = projected(g, memory[None], 0)
    np.testing.assert_allclose(projected(g, np.tile(memory, (tasks, 1)), 0), one, atol=1e-6)
    assert (random.normal(size=(tasks, 100)) @ g < 0).any()
    many = random.normal(size=(tasks, 1000))
    g = random.normal(size=1000)
    assert (many @ projected(g, many, 0)).min() > -1e-5 * np.linalg.norm(g) * np.linalg.norm(many, axis=1).max()
