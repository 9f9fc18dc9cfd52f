"""Scenarios: data, a problem and an incremental setting; one file per kind, found by its name."""

SHARED = (
    *("classes", "connections", "graph_labels", "graph_settings", "graph_units", "graph_views", "inputs", "item_split"),
    *("label_split", "labelled", "lessons", "link_pairs", "made_up", "many_labels", "measures", "one_class"),
    *("opened", "overlap", "pair_views", "problem", "ranking", "scenario", "settings", "split", "transitions", "views"),
)
