"""Readers of graphs, one published form each, found by its name or by what its files look like."""
