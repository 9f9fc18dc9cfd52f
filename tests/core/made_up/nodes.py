"""One class per node; the classes arrive task by task."""

from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.scenarios.scenario import Facts
from skeleton_cgl.scenarios.settings import ScenarioSettings
from skeleton_cgl.scenarios.views import Surroundings
from tests.core.community import CLASSES, FEATURES, make_community


class NodesSettings(ClassTasks, ScenarioSettings):
    kind: str

    def make(self, seed: int) -> LabelledSamples:
        graph = make_community(seed)
        names = tuple(f"class {label}" for label in range(CLASSES))
        content = f"nodes {seed} {self.setting}"
        pool = Surroundings(graph.edges, graph.features, self_loops=False).whole
        facts = Facts("graph", {"features": FEATURES})
        return LabelledSamples(pool, graph.labels, graph.parts, names, self, facts, content.encode())
