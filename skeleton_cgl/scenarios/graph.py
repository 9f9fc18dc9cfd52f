"""Classification of whole graphs as a scenario: one class per graph, or binary labels of which some are not known."""

from typing import Any, Literal

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.scenarios.graph_labels import GraphLabelsScenario, GraphLabelsSettings
from skeleton_cgl.scenarios.graph_views import GraphViews, facts_of
from skeleton_cgl.scenarios.item_split import ItemSplit
from skeleton_cgl.scenarios.many_labels import Score as LabelScore
from skeleton_cgl.scenarios.one_class import OneClassScenario, OneClassSettings, Score
from skeleton_cgl.scenarios.opened import Opened
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.scenarios.views import ViewName

_OF_LABELS = ("average_precision", "average_precision_so_far")


class WholeGraphSettings(OneClassSettings):
    """One class per graph, or binary labels of which some are not known.

    Where graphs have binary labels, these are what class- and task-il divide into tasks, all graphs of which one of a
    task's labels is known belong to it, and there is no time-il. score: what leads; by default accuracy, of labels
    ROC-AUC. balanced: whether classes, or the yes and no of a label, count equally in the loss.
    """

    kind: Literal["graph"]
    data: str = "synthetic-graphs"
    score: Score | LabelScore = "accuracy"  # type: ignore[assignment]

    def make(self, seed: int) -> Scenario:
        opened = self.checked().opened(GraphSet)
        if opened.data.many_labels:
            labels = self._of_labels(opened.data)
            return GraphLabelsScenario(opened, labels, labels.split_for(opened.data, seed))
        if self.score in _OF_LABELS:
            raise InputError(f"scenario: score: {self.score} is of labels; {opened.data.name} has one class per graph")
        return GraphScenario(opened, self, self.split_for(opened.data, seed))

    def _of_labels(self, graphs: GraphSet) -> GraphLabelsSettings:
        """Return the same settings for binary labels; refuse what these do not have."""
        if self.setting == "time-il":
            raise InputError(f"scenario: setting: time-il is of one class per graph; {graphs.name} has many labels")
        if "score" in self.model_fields_set and self.score not in ("roc_auc", *_OF_LABELS):
            raise InputError(f"scenario: score: {self.score} is of one class; {graphs.name} has many labels per graph")
        given = self.model_dump(include=self.model_fields_set - {"kind", "split"})
        split = self.split.model_dump(include=self.split.model_fields_set)
        return GraphLabelsSettings.model_validate({**given, "data": self.data, "split": split}).checked()


class GraphScenario(OneClassScenario):
    """Incremental learning of graphs of one class each."""

    def __init__(self, opened: Opened[GraphSet], settings: WholeGraphSettings, split: ItemSplit) -> None:
        super().__init__(opened, settings, split, facts_of(opened.data))

    def views_of(self, opened: Opened[GraphSet], settings: Any, view: ViewName) -> GraphViews:
        return GraphViews(opened.data, settings.self_loops, view, self.items_of)
