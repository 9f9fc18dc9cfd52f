"""What a parameter's type does not allow is refused by every method, in words that name the parameter."""

from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.methods.cosine import Cosine
from skeleton_cgl.methods.ncm import NCM
from skeleton_cgl.methods.parameters import check_number
from skeleton_cgl.methods.ridge import Ridge
from skeleton_cgl.registry import METHODS, arguments_of


def parameters_of(method: str) -> dict[str, tuple[Any, ...]]:
    """Return the types that every parameter of a method may have."""
    found = METHODS.find(method)
    hints = get_type_hints(found.__init__)
    return {name: get_args(hints[name]) or (hints[name],) for name in arguments_of(found)}


MEANINGLESS = {int: [True, 2**31], float: [True, float("nan"), float("inf"), -float("inf")], bool: [3]}

REFUSED = [
    (method, name, value)
    for method in METHODS.names()
    for name, kinds in parameters_of(method).items()
    for kind in kinds
    for value in MEANINGLESS.get(kind, [])
]
NEEDED = [
    (method, name)
    for method in METHODS.names()
    for name, kinds in parameters_of(method).items()
    if NoneType not in kinds
]


def test_parameters_of_every_type_are_among_those_tried() -> None:
    tried = {(method, name) for method, name, _ in REFUSED}
    assert {("replay", "count"), ("replay", "fraction"), ("ewc", "strength"), ("joint", "restart")} < tried


@pytest.mark.parametrize(("method", "name", "value"), REFUSED)
def test_true_is_no_number_a_number_is_finite_and_3_is_neither_true_nor_false(
    method: str, name: str, value: float
) -> None:
    with pytest.raises(InputError, match=rf"^method '{method}': (memory: )?{name} .*{value}"):
        make_method(method, {name: value})


@pytest.mark.parametrize(("method", "name"), NEEDED)
def test_nothing_is_no_value_of_a_parameter_that_has_to_have_one(method: str, name: str) -> None:
    with pytest.raises(InputError, match=f"^method '{method}': "):
        make_method(method, {name: None})


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("packnet", {"prune": None}),
        ("piggyback", {"threshold": 0.01, "pretraining": True}),
        ("hat", {"s_max": 400, "c": 0.75, "variant": "paper"}),
        ("twp", {"lambda_l": 1e4, "lambda_t": 1e4, "beta": 0.01, "variant": "own"}),
        ("ridge", {"strength": 100}),
        ("joint", {"restart": False}),
    ],
)
def test_what_is_not_said_is_as_papers_and_documentation_have_it(method: str, parameters: dict[str, Any]) -> None:
    made = make_method(method, {})
    assert {name: getattr(made, name) for name in parameters} == parameters


def test_features_that_are_not_told_of_are_those_of_each_reference() -> None:
    expected = {Ridge: ("data", 2000), NCM: ("data", 0), Cosine: ("first task", 0)}
    for made in (Ridge(), NCM(), Cosine()):
        features = made.features
        assert (features.source, features.projection) == expected[type(made)]
        assert (features.hops, features.read_out, features.unit) == (0, "mean", True)


def test_true_and_text_are_no_numbers() -> None:
    for value in (True, "1"):
        with pytest.raises(ValueError, match=f"^x must be a finite number, found {value!r}$"):
            check_number(x=value)


def test_a_bound_is_part_of_what_is_allowed_or_not() -> None:
    check_number(least=2, x=2)
    with pytest.raises(ValueError, match=r"^x must be at least 2, found 1.5$"):
        check_number(least=2, x=1.5)
    check_number(above=2, x=2.5)
    with pytest.raises(ValueError, match=r"^x must be above 2, found 2$"):
        check_number(above=2, x=2)
