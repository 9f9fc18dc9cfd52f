"""The pairs of a link-prediction scenario: which are linked, in which unit and part, and which are not linked.

Letters: P linked pairs, N nodes, U units, M pairs without a link.
"""

from dataclasses import dataclass

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.items import NO_GROUP, Groups
from skeleton_cgl.graphs.link_set import LinkSet, make_link_set, pair_keys
from skeleton_cgl.parts import NAMES, TEST, VALIDATION
from skeleton_cgl.seeds import seed_of

ENDS, SAME_ENDS = "ends", "same ends"
"""Domains made of the classes of nodes: pairs of them, as with Wiki-CS; one, as with Facebook, mixed ones are base."""

_ROUNDS = 100


def links_of(data: Graph | LinkSet) -> LinkSet:
    """Return the links of a data set, every pair of nodes once, whatever the direction; loops are left out.

    Those of a graph are in groups by the classes of their ends: `ENDS` and `SAME_ENDS`.
    """
    ends = data.edges if isinstance(data, Graph) else data.ends
    nodes = len(data) if isinstance(data, Graph) else data.nodes
    proper = np.flatnonzero(ends[0] != ends[1])
    if isinstance(data, LinkSet) and data.times is not None:
        proper = proper[np.argsort(data.times[proper], kind="stable")]
    # Of a pair that is linked more than once, the first counts.
    _, first = np.unique(pair_keys(ends[:, proper], nodes, directed=False), return_index=True)
    kept = proper[np.sort(first)]
    pairs = np.sort(ends[:, kept], axis=0)
    if isinstance(data, Graph):
        groups = {} if data.many_labels else _by_classes(data, pairs)
        return make_link_set(data.name, nodes, pairs, False, features=data.features, groups=groups)
    groups = {name: Groups(each.numbers[kept], each.names) for name, each in data.groups.items()}
    return make_link_set(
        data.name,
        nodes,
        pairs,
        False,
        features=data.features,
        groups=groups,
        times=None if data.times is None else data.times[kept],
        split=None if data.split is None else data.split[kept],
        negatives=None if data.negatives is None else np.sort(data.negatives, axis=0),
        negatives_split=data.negatives_split,
        notes=data.notes,
    )


def _by_classes(graph: Graph, pairs: np.ndarray) -> dict[str, Groups]:
    """Return the groups of pairs by the classes of their ends; those of a node without a class are in none."""
    low, high = np.sort(graph.labels[pairs], axis=0)
    classes = len(graph.classes)
    combined = np.where(low >= 0, low * classes + high, NO_GROUP)
    present = np.unique(combined[combined >= 0])
    names = tuple(f"{graph.classes[each // classes]} – {graph.classes[each % classes]}" for each in present)
    numbers = np.where(combined >= 0, np.searchsorted(present, combined), NO_GROUP)
    same = np.where(low == high, low, NO_GROUP)
    return {ENDS: Groups(numbers, names), SAME_ENDS: Groups(same, graph.classes)}


@dataclass(frozen=True, eq=False)
class Negatives:
    """Pairs (2, M) without a link to be asked about; the unit (M,) each was drawn for, −1 for none; its part (M,)."""

    pairs: np.ndarray
    unit: np.ndarray
    parts: np.ndarray


def given_negatives(links: LinkSet) -> Negatives | None:
    """Return the pairs that a data set was published with, None where it has none; refuse a part without any."""
    if links.negatives is None or links.negatives_split is None:
        return None
    for part in (TEST, VALIDATION):
        if not (links.negatives_split == part).any():
            raise InputError(f"scenario: data: {links.name} has no {NAMES[part]} negatives")
    return Negatives(links.negatives, np.full(links.negatives.shape[1], -1), links.negatives_split)


def drawn_negatives(links: LinkSet, unit: np.ndarray, keys: tuple[str, ...], each: int, seed: int) -> Negatives:
    """Return `each` pairs of every unit and part, between nodes of the unit's links: none is linked, none comes twice.

    Those of a unit are drawn by a seed of its key; refused where there are not so many.
    """
    taken = np.sort(pair_keys(links.ends, links.nodes, directed=False))
    pairs, units = [], []
    for number, key in enumerate(keys):
        nodes = np.unique(links.ends[:, unit == number])
        random = np.random.default_rng(seed_of("negatives", seed, key))
        free = _number_free(nodes, taken, links.nodes)
        found = _free_pairs(nodes, 2 * each, taken, links.nodes, random) if 2 * each <= free else None
        if found is None:
            raise InputError(
                f"scenario: negatives: {each} for test and as many for validation are too many to draw for {key!r}: "
                f"its {len(nodes)} nodes have {free} pairs without a link; take fewer"
            )
        taken = np.sort(np.concatenate([taken, pair_keys(found, links.nodes, directed=False)]))
        pairs.append(found)
        units.append(np.full(2 * each, number))
    parts = np.tile(np.repeat([TEST, VALIDATION], each), len(keys))
    return Negatives(np.concatenate(pairs, axis=1), np.concatenate(units), parts)


def _number_free(nodes: np.ndarray, taken: np.ndarray, all_nodes: int) -> int:
    """Return how many pairs of nodes are not taken."""
    inside = np.zeros(all_nodes, dtype=bool)
    inside[nodes] = True
    proper = taken // all_nodes != taken % all_nodes
    return len(nodes) * (len(nodes) - 1) // 2 - int(
        (inside[taken // all_nodes] & inside[taken % all_nodes] & proper).sum()
    )


def _free_pairs(
    nodes: np.ndarray, count: int, taken: np.ndarray, all_nodes: int, random: np.random.Generator
) -> np.ndarray | None:
    """Return (2, count) different pairs of nodes that are not taken; None where they are not found."""
    keys = np.empty(0, dtype=np.int64)
    for _ in range(_ROUNDS):
        drawn = nodes[random.integers(0, len(nodes), (2, 2 * count))]
        proper = drawn[:, drawn[0] != drawn[1]]
        fresh = pair_keys(proper, all_nodes, directed=False)
        fresh = fresh[~is_among(fresh, taken)]
        # In the sequence they were drawn in, of which the first so many count.
        every = np.concatenate([keys, fresh])
        keys = every[np.sort(np.unique(every, return_index=True)[1])]
        if len(keys) >= count:
            return np.stack([keys[:count] // all_nodes, keys[:count] % all_nodes])
    return None


def is_among(keys: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return which keys are among others, which ascend."""
    if not len(known):
        return np.zeros(len(keys), dtype=bool)
    found: np.ndarray = known[np.searchsorted(known, keys).clip(max=len(known) - 1)] == keys
    return found
