"""The built-in metrics, one class each: the columns of the tables."""
