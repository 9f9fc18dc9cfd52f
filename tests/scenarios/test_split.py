"""Dividing samples: every one in one part, by seed, by class, by group, or refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skeleton_cgl.config import check
from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.split import Split, divide, divide_within

PARTS = (TRAINING, VALIDATION, TEST)
COUNTS = st.lists(st.integers(3, 40), min_size=1, max_size=6)


def names_of(counts: list[int]) -> list[str]:
    return [f"class {number}" for number in range(len(counts))]


@given(counts=COUNTS, seed=st.integers(0, 99))
def test_every_class_is_divided_by_the_ratios(counts: list[int], seed: int) -> None:
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    parts = divide(Split(by="class", ratios=(2, 1, 1), seed=seed), labels, names_of(counts), {})
    for label, count in enumerate(counts):
        found = np.bincount(parts[labels == label], minlength=3)
        assert found.sum() == count
        assert found.min() >= 1
        assert abs(found[TEST] - count / 4) <= 0.5
        assert found[TEST] == found[VALIDATION]


def test_the_default_ratios_are_eight_one_one() -> None:
    labels = np.repeat([0, 1], [150, 20])
    parts = divide(Split(by="class"), labels, ["sit", "stand"], {})
    assert np.bincount(parts[labels == 0]).tolist() == [120, 15, 15]
    assert np.bincount(parts[labels == 1]).tolist() == [16, 2, 2]


def test_the_seed_decides_the_division() -> None:
    labels = np.repeat(np.arange(3), 30)
    divisions = [divide(Split(by="class", seed=seed), labels, names_of([30] * 3), {}) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(divisions[0], divisions[1])
    assert (divisions[0] != divisions[2]).any()
    assert (divisions[0][:30] != divisions[0][30:60]).any()


def test_the_division_of_a_class_does_not_depend_on_the_other_classes() -> None:
    alone = divide(Split(by="class"), np.zeros(20, dtype=np.int64), ["sit"], {})
    labels = np.repeat([0, 1], [13, 20])
    among = divide(Split(by="class"), labels, ["stand", "sit"], {})
    np.testing.assert_array_equal(among[labels == 1], alone)


@given(counts=st.lists(st.integers(3, 9), min_size=3, max_size=8), seed=st.integers(0, 99))
def test_a_group_is_in_one_part_and_every_part_has_one(counts: list[int], seed: int) -> None:
    groups = np.repeat(np.arange(len(counts)) + 5, counts)
    labels = np.concatenate([np.arange(count) % 3 for count in counts])
    parts = divide(Split(by="subject", seed=seed), labels, ["a", "b", "c"], {"subject": groups, "view": groups})
    part_of = {group: set(parts[groups == group]) for group in np.unique(groups)}
    assert all(len(found) == 1 for found in part_of.values())
    assert set.union(*part_of.values()) == set(PARTS)
    numbers = [sum(part in found for found in part_of.values()) for part in (VALIDATION, TEST)]
    assert numbers == [max(1, round(len(counts) / 10))] * 2


@pytest.mark.parametrize("by", ["subject", "view"])
def test_groups_can_be_named(by: str) -> None:
    groups = np.repeat([1, 2, 3, 4], 3)
    labels, told = np.tile([0, 1, 2], 4), {"subject": groups, "view": groups}
    parts = divide(Split(by=by, test=(4,), validation=(1,)), labels, ["a", "b", "c"], told)
    assert parts.tolist() == [VALIDATION] * 3 + [TRAINING] * 6 + [TEST] * 3
    drawn = {
        int(groups[divide(Split(by=by, test=(4,), seed=seed), labels, ["a", "b", "c"], told) == VALIDATION][0])
        for seed in range(20)
    }
    assert drawn == {1, 2, 3}


@pytest.mark.parametrize(
    ("split", "groups", "message"),
    [
        ({"by": "subject"}, None, "do not tell the subject of every sample"),
        ({"by": "performance"}, None, "do not tell the performance of every sample"),
        ({"by": "performance", "test": [1]}, [1, 1, 2, 2, 3, 3], "name groups; they go with by: subject or by: view"),
        ({"by": "view"}, None, "do not tell the view of every sample"),
        ({"by": "veiw"}, [1, 1, 2, 2, 3, 3], "by 'veiw': no such groups; did you mean 'view'"),
        ({"by": "subject"}, [1, 1, 1, 2, 2, 2], "needs at least 3, there are 2"),
        ({"by": "subject", "test": [7]}, [1, 1, 2, 2, 3, 3], r"test: no subject 7; there are \[1, 2, 3\]"),
        ({"by": "view", "validation": [0]}, [1, 1, 2, 2, 3, 3], "validation: no view 0"),
        ({"by": "subject", "test": [1], "validation": [1]}, [1, 1, 2, 2, 3, 3], "subject 1 is in two parts"),
        ({"by": "subject", "test": [1, 2], "validation": [3]}, [1, 1, 2, 2, 3, 3], "class 'a' has no training sample"),
        ({"by": "subject", "test": [1, 2, 3]}, [1, 1, 2, 2, 3, 3], "class 'a' has no"),
        ({"test": [1]}, None, "name groups; they go with by: subject or by: view"),
        ({"ratios": [1, 1, 20]}, None, "class 'a' has no training sample"),
    ],
)
def test_divisions_that_cannot_be_are_refused(split: dict, groups: list | None, message: str) -> None:
    labels = np.array([0, 1, 0, 1, 0, 1])
    told = {} if groups is None else dict.fromkeys(("performance", "subject", "view"), np.array(groups))
    with pytest.raises(InputError, match=message):
        divide(Split(**{"by": "class", **split}), labels, ["a", "b"], told)


@given(
    sizes=st.lists(st.lists(st.integers(1, 6), min_size=10, max_size=30), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_performances_stay_whole_and_every_class_is_divided_as_nearly_as_they_allow(sizes: list, seed: int) -> None:
    labels = np.repeat(np.arange(len(sizes)), [sum(of_class) for of_class in sizes])
    groups = np.repeat(np.arange(sum(map(len, sizes))), [size for of_class in sizes for size in of_class])
    order = np.random.default_rng(seed).permutation(len(labels))
    labels, groups = labels[order], groups[order]
    parts = divide(Split(by="performance", seed=seed), labels, names_of(sizes), {"performance": groups})
    for group in np.unique(groups):
        assert len(set(parts[groups == group])) == 1
    for label, of_class in enumerate(sizes):
        for part in (TEST, VALIDATION):
            found = groups[(labels == label) & (parts == part)]
            assert abs(len(found) - round(sum(of_class) / 10)) <= max(of_class) / 2 or len(set(found)) == 1


@given(counts=COUNTS, seed=st.integers(0, 99))
def test_performances_of_one_sample_are_divided_as_samples_are(counts: list[int], seed: int) -> None:
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    groups = np.random.default_rng(seed).permutation(len(labels))
    by_class = divide(Split(by="class", seed=seed), labels, names_of(counts), {})
    by_performance = divide(Split(by="performance", seed=seed), labels, names_of(counts), {"performance": groups})
    np.testing.assert_array_equal(by_performance, by_class)


def test_groups_of_the_data_are_divided_as_performances_if_of_one_class_and_as_subjects_otherwise() -> None:
    labels = np.repeat([0, 1], 30)
    within = {"take": np.arange(60) // 3}
    parts = divide(Split(by="take"), labels, ["a", "b"], within)
    performance = divide(Split(by="performance"), labels, ["a", "b"], {"performance": within["take"]})
    np.testing.assert_array_equal(parts, performance)
    across = {"session": np.arange(60) % 5}
    parts = divide(Split(by="session", test=(4,), validation=(0,)), labels, ["a", "b"], across)
    assert set(across["session"][parts == TEST]) == {4}
    assert set(across["session"][parts == VALIDATION]) == {0}


def test_a_performance_under_two_classes_is_in_one_part() -> None:
    labels = np.repeat([0, 1], 30)
    groups = np.tile(np.arange(30), 2)
    parts = divide(Split(by="performance"), labels, ["a", "b"], {"performance": groups})
    np.testing.assert_array_equal(parts[:30], parts[30:])
    assert np.bincount(parts).tolist() == [48, 6, 6]


def test_a_class_with_too_few_samples_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="class 'rare' has no training sample"):
        divide(Split(by="class"), np.array([0, 0, 0, 1, 1]), ["common", "rare"], {})


@pytest.mark.parametrize("ratios", [(1, 0, 1), (-1, 1, 1), (float("nan"), 1, 1), (1, float("inf"), 1)])
def test_ratios_are_positive_numbers(ratios: tuple) -> None:
    with pytest.raises(InputError, match=r"scenario: field 'ratios.*(more than 0|finite)"):
        check({"ratios": ratios}, Split, "scenario")


def test_wrong_fields_are_refused() -> None:
    with pytest.raises(InputError, match="unknown field 'ration'; did you mean 'ratios'"):
        check({"ration": (1, 1, 1)}, Split, "scenario")
    with pytest.raises(InputError, match="'by'"):
        check({"by": 3}, Split, "scenario")


@given(counts=COUNTS, seed=st.integers(0, 99))
def test_cells_are_divided_as_classes_of_their_names_are(counts: list[int], seed: int) -> None:
    """Wherever their samples stand, and whether or not there are cells without any."""
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    split = Split(by="class", ratios=(3, 1, 2), seed=seed)
    expected = divide(split, labels, names_of(counts), {})
    assert np.array_equal(divide_within(split, labels, [*names_of(counts), "empty"]), expected)
