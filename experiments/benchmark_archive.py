"""Memory and time of preparing and opening an NTU-sized set: 6667 sequences × 300 frames × 25 joints × 3 × 2 actors.

Generates such a set in the form of CTR-GCN's `.npz` and of PYSKL's `.pkl` (about 1.2 GB each, removed afterwards), then
runs each step in a process of its own. The last line is one JSON object: seconds and peak memory (GB) of each step.

    python experiments/benchmark_archive.py [FOLDER]
"""

import json
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SEQUENCES, FRAMES, VALUES = 6667, 300, 150


def generate(folder: Path) -> dict[str, Path]:
    """Write the same random recordings in both forms; return their paths."""
    random = np.random.default_rng(0)
    labels = np.arange(SEQUENCES) % 10
    positions = np.empty((SEQUENCES, FRAMES, VALUES), dtype=np.float32)
    for row in positions:
        row[:] = random.standard_normal((FRAMES, VALUES), dtype=np.float32)
    npz, pkl = folder / "NTU60_CS.npz", folder / "ntu60_3danno.pkl"
    np.savez(npz, x_train=positions, y_train=np.eye(60, dtype=np.float32)[labels])
    annotations = [
        {
            "frame_dir": f"S001C001P001R{row // 10:03}A{label + 1:03}",
            "label": int(label),
            "total_frames": FRAMES,
            "keypoint": positions[row].reshape(FRAMES, 2, 25, 3).swapaxes(0, 1),
        }
        for row, label in enumerate(labels)
    ]
    # Protocol 2, the one most of these files are written with, is also the one that is hardest on memory.
    with pkl.open("wb") as file:
        pickle.dump({"split": {}, "annotations": annotations}, file, protocol=2)
    return {"npz": npz, "pkl": pkl}


def prepare(source: str, archive: str) -> None:
    from skeleton_cgl.skeletons import write_archive
    from skeleton_cgl.skeletons.sources.ntu import NtuSource

    write_archive(NtuSource(source, actors=2), archive)


def read(archive: str) -> None:
    from skeleton_cgl.skeletons import Archive

    with Archive.open(archive) as opened:
        opened.verify()
        for index in range(0, len(opened), 10):
            opened.clips([index])


def measure(step: str, *arguments: str) -> dict[str, float]:
    """Run a step of this file in a new process; return its seconds and peak memory in GB."""
    started = time.perf_counter()
    run = subprocess.run([sys.executable, __file__, step, *arguments], check=True, capture_output=True, text=True)
    return {"seconds": round(time.perf_counter() - started, 1), "peak_gb": round(float(run.stdout), 2)}


def main(folder: Path) -> None:
    print(f"generating {SEQUENCES} sequences in two forms …", flush=True)
    # In a process of its own, so that this one stays small.
    subprocess.run([sys.executable, __file__, "generate", str(folder)], check=True, capture_output=True)
    figures = {}
    for form, source in (("npz", "NTU60_CS.npz"), ("pkl", "ntu60_3danno.pkl")):
        archive = folder / f"{form}.h5"
        figures[f"prepare_{form}"] = measure("prepare", str(folder / source), str(archive))
        figures[f"read_{form}"] = measure("read", str(archive))
        print(form, figures[f"prepare_{form}"], figures[f"read_{form}"], flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    steps = {"prepare": prepare, "read": read, "generate": lambda folder: generate(Path(folder))}
    if len(sys.argv) > 2:
        steps[sys.argv[1]](*sys.argv[2:])
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
    else:
        with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as place:
            main(Path(place))
