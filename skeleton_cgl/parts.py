"""The parts of a split: what is learned from, what is chosen by, what is judged by."""

TRAINING, VALIDATION, TEST = range(3)
UNUSED = -1
NAMES = ("training", "validation", "test")
