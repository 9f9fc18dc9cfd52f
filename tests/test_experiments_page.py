"""What experiments/README.md says of studies and methods is true: none is missing, each is defined where it says."""

import fnmatch
import re
from pathlib import Path

import pytest

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.engine.compatibility import compatibilities
from skeleton_cgl.engine.learners import BACKBONE_NEEDS
from skeleton_cgl.registry import CLIP_BACKBONES, GRAPH_BACKBONES, METHODS, arguments_of

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
PAGE = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
METHODS_PART = re.search(r"## Methods\n.*?(?=\n## )", PAGE, flags=re.DOTALL)
assert METHODS_PART is not None
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]] for line in METHODS_PART[0].splitlines() if line.startswith("| `")
]
KINDS = {"graph", "graph, labels", "link", "link-prediction", "multilabel", "node", "skeleton"}
SETTINGS = {"class-il", "task-il", "domain-il", "time-il"}
WHERE = {
    "everywhere": (KINDS, SETTINGS),
    "one class": ({"graph", "link", "node", "skeleton"}, SETTINGS),
    "nodes": ({"node"}, SETTINGS),
    "nodes, class-il and task-il": ({"node"}, {"class-il", "task-il"}),
    "nodes, also of many labels": ({"node", "multilabel"}, SETTINGS),
    "task-il": (KINDS, {"task-il"}),
}
"""Kinds of scenario and settings, as far as a kind has them."""


def backbones() -> dict[str, list[type[Backbone]]]:
    """Return all backbones that can be named; of clips and of graphs some have the same name."""
    found: dict[str, list[type[Backbone]]] = {}
    for registry in (CLIP_BACKBONES, GRAPH_BACKBONES):
        for name in registry.names():
            found.setdefault(name, []).append(registry.find(name))
    return found


@pytest.mark.parametrize("file", sorted(path.name for path in EXPERIMENTS.glob("*.yaml")))
def test_every_study_is_on_the_page(file: str) -> None:
    named = re.findall(r"`([\w*]+\.yaml)`", PAGE)
    assert any(fnmatch.fnmatch(file, pattern) for pattern in named)


def test_every_method_has_a_row_and_only_methods_have() -> None:
    assert sorted(row[0].strip("`") for row in ROWS) == METHODS.names()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("`"))
def test_a_row_is_short_and_has_parameters_that_the_method_takes(row: list[str]) -> None:
    name, does, _, parameters = row
    assert len(does.split()) <= 12
    assert set(re.findall(r"`(\w+)`", parameters)) <= arguments_of(METHODS.find(name.strip("`"))).keys()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("`"))
def test_a_method_is_defined_where_its_row_says(row: list[str]) -> None:
    known = {each.method: each.settings for each in compatibilities()}
    kinds, settings = WHERE[row[2]]
    said = {(kind, each) for kind in kinds for each in known["bare"][kind] if each in settings}
    assert said == {(kind, each) for kind, found in known[row[0].strip("`")].items() for each in found}


def test_backbones_named_for_a_method_are_those_that_have_what_it_needs() -> None:
    sentence = re.search(r"`twp` and `hat` need.*?`variant`", PAGE, flags=re.DOTALL)
    assert sentence is not None
    both, _, others = sentence[0].partition("`pdgnn-tem`")
    named = {
        "twp": re.findall(r"`([\w-]+)`", both)[2:],
        "hat": re.findall(r"`([\w-]+)`", both)[2:],
        "pdgnn-tem": re.findall(r"needs `([\w-]+)`", others)[:1],
        "evolve-gcn": re.findall(r"needs `([\w-]+)`", others)[1:],
    }
    needing = {each.method: each.of_backbone for each in compatibilities() if each.of_backbone}
    assert needing.keys() == named.keys()
    for method, (need,) in needing.items():
        wanted = BACKBONE_NEEDS[need].partition("(")[0]
        offering = {name for name, found in backbones().items() if all(hasattr(each, wanted) for each in found)}
        assert set(named[method]) == offering


def test_the_methods_said_to_have_a_variant_are_those_that_have() -> None:
    sentence = re.search(r"`variant` of ([\w, ]+) does as", PAGE)
    assert sentence is not None
    said = {word.lower() for word in re.split(r", | and ", sentence[1])}
    assert said == {name for name in METHODS.names() if "variant" in arguments_of(METHODS.find(name))}
