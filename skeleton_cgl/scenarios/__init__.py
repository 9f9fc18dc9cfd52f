"""Scenarios: data, a problem and an incremental setting; one file per kind, found by its name."""

SHARED = (
    *("classes", "inputs", "labelled", "lessons", "made_up", "measures"),
    *("overlap", "problem", "scenario", "settings", "split"),
)
