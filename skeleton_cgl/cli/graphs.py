"""What the commands about data do for graphs: prepare graph, and show of a graph."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer
from tqdm import tqdm

from skeleton_cgl.config import did_you_mean, set_field
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import DATASETS, GRAPH_DATASETS

if TYPE_CHECKING:
    from skeleton_cgl.graphs.graph import Graph

_SHOWN_AFTER_SECONDS = 2
_MOST_COUNTED = 2**53

Reader = Annotated[
    str | None,
    typer.Option(
        help="The reader of a graph's files, if they do not tell: a known name, a Python file, module:Class.",
        show_default=False,
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter of a graph's reader: NAME=VALUE. May be given again.", show_default=False),
]


def prepare_graph(
    source: Annotated[
        str,
        typer.Argument(
            help="A file or folder as published, your own .npz or files, or a set without files: synthetic, "
            "synthetic-labels, a reader of your own; see data/README.md."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The archive to write.", show_default=False)],
    reader: Reader = None,
    parameters: Parameters = None,
) -> None:
    """A graph whose nodes have classes or labels.

    Example: skeleton-cgl prepare graph own.npz --out data/own.h5

    Example: skeleton-cgl prepare graph planetoid/ --set dataset=cora --out data/cora.h5

    Example: skeleton-cgl prepare graph files/ --reader my_reader.py --out data/mine.h5

    Example: skeleton-cgl prepare graph synthetic --set nodes=5000 --set seed=1 --out data/synthetic.h5
    """
    from skeleton_cgl.graphs.archive import write_archive
    from skeleton_cgl.graphs.summary import headline, summarise

    if out.is_dir():
        raise InputError(f"{out}: a folder, expected the name of a file to write")
    graph = _opened(source, reader, parameters)
    provenance: dict[str, Any] = {"source": Path(source).name}
    provenance |= {} if reader is None else {"reader": reader}
    provenance |= {"options": _given(parameters)} if parameters else {}
    with _patience(f"writing {out.name}"):
        write_archive(graph, out, provenance)
    typer.echo(f"{out}: {headline(summarise(graph))}; digest {graph.digest}")


def is_graph(data: str) -> bool:
    """Return whether what a user calls a data set is a graph, by what it is; else it is one of skeletons.

    A known name of skeletons comes before one of graphs. Refused: a damaged archive, and a word that is neither.
    """
    path = Path(data)
    if data in DATASETS.names() or data in GRAPH_DATASETS.names():
        return data not in DATASETS.names()
    if path.suffix == ".py" or (":" in data and not path.exists()):
        return _reads_graphs(data)
    if not path.exists():
        if path.suffix == "":
            known = {*DATASETS.names(), *GRAPH_DATASETS.names()}
            raise InputError(f"{data}: neither an archive nor a known data set{did_you_mean(data, known)}")
        return False
    from skeleton_cgl.reading.formats import GRAPH, format_of, is_hdf5

    return format_of(path) == GRAPH if is_hdf5(path) else path.suffix not in (".h5", ".hdf5")


def _reads_graphs(reader: str) -> bool:
    """Return whether a reader of a user's own is one of graphs."""
    try:
        GRAPH_DATASETS.find(reader)
    except InputError:
        return False
    return True


def show_graph(
    data: str,
    reader: str | None = None,
    parameters: list[str] | None = None,
    classes_per_task: int = 2,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Print what is in a graph and what tasks a scenario would make of it; draw it to `out`."""
    from skeleton_cgl.graphs.archive import is_archive, read_provenance
    from skeleton_cgl.graphs.picture import drawable, save_picture
    from skeleton_cgl.graphs.summary import describe, summarise

    if out is not None:
        drawable(out)
    graph = _opened(data, reader, parameters)
    summary = summarise(graph) | {"tasks": _tasks(graph, classes_per_task)}
    if is_archive(data):
        summary |= {"archive": data, "provenance": read_provenance(data)}
    if out is not None:
        save_picture(graph, out)
    typer.echo(json.dumps(summary, indent=2, ensure_ascii=False) if as_json else describe(summary))


def _given(parameters: list[str] | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for assignment in parameters or []:
        set_field(options, assignment)
    return options


def _opened(data: str, reader: str | None, parameters: list[str] | None) -> "Graph":
    from skeleton_cgl.graphs.datasets import open_graph

    options = _given(parameters) | ({} if reader is None else {"name": reader})
    with _patience(f"reading {Path(data).name}"):
        return open_graph(data, options)


@contextmanager
def _patience(doing: str) -> Iterator[None]:
    """Within: say what is done and for how long, every second, once it takes more than two."""
    done = Event()

    def tell() -> None:
        if done.wait(_SHOWN_AFTER_SECONDS):
            return
        with tqdm(desc=doing, bar_format="{desc}: {elapsed}", leave=False) as bar:
            while not done.wait(1):
                bar.refresh()

    telling = Thread(target=tell, daemon=True)
    telling.start()
    try:
        yield
    finally:
        done.set()
        telling.join()


def _tasks(graph: "Graph", classes_per_task: int) -> dict[str, Any]:
    """Return the default tasks of a scenario on the classes, and how many orders there are of these and of domains."""
    import numpy as np

    from skeleton_cgl.scenarios.classes import ClassTasks

    # As AGALE groups labels, one that is left over joins the task before.
    divided = ClassTasks(classes_per_task=classes_per_task, rest="join" if graph.many_labels else "own")
    tasks = divided.divide(graph.classes)
    return {
        "classes": [list(task) for task in tasks],
        "task_orders": _orders([1] * len(tasks)),
        "class_orders": _orders([len(task) for task in tasks]),
        "domain_orders": {name: _orders([1] * len(groups.names)) for name, groups in graph.groups.items()},
        "periods": None if graph.times is None else len(np.unique(graph.times)),
    }


def _orders(sizes: list[int]) -> int | str:
    """Return in how many ways units can be put into tasks of these sizes; where there are too many, about how many."""
    logarithm = math.lgamma(sum(sizes) + 1) - sum(
        number * math.lgamma(size + 1) for size, number in Counter(sizes).items()
    )
    if logarithm > math.log(_MOST_COUNTED):
        return f"about 10^{logarithm / math.log(10):.0f}"
    return math.factorial(sum(sizes)) // math.prod(math.factorial(size) for size in sizes)
