"""Continual-learning methods, one file each, found by its name; memory and importance, which several share."""

SHARED = ("fixed_features", "importance", "memory", "prototypes")
