"""Studies and records made up for tests of the store: as if learned, without learning."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from skeleton_cgl.engine.record import Kept, Made, Record
from skeleton_cgl.engine.rows import ComponentRow, LearnerRow, PlannedStudy, RunRow, StudyRow
from skeleton_cgl.scenarios.measures import QUERIED, Measure, accuracy_measure

ORDER = ((0, 1), (2,))
MADE = Made(1.5, "here", (("torch", "2.13"), ("numpy", "2.4")), seed=2**64 - 1)


def made_record(key: str, seed: int = 0, seconds: float = 1.5, host: str = "here") -> Record:
    """Return a record of random answers to the same queries, of which the last class has none on validation."""
    asked = [[300, 20, 70], [60, 30, 0]]
    counts = np.random.default_rng(seed).multinomial(asked, [0.5, 0.2, 0.3])
    scores = tuple(accuracy_measure(part, each) for part, each in zip(QUERIED, counts, strict=True))
    return Record(key, scores, replace(MADE, seconds=seconds, host=host))


def rich_record(key: str, seed: int = 0) -> Record:
    """Return a record with all there can be: a metric without counts, answers, a fingerprint, and what was kept."""
    random = np.random.default_rng(seed)
    f1 = [Measure(part, "f1", random.random(4), np.array([1, 0, 10**6, 256])) for part in QUERIED]
    for measure in f1:
        measure.values[1] = np.nan
    counts = random.multinomial([5, 0, 9], [0.1, 0.4, 0.5])
    domains = Measure("test", "accuracy by domain", np.array([np.nan, random.random()]), np.array([0, 14]), counts)
    made = replace(MADE, fingerprint=(("cpu", "AVX2"), ("blas", "1 < 2")), kept=Kept(48, 2**33, 2**40))
    return Record(key, (*made_record(key, seed).scores, *f1, domains), made, random.random(5).astype(np.float16))


def made_study(
    name: str = "made", keys: Sequence[str] = ("a", "b"), methods: Sequence[str] = ("bare",)
) -> PlannedStudy:
    """Return a study of one order; its learners differ in their methods, whose keys are `a`, `a1`, `a2`, …

    Keys are cut to the length of real ones.
    """
    study = StudyRow(
        0,
        name,
        json.dumps({"name": name, "x": [1.5, None]}),
        ("d1", "d2"),
        ("sit", "stand", "Gähnen"),
        ORDER,
        ("accuracy",),
    )
    backbone = ComponentRow("my/net.py", "Net #1", (("width", 8), ("sizes", (1, 2))), "Net", "0123")
    learners = tuple(
        LearnerRow(number, backbone, ComponentRow(method), (("training.epochs", 3),))
        for number, method in enumerate(methods)
    )
    runs = tuple(
        RunRow(number, "task", 0, 0, ORDER, tuple(f"{key}{number or ''}"[-32:] for key in keys))
        for number in range(len(methods))
    )
    return PlannedStudy(study, learners, runs)


def same(one: Record, other: Record) -> bool:
    """Return whether two records are the same in everything but the time they were kept at."""
    scores = [score.same_as(also) for score, also in zip(one.scores, other.scores, strict=True)]
    if one.answers is None or other.answers is None:
        answers = one.answers is other.answers
    else:
        answers = np.array_equal(one.answers, other.answers) and one.answers.dtype == other.answers.dtype
    made = replace(one.made, created="") == replace(other.made, created="")
    return one.key == other.key and all(scores) and answers and made
