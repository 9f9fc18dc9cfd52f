"""The grids in experiments/grids/ are what `search` takes: with their own command, every candidate can be learned."""

import re
import shlex
from pathlib import Path

import pytest

from skeleton_cgl.backbones.backbone import backbones_for
from skeleton_cgl.engine.learners import BACKBONE_NEEDS
from skeleton_cgl.learning.method import make_method, needs_of
from skeleton_cgl.scenarios.scenario import offers_in
from skeleton_cgl.scenarios.settings import check_scenario
from skeleton_cgl.search import Search

ROOT = Path(__file__).parents[2]
GRIDS = sorted((ROOT / "experiments" / "grids").glob("*.yaml"))
ISOLATION = {"packnet", "piggyback", "hat"}


def command_of(path: Path) -> tuple[str, ...]:
    """Return the words of the command that a file's comment gives, after `skeleton-cgl search`."""
    comment = " ".join(line[2:] for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# "))
    commands = re.findall(r"`skeleton-cgl search ([^`]*)`", comment)
    assert len(commands) == 1
    return tuple(shlex.split(commands[0]))


def search_of(path: Path) -> Search:
    file, *options = command_of(path)
    changes = [value for option, value in zip(options[::2], options[1::2], strict=True) if option == "--set"]
    return Search.from_file(ROOT / file, changes)


@pytest.fixture(params=GRIDS, ids=lambda path: path.stem)
def grid(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def test_the_command_of_a_grid_is_that_of_its_own_file(grid: Path) -> None:
    file, option, fragment, *_ = command_of(grid)
    assert ROOT / file == grid
    assert option == "--out"
    assert (ROOT / fragment).parent == grid.parents[1], "`include` seeks it beside the studies"


def test_all_candidates_of_a_grid_can_be_made_and_are_defined_where_they_are_tried(grid: Path) -> None:
    search = search_of(grid)
    settings = check_scenario(search.scenario)
    takes = "clips" if search.scenario.get("kind", "skeleton") == "skeleton" else "graph"
    backbones = [backbones_for(takes).find(each.name) for each in search.backbone]
    for variant in search.as_study().variants():
        for candidate in variant.study.methods:
            needed = needs_of(make_method(candidate.name, candidate.parameters))
            of_backbone = needed & BACKBONE_NEEDS.keys()
            assert needed - of_backbone <= offers_in(settings.setting, settings.offered)
            wanted = {BACKBONE_NEEDS[need].partition("(")[0] for need in of_backbone}
            assert all(hasattr(backbone, name) for backbone in backbones for name in wanted)


def test_a_grid_is_tried_on_one_order_and_draws_no_noise_floor(grid: Path) -> None:
    """What is included may have all orders and a floor: they would multiply the search and decide nothing."""
    study = search_of(grid).as_study()
    assert study.orders.tasks == "default"
    assert not study.orders.given
    assert study.noise_floor is None


def test_every_grid_leaves_something_to_choose(grid: Path) -> None:
    search = search_of(grid)
    assert len(search.points()) > 1 or any(len(tried) > 1 for tried in search.candidates().values())


def test_parameter_isolation_is_tried_without_weight_decay(grid: Path) -> None:
    """Decay would shrink what a task owns."""
    search = search_of(grid)
    if ISOLATION & {method.name for method in search.methods}:
        assert search.training.weight_decay == 0
        assert "training" not in search.grid
