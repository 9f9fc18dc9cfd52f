"""Continual-learning methods, one file each, found by its name; and what several of them share."""

SHARED = (
    "changes",
    "curvature",
    "deep_graph_infomax",
    "fixed_features",
    "importance",
    "influence",
    "info_graph",
    "isolation",
    "kept",
    "masking",
    "memory",
    "pretraining",
    "prototypes",
    "quotas",
    "representatives",
    "reservoir",
    "subgraphs",
)
