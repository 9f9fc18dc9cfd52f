"""Which sequences of an archive belong together: copies of one recording, views of one performance, other groups."""

import numpy as np

from skeleton_cgl.skeletons.archive import Archive
from skeleton_cgl.skeletons.recording import UNKNOWN


def groups_of(archive: Archive) -> dict[str, np.ndarray]:
    """Return by name all that the sequences may be grouped by, (N,) each, of which every sequence has its group.

    Groups of the data set's own that share a recording count as one, as performances do.
    """
    together = performances(archive)
    columns = {
        **({} if together is None else {"performance": together}),
        "subject": archive.subjects,
        "view": archive.views,
        **{name: numbers[joined(numbers, archive.copies)] for name, numbers in archive.groups.items()},
    }
    return {name: numbers for name, numbers in columns.items() if (numbers != UNKNOWN).all()}


def performances(archive: Archive) -> np.ndarray | None:
    """Return (N,) the first sequence of the performance each belongs to; None where the data do not tell.

    A performance is what one subject did once: label, subject and repetition. Performances that share a recording,
    which is then in the archive twice, count as one.
    """
    facts = np.stack([archive.labels, archive.subjects, archive.repetitions], axis=1)
    if (facts == UNKNOWN).any():
        return None
    _, told = np.unique(facts, axis=0, return_inverse=True)
    return joined(told.ravel(), archive.copies)


def joined(*divisions: np.ndarray) -> np.ndarray:
    """Return (N,) the first member of the group each of N things is in, if what shares a group in any division (N,)
    of them belongs together."""
    first = np.arange(len(divisions[0]))
    while True:
        before = first
        for groups in divisions:
            _, numbers = np.unique(groups, return_inverse=True)
            lowest = np.full(len(first), len(first))
            np.minimum.at(lowest, numbers, first)
            first = lowest[numbers]
        if np.array_equal(first, before):
            return first
