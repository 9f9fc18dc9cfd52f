"""What the driver does when its store, or a state beside it, is not what it left there."""

from pathlib import Path

import pytest

from skeleton_cgl.engine.plan import Plan, Stage, make_plan
from skeleton_cgl.engine.schedule import Driver, Summary
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.workers import InProcess
from skeleton_cgl.errors import InputError
from tests.engine.studies import contents, small_study


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return make_plan(small_study(tmp_path_factory.mktemp("engine"), methods=["bare"]))


def learn(plan: Plan, path: Path, stages: int | None = None) -> Summary:
    """Learn what a store lacks of a plan, or so many stages of it."""
    learned: list[Stage] = []
    with Store(path) as store:
        return Driver(plan, store, InProcess(plan), lambda: len(learned) == stages, learned.append).run()


def test_a_damaged_state_is_dropped_and_its_stage_learned_again(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learn(plan, tmp_path / "whole.db")
    learn(plan, tmp_path / "x.db", stages=1)
    (state,) = Path(f"{tmp_path / 'x.db'}.states").iterdir()
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 1
    state.write_bytes(content)
    summary = learn(plan, tmp_path / "x.db")
    assert summary.learned == len(plan.stages)
    assert capsys.readouterr().err.count(f"{state.name}: damaged; removed, and its stage is learned again") == 1
    assert contents(tmp_path / "x.db") == contents(tmp_path / "whole.db")


def test_a_store_deleted_in_a_run_ends_it_while_the_states_are_there(plan: Plan, tmp_path: Path) -> None:
    path, learned = tmp_path / "x.db", []

    def finished(stage: Stage) -> None:
        learned.append(stage.key)
        if len(learned) == 2:
            path.unlink()

    with Store(path) as store, pytest.raises(InputError, match=r"x\.db: deleted or replaced while it was in use"):
        Driver(plan, store, InProcess(plan), finished=finished).run()
    assert len(learned) == 2
    assert any(Path(f"{path}.states").iterdir())
    (tmp_path / "x.db.rescued").rename(path)
    assert contents(path).keys() == set(learned)
    assert learn(plan, path).learned == len(plan.stages) - 2
