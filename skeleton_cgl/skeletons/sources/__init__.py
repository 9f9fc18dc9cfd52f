"""The data sets that are known by name, a module each with the class that reads it."""

SHARED = ("actions", "body", "ntu_bodies", "ntu_forms", "script")
"""Modules that are no data sets: what the motion generator and the reader of NTU RGB+D are made of."""
