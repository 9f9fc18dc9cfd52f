"""Records, learners and runs as cells of an export, and back; `exchange` says what the columns mean."""

import base64
import json
from collections.abc import Sequence

import numpy as np

from skeleton_cgl.engine import schema
from skeleton_cgl.engine.record import Kept, Made, Record
from skeleton_cgl.engine.rows import ComponentRow, LearnerRow, RunRow
from skeleton_cgl.engine.upgrades import TitledRun, old_record
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import describe
from skeleton_cgl.scenarios.measures import QUERIED, Measure, accuracy_measure

NAMES = (
    *("study", "learner", "method", "backbone", "point"),
    *("kind", "repeat", "noise", "floor", "order", "steps", "step", "key"),
)
NAMES_BEFORE = tuple(name for name in NAMES if name not in ("floor", "steps"))
"""Those of format 3."""
MADE = (
    *("seconds", "host", "versions", "seed", "created", "fingerprint"),
    *("kept_samples", "kept_floats", "kept_bytes", "answers"),
)
MADE_BEFORE = ("seconds", "host", "versions", "seed", "created", "fingerprint", "kept", "answers")
"""Those of formats 3 and 4."""
OLD_COLUMNS = (
    *("study", "method", "backbone", "kind", "repeat", "noise", "order", "step", "key"),
    *(*QUERIED, "seconds", "host", "versions", "seed", "created"),
)
_KEPT = ("kept_samples", "kept_floats", "kept_bytes")
_BESIDE_VALUES = (".asked", ".counts")

Row = dict[str, str]
"""Cells by their column."""


def learner_cells(learner: LearnerRow) -> Row:
    """Return what a reader wants to know of a learner; the first line of the export has the rest."""

    def name(component: ComponentRow) -> str:
        return component.label or component.name

    return {
        "learner": str(learner.number),
        "method": name(learner.method),
        "backbone": name(learner.backbone),
        "point": ", ".join(f"{path}={value}" for path, value in learner.point),
    }


def run_cells(run: RunRow) -> Row:
    numbers = {"repeat": str(run.repeat), "noise": str(run.noise), "steps": str(len(run.keys))}
    return {"kind": run.kind, **numbers, "floor": run.floor, "order": describe(run.order)}


def run_of(row: Row, keys: Sequence[str]) -> RunRow:
    """Return the run of a row with the keys of its stages; refuse another number of keys than it has steps."""
    order, noise = schema.order_of(row["order"]), int(row["noise"])
    steps = int(row["steps"]) if "steps" in row else len(order)
    if len(keys) != steps:
        raise ValueError(f"order {row['order']}: expected {steps} steps, found {len(keys)}")
    floor = row["floor"] if "floor" in row else schema.floor_before(noise)
    return RunRow(int(row["learner"]), row["kind"], int(row["repeat"]), noise, order, tuple(keys), floor)


def old_run_of(row: Row, keys: Sequence[str]) -> TitledRun:
    titles = (row["backbone"], row["method"])
    if len(keys) != len(schema.order_of(row["order"])):
        raise ValueError(f"order {row['order']}: {len(keys)} steps")
    return TitledRun(row["kind"], *titles, int(row["repeat"]), int(row["noise"]), row["order"], tuple(keys))


def stage_words(row: Row) -> str:
    """Return words that name the stage of a row in messages."""
    prefix = row["order"].split(" > ")[: int(row["step"])]
    return f"{row['method']} {' > '.join(prefix)}"


def record_cells(record: Record, host: str) -> Row:
    """Return the content of a record, its machine called `host`."""
    made = record.made
    return {
        **score_cells(record.scores),
        "seconds": repr(made.seconds),
        "host": host,
        "versions": schema.facts_text(made.versions),
        "seed": str(made.seed),
        "created": made.created,
        "fingerprint": schema.facts_text(made.fingerprint) if made.fingerprint else "",
        **dict(zip(_KEPT, _kept_cells(made.kept), strict=True)),
        "answers": "" if record.answers is None else base64.b64encode(schema.pack_array(record.answers)).decode(),
    }


def record_of(row: Row, columns: Sequence[str]) -> Record:
    """Return the record of a row that has its content; columns: those that hold scores."""
    made = Made(
        float(row["seconds"]),
        row["host"],
        schema.facts_of(row["versions"]),
        int(row["seed"]),
        row["created"],
        schema.facts_of(row["fingerprint"] or "{}"),
        _kept_of(row),
    )
    answers = schema.unpack_array(base64.b64decode(row["answers"])) if row["answers"] else None
    return Record(row["key"], _scores(row, columns), made, answers)


def _kept_cells(kept: Kept | None) -> list[str]:
    return ["" if number is None else str(number) for number in schema.kept_columns(kept)]


def _kept_of(row: Row) -> Kept | None:
    if "kept" in row:
        return schema.kept_before(int(row["kept"]) if row["kept"] else None)
    samples, floats, size = (int(row[name]) if row[name] else None for name in _KEPT)
    if size is None and (samples, floats) != (None, None):
        raise ValueError("samples or floats are kept, but no bytes")
    return None if size is None else Kept(samples, floats, size)


def old_record_of(row: Row) -> Record:
    test, validation = (_counts(row[part]) for part in QUERIED)
    made = (row["host"], row["versions"], row["seed"], row["created"])
    return old_record(row["key"], test, validation, float(row["seconds"]), *made)


def score_cells(scores: Sequence[Measure]) -> Row:
    """Return scores as cells; where accuracy follows from counts, the counts alone."""
    cells: Row = {}
    for score in scores:
        if _is_accuracy(score):
            cells[score.part] = _counts_text(score.counts)
            continue
        if score.metric.endswith(_BESIDE_VALUES):
            raise InputError(f"metric {score.metric!r}: an export cannot hold a metric of that name")
        name = f"{score.part}.{score.metric}"
        cells[name] = " ".join(map(repr, score.values.tolist()))
        cells[f"{name}.asked"] = " ".join(map(str, score.asked.tolist()))
        cells[f"{name}.counts"] = _counts_text(score.counts)
    return cells


def _is_accuracy(score: Measure) -> bool:
    counts = score.counts
    if counts is None or counts.shape != 2 * score.values.shape:
        return False
    return score.same_as(accuracy_measure(score.part, counts))


def _scores(row: Row, columns: Sequence[str]) -> tuple[Measure, ...]:
    scores = []
    for column in columns:
        if not row[column] or column.endswith(_BESIDE_VALUES):
            continue
        part, _, metric = column.partition(".")
        if not metric:
            scores.append(accuracy_measure(part, _counts(row[column])))
            continue
        values = np.array([float(value) for value in row[column].split()])
        asked = np.array([int(number) for number in row[f"{column}.asked"].split()], dtype=np.int64)
        counts = row[f"{column}.counts"]
        scores.append(Measure(part, metric, values, asked, _counts(counts) if counts else None))
    return tuple(scores)


def _counts_text(counts: np.ndarray | None) -> str:
    return "" if counts is None else ";".join(" ".join(map(str, row)) for row in counts.tolist())


def _counts(text: str) -> np.ndarray:
    # As JSON, because that is read much faster than number by number.
    counts = np.array(json.loads("[[" + text.replace(" ", ",").replace(";", "],[") + "]]"))
    if counts.dtype.kind != "i" or counts.shape != 2 * counts.shape[:1]:
        raise ValueError(f"expected counts (K, K), found {text[:40]!r}")
    return counts
