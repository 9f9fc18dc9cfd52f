"""Whole graphs with binary labels, of which some are not known, as a scenario: molecules and what they act on."""

from typing import Any, Literal

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.graphs.items import Items
from skeleton_cgl.scenarios.graph_views import GraphViews, facts_of
from skeleton_cgl.scenarios.item_split import ItemSplit
from skeleton_cgl.scenarios.many_labels import LabelSplit, ManyLabelsScenario, ManyLabelsSettings, Score, metrics_of
from skeleton_cgl.scenarios.opened import Opened
from skeleton_cgl.scenarios.problem import ManyLabels


class GraphLabelSplit(LabelSplit):
    """How graphs of binary labels are divided: by "graph" once for all labels, rare ones first; otherwise as nodes."""

    ratios: tuple[float, float, float] = (8, 1, 1)

    def settled(self, items: Items) -> "GraphLabelSplit":
        if self.by == "class":
            raise InputError("scenario: split: by: graphs have many labels; take by: graph or by: task")
        once = {"auto": "graph" if items.split is None else "published", "graph": "graph", "node": "graph"}
        return self.model_copy(update={"by": once.get(self.by, self.by)})


class GraphLabelsSettings(ManyLabelsSettings):
    """Binary labels per graph; balanced: whether yes and no count equally in the loss of a label."""

    split: GraphLabelSplit = GraphLabelSplit()
    rest: Literal["own", "join", "drop"] = "own"
    score: Score = "roc_auc"
    balanced: bool = True


class GraphLabelsScenario(ManyLabelsScenario):
    """Incremental learning of graphs with binary labels."""

    described = ("balanced",)

    def __init__(self, opened: Opened[GraphSet], settings: GraphLabelsSettings, split: ItemSplit) -> None:
        super().__init__(opened, settings, split, facts_of(opened.data))

    def problem_of(self, settings: Any) -> ManyLabels:
        return ManyLabels(metrics_of(settings), settings.balanced)

    def views_of(self, opened: Opened[GraphSet], settings: Any) -> GraphViews:
        return GraphViews(opened.data, settings.self_loops, "whole", self.items_of)
