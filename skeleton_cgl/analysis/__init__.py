"""From records to findings: performance, order disparity, what explains it, tables, figures, the report."""

from skeleton_cgl.analysis.benchmarks import published_performance
from skeleton_cgl.analysis.cross import cross_disparity, cross_opd
from skeleton_cgl.analysis.curves import accuracy_by_step, aopd_growth, mean_accuracy_matrices, mean_over_repeats
from skeleton_cgl.analysis.disparity import disparity, expected_mopd, expected_opd, mixed_opd, order_disparity
from skeleton_cgl.analysis.fate import accuracy_by_position, extreme_orders
from skeleton_cgl.analysis.finals import LEVELS, final_accuracies
from skeleton_cgl.analysis.metric import Beside, Entry, Findings, Metric, entry_of
from skeleton_cgl.analysis.performance import (
    accuracies,
    accuracy_matrix,
    average_accuracy,
    average_forgetting,
    forgetting_bound,
    forward_transfer,
    intransigence,
    runs,
    task_accuracies,
)
from skeleton_cgl.analysis.published import published_disparity
from skeleton_cgl.analysis.rendering import FORMATS, render
from skeleton_cgl.analysis.scores import ScoredRun, Scores, joined
from skeleton_cgl.analysis.sweeps import sweep_curves
from skeleton_cgl.analysis.tables import study_table
from skeleton_cgl.analysis.variance import explained_share, mean_variance_explained, variance_explained

__all__ = [
    "FORMATS",
    "LEVELS",
    "Beside",
    "Entry",
    "Findings",
    "Metric",
    "ScoredRun",
    "Scores",
    "accuracies",
    "accuracy_by_position",
    "accuracy_by_step",
    "accuracy_matrix",
    "aopd_growth",
    "average_accuracy",
    "average_forgetting",
    "cross_disparity",
    "cross_opd",
    "disparity",
    "entry_of",
    "expected_mopd",
    "expected_opd",
    "explained_share",
    "extreme_orders",
    "final_accuracies",
    "forgetting_bound",
    "forward_transfer",
    "intransigence",
    "joined",
    "mean_accuracy_matrices",
    "mean_over_repeats",
    "mean_variance_explained",
    "mixed_opd",
    "order_disparity",
    "published_disparity",
    "published_performance",
    "render",
    "runs",
    "study_table",
    "sweep_curves",
    "task_accuracies",
    "variance_explained",
]
