"""How long a learner takes for one order."""

from typing import ClassVar

from skeleton_cgl.analysis.metric import Entry, Metric, entry_of
from skeleton_cgl.analysis.scores import Scores


class Seconds(Metric):
    """The seconds of one worker from the first task of an order to its last, answers included."""

    heading: ClassVar[str] = "seconds"
    percent: ClassVar[bool] = False
    note: ClassVar[str] = (
        "Seconds: of one worker, by the clock, to learn one order from its first task to its last and to answer after "
        "each; mean over orders, then mean ± standard deviation over repeats. Stages that orders share count in each "
        "of them."
    )

    def measure(self, scores: Scores) -> Entry:
        if scores.costs is None:
            return Entry(reason="nothing is known of how long it took")
        return entry_of(scores, scores.costs.seconds)
