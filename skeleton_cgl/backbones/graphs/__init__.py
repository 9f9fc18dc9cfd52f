"""Backbones for irregular graphs, one file each, found by its name."""
