"""Readers of graphs, one published form each, found by its name or by what its files look like."""

SHARED = ("musae",)
"""Modules that are no readers: what the readers of the MUSAE graphs share."""
