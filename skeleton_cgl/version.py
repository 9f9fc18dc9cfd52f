"""The version of the suite; archives and records note what they were made with."""

__version__ = "0.1.0"
