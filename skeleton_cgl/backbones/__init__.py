"""Backbones: models of clips and of graphs, what they share, and the head."""
