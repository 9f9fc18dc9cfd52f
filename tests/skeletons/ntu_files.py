"""Writing NTU recordings, made up from random numbers, in the four forms in which the real ones circulate."""

import pickle
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

Frames = Sequence[Sequence[tuple[int, np.ndarray]]]
"""Per frame the bodies seen in it, each a tracking id and its positions (25, 3)."""


def person(seed: int, frames: int, motion: float = 0.1, wide: bool = False) -> np.ndarray:
    """Return (T, 25, 3) float32: someone standing upright, or lying down, shaking by `motion` metres."""
    random = np.random.default_rng(seed)
    positions = np.zeros((frames, 25, 3))
    positions[..., 0 if wide else 1] = np.linspace(-0.9, 0.9, 25)
    positions += random.uniform(-1, 1, 3) + random.uniform(-motion, motion, positions.shape)
    return positions.astype(np.float32)


def recording(seed: int, frames: int, second: range | None = None, absent: range = range(0)) -> np.ndarray:
    """Return (2, T, 25, 3): the first actor moves most, and is away in `absent`; the second is seen in `second`."""
    positions = np.zeros((2, frames, 25, 3), dtype=np.float32)
    positions[0] = person(seed, frames, motion=0.1)
    positions[0, list(absent)] = 0
    if second is not None:
        positions[1, list(second)] = person(seed + 1000, len(second), motion=0.02)
    return positions


def frames_of(positions: np.ndarray) -> list[list[tuple[int, np.ndarray]]]:
    """Return the frames of a recording (A, T, 25, 3), each actor being one body."""
    bodies = range(len(positions))
    return [
        [(72057594037931000 + body, positions[body, frame]) for body in bodies if positions[body, frame].any()]
        for frame in range(positions.shape[1])
    ]


def skeleton_text(frames: Frames) -> str:
    lines = [str(len(frames))]
    for bodies in frames:
        lines.append(str(len(bodies)))
        for tracking_id, joints in bodies:
            lines += [f"{tracking_id} 0 1 1 1 1 0 0.02 -0.13 2", str(len(joints))]
            lines += [f"{x:.9g} {y:.9g} {z:.9g} 277.4 191.8 1035.1 519.5 -0.2 0.05 0.9 -0.03 2" for x, y, z in joints]
    return "\n".join(lines) + "\n"


def write_raw(folder: Path, recordings: Mapping[str, np.ndarray]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, positions in recordings.items():
        (folder / f"{name}.skeleton").write_text(skeleton_text(frames_of(positions)))
    return folder


def write_zip(path: Path, recordings: Mapping[str, np.ndarray]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, positions in recordings.items():
            archive.writestr(f"nturgb+d_skeletons/{name}.skeleton", skeleton_text(frames_of(positions)))
            archive.writestr(f"__MACOSX/nturgb+d_skeletons/._{name}.skeleton", b"\x00\x05\x16\x07")
    return path


def padded(positions: np.ndarray, repeat: bool = False) -> np.ndarray:
    """Return (2, 300, 25, 3): a recording cut to 300 frames, or padded with zeros or by repeating it."""
    length = positions.shape[1]
    if repeat:
        return positions[:, np.arange(300) % length]
    result = np.zeros((2, 300, 25, 3), dtype=np.float32)
    result[:, : min(length, 300)] = positions[:, :300]
    return result


def write_npy(path: Path, recordings: Mapping[str, np.ndarray], repeat: bool = False) -> Path:
    """Write `X_data….npy` and `X_label.pkl`."""
    data = np.stack([padded(positions, repeat).transpose(3, 1, 2, 0) for positions in recordings.values()])
    np.save(path, data)
    names = [f"{name}.skeleton" for name in recordings]
    labels = [int(name[-3:]) - 1 for name in recordings]
    path.with_name(f"{path.name.split('_data')[0]}_label.pkl").write_bytes(pickle.dumps((names, labels)))
    return path


def npz_fields(recordings: Mapping[str, np.ndarray], part: str) -> dict[str, np.ndarray]:
    """Return x (N, 300, 150) and one-hot y (N, 60) of a part."""
    rows = [padded(positions).swapaxes(0, 1).reshape(300, 150) for positions in recordings.values()]
    one_hot = np.zeros((len(rows), 60))
    one_hot[range(len(rows)), [int(name[-3:]) - 1 for name in recordings]] = 1
    return {f"x_{part}": np.array(rows, dtype=np.float32).reshape(-1, 300, 150), f"y_{part}": one_hot}


def write_npz(path: Path, train: Mapping[str, np.ndarray], test: Mapping[str, np.ndarray]) -> Path:
    np.savez_compressed(path, **npz_fields(train, "train"), **npz_fields(test, "test"))
    return path


def annotation(name: str, positions: np.ndarray) -> dict:
    """Return a recording as PYSKL has it: no row for a second actor who is never there."""
    keypoint = positions if positions[1].any() else positions[:1]
    return {
        "frame_dir": name,
        "label": int(name[-3:]) - 1,
        "total_frames": keypoint.shape[1],
        "keypoint": keypoint,
    }


def write_pyskl(path: Path, annotations: Sequence[dict]) -> Path:
    names = [each.get("frame_dir") for each in annotations]
    path.write_bytes(pickle.dumps({"split": {"xsub_train": names}, "annotations": list(annotations)}))
    return path
