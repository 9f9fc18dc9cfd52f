"""Continual-learning methods, one file each, found by its name; and what several of them share."""

SHARED = (
    "curvature",
    "deep_graph_infomax",
    "fixed_features",
    "importance",
    "info_graph",
    "isolation",
    "masking",
    "memory",
    "pretraining",
    "prototypes",
    "reservoir",
    "subgraphs",
)
