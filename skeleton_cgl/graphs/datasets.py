"""Opening a graph data set by what a user calls it: an archive, files in a known form, or a set that needs none."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from skeleton_cgl.blame import blaming
from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.source import GraphData, GraphSource
from skeleton_cgl.plain import shown
from skeleton_cgl.registry import GRAPH_DATASETS, arguments_of

_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


def graph_names() -> list[str]:
    """Return the names of the graph data sets that need no files."""
    return [name for name in GRAPH_DATASETS.names() if not _reads_files(name)]


def open_graph(data: str | Path, options: Mapping[str, Any] = _NO_OPTIONS) -> GraphData:
    """Return the data of an archive, of files in a known form, or of a set that needs none.

    data: the path of an archive or of files, or a set by its known name, `module:Class` or Python file. options: `name`
    chooses the reader of files, which otherwise has to be the only one that recognises them; all others are arguments
    of the reader. A set that needs no files comes before a file of its name. Refused: what is none of these, unknown
    options, and whatever the reader refuses.
    """
    source = make_graph_source(data, options)
    if source is None:
        from skeleton_cgl.graphs.archive import read_archive

        if options:
            raise InputError(f"{data}: an archive is read without options, found {', '.join(options)}")
        return read_archive(Path(data))
    with blaming(f"graph-dataset {str(data)!r}", source):
        graph = source.read()
    if not isinstance(graph, GraphData):
        expected = "expected a Graph, LinkSet or GraphSet"
        raise InputError(f"graph-dataset {str(data)!r}: read: {expected}, found {type(graph).__name__}")
    return graph


def make_graph_source(data: str | Path, options: Mapping[str, Any] = _NO_OPTIONS) -> GraphSource | None:
    """Return the reader that `open_graph` reads by, None for an archive."""
    name, path = str(data), Path(data)
    parameters = {key: value for key, value in options.items() if key != "name"}
    chosen = options.get("name")
    if chosen is not None and not isinstance(chosen, str):
        raise InputError(f"reader: name: expected the name of a reader, found {shown(chosen)}")
    if _is_called(name, path):
        if chosen not in (None, name):
            raise InputError(f"{name}: is a data set itself, but the reader {chosen!r} is to read it")
        if _reads_files(name):
            raise InputError(
                f"{name}: reads files; give their path as the data, and `reader: {{name: {name}}}` to choose it"
            )
        return _made(name, parameters, {})
    if chosen is None:
        from skeleton_cgl.graphs.archive import is_archive

        if is_archive(path):
            return None
        chosen = _recognising(name, path)
    elif not _reads_files(chosen):
        raise InputError(f"graph-dataset {chosen!r}: takes no files, found {name}")
    return _made(chosen, parameters, {"path": path})


def _made(name: str, parameters: Mapping[str, Any], files: Mapping[str, Path]) -> GraphSource:
    source: GraphSource = GRAPH_DATASETS.make(name, parameters, files)
    return source


def _is_called(name: str, path: Path) -> bool:
    if name in GRAPH_DATASETS.names():
        return not (_reads_files(name) and path.exists())
    return path.suffix == ".py" or (":" in name and not path.exists())


def _reads_files(name: str) -> bool:
    return "path" in arguments_of(GRAPH_DATASETS.find(name))


def _recognising(name: str, path: Path) -> str:
    """Return the only reader that recognises a file or folder."""
    readers = [each for each in GRAPH_DATASETS.names() if _reads_files(each)]
    if not path.exists():
        raise InputError(f"{name}: no such file or folder, and no known graph{did_you_mean(name, graph_names())}")
    found = [each for each in readers if GRAPH_DATASETS.find(each).recognises(path)]
    if len(found) == 1:
        return found[0]
    said = f"looks like {', '.join(found)}" if found else f"in none of the forms that are read: {', '.join(readers)}"
    raise InputError(f"{name}: {said}; `reader: {{name: …}}` of the scenario chooses one, or `--reader`")
