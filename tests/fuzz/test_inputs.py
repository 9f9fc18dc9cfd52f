"""Whatever a file holds, it is read or refused in one line: files of every kind, changed at random by fixed seeds.

SKELETON_CGL_FUZZ multiplies the number of cases (`make fuzz`); SKELETON_CGL_FUZZ_SEED draws others.
"""

import gzip
import io
import itertools
import json
import os
import pickle
import random
import signal
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from skeleton_cgl.engine.exchange import export, read_export
from skeleton_cgl.engine.orders import make_orders
from skeleton_cgl.engine.status import status_of
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import CLIP_BACKBONES, METHODS
from skeleton_cgl.search import Search
from skeleton_cgl.skeletons import UCLA, Archive, BadRecording, JointLayout, Preparation, read_layout, write_archive
from skeleton_cgl.skeletons.sources.custom import CustomSource
from skeleton_cgl.skeletons.sources.ntu import NtuSource
from skeleton_cgl.skeletons.sources.ucla import UclaSource
from skeleton_cgl.skeletons.summary import describe, summarise
from skeleton_cgl.study import Study
from tests.engine.made_rows import made_record, made_study, rich_record
from tests.fuzz.mutations import ODD, mutated_bytes, mutated_value
from tests.skeletons import ntu_files
from tests.skeletons.sources import random_source
from tests.skeletons.test_ucla import write_json

TIMES = int(os.environ.get("SKELETON_CGL_FUZZ", "1"))
SEED = os.environ.get("SKELETON_CGL_FUZZ_SEED", "0")
_SECONDS = 20
"""No case takes a hundredth of this; a test that hangs would tell nothing."""

STUDY: dict[str, Any] = {
    "name": "fuzzed",
    "scenario": {
        "kind": "skeleton",
        "data": "synthetic",
        "setting": "class-il",
        "classes_per_task": 2,
        "split": {"by": "class", "ratios": [8, 1, 1], "seed": 3},
        "preparation": {"frames": 8, "stream": "joint"},
        "augmentation": {"rotation": 30, "scaling": [0.5, 1.5]},
    },
    "backbone": [{"name": "gcn", "width": 8, "depth": 2}, "stgcn"],
    "methods": ["bare", {"name": "ewc", "label": "E", "strength": 1e6}, {"name": "replay", "fraction": 0.5}],
    "orders": {"tasks": 3, "classes": 2, "given": [[[0, 1], [2, 3]], [[4, 5]]], "seed": 1},
    "training": {"epochs": 2, "learning_rate": 0.01, "batch_size": 16, "optimizer": "adam", "patience": 2},
    "repeats": 2,
    "seed": 7,
    "noise_floor": 3,
    "sweep": {"backbone.width": [4, 8], "methods.1.strength": [1, 10]},
}
SEARCH = {
    "methods": [{"name": "ewc"}, "bare"],
    "grid": {
        "ewc": {"strength": [1, 100.0], "importance": ["batch", "sample"]},
        "training": {"learning_rate": [0.1, 0.01]},
        "backbone": {"width": [4, 8]},
    },
    "sweep": {"training.weight_decay": [0, 0.1]},
    "training": {"epochs": 1},
}
LAYOUT: dict[str, Any] = {
    "name": "arm",
    "joints": ["shoulder", "elbow", "hand"],
    "root": "shoulder",
    "bones": [["elbow", "shoulder"], ["hand", 1]],
}
PREPARATION = Preparation(frames=8, centre=0, scale="axes", fit="resample")
DEFAULT_TASKS = tuple((label, label + 1) for label in range(0, 10, 2))


class Hung(BaseException):
    """A case took too long."""


@contextmanager
def in_time() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hung

    usual = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, usual)


def try_cases(
    kind: str,
    number: int,
    change: Callable[[random.Random], Path],
    read: Callable[[Path], None],
    names_file: bool = True,
) -> None:
    """Change a file and read it, so many times; anything but an acceptance or a refusal in one line fails."""
    accepted = 0
    for case in range(number * TIMES):
        path = change(random.Random(f"{kind} {SEED} {case}"))
        try:
            with in_time():
                read(path)
            accepted += 1
        except InputError as error:
            if len(str(error).splitlines()) != 1 or (names_file and path.name not in str(error)):
                pytest.fail(f"{kind}, seed {SEED}, case {case}: not one line that names the file: {str(error)[:500]!r}")
        except (Exception, Hung) as error:
            raise AssertionError(
                f"{kind}, seed {SEED}, case {case}: {type(error).__name__}: {str(error)[:500]}"
            ) from error
    assert accepted < number * TIMES


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def as_text(value: Any, draw: random.Random) -> bytes:
    """Return plain values as YAML, or as JSON, which YAML contains."""
    dumped = json.dumps(value) if draw.random() < 0.7 else yaml.safe_dump(value)
    return dumped.encode("utf-8", errors="replace")


