"""Learners are called and drawn by what they are; a label changes what is printed and nothing else."""

from dataclasses import replace

import pandas as pd

from skeleton_cgl.analysis.names import METHODS, LearnerName, methods_of, name_learners, name_together, with_names
from skeleton_cgl.engine.rows import ComponentRow, LearnerRow
from tests.analysis.made_scores import learner


def by_number(*learners: LearnerRow) -> list[LearnerName]:
    return sorted(name_learners(learners), key=lambda name: name.number)


def look(name: LearnerName) -> tuple[str, str]:
    return name.colour, name.marker


def labelled(row: LearnerRow, method: str = "", backbone: str = "") -> LearnerRow:
    return replace(row, method=replace(row.method, label=method), backbone=replace(row.backbone, label=backbone))


def test_known_components_have_names_and_others_go_by_file_or_class() -> None:
    names = by_number(
        learner(0, "ewc"),
        learner(1, "lwf", "stgcn"),
        learner(2, "my.pkg:Other", "models/tcn.py"),
        learner(3, "folder/der.py"),
    )
    assert [name.method for name in names] == ["EWC", "LwF", "Other", "der"]
    assert [name.backbone for name in names] == ["GCN", "ST-GCN", "tcn", "GCN"]


def test_a_label_changes_what_is_printed_and_nothing_else() -> None:
    rows = [learner(0, "replay"), learner(1, "bare"), learner(2, "mine.py")]
    plain = name_learners(rows)
    named = name_learners([labelled(rows[0], "a"), labelled(rows[1], "z", "b"), labelled(rows[2], "bare")])
    assert [name.number for name in plain] == [1, 0, 2]
    assert [name.number for name in named if name.backbone == "GCN"] == [0, 2]
    assert {name.number: look(name) for name in named} == {name.number: look(name) for name in plain}
    assert [name.method for name in sorted(named, key=lambda name: name.number)] == ["a", "z", "bare"]


def test_methods_come_in_a_fixed_sequence_the_known_ones_first() -> None:
    rows = [learner(number, name) for number, name in enumerate(["zeta", "alpha", *reversed(METHODS)])]
    assert [name.method for name in name_learners(rows)] == [*METHODS.values(), "alpha", "zeta"]


def test_a_method_looks_the_same_in_several_studies_and_keeps_its_number_in_each() -> None:
    first, second = [learner(3, "ewc"), learner(1, "mine.py")], [learner(3, "mine.py"), learner(4, "other.py")]
    found = name_together([first, second])
    assert [{number: name.method for number, name in each.items()} for each in found] == [
        {3: "EWC", 1: "mine"},
        {3: "mine", 4: "other"},
    ]
    assert look(found[0][1]) == look(found[1][3]) != look(found[1][4])


def test_a_method_with_other_parameters_in_another_problem_is_the_same_one() -> None:
    groups = [[learner(0, "ridge", hops=0), learner(1, "bare")], [learner(0, "ridge", hops=2)]]
    apart, together = name_together(groups), name_together(groups, ["clips", "nodes"])
    assert [name.method for names in apart for name in names.values()] == ["Ridge hops=0", "Bare", "Ridge hops=2"]
    assert [name.method for names in together for name in names.values()] == ["Ridge", "Bare", "Ridge"]
    assert together[0][0].place == together[1][0].place
    assert look(together[0][0]) == look(together[1][0]) != look(together[0][1])
    within = name_together([[learner(0, "ridge", hops=0), learner(1, "ridge", hops=1)], groups[1]], ["clips", "nodes"])
    assert [name.method for names in within for name in names.values()] == ["Ridge hops=0", "Ridge hops=1", "Ridge"]


def test_those_that_would_be_called_the_same_are_told_apart_by_their_parameters() -> None:
    names = by_number(
        learner(0, "ewc", strength=1.0, importance="batch"),
        learner(1, "ewc", strength=1e6, importance="batch"),
        learner(2, "ewc", importance="batch"),
        learner(3, "mas"),
    )
    assert [name.method for name in names] == ["EWC strength=1", "EWC strength=1e+06", "EWC", "MAS"]


def test_those_of_the_same_parameters_are_told_apart_by_their_origin() -> None:
    names = by_number(learner(0, "a.nets:Net"), learner(1, "b.nets:Net"), labelled(learner(2, "bare"), "Net"))
    assert [name.method for name in names] == ["Net (a.nets:Net)", "Net (b.nets:Net)", "Net (bare)"]
    twice = by_number(labelled(learner(0, "bare"), "x"), labelled(learner(1, "bare", seed=1), "x"))
    assert [name.method for name in twice] == ["x", "x seed=1"]


