"""Bare: the task loss and nothing else; the floor every method is measured against."""

from skeleton_cgl.learning.method import Method


class Bare(Method):
    """Learns each task as if it were the only one."""
