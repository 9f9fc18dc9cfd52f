"""A picture of a data set of graphs, in a file."""

from pathlib import Path

from matplotlib.figure import Figure

from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.link_set import LinkSet
from skeleton_cgl.graphs.pictures.graph_sets import draw_graph_set, look_at_graph_set
from skeleton_cgl.graphs.pictures.links import draw_links, look_at_links
from skeleton_cgl.graphs.pictures.nodes import draw_nodes, look_at_nodes
from skeleton_cgl.graphs.source import GraphData

_FORMATS = (".png", ".pdf", ".svg")
_DPI = 200


def drawable(path: str | Path) -> Path:
    """Return the path of a picture; refuse another suffix than .png, .pdf and .svg."""
    path = Path(path)
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"{path}: a picture ends in {', '.join(_FORMATS)}; found {path.suffix or 'no suffix'}")
    return path


def save_picture(data: GraphData, path: str | Path) -> None:
    """Draw a graph, links or some graphs of a set; refuse another suffix than .png, .pdf and .svg."""
    path = drawable(path)
    figure = _figure(data)
    with write_beside(path) as unfinished:
        figure.savefig(unfinished, format=path.suffix[1:].lower(), dpi=_DPI)


def _figure(data: GraphData) -> Figure:
    if isinstance(data, Graph):
        return draw_nodes(look_at_nodes(data))
    return draw_links(look_at_links(data)) if isinstance(data, LinkSet) else draw_graph_set(look_at_graph_set(data))
