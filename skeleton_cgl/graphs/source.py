"""What a reader of graphs is: one published form of a data set, recognised by its files, read into one value."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, TypeAlias

from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.graphs.link_set import LinkSet

GraphData: TypeAlias = Graph | LinkSet | GraphSet
"""A data set of which nodes, links or whole graphs are classified."""


class GraphSource(ABC):
    """Derive from this in a file of its own: options in the constructor, the files' place as `path` if it reads any.

    published: where the files are to be had, for messages about missing ones. shows_progress: whether it has a progress
    bar of its own. What is wrong with the options is refused when it is made, what is wrong with the files when it is
    read, each naming file and field.
    """

    published: ClassVar[str] = ""
    shows_progress: ClassVar[bool] = False

    @classmethod
    def recognises(cls, path: Path) -> bool:  # noqa: ARG003
        """Return whether a file or folder looks like this form, by names and first bytes alone.

        One of several files is enough: which of them are missing is told when they are read.
        """
        return False

    @abstractmethod
    def read(self) -> GraphData:
        """Return the data set: a graph, links or a set of graphs."""
