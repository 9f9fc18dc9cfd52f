"""What comes out of the store about studies: frozen rows. Identity is data here; how a thing is called is decided when
it is shown."""

import json
from dataclasses import dataclass
from typing import Any

from skeleton_cgl.scenarios.lessons import Order

Values = tuple[tuple[str, Any], ...]
"""Names and plain values, such as the parameters of a component or the point of a sweep."""


@dataclass(frozen=True)
class ComponentRow:
    """A backbone or a method of a study.

    name: as the study names it (a known name, `module:Class` or a file); label: what the user wants it called, if
    anything; parameters: those the study gives; class_name and digest: the class it came to, and a digest of class, all
    parameters and the code of a user's own. Both are empty where they are not known: in studies of an old format.
    """

    name: str
    label: str = ""
    parameters: Values = ()
    class_name: str = ""
    digest: str = ""


@dataclass(frozen=True)
class LearnerRow:
    """A backbone with a method at one point of the study's sweep; number counts the learners of a study from 0."""

    number: int
    backbone: ComponentRow
    method: ComponentRow
    point: Values = ()


@dataclass(frozen=True)
class RunRow:
    """One order learned once: by which learner, and the keys of its stages.

    noise 0 is the ordinary run. The others belong to a noise floor and count from 1; floor says what was drawn anew for
    them: "seeds", "splits" or "both".
    """

    learner: int
    kind: str
    repeat: int
    noise: int
    order: Order
    keys: tuple[str, ...]
    floor: str = ""


@dataclass(frozen=True)
class StudyRow:
    """A study as the store knows it, without its data.

    number: in its store, 0 before it is kept. spec: the study file as JSON. digests: of its scenarios, variant by
    variant, and of the code of users' own. units: the names of what orders arrange. default: the order of the default
    tasks. metrics: what is recorded, the leading one first. notes: what a reader must know of the data, line by line.
    """

    number: int
    name: str
    spec: str
    digests: tuple[str, ...]
    units: tuple[str, ...]
    default: Order
    metrics: tuple[str, ...] = ("accuracy",)
    created: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_stream(self) -> bool:
        """Whether its scenario is `kind: stream`, examined at times of its own."""
        return bool(json.loads(self.spec).get("scenario", {}).get("kind") == "stream")

    def lessons_are_tasks(self, run: RunRow) -> bool:
        """Return whether a run learns a task of its order with every stage, and not a piece of a stream.

        Of a scenario of a user's own nothing but the number of stages tells.
        """
        return not self.is_stream and len(run.keys) == len(run.order)


@dataclass(frozen=True)
class PlannedStudy:
    """A study with all it asks for, as it is carried from one store to another."""

    study: StudyRow
    learners: tuple[LearnerRow, ...]
    runs: tuple[RunRow, ...]
