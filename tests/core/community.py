"""A made-up graph for the cases: nodes of six classes in four domains, linked mostly to their like.

Every class has five nodes in every domain: three to learn from, one to validate with, one to test with.
"""

from dataclasses import dataclass

import numpy as np

from skeleton_cgl.parts import TEST, TRAINING, VALIDATION

CLASSES, DOMAINS, FEATURES = 6, 4, 8
_PARTS = (TRAINING, TRAINING, TRAINING, VALIDATION, TEST)


@dataclass(frozen=True)
class Community:
    """edges (2, E) in both directions, and a loop at every node; features (N, F); label, domain and part (N,)."""

    edges: np.ndarray
    features: np.ndarray
    labels: np.ndarray
    domains: np.ndarray
    parts: np.ndarray


def make_community(seed: int) -> Community:
    """Return a graph whose nodes stand in a random sequence."""
    random = np.random.default_rng(seed)
    number = CLASSES * DOMAINS * len(_PARTS)
    node = random.permutation(number)
    labels, domains = node % CLASSES, node // CLASSES % DOMAINS
    parts = np.array(_PARTS)[node // (CLASSES * DOMAINS)]
    centres = random.normal(size=(CLASSES, FEATURES)) + random.normal(scale=0.5, size=(DOMAINS, 1, FEATURES))
    features = centres[domains, labels] + random.normal(scale=0.7, size=(number, FEATURES))
    alike = (labels[:, None] == labels) * 0.3 + (domains[:, None] == domains) * 0.03 + 0.01
    linked = np.triu(random.random((number, number)) < alike, 1)
    edges = np.stack(np.nonzero(linked | linked.T | np.eye(number, dtype=bool)))
    return Community(edges, features.astype(np.float32), labels, domains, parts)
