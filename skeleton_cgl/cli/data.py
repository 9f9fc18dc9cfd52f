"""The commands about data: prepare and show."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from tqdm import tqdm
from typer.core import TyperGroup

from skeleton_cgl.blame import blaming
from skeleton_cgl.cli.graphs import Parameters, Reader, is_graph, prepare_graph, show_graph
from skeleton_cgl.config import check, set_field
from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import shown, whole_number

if TYPE_CHECKING:
    from skeleton_cgl.skeletons.archive import Archive, Duplicates
    from skeleton_cgl.skeletons.recording import BadRecording, Recording, Source

_OWN = "READER"
_MOST_NUMBERS = 1000


class Readers(TyperGroup):
    """The verbs of `prepare`: a word that is none of them is what a user calls another reader."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return super().get_command(ctx, cmd_name) or self.commands[_OWN]


data = typer.Typer()
prepare = typer.Typer(no_args_is_help=True, cls=Readers)
data.add_typer(
    prepare,
    name="prepare",
    help="Turn skeleton recordings, a graph or a set of graphs into one archive, ready to learn from.\n\n"
    "Example: skeleton-cgl prepare ucla nw-ucla.zip --out data/ucla.h5\n\n"
    "Example: skeleton-cgl prepare graph own.npz --out data/own.h5\n\n"
    "Example: skeleton-cgl prepare my_reader.py recordings/ --out data/mine.h5",
)

Out = Annotated[Path, typer.Option("--out", "-o", help="The archive to write.", show_default=False)]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Set bad recordings aside and list them, with reasons.")]
Frames = Annotated[int | None, typer.Option(help="Frames of a clip.", min=1, show_default="the data set's own")]
StreamChoice = Annotated[
    Literal["joint", "bone", "motion", "bone-motion"] | None,
    typer.Option(help="Positions, or differences between joints or frames.", show_default="the data set's own"),
]

DuplicatesChoice = Annotated[
    Literal["keep", "first"], typer.Option(help="Of identical recordings, keep all or the first.")
]


@prepare.command("ucla")
def prepare_ucla(
    source: Annotated[Path, typer.Argument(help="Folder or zip of the JSON files, aAA_sSS_eEE_vVV.json.")],
    out: Out,
    skip_bad: SkipBad = False,
    frames: Frames = None,
    stream: StreamChoice = None,
    duplicates: DuplicatesChoice = "keep",
) -> None:
    """Northwestern-UCLA.

    Example: skeleton-cgl prepare ucla nw-ucla.zip --out data/ucla.h5
    """
    from skeleton_cgl.skeletons.sources.ucla import UclaSource

    _write(UclaSource(source), out, skip_bad, duplicates, frames=frames, stream=stream)


@prepare.command("ntu")
def prepare_ntu(
    source: Annotated[
        Path,
        typer.Argument(
            help="Folder or zip of .skeleton files, train_data.npy with its train_label.pkl beside it, "
            "CTR-GCN's .npz, or PYSKL's .pkl."
        ),
    ],
    out: Out,
    classes: Annotated[str, typer.Option(help="Action numbers, such as 1-10 or 1,5,7-9.")] = "1-10",
    benchmark: Annotated[Literal["x-sub", "x-view"], typer.Option(help="Divide by subject or by camera.")] = "x-sub",
    part: Annotated[Literal["train", "test", "all"], typer.Option(help="Which part of the division.")] = "train",
    actors: Annotated[int, typer.Option(help="People kept per sequence.", min=1, max=2)] = 1,
    labels: Annotated[
        Path | None, typer.Option(help="For .npy: the label file, if it is not beside it.", show_default=False)
    ] = None,
    missing: Annotated[
        Path | None,
        typer.Option(
            help="The data set's list of samples with missing skeletons.",
            show_default="found beside the recordings, if there",
        ),
    ] = None,
    skip_bad: SkipBad = False,
    frames: Frames = None,
    stream: StreamChoice = None,
    duplicates: DuplicatesChoice = "keep",
) -> None:
    """NTU RGB+D, in any of the four forms it circulates in.

    Example: skeleton-cgl prepare ntu nturgbd_skeletons.zip --out data/ntu.h5 --skip-bad
    """
    from skeleton_cgl.skeletons.sources.ntu import NtuSource

    recordings = NtuSource(
        source,
        classes=_numbers(classes, "--classes"),
        benchmark=benchmark,
        part=part,
        actors=actors,
        labels=labels,
        missing=missing,
    )
    _write(recordings, out, skip_bad, duplicates, frames=frames, stream=stream)