def read_study(path: Path) -> None:
    study = Study.from_file(path)
    variants = study.variants()
    make_orders(study.orders, DEFAULT_TASKS)
    assert variants


def read_search(path: Path) -> None:
    Search.from_file(path).as_study()


@pytest.mark.parametrize(("kind", "fields", "read"), [("study", STUDY, read_study), ("search", SEARCH, read_search)])
def test_study_files(tmp_path: Path, kind: str, fields: dict[str, Any], read: Callable[[Path], None]) -> None:
    text = yaml.safe_dump(fields, sort_keys=False).encode()

    def change(draw: random.Random) -> Path:
        values = draw.random() < 0.6
        content = as_text(mutated_value(fields, draw), draw) if values else mutated_bytes(text, draw)
        return written(tmp_path / "fuzzed.yaml", content)

    try_cases(kind, 350, change, read, names_file=False)


def test_parameters_of_components() -> None:
    offered = {"layout": UCLA, "frames": 8, "channels": 3, "features": 24, "actors": 1}
    known = {
        "gcn": ("width", "depth"),
        "stgcn": ("width", "depth", "kernel", "dropout"),
        "ewc": ("strength", "importance"),
        "mas": ("strength",),
        "lwf": ("strength", "temperature"),
        "gem": ("strength", "fraction", "count"),
        "replay": ("fraction", "count"),
        "twp": ("strength",),
    }
    for name, parameters in known.items():
        registry = CLIP_BACKBONES if name in ("gcn", "stgcn") else METHODS
        for parameter, value in itertools.product(parameters, ODD):
            with suppress(InputError):
                registry.make(name, {parameter: value}, offered)


def test_layouts(tmp_path: Path) -> None:
    text = yaml.safe_dump(LAYOUT, sort_keys=False).encode()

    def change(draw: random.Random) -> Path:
        values = draw.random() < 0.6
        content = as_text(mutated_value(LAYOUT, draw), draw) if values else mutated_bytes(text, draw)
        return written(tmp_path / "layout.yaml", content)

    def read(path: Path) -> None:
        layout = read_layout(path)
        layout.partitions()

    try_cases("layout", 250, change, read)


def arrays(draw: np.random.Generator) -> dict[str, np.ndarray]:
    ragged = np.empty(4, dtype=object)
    ragged[:] = [draw.normal(size=(length, 3, 3)) for length in (4, 9, 6, 1)]
    sequences = ragged if draw.random() < 0.4 else draw.normal(size=(4, 5, 3, 3))
    return {
        "sequences": sequences,
        "labels": np.array(["wave", "nod", "wave", "nod"]),
        "names": np.array(["a", "b", "c", "d"]),
        "subjects": np.array([1, 2, 1, 2]),
        **({} if sequences is ragged else {"lengths": np.array([5, 1, 2, 3])}),
    }


def odd_array(draw: np.random.Generator) -> np.ndarray:
    shapes = [
        (),
        (0,),
        (4,),
        (4, 1),
        (4, 5, 3),
        (4, 5, 3, 3),
        (4, 0, 3, 3),
        (4, 5, 3, 0),
        (4, 2, 5, 3, 3),
        (0, 5, 3, 3),
    ]
    shape = shapes[draw.integers(len(shapes))]
    values: list[Any] = [0, 1, -1, 2**40, 2**63 - 1, np.uint64(2**64 - 1), 0.5, 1e300, np.nan, np.inf, 1j, True, "x"]
    values += ["a\0b", "\ud800", "", b"x", np.datetime64("2024-01-01"), np.timedelta64(3, "s"), np.float16(6e4)]
    return np.full(shape, values[draw.integers(len(values))])


def test_arrays_of_a_users_own(tmp_path: Path) -> None:
    layout = JointLayout(**LAYOUT)
    names = ["sequences", "labels", "class_names", "lengths", "names", "subjects", "views", "repetitions", "x"]

    def change(draw: random.Random) -> Path:
        numbers = np.random.default_rng(draw.getrandbits(32))
        stored = arrays(numbers)
        whole = draw.random() < 0.5
        if whole:
            stored[draw.choice(names)] = odd_array(numbers)
            stored.pop(draw.choice(names), None) if draw.random() < 0.2 else None
        content = io.BytesIO()
        (np.savez_compressed if draw.random() < 0.3 else np.savez)(content, **stored)
        if whole:
            return written(tmp_path / "own.npz", content.getvalue())
        compression = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
        inside = draw.random() < 0.5
        return written(tmp_path / "own.npz", rezipped(content.getvalue(), draw, compression, inside))

    def read(path: Path) -> None:
        source = CustomSource(path, layout, PREPARATION)
        try:
            with Archive.in_memory(source) as archive:
                archive.clips()
        except InputError as error:
            # What is wrong with a recording names the recording; the command line names the archive it was for.
            raise InputError(f"{path}: {error}") from error

    try_cases("npz", 300, change, read)


