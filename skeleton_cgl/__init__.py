"""skeleton_cgl measures how much a continual learner's final knowledge depends on the order of teaching."""

__version__ = "0.1.0"
