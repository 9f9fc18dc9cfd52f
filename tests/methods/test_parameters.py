"""What a parameter's type does not allow is refused by every method, in words that name the parameter."""

from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.methods.parameters import check_number
from skeleton_cgl.registry import METHODS, arguments_of


def parameters_of(method: str) -> dict[str, tuple[Any, ...]]:
    """Return the types that every parameter of a method may have."""
    found = METHODS.find(method)
    hints = get_type_hints(found.__init__)
    return {name: get_args(hints[name]) or (hints[name],) for name in arguments_of(found)}


MEANINGLESS = {int: [True], float: [float("nan"), float("inf"), -float("inf")], bool: [3]}

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
def test_true_is_no_whole_number_a_number_is_finite_and_3_is_neither_true_nor_false(
    method: str, name: str, value: float
) -> None:
    with pytest.raises(InputError, match=rf"^method '{method}': (memory: )?{name} .*{value}"):
        make_method(method, {name: value})


@pytest.mark.parametrize(("method", "name"), NEEDED)
def test_nothing_is_no_value_of_a_parameter_that_has_to_have_one(method: str, name: str) -> None:
    with pytest.raises(InputError, match=f"^method '{method}': "):
        make_method(method, {name: None})


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
