"""Graph data sets: readers, and what backbones get of irregular graphs."""