@prepare.command("custom")
def prepare_custom(
    source: Annotated[Path, typer.Argument(help="An .npz with `sequences` and `labels`; see data/README.md.")],
    out: Out,
    layout: Annotated[Path, typer.Option(help="YAML file: name, joints, root, bones.", show_default=False)],
    centre: Annotated[
        str | None, typer.Option(help="Joint that becomes the origin, by name or number.", show_default="the root")
    ] = None,
    scale: Annotated[
        Literal["axes", "none"], typer.Option(help="Scale every axis to [-1, 1], or not at all.")
    ] = "axes",
    fit: Annotated[
        Literal["resample", "repeat"], typer.Option(help="Resample evenly, or repeat and cut.")
    ] = "resample",
    skip_bad: SkipBad = False,
    frames: Annotated[int, typer.Option(help="Frames of a clip.", min=1)] = 64,
    stream: StreamChoice = None,
    duplicates: DuplicatesChoice = "keep",
) -> None:
    """Any other skeleton set, from an .npz of your own and a layout file.

    Example: skeleton-cgl prepare custom florence.npz --layout florence.yaml --out data/florence.h5
    """
    from skeleton_cgl.skeletons.layout import read_layout
    from skeleton_cgl.skeletons.preparation import Preparation
    from skeleton_cgl.skeletons.sources.custom import CustomSource

    joints = read_layout(layout)
    origin = joints.root if centre is None else joints.index(centre)
    fields = {"frames": frames, "centre": origin, "scale": scale, "fit": fit}
    preparation = check(fields, Preparation, where="preparation")
    _write(CustomSource(source, joints, preparation), out, skip_bad, duplicates, frames=frames, stream=stream)


@prepare.command("synthetic")
def prepare_synthetic(
    out: Out,
    seed: Annotated[int, typer.Option(help="Another seed, another data set.", min=0)] = 0,
    frames: Frames = None,
    stream: StreamChoice = None,
) -> None:
    """The built-in motion generator: ten actions, 1500 clips. Studies can also use it without a file.

    Example: skeleton-cgl prepare synthetic --out data/synthetic.h5
    """
    from skeleton_cgl.skeletons.sources.synthetic import SyntheticSource

    _write(SyntheticSource(seed=seed), out, skip_bad=False, duplicates="keep", frames=frames, stream=stream)


prepare.command("graph")(prepare_graph)


@prepare.command(_OWN)
def prepare_own(
    context: typer.Context,
    out: Out,
    source: Annotated[
        Path | None, typer.Argument(help="The recordings, if the reader takes any.", show_default=False)
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of the reader: NAME=VALUE. May be given again.", show_default=False),
    ] = None,
    skip_bad: SkipBad = False,
    frames: Frames = None,
    stream: StreamChoice = None,
    duplicates: DuplicatesChoice = "keep",
) -> None:
    """A reader of your own: a Python file, module:Class, or the name an installed package gives it; see data/README.md.

    Example: skeleton-cgl prepare my_reader.py recordings/ --out data/mine.h5 --set part=train
    """
    from skeleton_cgl.skeletons.datasets import make_source

    if source is not None and not source.exists():
        raise InputError(f"{source}: no such file or folder")
    given: dict[str, Any] = {}
    for assignment in parameters or []:
        set_field(given, assignment)
    reader = make_source(str(context.info_name), source, given)
    with blaming(f"dataset {context.info_name!r}", reader):
        _write(reader, out, skip_bad, duplicates, frames=frames, stream=stream)


