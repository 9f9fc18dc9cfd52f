"""Readers of graphs, one published form each, found by its name or by what its files look like."""

SHARED = ("musae", "ogb_files")
"""Modules that are no readers: what those of the MUSAE graphs share, and files of the Open Graph Benchmark."""
