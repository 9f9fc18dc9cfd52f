"""A small citation graph in the files of the Planetoid data sets."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix


def write_planetoid(folder: Path, classes: int = 4, per_class: int = 12, features: int = 9, seed: int = 0) -> Path:
    """Write `ind.cora.*`: of every class 4 training, `per_class` − 7 validation and 3 test nodes; return the folder.

    As in the original, nodes are sorted by part, and links mostly join nodes of a class.
    """
    random = np.random.default_rng(seed)
    training, other, test = (np.repeat(np.arange(classes), count) for count in (4, per_class - 7, 3))
    labels = np.concatenate([training, other, test])
    nodes, known = len(labels), len(training) + len(other)
    centres = random.normal(size=(classes, features))
    content = (centres[labels] + random.normal(scale=0.5, size=(nodes, features)) > 0.3).astype(np.float32)
    one_hot = np.eye(classes, dtype=np.int32)[labels]
    friends = {
        node: [*random.choice(np.flatnonzero(labels == labels[node]), 2).tolist(), int(random.integers(nodes))]
        for node in range(nodes)
    }
    parts: dict[str, Any] = {
        "x": csr_matrix(content[: len(training)]),
        "allx": csr_matrix(content[:known]),
        "tx": csr_matrix(content[known:]),
        "y": one_hot[: len(training)],
        "ally": one_hot[:known],
        "ty": one_hot[known:],
        "graph": friends,
    }
    for part, value in parts.items():
        (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(value, protocol=2))
    (folder / "ind.cora.test.index").write_text("\n".join(map(str, range(known, nodes))))
    return folder
