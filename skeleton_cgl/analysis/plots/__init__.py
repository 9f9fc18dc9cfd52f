"""Drawing what the rest of `analysis` computed; there is no arithmetic here beyond placing."""

from skeleton_cgl.analysis.plots.heatmaps import accuracy_matrices, best_worst_orders, class_fate
from skeleton_cgl.analysis.plots.lines import architecture, learning_curve, opd_growth
from skeleton_cgl.analysis.plots.scatter import order_scatter
from skeleton_cgl.analysis.plots.style import FORMATS, save
from skeleton_cgl.analysis.plots.table import disparity_picture

__all__ = [
    "FORMATS",
    "accuracy_matrices",
    "architecture",
    "best_worst_orders",
    "class_fate",
    "disparity_picture",
    "learning_curve",
    "opd_growth",
    "order_scatter",
    "save",
]
