"""How learners are called and drawn, decided from their rows when they are shown.

The sequence of rows, the colours and the markers go by what a component is, never by what it is called: a label given
by the user changes what is printed and nothing else.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import pandas as pd

from skeleton_cgl.engine.rows import ComponentRow, LearnerRow, Values
from skeleton_cgl.plain import value_text

BACKBONES = {"gcn": "GCN", "stgcn": "ST-GCN"}
METHODS = {
    "bare": "Bare",
    "ewc": "EWC",
    "mas": "MAS",
    "mas-star": "MAS*",
    "twp": "TWP",
    "lwf": "LwF",
    "gem": "GEM",
    "replay": "Replay",
    "er": "ER",
    "a-gem": "A-GEM",
    "der": "DER",
    "der-pp": "DER++",
    "gss": "GSS",
    "er-gnn": "ER-GNN",
    "cgnn": "CGNN",
    "ssm": "SSM",
    "sem": "SEM",
    "ssm-stream": "SSM (stream)",
    "sem-stream": "SEM (stream)",
    "pdgnn-tem": "PDGNN-TEM",
    "cat": "CaT",
    "delome": "DeLoMe",
    "dmsg": "DMSG",
    "dmsg-stream": "DMSG (stream)",
    "packnet": "PackNet",
    "piggyback": "Piggyback",
    "hat": "HAT",
    "evolve-gcn": "EvolveGCN",
    "joint": "Joint",
    "ridge": "Ridge",
    "ncm": "NCM",
    "cosine": "Cosine",
}
"""The methods that have a name of their own, in the sequence of the rows of a table; others follow."""

_BLACK, _GREY, _BLUE, _SKY, _NAVY, _TEAL = "#000000", "#8C8C8C", "#0072B2", "#56B4E9", "#332288", "#44AA99"
_GREEN, _FOREST, _OLIVE, _ORANGE, _RED = "#009E73", "#117733", "#999933", "#E69F00", "#D55E00"
_BROWN, _WINE, _PURPLE, _PINK = "#661100", "#882255", "#AA4499", "#CC79A7"
_LOOKS = {
    "bare": (_BLACK, "o"),
    "ewc": (_BLUE, "s"),
    "mas": (_SKY, "^"),
    "mas-star": (_NAVY, "h"),
    "twp": (_GREEN, "D"),
    "lwf": (_PINK, "v"),
    "gem": (_ORANGE, "P"),
    "replay": (_RED, "X"),
    "er": (_WINE, "<"),
    "a-gem": (_OLIVE, ">"),
    "der": (_TEAL, "p"),
    "der-pp": (_BROWN, "d"),
    "gss": (_PURPLE, "8"),
    "er-gnn": (_WINE, "h"),
    "cgnn": (_NAVY, ">"),
    "ssm": (_GREEN, ">"),
    "sem": (_ORANGE, "h"),
    "ssm-stream": (_GREEN, "<"),
    "sem-stream": (_ORANGE, "8"),
    "pdgnn-tem": (_SKY, "d"),
    "cat": (_BLUE, "p"),
    "delome": (_RED, "h"),
    "dmsg": (_PINK, "p"),
    "dmsg-stream": (_PINK, "d"),
    "packnet": (_OLIVE, "p"),
    "piggyback": (_BROWN, "8"),
    "hat": (_PURPLE, "<"),
    "evolve-gcn": (_TEAL, "X"),
    "joint": (_GREY, "*"),
    "ridge": (_FOREST, "d"),
    "ncm": (_TEAL, "^"),
    "cosine": (_TEAL, "s"),
}
"""How known methods are drawn, wherever they are shown; those that are often shown together differ in colour."""
# Small, a circle is no different from an octagon.
_MARKERS = list(dict.fromkeys(marker for _, marker in _LOOKS.values() if marker != "o"))
_SPARE = [
    (colour, _MARKERS[(place + turn) % len(_MARKERS)])
    for turn in range(len(_MARKERS))
    for place, colour in enumerate((_NAVY, _WINE, _OLIVE, _TEAL, _BROWN, _PURPLE))
]
"""How others are drawn, as far as no known method that is shown with them looks like that."""


@dataclass(frozen=True)
class LearnerName:
    """How a learner is called and drawn. point: the swept fields and their values as text, "" without a sweep.

    Learners of one method are called and drawn alike, whatever their backbone and their point; place counts the methods
    in the sequence of tables and legends.
    """

    number: int
    backbone: str
    method: str
    point: str
    swept: Values
    place: int
    colour: str
    marker: str

    @property
    def setting(self) -> str:
        """All but the method: what its rivals in a comparison share."""
        return f"{self.backbone} {self.point}".strip()


def name_learners(learners: Iterable[LearnerRow]) -> tuple[LearnerName, ...]:
    """Return the names of learners, in the sequence of tables: by setting as they come, then by method.

    Components that would be called the same are told apart by the parameters in which they differ, then by where they
    come from. Those that are nothing but points of one sweep need not be: the point tells.
    """
    learners = list(learners)
    return _named(learners, [""] * len(learners))


def _named(learners: Sequence[LearnerRow], problems: Sequence[str]) -> tuple[LearnerName, ...]:
    """Return the names of learners, each of a problem: those of others need not be told apart."""
    backbones, methods = [""] * len(learners), [""] * len(learners)
    for problem in dict.fromkeys(problems):
        places_of = [place for place, each in enumerate(problems) if each == problem]
        rows = [learners[place] for place in places_of]
        called = (
            _titles_by_point(rows, lambda learner: learner.backbone, BACKBONES),
            _titles_by_point(rows, lambda learner: learner.method, METHODS),
        )
        for place, backbone, method in zip(places_of, *called, strict=True):
            backbones[place], methods[place] = backbone, method
    sequence = sorted(
        {(learner.method.name, title) for learner, title in zip(learners, methods, strict=True)}, key=_rank
    )
    places = {method: place for place, method in enumerate(sequence)}
    looks = _looks(sequence)
    named = []
    for learner, backbone, method in zip(learners, backbones, methods, strict=True):
        place = places[learner.method.name, method]
        swept = tuple((field, value) for field, value in learner.point if field not in _TOLD)
        named.append(
            LearnerName(learner.number, backbone, method, point_text(learner.point), swept, place, *looks[place])
        )
    settings = list(dict.fromkeys(name.setting for name in named))
    return tuple(sorted(named, key=lambda name: (settings.index(name.setting), name.place)))


def name_together(
    groups: Sequence[Sequence[LearnerRow]], problems: Sequence[str] | None = None
) -> list[dict[int, LearnerName]]:
    """Return the names of the learners of several studies, by their numbers in each.

    Named together, a method looks the same in all of them, and others are told apart. problems: that of every study; a
    method that has other parameters in another problem is the same one then.
    """
    rows = [replace(learner, number=place) for place, learner in enumerate(itertools.chain(*groups))]
    named = zip(groups, problems or [""] * len(groups), strict=True)
    of_rows = [problem for group, problem in named for _ in group]
    names = iter(sorted(_named(rows, of_rows), key=lambda name: name.number))
    return [{learner.number: next(names) for learner in group} for group in groups]


def numbered(names: Iterable[LearnerName]) -> dict[int, LearnerName]:
    """Return the names of the learners of one study by their numbers."""
    return {name.number: name for name in names}


def methods_of(names: Iterable[LearnerName]) -> list[LearnerName]:
    """Return one name for every method, in the sequence of legends."""
    return list({name.place: name for name in sorted(names, key=lambda name: name.place)}.values())


def settings_of(names: Iterable[LearnerName]) -> list[str]:
    """Return the settings of learners, each once."""
    return list(dict.fromkeys(name.setting for name in names))


def with_names(frame: pd.DataFrame, learners: Iterable[LearnerRow]) -> pd.DataFrame:
    """Return a frame with a column `learner` with columns backbone and method before, and the swept fields last."""
    names = numbered(name_learners(learners))
    of_rows = [names[number] for number in frame["learner"]]
    titles = {"backbone": [name.backbone for name in of_rows], "method": [name.method for name in of_rows]}
    fields = dict.fromkeys(field for name in names.values() for field, _ in name.swept)
    swept = {field: [dict(name.swept).get(field) for name in of_rows] for field in fields}
    return pd.DataFrame({**titles, **frame, **swept}, index=frame.index)


def point_text(point: Values) -> str:
    """Return the point of a sweep as text, `width=32, depth=2`; what the names of components tell is left out."""
    return ", ".join(f"{short(field)}={value_text(value)}" for field, value in point if field not in _TOLD)


def short(field: str) -> str:
    """Return a swept field as it is called where there is little room."""
    return field.removeprefix("backbone.")


_TOLD = ("backbone", "methods")
"""Swept fields that need no words of their own: the names of the components tell them."""


def _titles_by_point(
    learners: Sequence[LearnerRow], part: Callable[[LearnerRow], ComponentRow], known: dict[str, str]
) -> list[str]:
    """Return what a component of every learner is called; those at one point of a sweep are told apart."""
    at_points: dict[str, dict[str, ComponentRow]] = {}
    for learner in learners:
        at_points.setdefault(repr(learner.point), {}).setdefault(_identity(part(learner)), part(learner))
    titles = {
        point: dict(zip(components, _titles(list(components.values()), known), strict=True))
        for point, components in at_points.items()
    }
    return [titles[repr(learner.point)][_identity(part(learner))] for learner in learners]


def _identity(component: ComponentRow) -> str:
    return repr((component.name, component.label, sorted(component.parameters)))


def _titles(components: Sequence[ComponentRow], known: dict[str, str]) -> list[str]:
    """Return a title for every component, all different."""
    titles = [component.label or known.get(component.name) or _stem(component.name) for component in components]
    for told_apart in (_by_parameters, _by_origin, _by_number):
        for title in set(titles):
            alike = [place for place, other in enumerate(titles) if other == title]
            if len(alike) > 1:
                found = told_apart([components[place] for place in alike])
                for place, text in zip(alike, found, strict=True):
                    titles[place] = f"{title} {text}".strip()
    return titles


def _by_parameters(components: Sequence[ComponentRow]) -> list[str]:
    given = [dict(component.parameters) for component in components]
    names = dict.fromkeys(name for parameters in given for name in parameters)
    differing = [name for name in names if len({repr(parameters.get(name)) for parameters in given}) > 1]
    return [
        ", ".join(f"{name}={value_text(parameters[name])}" for name in differing if name in parameters)
        for parameters in given
    ]


def _by_origin(components: Sequence[ComponentRow]) -> list[str]:
    differ = len({component.name for component in components}) > 1
    return [f"({component.name})" if differ else "" for component in components]


def _by_number(components: Sequence[ComponentRow]) -> list[str]:
    return [f"#{number}" for number in range(1, len(components) + 1)]


def _stem(name: str) -> str:
    """Return the short form of `module:Class` or of a file."""
    return name.rpartition(":")[2] if ":" in name else PurePath(name).stem


def _rank(method: tuple[str, str]) -> tuple[int, str, str]:
    """Return the place of a method, by component and title: the known ones first, others by the alphabet."""
    name, title = method
    return list(METHODS).index(name) if name in METHODS else len(METHODS), name, title


def _looks(methods: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return colour and marker of every method, by component and title.

    A known component has its own look, several of one share its colour, as far as there are markers; others share
    colours where they are many. No two look the same, as long as there are looks left.
    """
    names = [name for name, _ in methods]
    own = {name: _LOOKS[name] for name in names if name in _LOOKS}
    taken = set(own.values())
    found: list[tuple[str, str]] = []
    for place, name in enumerate(names):
        if name in own and name not in names[:place]:
            found.append(own[name])
            continue
        same_colour = [(own[name][0], marker) for marker in _MARKERS] if name in own else []
        free = (look for look in (*same_colour, *_SPARE) if look not in taken)
        found.append(next(free, _SPARE[place % len(_SPARE)]))
        taken.add(found[-1])
    return found
