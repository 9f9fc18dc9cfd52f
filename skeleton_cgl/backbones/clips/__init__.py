"""Backbones for skeleton clips, one file each, found by its name."""
