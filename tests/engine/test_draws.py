"""What is drawn at random, from which seed, and in which sequence orders are run."""

from itertools import pairwise
from pathlib import Path

import pytest

from skeleton_cgl.engine.plan import Plan, Stage, make_plan
from skeleton_cgl.engine.rows import RunRow
from skeleton_cgl.engine.run import run_study
from skeleton_cgl.engine.schedule import Driver
from skeleton_cgl.engine.stage import Branch, learn_branch
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.workers import InProcess
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.state import from_bytes
from skeleton_cgl.scenarios.lessons import Order
from tests.engine.studies import contents, small_study

ALL_FLOORS = {"runs": 3, "orders": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("draws")


def floors(plan: Plan) -> dict[str, list[tuple]]:
    """Return, by kind of floor, the order and number of its runs."""
    found: dict[str, list[tuple]] = {}
    for run in plan.runs:
        found.setdefault(run.floor, []).append((run.order, run.noise))
    return found


def test_a_floor_has_so_many_runs_of_so_many_orders_for_everything_that_is_drawn(folder: Path) -> None:
    plan = make_plan(small_study(folder, methods=["bare"], noise_floor=ALL_FLOORS))
    found = floors(plan)
    assert found.keys() == {"", "seeds", "splits", "both"}
    first = plan.runs[0].order
    for kind in ("seeds", "splits", "both"):
        assert sorted(noise for _, noise in found[kind]) == [1, 1, 2, 2]
        orders = {order for order, _ in found[kind]}
        assert len(orders) == 2
        assert first in orders
        assert orders <= {order for order, _ in found[""]}


def test_a_plain_number_stands_for_the_runs_and_one_run_is_no_floor(folder: Path) -> None:
    floor = small_study(folder, noise_floor=5).noise_floor
    assert floor is not None
    assert (floor.runs, floor.orders, floor.kinds) == (5, 4, None)
    assert small_study(folder, noise_floor=1).noise_floor is None
    assert small_study(folder, noise_floor=0).noise_floor is None


def test_floors_draw_what_they_say_and_nothing_else(folder: Path) -> None:
    study = small_study(folder, methods=["bare"], noise_floor=ALL_FLOORS)
    plan = make_plan(study)
    ordinary = {run.order: plan.stages[run.keys[0]] for run in plan.runs if not run.floor}
    for run in plan.runs:
        stage = plan.stages[run.keys[0]]
        usual = ordinary[run.order]
        same_split = plan.setting(stage)[1].digest == plan.setting(usual)[1].digest
        assert same_split == (run.floor in ("", "seeds"))
        assert (stage.seed(study) == usual.seed(study)) == (run.floor in ("", "splits"))


def test_the_runs_of_a_floor_of_splits_start_from_the_same_weights(folder: Path) -> None:
    plan = make_plan(small_study(folder, methods=["bare"], noise_floor={**ALL_FLOORS, "kinds": ["splits", "seeds"]}))

    def first_weights(floor: str) -> bytes:
        run = next(run for run in plan.runs if run.floor == floor and run.order == plan.runs[0].order)
        stage = plan.stages[run.keys[0]]
        study, scenario = plan.setting(stage)
        backbone = stage.new_learner(study, scenario).state()["backbone"]
        return b"".join(value.numpy().tobytes() for value in backbone.values())

    assert first_weights("splits") == first_weights("")
    assert first_weights("seeds") != first_weights("")


def test_floors_run_in_the_tree_give_the_records_of_runs_alone(folder: Path, tmp_path: Path) -> None:
    study = small_study(folder, methods=["replay"], noise_floor=ALL_FLOORS, repeats=2)
    run_study(study, tmp_path / "tree.db", progress=False)
    run_study(study, tmp_path / "alone.db", progress=False, tree=False)
    assert contents(tmp_path / "tree.db") == contents(tmp_path / "alone.db")


def test_a_split_that_is_given_cannot_be_drawn_anew(folder: Path) -> None:
    given = small_study(folder).scenario | {"split": {"by": "class", "seed": 3}}
    study = small_study(folder, scenario=given, noise_floor={**ALL_FLOORS, "kinds": ["splits"]})
    with pytest.raises(InputError, match="noise_floor: kinds: the data are divided in one way only"):
        make_plan(study)
    assert floors(make_plan(small_study(folder, scenario=given, noise_floor=ALL_FLOORS))).keys() == {"", "seeds"}


@pytest.mark.parametrize(
    ("floor", "message"),
    [
        (-1, "greater than or equal to 2"),
        ({"runs": 1}, "greater than or equal to 2"),
        ({"runs": 2, "orders": 0}, "greater than or equal to 1"),
        ({"runs": 2, "kinds": []}, "at least 1"),
        ({"runs": 2, "kinds": ["seed"]}, "'seeds', 'splits' or 'both'"),
        (True, "NoiseFloor"),
    ],
)
def test_floors_that_cannot_be_are_refused(folder: Path, floor: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_study(folder, noise_floor=floor)


def test_split_weights_and_noise_have_seeds_of_their_own(folder: Path) -> None:
    def drawn(**changes: object) -> tuple[str, bytes, int]:
        study = small_study(folder, methods=["replay"], **changes)
        plan = make_plan(study)
        stage = next(iter(plan.stages.values()))
        scenario = plan.setting(stage)[1]
        backbone = stage.new_learner(study, scenario).state()["backbone"]
        weights = b"".join(value.numpy().tobytes() for value in backbone.values())
        return scenario.digest, weights, stage.seed(study)

    usual = drawn()
    assert drawn(seeds={"split": 0, "weights": 0, "noise": 0}) == usual
    for place, purpose in enumerate(("split", "weights", "noise")):
        other = drawn(seeds={purpose: 7})
        assert [one == another for one, another in zip(other, usual, strict=True)] == [n != place for n in range(3)]
    assert drawn(seeds={"split": 7, "weights": 7, "noise": 7}) == drawn(seed=7)


def test_seeds_are_in_the_keys_and_those_of_one_seed_as_before(folder: Path) -> None:
    def keys(**changes: object) -> set[str]:
        return set(make_plan(small_study(folder, **changes)).stages)

    assert keys(seeds={"split": 7, "weights": 7, "noise": 7}) == keys(seed=7)
    different = [keys(), keys(seeds={"weights": 7}), keys(seeds={"noise": 7}), keys(seeds={"split": 7})]
    assert len(set.union(*different)) == sum(map(len, different))


def test_memories_are_drawn_from_the_seed_of_noise(folder: Path) -> None:
    def remembered(**seeds: int) -> str:
        study = small_study(folder, methods=["replay"], seeds=seeds)
        plan = make_plan(study)
        stage = next(iter(plan.stages.values()))
        (outcome,) = learn_branch(*plan.setting(stage), Branch((stage,), None, frozenset([stage.key])))
        assert outcome.state is not None
        return repr(from_bytes(outcome.state)["method"])

    assert remembered() == remembered(weights=7)
    assert remembered() != remembered(noise=7)


def finished(store: Path, plan: Plan) -> list[RunRow]:
    with Store(store) as opened:
        done = opened.done()
    return [run for run in plan.runs if done.issuperset(run.keys)]


def test_orders_take_turns_at_random_alike_for_every_learner_and_repeat(folder: Path) -> None:
    study = small_study(folder, orders={"tasks": "all"}, repeats=2, noise_floor=2, methods=["bare", "ewc"])
    plan = make_plan(study)
    by_turn = sorted((run for run in plan.runs), key=lambda run: plan.turns[run.keys[-1]])
    # Repeat by repeat, ordinary runs before floors, learner by learner.
    assert [(run.repeat, run.floor != "", run.learner) for run in by_turn] == sorted(
        (run.repeat, run.floor != "", run.learner) for run in plan.runs
    )
    orders: dict[tuple[int, int], list[Order]] = {}
    for run in by_turn:
        if not run.floor:
            orders.setdefault((run.repeat, run.learner), []).append(run.order)
    assert len(orders) == 4
    assert len({tuple(sequence) for sequence in orders.values()}) == 1
    planned = [run.order for run in plan.runs if (run.repeat, run.learner, run.floor) == (0, 0, "")]
    sequence = orders[0, 0]
    assert sorted(sequence) == sorted(planned)
    assert sequence != planned
    # Not the neighbours in the tree one after the other, as they are planned.
    shared = [sum(one[0] == other[0] for one, other in pairwise(each)) for each in (sequence, planned)]
    assert shared[0] < shared[1] / 2


def test_a_run_stopped_half_way_has_finished_the_orders_whose_turn_it_was(folder: Path, tmp_path: Path) -> None:
    study = small_study(folder, methods=["bare"], orders={"tasks": 12}, training={"epochs": 1, "device": "cpu"})
    plan = make_plan(study)
    with Store(tmp_path / "x.db") as store:
        store.add_study(plan.row(), plan.learners, plan.runs)
        learned: list[Stage] = []
        Driver(plan, store, InProcess(plan), lambda: len(learned) >= 20, learned.append).run()
    done = {run.order for run in finished(tmp_path / "x.db", plan)}
    in_turn = sorted(plan.runs, key=lambda run: plan.turns[run.keys[-1]])
    assert len(done) >= 3
    assert done == {run.order for run in in_turn[: len(done)]}