@data.command()
def show(
    archive: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="An archive, the file or folder of a graph, of links or of graphs, or a data set without files: "
            "synthetic, synthetic-labels, or a reader of your own.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read everything and compare with the digest.")] = False,
    split: Annotated[
        str | None,
        typer.Option(
            help="Print what the parts of a split by this have in common: auto, class, performance, subject, view, or "
            "groups of the data's own.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="With --split: the seed of the split.", min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Draw film strips, a graph's degrees, classes and edges, or a few graphs or molecules of each class "
            "(.png, .pdf, .svg).",
            show_default=False,
        ),
    ] = None,
    sequence: Annotated[
        str | None,
        typer.Option(help="With --out: one sequence, by name or number; also as .gif.", show_default=False),
    ] = None,
    graph: Annotated[
        bool, typer.Option("--graph", help="The graph, where skeletons have the same name: synthetic.")
    ] = False,
    reader: Reader = None,
    parameters: Parameters = None,
    classes_per_task: Annotated[
        int | None,
        typer.Option(
            help="With a graph: classes of a task, for the tasks it would give.",
            min=1,
            show_default="2; 1 of graphs with several labels",
        ),
    ] = None,
) -> None:
    """Print what is in an archive or a graph, and draw it.

    Example: skeleton-cgl show data/ucla.h5 --out ucla.png

    Example: skeleton-cgl show data/ucla.h5 --split performance

    Example: skeleton-cgl show synthetic --sequence a09_s01_e00_v01 --out throw.gif

    Example: skeleton-cgl show data/cora.h5 --classes-per-task 3 --out cora.png

    Example: skeleton-cgl show data/tox21.h5 --out molecules.png

    Example: skeleton-cgl show synthetic --graph --set seed=1
    """
    if graph or reader is not None or parameters or is_graph(archive):
        for option, given in (("--split", split), ("--sequence", sequence)):
            if given is not None:
                raise InputError(f"{option}: of skeletons alone, and {archive} is a graph")
        # A graph is compared with its digest whenever it is read: there is nothing left to verify.
        show_graph(archive, reader, parameters, classes_per_task, out, as_json)
        return
    from skeleton_cgl.skeletons.datasets import open_dataset
    from skeleton_cgl.skeletons.film import film_strip, film_strips
    from skeleton_cgl.skeletons.summary import describe, summarise

    if sequence is not None and out is None:
        raise InputError("--sequence chooses what to draw; say where with --out")
    with open_dataset(archive) as opened:
        if verify:
            opened.verify()
        if out is not None:
            if sequence is None:
                film_strips(opened, out)
            else:
                film_strip(opened, opened.index(sequence), out)
        summary = summarise(opened)
        if split is not None:
            summary["split"] = _divided(opened, split, seed)
    typer.echo(json.dumps(summary, indent=2, ensure_ascii=False) if as_json else describe(summary))


def _divided(archive: "Archive", by: str, seed: int) -> list[str]:
    """Return in words what the parts of a split have in common."""
    from skeleton_cgl.scenarios.skeleton import notes_on
    from skeleton_cgl.scenarios.split import Split, divide, settle
    from skeleton_cgl.skeletons.groups import groups_of

    groups = groups_of(archive)
    split = settle(Split(by=by, seed=seed), groups)
    parts = divide(split, archive.labels, archive.classes, groups)
    return list(notes_on(split, parts, archive.copies, groups))


def _write(source: "Source", out: Path, skip_bad: bool, duplicates: "Duplicates", **settings: Any) -> None:
    """Write the archive of a source with a progress bar, then say what was written and what was set aside."""
    from skeleton_cgl.skeletons.archive import Archive, write_archive
    from skeleton_cgl.skeletons.preparation import Preparation
    from skeleton_cgl.skeletons.summary import identical

    given = {name: value for name, value in settings.items() if value is not None}
    preparation = check(source.preparation.model_dump() | given, Preparation, where="preparation")

    def progress(recordings: "Iterator[Recording | BadRecording]", total: int) -> "Iterable[Recording | BadRecording]":
        return tqdm(recordings, total=total, desc=f"prepare {out.name}", unit=" clips", mininterval=0.5)

    bad = write_archive(source, out, skip_bad, progress, preparation, duplicates)
    for recording in bad:
        typer.echo(f"set aside: {recording}", err=True)
    with Archive.open(out) as archive:
        typer.echo(
            f"{out}: {len(archive)} sequences, {len(archive.classes)} classes, {preparation.frames} frames; "
            f"{len(bad)} set aside; digest {archive.digest[:12]}"
        )
        found = identical(archive)
    if found:
        typer.echo(found + ("" if duplicates == "first" else "; --duplicates first keeps one of each"))


def _numbers(text: str, option: str) -> list[int]:
    """Return the numbers of a text such as "1,5,7-9"; refuse any other text, and very many numbers."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        start, end = whole_number(first), whole_number(last if dash else first)
        if start is None or end is None:
            raise InputError(f"{option}: expected numbers such as 1-10 or 1,5,7-9, found {shown(text)}")
        if end - start + len(numbers) >= _MOST_NUMBERS:
            raise InputError(f"{option}: {shown(text)}: more than {_MOST_NUMBERS} numbers")
        numbers += range(start, end + 1)
    return numbers
