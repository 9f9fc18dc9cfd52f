"""What the commands about data do for graphs: prepare graph, and show of a graph, of links or of a set of graphs."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer
from tqdm import tqdm

from skeleton_cgl.config import did_you_mean, set_field
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import DATASETS, GRAPH_DATASETS, arguments_of

if TYPE_CHECKING:
    from skeleton_cgl.graphs.source import GraphData

_SHOWN_AFTER_SECONDS = 2
_MOST_COUNTED = 2**53
_CLASSES_PER_TASK = 2

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
            "synthetic-links, synthetic-graphs, a reader of your own; see data/README.md."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The archive to write.", show_default=False)],
    reader: Reader = None,
    parameters: Parameters = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Set aside what cannot be read, such as a SMILES that is none; say so.")
    ] = False,
) -> None:
    """A graph whose nodes or links have classes, or a set of graphs such as molecules.

    Example: skeleton-cgl prepare graph own.npz --out data/own.h5

    Example: skeleton-cgl prepare graph links.csv --out data/links.h5

    Example: skeleton-cgl prepare graph tox21.csv --set features=atoms --skip-bad --out data/tox21.h5

    Example: skeleton-cgl prepare graph planetoid/ --set dataset=cora --out data/cora.h5

    Example: skeleton-cgl prepare graph files/ --reader my_reader.py --out data/mine.h5

    Example: skeleton-cgl prepare graph synthetic --set nodes=5000 --set seed=1 --out data/synthetic.h5
    """
    from skeleton_cgl.graphs.archive import write_archive
    from skeleton_cgl.graphs.summary import headline, summarise

    if out.is_dir():
        raise InputError(f"{out}: a folder, expected the name of a file to write")
    options = _given(parameters)
    if skip_bad:
        _check_sets_aside(source, options, reader)
        options["skip_bad"] = True
    found = reader or _recognised(source, options)
    data = _opened(source, reader, options)
    provenance: dict[str, Any] = {"source": Path(source).name}
    provenance |= {} if found is None else {"reader": found}
    provenance |= {"options": options} if options else {}
    with _patience(f"writing {out.name}"):
        write_archive(data, out, provenance)
    summary = summarise(data)
    typer.echo(f"{out}: {headline(summary)}; digest {data.digest}")
    for note in summary.get("notes", ()):
        typer.echo(note)
    if reader is None and found is not None and Path(source).is_dir():
        typer.echo(f"{source}: read as {found}; --reader chooses another form")


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
    classes_per_task: int | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Print what is in a data set of graphs and what tasks a scenario would make of it; draw it to `out`."""
    from skeleton_cgl.graphs.archive import is_archive, read_provenance
    from skeleton_cgl.graphs.picture import drawable, save_picture
    from skeleton_cgl.graphs.summary import describe, summarise

    if out is not None:
        drawable(out)
    opened = _opened(data, reader, _given(parameters))
    summary = summarise(opened) | {"tasks": _tasks(opened, classes_per_task)}
    if is_archive(data):
        summary |= {"archive": data, "provenance": read_provenance(data)}
    if out is not None:
        save_picture(opened, out)
    typer.echo(json.dumps(summary, indent=2, ensure_ascii=False) if as_json else describe(summary))


def _given(parameters: list[str] | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for assignment in parameters or []:
        set_field(options, assignment)
    return options


def _opened(data: str, reader: str | None, options: dict[str, Any]) -> "GraphData":
    from skeleton_cgl.graphs.datasets import make_graph_source, open_graph

    chosen = _choosing(reader, options)
    source = make_graph_source(data, chosen)
    told = source is not None and source.shows_progress
    with nullcontext() if told else _patience(f"reading {Path(data).name}"):
        return open_graph(data, chosen)


def _choosing(reader: str | None, options: dict[str, Any]) -> dict[str, Any]:
    return options if reader is None else options | {"name": reader}


def _recognised(data: str, options: dict[str, Any]) -> str | None:
    """Return the name of the reader that files are recognised by, None where nothing is to be recognised."""
    from skeleton_cgl.graphs.datasets import make_graph_source

    source = make_graph_source(data, options)
    found = [name for name in GRAPH_DATASETS.names() if GRAPH_DATASETS.find(name) is type(source)]
    return found[0] if found and found[0] != data else None


def _check_sets_aside(data: str, options: dict[str, Any], reader: str | None) -> None:
    """Refuse what sets nothing aside: readers without the option, and archives."""
    from skeleton_cgl.graphs.datasets import make_graph_source

    source = make_graph_source(data, _choosing(reader, options))
    if source is None:
        raise InputError(f"--skip-bad: {data} is an archive, of which all is read")
    if "skip_bad" not in arguments_of(type(source)):
        name = reader or _recognised(data, options) or data
        raise InputError(f"--skip-bad: the reader {name} has no option skip_bad: it sets nothing aside")


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


def _tasks(data: "GraphData", classes_per_task: int | None) -> dict[str, Any]:
    """Return the default tasks of a scenario on the classes, and how many orders there are of these and of domains.

    Links that are all alike have no tasks of classes. Of graphs with several labels, each label is a task.
    """
    import numpy as np

    from skeleton_cgl.graphs.link_set import LINKED
    from skeleton_cgl.scenarios.classes import ClassTasks

    usual = 1 if data.many_labels and data.item == "graph" else min(_CLASSES_PER_TASK, len(data.classes))
    # As AGALE groups labels, one that is left over joins the task before.
    divided = ClassTasks(classes_per_task=classes_per_task or usual, rest="join" if data.many_labels else "own")
    tasks = () if data.classes == (LINKED,) else divided.divide(data.classes)
    return {
        "classes": [list(task) for task in tasks],
        "task_orders": _orders([1] * len(tasks)),
        "class_orders": _orders([len(task) for task in tasks]),
        "domain_orders": {name: _orders([1] * len(groups.names)) for name, groups in data.groups.items()},
        "periods": None if data.times is None else len(np.unique(data.times)),
    }


def _orders(sizes: list[int]) -> int | str:
    """Return in how many ways units can be put into tasks of these sizes; where there are too many, about how many."""
    logarithm = math.lgamma(sum(sizes) + 1) - sum(
        number * math.lgamma(size + 1) for size, number in Counter(sizes).items()
    )
    if logarithm > math.log(_MOST_COUNTED):
        return f"about 10^{logarithm / math.log(10):.0f}"
    return math.factorial(sum(sizes)) // math.prod(math.factorial(size) for size in sizes)
