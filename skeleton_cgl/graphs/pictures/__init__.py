"""Pictures of a data set of each kind: what is shown is computed apart from drawing it."""
