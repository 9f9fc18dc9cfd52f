"""The built-in figures, one class each."""