def rezipped(content: bytes, draw: random.Random, compression: int, inside: bool) -> bytes:
    """Return a zip with the members of another one; changed is one member (inside), or the bytes of the whole."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(written, "w", compression) as target:
        chosen = draw.choice(source.namelist())
        for name in source.namelist():
            member = source.read(name)
            target.writestr(name, mutated_bytes(member, draw) if inside and name == chosen else member)
    return written.getvalue() if inside else mutated_bytes(written.getvalue(), draw)


def read_all(source: UclaSource | NtuSource) -> None:
    """Read all recordings, and make an archive of them if all are good."""
    bad = [str(recording) for recording in source.recordings() if isinstance(recording, BadRecording)]
    assert all(len(line.splitlines()) == 1 for line in bad)
    if not bad:
        with suppress(InputError), Archive.in_memory(source):
            pass


def test_raw_files_of_ucla(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    name = "a01_s01_e00_v01"
    write_json(folder, name, 1, frames=2)
    plain = json.loads((folder / f"{name}.json").read_text())
    text = (folder / f"{name}.json").read_bytes()
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"all/{name}.json", text)

    def change(draw: random.Random) -> Path:
        kind = draw.random()
        if kind < 0.3:
            return written(tmp_path / "all.zip", rezipped(zipped.getvalue(), draw, zipfile.ZIP_LZMA, inside=False))
        content = json.dumps(mutated_value(plain, draw)).encode() if kind < 0.7 else mutated_bytes(text, draw)
        written(folder / f"{name}.json", content)
        return folder

    try_cases("ucla", 250, change, lambda path: read_all(UclaSource(path)))


def test_raw_files_of_ntu(tmp_path: Path) -> None:
    names = [f"S001C002P001R001A{action:03}" for action in (1, 2)]
    recordings = {name: ntu_files.recording(seed, 13) for seed, name in enumerate(names)}
    folder = ntu_files.write_raw(tmp_path / "raw", recordings)
    pyskl = ntu_files.write_pyskl(
        tmp_path / "x.pkl", [ntu_files.annotation(name, each) for name, each in recordings.items()]
    )
    text, pickled = (folder / f"{names[0]}.skeleton").read_bytes(), pyskl.read_bytes()
    label = pickle.dumps(([f"{name}.skeleton" for name in names], [0, 1]))
    data = ntu_files.write_npy(tmp_path / "train_data.npy", recordings)
    head = data.read_bytes()

    def change(draw: random.Random) -> Path:
        kind = draw.random()
        if kind < 0.5:
            written(folder / f"{names[0]}.skeleton", mutated_bytes(text, draw))
            return folder
        if kind < 0.75:
            return written(pyskl, mutated_bytes(pickled, draw))
        if kind < 0.9:
            written(tmp_path / "train_label.pkl", mutated_bytes(label, draw))
            return data
        written(tmp_path / "train_label.pkl", label)
        return written(data, mutated_bytes(head[:128], draw) + head[128:])

    try_cases("ntu", 250, change, lambda path: read_all(NtuSource(path, classes=[1, 2])), names_file=False)


def test_archives(tmp_path: Path) -> None:
    path = tmp_path / "small.h5"
    write_archive(random_source((3, 7, 2, 5)), path)
    content = path.read_bytes()

    def read(path: Path) -> None:
        with Archive.open(path) as archive:
            describe(summarise(archive))
            archive.clips()
            archive.verify()

    def change(draw: random.Random) -> Path:
        return written(path, mutated_bytes(content, draw))

    try_cases("archive", 150, change, read)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "x.db"
    with Store(path) as opened:
        for each in (made_study("made", methods=("bare", "ewc")), made_study("other", keys=("a", "c"))):
            opened.add_study(each.study, each.learners, each.runs)
        opened.add([("stage", made_record(key)) for key in ("a", "a1", "c")])
        opened.add([("stage", replace(rich_record("b"), answers=None))])
    return path


def test_exports(tmp_path: Path, store: Path) -> None:
    with Store(store) as opened:
        export(opened, tmp_path / "x.csv.gz")
    packed = (tmp_path / "x.csv.gz").read_bytes()
    text = gzip.decompress(packed)

    def change(draw: random.Random) -> Path:
        changed = mutated_bytes(packed, draw) if draw.random() < 0.3 else gzip.compress(mutated_bytes(text, draw), 1)
        return written(tmp_path / "x.csv.gz", changed)

    try_cases("export", 150, change, lambda path: read_export(path) and None)


def test_stores(tmp_path: Path, store: Path) -> None:
    content = store.read_bytes()

    def change(draw: random.Random) -> Path:
        for beside in tmp_path.glob("y.db*"):
            beside.unlink()
        return written(tmp_path / "y.db", mutated_bytes(content, draw))

    def read(path: Path) -> None:
        with Store(path, must_exist=True) as opened:
            for study in opened.studies():
                opened.learners(study.number)
                opened.runs(study.number)
            for record in opened.records():
                assert record.key
        status_of(path)

    try_cases("store", 150, change, read)
