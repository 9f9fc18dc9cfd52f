"""Continual-learning methods, one file each, found by its name; memory and importance, which several share."""

SHARED = ("importance", "memory")
