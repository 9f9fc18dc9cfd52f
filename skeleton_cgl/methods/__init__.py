"""Continual-learning methods, one file each, found by its name; and what several of them share."""

SHARED = ("fixed_features", "importance", "memory", "prototypes", "reservoir")
