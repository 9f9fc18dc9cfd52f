"""The fields that scenarios on the nodes of one graph share: data, view, split."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.scenarios.node_split import NodeSplit
from skeleton_cgl.scenarios.opened import Opened, open_shuffled
from skeleton_cgl.scenarios.settings import ScenarioSettings
from skeleton_cgl.scenarios.views import Surroundings, ViewName


class GraphSettings(ScenarioSettings):
    """A graph and how a learner sees it.

    data: an archive made by `prepare graph`, a file or folder in a published form, or the name of a built-in set.
    reader: the reader by name, or its options, {name: planetoid, dataset: cora}; dataset: short for the option of that
    name. view: "whole", one fixed graph for all lessons (BeGin); "task", the subgraph of the nodes of a lesson (CGLB,
    AGALE), with inter_task_edges of all lessons so far. Queries are answered on the same view. self_loops: every node
    is one of its neighbours, once.
    """

    data: str
    dataset: str | None = None
    reader: dict[str, Any] = Field(default_factory=dict)
    view: Literal["whole", "task"] = "whole"
    inter_task_edges: bool = False
    self_loops: bool = True
    split: NodeSplit = NodeSplit()

    @field_validator("reader", mode="before")
    @classmethod
    def _a_name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    def opened(self) -> Opened:
        """Return the graph; refuse what the reader refuses."""
        return open_shuffled(self.data, self.reader | ({} if self.dataset is None else {"dataset": self.dataset}))

    def split_for(self, graph: Graph, seed: int) -> NodeSplit:
        """Return the split with what it leaves open settled: the seed, unless it has its own, and what "auto" means."""
        drawn = "seed" not in self.split.model_fields_set
        return (self.split.model_copy(update={"seed": seed}) if drawn else self.split).settled(graph)

    @property
    def view_name(self) -> ViewName:
        if self.view == "whole":
            if self.inter_task_edges:
                raise InputError("scenario: inter_task_edges: the whole graph has all edges; it goes with view: task")
            return "whole"
        return "so far" if self.inter_task_edges else "own"

    def surroundings(self, graph: Graph) -> Surroundings:
        return Surroundings(graph.edges, graph.features, self.self_loops)

    def idle(self, fields: Mapping[str, str]) -> Self:
        """Return these settings; refuse those of the fields that were given, each with the reason why it is idle."""
        for field, reason in fields.items():
            if field in self.model_fields_set:
                raise InputError(f"scenario: {field}: {reason}")
        return self
