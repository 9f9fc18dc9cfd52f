"""Continual-learning methods, one file each, found by its name; and what several of them share."""

SHARED = (
    "changes",
    "condensed",
    "curvature",
    "deep_graph_infomax",
    "diversity",
    "fixed_features",
    "importance",
    "influence",
    "info_graph",
    "isolation",
    "kept",
    "masking",
    "memory",
    "noise",
    "pretraining",
    "prototypes",
    "quotas",
    "representatives",
    "reservoir",
    "subgraphs",
)
