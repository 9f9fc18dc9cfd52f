"""Scenarios: data, a problem and an incremental setting; one file per kind, found by its name."""

SHARED = (
    *("classes", "graph_settings", "graph_units", "inputs", "label_split", "labelled", "lessons", "made_up"),
    *("measures", "node_split", "opened", "overlap", "problem", "ranking", "scenario", "settings", "split", "views"),
)
