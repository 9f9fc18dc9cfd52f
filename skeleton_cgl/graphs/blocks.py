"""What made-up graphs are made of: nodes spread evenly over groups, links between blocks, features by direction.

Everything random comes from the generator that is given. Letters: N nodes, M links, F features.
"""

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Groups

MOST_NODES, MOST_GROUPS, MOST_SEEDS = 1_000_000, 100, 2**63 - 1
_SPREAD = 0.6
"""The standard deviation of the logarithm of how sociable nodes are, which gives degrees their tail."""


def check_count(field: str, count: int, fewest: int, most: int) -> None:
    """Refuse other than a whole number from the fewest to the most."""
    if isinstance(count, bool) or not isinstance(count, int) or not fewest <= count <= most:
        raise InputError(f"{field} must be {fewest}–{most}, found {count!r:.40}")


def spread(nodes: int, random: np.random.Generator, *groups: int) -> list[np.ndarray]:
    """Return a number (N,) per kind of group: every combination of the groups has as many nodes, give or take one."""
    order = random.permutation(nodes)
    found = []
    for number in groups:
        found.append(order % number)
        order = order // number
    return found


def own_or_any(own: np.ndarray, share: float, number: int, random: np.random.Generator) -> np.ndarray:
    """Return (M,) the own group in this share of cases, else any of so many."""
    return np.where(random.random(len(own)) < share, own, random.integers(0, number, len(own)))


def members_of(block: np.ndarray) -> list[np.ndarray]:
    """Return the nodes of every block, of the number (N,) of the block each is in."""
    order = np.argsort(block, kind="stable")
    return np.split(order, np.cumsum(np.bincount(block))[:-1])


class Blocks:
    """Nodes in blocks, any of which may overlap, and how sociable each node is."""

    def __init__(self, members: list[np.ndarray], nodes: int, random: np.random.Generator) -> None:
        sociable = random.lognormal(0, _SPREAD, nodes)
        self._members = np.concatenate(members)
        self._ends = np.concatenate([[0], np.cumsum([len(block) for block in members])])
        self._weights = np.concatenate([[0], np.cumsum(sociable[self._members])])
        self._all = np.concatenate([[0], np.cumsum(sociable)])

    def anyone(self, number: int, random: np.random.Generator) -> np.ndarray:
        """Return (M,) nodes, sociable ones more often."""
        return np.searchsorted(self._all, random.random(number) * self._all[-1], side="right") - 1

    def linked(self, ends: np.ndarray, blocks: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return (2, M′): links from nodes (M,) to one of each of the blocks (M,), without those to themselves."""
        links = np.stack([ends, self._someone_of(blocks, random)])
        return links[:, links[0] != links[1]]

    def _someone_of(self, blocks: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return (M,) a node of each of the blocks (M,), sociable ones more often."""
        first, last = self._weights[self._ends[blocks]], self._weights[self._ends[blocks + 1]]
        drawn = np.searchsorted(self._weights, first + random.random(len(blocks)) * (last - first), side="right") - 1
        # A sum of many weights may round up to the first of the next block.
        return self._members[np.clip(drawn, self._ends[blocks], self._ends[blocks + 1] - 1)]


def named_groups(word: str, numbers: np.ndarray) -> Groups:
    """Return groups called "word 0", "word 1" …"""
    return Groups(numbers, tuple(f"{word} {number}" for number in range(numbers.max() + 1)))


def directions(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Return vectors of length 1 along the last axis, in all directions alike."""
    drawn = random.normal(size=shape)
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def rounded(features: np.ndarray) -> np.ndarray:
    """Return features as float32, to three places: that hides how processors differ in the last bit."""
    return features.round(3).astype(np.float32)