def test_a_sweep_renames_neither_backbone_nor_method() -> None:
    points = [(("methods.strength", strength),) for strength in (1, 100)]
    rows = [learner(number, "ewc", point=point, strength=point[0][1]) for number, point in enumerate(points)]
    names = by_number(*rows)
    assert [(name.backbone, name.method, name.point) for name in names] == [
        ("GCN", "EWC", "methods.strength=1"),
        ("GCN", "EWC", "methods.strength=100"),
    ]
    assert look(names[0]) == look(names[1])
    assert len(methods_of(names)) == 1
    widths = by_number(learner(0, point=(("backbone.width", 32), ("backbone", "gcn"))))
    assert (widths[0].setting, widths[0].swept) == ("GCN width=32", (("backbone.width", 32),))


def test_the_same_method_looks_the_same_with_every_backbone() -> None:
    names = by_number(learner(0, "own.py"), learner(1, "own.py", "stgcn"), learner(2, "other.py", "stgcn"))
    assert look(names[0]) == look(names[1]) != look(names[2])


def test_many_methods_look_different() -> None:
    variants = [learner(number, "ewc", strength=number) for number in range(78)]
    others = [learner(number, f"candidate {number}") for number in range(78)]
    for rows in (variants, others):
        assert len({look(name) for name in name_learners(rows)}) == 78
    known = name_learners([learner(number, name) for number, name in enumerate(METHODS)])
    assert len({look(name) for name in known}) == len(METHODS)
    published = name_learners([learner(number, name) for number, name in enumerate(list(METHODS)[:7])])
    assert len({name.colour for name in published}) == len({name.marker for name in published}) == 7
    assert {name.colour for name in name_learners(variants[:9])} == {known[1].colour}


def test_a_known_method_looks_the_same_whatever_it_is_shown_with() -> None:
    together = {name.method: look(name) for name in name_learners([learner(n, name) for n, name in enumerate(METHODS)])}
    for number, (name, title) in enumerate(METHODS.items()):
        beside = [learner(0, name), learner(1, "mine.py"), learner(2, "bare"), learner(3, list(METHODS)[-1 - number])]
        shown = {one.method: look(one) for one in name_learners(beside)}
        assert shown[title] == together[title]
        assert len(set(shown.values())) == len(shown)


def test_variants_of_a_method_look_like_no_other_method_that_is_shown() -> None:
    rows = [learner(0, "mas"), learner(1, "mas", strength=1), learner(2, "mas", strength=2), learner(3, "pdgnn-tem")]
    names = by_number(*rows)
    assert len({name.colour for name in names}) == 1
    assert len({name.marker for name in names}) == 4
    assert look(names[3]) == look(by_number(learner(0, "pdgnn-tem"))[0])


def test_methods_that_are_shown_together_differ_in_colour() -> None:
    begin = ["bare", "ewc", "mas", "twp", "lwf", "gem", "er-gnn", "cgnn", "packnet", "piggyback", "hat", "joint"]
    streams = ["bare", "er", "a-gem", "gss", "mas-star", "ssm-stream", "sem-stream", "dmsg-stream", "der-pp", "joint"]
    clips = ["bare", "ewc", "mas", "twp", "lwf", "gem", "replay", "er", "a-gem", "der-pp", "joint", "cosine"]
    for shown in (begin, streams, clips):
        names = name_learners([learner(number, name) for number, name in enumerate([*shown, "ridge"])])
        assert len({name.colour for name in names}) == len(names)


def test_frames_for_users_name_learners_and_the_fields_swept() -> None:
    rows = [learner(4, "ewc", point=(("backbone.width", 8),)), learner(7, "mine:Own", point=(("backbone.width", 4),))]
    frame = with_names(pd.DataFrame({"learner": [7, 4, 7], "AA": [1.0, 2.0, 3.0]}), rows)
    assert list(frame.columns) == ["backbone", "method", "learner", "AA", "backbone.width"]
    assert list(frame["method"]) == ["Own", "EWC", "Own"]
    assert list(frame["backbone.width"]) == [4, 8, 4]


def test_components_with_parameters_of_any_kind_are_named() -> None:
    odd = LearnerRow(0, ComponentRow("gcn"), ComponentRow("ewc", parameters=(("layers", [1, 2]),)), (("x", [1]),))
    other = replace(odd, number=1, method=ComponentRow("ewc", parameters=(("layers", [3]),)))
    assert [name.method for name in by_number(odd, other)] == ["EWC layers=[1, 2]", "EWC layers=[3]"]
