"""What is in an archive, as plain values for machines and as text for people."""

from typing import Any

import numpy as np

from skeleton_cgl.skeletons.archive import Archive
from skeleton_cgl.skeletons.recording import UNKNOWN


def summarise(archive: Archive) -> dict[str, Any]:
    """Return plain values: counts per class, lengths, who and what was seen, settings, provenance and digest."""
    actors, joints, coordinates = archive.sequence_shape
    counts = np.bincount(archive.labels, minlength=len(archive.classes))
    return {
        "archive": archive.path,
        "digest": archive.digest,
        "sequences": len(archive),
        "actors": actors,
        "joints": joints,
        "coordinates": coordinates,
        "layout": archive.layout.name,
        "classes": [
            {"label": label, "name": name, "sequences": int(count)}
            for label, (name, count) in enumerate(zip(archive.classes, counts, strict=True))
        ],
        "recorded_frames": {
            "shortest": int(archive.lengths.min()),
            "median": float(np.median(archive.lengths)),
            "longest": int(archive.lengths.max()),
        },
        "subjects": _known(archive.subjects),
        "views": _known(archive.views),
        "repetitions": _known(archive.repetitions),
        "preparation": archive.preparation.model_dump(),
        "provenance": archive.provenance,
        "identical": identical(archive),
        "left_out": [{"name": name, "identical_to": first} for name, first in archive.left_out],
        "set_aside": [{"name": bad.name, "reason": bad.reason} for bad in archive.set_aside],
    }


def _known(values: np.ndarray) -> list[int]:
    return [int(value) for value in np.unique(values) if value != UNKNOWN]


def identical(archive: Archive) -> str:
    """Return how many sequences are identical to an earlier one, kept or left out; "" where there are none."""
    kept, left_out = int((archive.copies != np.arange(len(archive))).sum()), len(archive.left_out)
    if kept:
        return f"{kept} of {len(archive)} sequences are identical to an earlier one"
    if left_out:
        return f"{left_out} of {len(archive) + left_out} sequences were identical to an earlier one and are left out"
    return ""


def describe(summary: dict[str, Any]) -> str:
    """Return a summary as text of a few lines."""
    frames = summary["recorded_frames"]
    width = max(len(entry["name"]) for entry in summary["classes"])
    lines = [
        f"{summary['archive']}: {summary['sequences']} sequences, {len(summary['classes'])} classes",
        f"  skeleton     {summary['layout']}: {summary['joints']} joints × {summary['coordinates']} coordinates, "
        f"{summary['actors']} actor{'s' if summary['actors'] > 1 else ''}",
        f"  recorded     {frames['shortest']} to {frames['longest']} frames, median {frames['median']:g}",
        f"  preparation  {_pairs(summary['preparation'])}",
        *(f"  {name:<12} {_ranges(summary[name])}" for name in ("subjects", "views", "repetitions")),
        *([f"  copies       {summary['identical']}"] if summary["identical"] else []),
        f"  provenance   {_pairs(summary['provenance'])}",
        f"  digest       {summary['digest']}",
        "  classes",
        *(
            f"    {entry['label']:>3}  {entry['name']:<{width}}  {entry['sequences']:>6}"
            for entry in summary["classes"]
        ),
    ]
    if "split" in summary:
        lines += [f"  {line}" for line in summary["split"]]
    if summary["set_aside"]:
        lines.append(f"  set aside    {len(summary['set_aside'])}")
        lines += [f"    {bad['name']}: {bad['reason']}" for bad in summary["set_aside"]]
    return "\n".join(lines)


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _ranges(numbers: list[int]) -> str:
    """Return 1, 2, 3, 7 as "1–3, 7"; "unknown" where there are none."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs) or "unknown"
