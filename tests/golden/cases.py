"""Tiny studies, one or more for every built-in component, and the numbers they come to in float64.

In float64 what a processor's sums differ in is too small to be felt within a few steps; in float32 it is not. First
weights are drawn in float32 all the same, so that numbers may be off by some 10⁻⁶. Left out, since it depends on the
last bit even so: TWP with β > 0 on ST-GCN, whose gradient has entries that are zero but for rounding, of which ‖∇L‖₁
takes the sign; and dropout, which is drawn otherwise where MKL is not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl import Study
from skeleton_cgl.backbones.backbone import backbones_for
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.graphs.archive import write_archive
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.process import settle
from skeleton_cgl.registry import METHODS, SCENARIOS
from skeleton_cgl.scenarios.inputs import Clips, Inputs, Pool, together
from skeleton_cgl.scenarios.scenario import Scenario
from tests.core.cases import MADE_UP
from tests.graphs.made_sets import random_graph_set, random_link_set
from tests.graphs.planetoid_files import write_planetoid
from tests.scenarios.graphs import label_graph, node_graph, write_npz
from tests.scenarios.small import write_small

Numbers = dict[str, list[float]]

_TRAINING = {"epochs": 3, "learning_rate": 0.01, "device": "cpu"}
_CLASS_ORDER = {"given": [[[2, 3], [0, 1]]]}
_DOMAIN_ORDER = {"given": [[[2], [0]]]}
_BY_CLASS = {"split": {"by": "class"}}


@dataclass(frozen=True)
class Case:
    """A study of two lessons, or of a stream; tolerance: how far its numbers may be off, relative to them."""

    name: str
    method: Any = "bare"
    backbone: Any = field(default_factory=lambda: {"name": "gcn", "width": 4})
    scenario: dict[str, Any] = field(default_factory=lambda: dict(_BY_CLASS))
    training: dict[str, Any] = field(default_factory=dict)
    orders: dict[str, Any] = field(default_factory=lambda: dict(_CLASS_ORDER))
    tolerance: float = 1e-5

    def __str__(self) -> str:
        return self.name

    @property
    def asked(self) -> dict[str, Any]:
        """What the numbers belong to, as JSON has it."""
        parts = ("method", "backbone", "scenario", "training", "orders")
        return {part: getattr(self, part) for part in parts}


def _method(name: str, **parameters: Any) -> Case:
    return Case(_words(name, parameters), {"name": name, **parameters})


def _in_task_il(name: str, **parameters: Any) -> Case:
    words = _words(f"task-il {name}", parameters)
    return Case(words, {"name": name, **parameters}, scenario={**_BY_CLASS, "setting": "task-il"})


def _backbone(name: str, **parameters: Any) -> Case:
    return Case(_words(name, parameters), "bare", {"name": name, **parameters})


def _training(**fields: Any) -> Case:
    return Case(_words("training", fields), "replay", training=fields)


def _skeleton(name: str, **fields: Any) -> Case:
    return Case(f"skeleton {name}", scenario={**_BY_CLASS, **fields})


def _graph(kind: str, method: str = "bare", orders: dict[str, Any] = _CLASS_ORDER, **fields: Any) -> Case:
    words = _words(Path(kind).stem, {"method": method, **fields})
    return Case(words, method, {"name": "skeleton-gcn", "width": 4}, {"kind": kind, **fields}, orders=orders)


def _for_nodes(name: str, method: str = "twp", **parameters: Any) -> Case:
    words = _words(f"{name} for nodes", {"method": method, **parameters})
    return Case(words, method, {"name": name, **parameters}, {"kind": _made_up("nodes")})


def _streamed(name: str, **parameters: Any) -> Case:
    words = _words(f"stream {name}", parameters)
    return Case(words, {"name": name, **parameters}, {"name": "gcn", "width": 4}, {"kind": _made_up("stream")})


def _mixed(transition: dict[str, Any], method: Any = "er", **fields: Any) -> Case:
    """Return a case on a stream of the nodes of a small graph, examined twice."""
    words = _words("stream of nodes", {"method": method, **transition, **fields})
    scenario = {"kind": "stream", "of": {"kind": "node", "data": "small graph", **fields}, "transition": transition}
    return Case(words, method, {"name": "gcn", "width": 4}, {**scenario, "batch": 6, "examinations": 2})


def _sets(kind: str, data: str, method: Any = "bare", **fields: Any) -> Case:
    """Return a case on small links or graphs, all drawn at random."""
    by_setting = {"domain-il": _DOMAIN_ORDER, "time-il": {"tasks": "default"}}
    orders = by_setting.get(fields.get("setting", "class-il"), _CLASS_ORDER)
    backbone = {"name": "gcn", "width": 4}
    words = _words(kind, {"data": data, "method": method, **fields})
    return Case(words, method, backbone, {"kind": kind, "data": data, **fields}, orders=orders)


def _nodes(
    backbone: str, method: Any = "bare", training: dict[str, Any] | None = None, kind: str = "node", **fields: Any
) -> Case:
    """Return a case on a small graph of two classes, or labels, a task, whose features and links tell them."""
    parts = {**(training or {}), **(method if isinstance(method, dict) else {"method": method}), **fields}
    orders = {"tasks": "default"} if fields.get("setting") in ("domain-il", "time-il") else _CLASS_ORDER
    made = {"name": backbone, "width": 4}
    scenario = {"kind": kind, "data": "small graph", **fields}
    return Case(_words(f"{kind} {backbone}", parts), method, made, scenario, training or {}, orders)


def _evolving(variant: str) -> Case:
    backbone = {"name": "evolving-gcn", "variant": variant, "width": 4}
    return Case(f"node evolving-gcn {variant}", "evolve-gcn", backbone, {"kind": "node", "data": "small graph"})


def _made_up(name: str) -> str:
    return f"{name}.py"


def _words(name: str, fields: dict[str, Any]) -> str:
    return " ".join([name, *(f"{key}={value}" for key, value in fields.items())])


CASES = (
    *(_method(name) for name in ("bare", "joint", "replay", "ewc", "mas", "twp", "lwf", "gem")),
    _method("replay", count=3),
    _method("ewc", strength=100.0, importance="sample"),
    _method("mas", strength=10.0, importance="absolute"),
    _method("mas", strength=10.0, importance="absolute-samples"),
    _method("twp", lambda_l=100.0, lambda_t=10.0, beta=0.0),
    _method("lwf", strength=10.0, temperature=0.5),
    _method("gem", margin=0.5, count=4),
    *(_method(name, strength=10.0, variant="begin") for name in ("ewc", "mas")),
    _method("mas", strength=10.0, variant="cglb"),
    _method("gem", margin=0.5, count=4, variant="cglb"),
    _method("gem", margin=0.5, count=4, variant="begin"),
    *(_method("twp", lambda_l=100.0, lambda_t=10.0, variant=variant) for variant in ("cglb", "begin")),
    *(_method(name, count=9) for name in ("er", "a-gem", "der", "der-pp", "gss")),
    _method("gss", count=9, draw="published"),
    *(_method("mas-star", strength=100.0, window=1, mean=9.0, importance=kind) for kind in ("hard", "batch")),
    Case(
        "stream mas-star",
        {"name": "mas-star", "strength": 100.0, "window": 2, "mean": 9.0, "hard": 5, "recent": 14},
        {"name": "skeleton-gcn", "width": 4},
        {"kind": _made_up("stream")},
    ),
    _method("ridge", projection=20),
    _method("ridge", projection=0, unit=False, features="first task"),
    _method("ridge", projection=0, features="self-supervised"),
    *(_method(name) for name in ("ncm", "cosine")),
    *(_in_task_il(name) for name in ("packnet", "piggyback", "hat")),
    _in_task_il("hat", variant="begin"),
    _backbone("gcn", width=3, depth=1),
    _backbone("gcn", width=3, depth=3),
    _backbone("stgcn", width=4, depth=2, kernel=3),
    Case("twp beta=0 on stgcn", {"name": "twp", "beta": 0.0}, {"name": "stgcn", "width": 4, "kernel": 3}),
    _training(optimizer="sgd"),
    _training(batch_size=7),
    _training(weight_decay=0.1),
    _training(reset_optimizer=True),
    _training(head_steps="own"),
    _training(patience=1, patience_on="task", epochs=6, learning_rate=0.3),
    _training(patience=1, patience_on="seen", epochs=6, learning_rate=0.3),
    _skeleton("task-il", setting="task-il"),
    _skeleton("by subject", split={"by": "subject"}),
    _skeleton("by view", split={"by": "view", "ratios": [2, 1, 1], "test": [2]}),
    _skeleton("prepared", preparation={"frames": 6, "scale": "axes", "fit": "repeat", "stream": "bone-motion"}),
    # Clips are turned in float32.
    replace(_skeleton("augmented", augmentation={}), tolerance=1e-4),
    Case("task-il lwf", "lwf", scenario={**_BY_CLASS, "setting": "task-il"}),
    _graph("node", setting="class-il", data="planetoid"),
    _graph("node", "twp", setting="task-il", data="planetoid"),
    *(_nodes("gcn", method) for method in ("bare", "joint", "replay", "gem", "twp")),
    _nodes("gcn", {"name": "joint", "restart": True}),
    _nodes("gcn", {"name": "ridge", "hops": 2, "projection": 0}),
    *(_nodes("gcn", {"name": name, "per_class": 2}) for name in ("ssm", "sem", "er-gnn")),
    _nodes("gcn", {"name": "sem", "per_class": 2, "curvature": "surrogate"}),
    _nodes("gcn", {"name": "er-gnn", "per_class": 2, "selection": "im", "topology": "isolated"}),
    _nodes("gcn", {"name": "cgnn", "count": 6}),
    _nodes("gcn", {"name": "cgnn", "count": 6, "variant": "begin"}),
    _nodes("sgc", {"name": "pdgnn-tem", "per_class": 3}),
    _nodes("gcn", {"name": "cat", "count": 4, "steps": 3}),
    _nodes("gcn", {"name": "delome", "count": 2, "steps": 3}),
    _nodes("gcn", {"name": "dmsg", "count": 2}),
    *(_evolving(variant) for variant in ("o", "h")),
    _nodes("gcn", view="task", setting="task-il"),
    _nodes("gcn", "replay", view="task"),
    _nodes("gcn", "joint", view="task", inter_task_edges=True),
    _nodes("gcn", setting="domain-il"),
    _nodes("gcn", setting="time-il"),
    _nodes("gcn", score="micro_accuracy", balanced=False, self_loops=False),
    _nodes("gcn", training={"plateau": {"patience": 0, "floor": 0.05}, "monitor": "task", "epochs": 8}),
    _nodes("gcn", training={"patience": 1, "monitor": "score", "epochs": 6}),
    _nodes("gcn", training={"recalibrate": True}),
    _nodes("gcn", training={"recalibrate": True, "patience": 2, "epochs": 6}),
    _nodes("gcn", training={"batch_size": 40, "fan_outs": [2, 2]}),
    _nodes("gcn", kind="multilabel"),
    _nodes("gcn", "joint", kind="multilabel", setting="task-il"),
    _nodes("gcn", "replay", kind="multilabel", view="whole", split={"by": "node"}),
    _nodes("gcn", kind="multilabel", leaking_labels=True),
    _nodes("gcn", "lwf", kind="multilabel", setting="domain-il"),
    _graph(_made_up("groups"), "ewc", _DOMAIN_ORDER),
    _graph(_made_up("labels"), setting="class-il"),
    _graph(_made_up("labels"), "lwf", setting="task-il"),
    _graph(_made_up("links"), orders=_DOMAIN_ORDER),
    _graph(_made_up("links"), "lwf", _DOMAIN_ORDER),
    _graph(_made_up("stream")),
    _streamed("ssm-stream", count=20, fan_outs=[3, 2]),
    _streamed("sem-stream", count=20, fan_outs=[3, 2]),
    _streamed("dmsg-stream", count=9),
    _mixed({"name": "gaussian", "sigma": 2}),
    _mixed({"name": "gaussian", "sigma": 2}, "joint", view="task"),
    _mixed({"name": "hard"}),
    _mixed({"name": "global", "share": 0.3}),
    _mixed({"name": "boundary", "batches": 1}),
    _graph(_made_up("whole_graphs"), "twp"),
    _sets("link", "links", "replay"),
    _sets("link", "links", "lwf", setting="task-il", features="degrees"),
    _sets("link", "links", setting="time-il", periods=2, features="degrees", score="micro_accuracy"),
    _sets("link-prediction", "links", "replay", setting="domain-il", negatives=30, k=10),
    _sets("link-prediction", "links", "gem", setting="domain-il", negatives=30, features="degrees", score="roc_auc"),
    _sets("link-prediction", "links", setting="time-il", periods=2, negatives=30, k=10, joins_base=0.5),
    _sets("graph", "graphs", "replay"),
    _sets("graph", "graphs", "joint", setting="domain-il"),
    _sets("graph", "graphs", setting="time-il", periods=2),
    _sets("graph", "labelled graphs", "lwf"),
    _sets("graph", "labelled graphs", "ewc", setting="task-il", balanced=False),
    _sets("graph", "labelled graphs", "replay", setting="domain-il"),
    _for_nodes("gcn", preset="begin", width=4),
    _for_nodes("gcn", "bare", preset="cglb", width=4),
    _for_nodes("gcn", preset="agale", width=4, dropout=0.0),
    _for_nodes("gat", width=4, heads=2),
    _for_nodes("gin", width=4),
    _for_nodes("sgc", "ewc", width=4),
)


def study_of(case: Case, folder: Path) -> Study:
    training = {**_TRAINING, **case.training}
    if case.scenario.get("kind") in ("stream", _made_up("stream")) and case.method != "joint":
        # Which passes once.
        del training["epochs"]
    return Study(
        name=case.name,
        scenario=_with_data(case.scenario, folder),
        backbone=case.backbone,
        methods=[case.method],
        orders=case.orders,
        training=training,
    )


def _with_data(fields: dict[str, Any], folder: Path) -> dict[str, Any]:
    kind = fields.get("kind", "skeleton")
    if kind == "stream":
        return {**fields, "of": _with_data(fields["of"], folder)}
    if kind == "skeleton":
        return {**fields, "data": str(_archive(folder))}
    if kind in ("node", "multilabel"):
        data = _planetoid(folder) if fields["data"] == "planetoid" else _small_graph(folder, kind)
        return {**fields, "data": str(data)}
    if kind in ("link", "link-prediction", "graph"):
        return {**fields, "data": str(_small_set(folder, fields["data"]))}
    own = Path(__file__).parent / kind
    return {**fields, "kind": str(own if own.exists() else MADE_UP / kind)}


@cache
def _archive(folder: Path) -> Path:
    return write_small(folder / "small.h5")


@cache
def _small_graph(folder: Path, kind: str) -> Path:
    return write_npz(node_graph() if kind == "node" else label_graph(), folder / f"{kind}.npz")


@cache
def _small_set(folder: Path, name: str) -> Path:
    path = folder / f"{name}.h5"
    if name == "links":
        links = {"nodes": 60, "links": 400, "classes": 4, "features": "dense"}
        write_archive(random_link_set(published=False, negatives=False, **links), path)
    else:
        many = name == "labelled graphs"
        write_archive(random_graph_set(graphs=160, classes=4, many_labels=many, published=False, texts=False), path)
    return path


@cache
def _planetoid(folder: Path) -> Path:
    (folder / "planetoid").mkdir()
    return write_planetoid(folder / "planetoid")


def versions_of(case: Case, folder: Path) -> dict[str, int]:
    """Return the versions of all that takes part in a case: its numbers may change when one of them does."""
    study = study_of(case, folder)
    scenario = study.make_scenario(0)
    problem = type(scenario.problem)
    backbone, method = study.backbone[0].name, study.methods[0].name
    return {
        "learner": Learner.version,
        f"method {method}": METHODS.find(method).version,
        f"backbone {backbone}": backbones_for(scenario.facts.takes).find(backbone).version,
        f"scenario {Path(study.scenario.get('kind', 'skeleton')).stem}": SCENARIOS.find(
            study.scenario.get("kind", "skeleton")
        ).version,
        f"problem {problem.__name__}": getattr(problem, "version", 1),
    }


def numbers_of(case: Case, folder: Path) -> Numbers:
    """Return what a case comes to, after each lesson: weights, answers and scores, each as a few sums."""
    settle()
    study = study_of(case, folder)
    plan = make_plan(study)
    stages = [plan.stages[key] for key in plan.runs[0].keys]
    scenario: Any = InDouble(plan.setting(stages[0])[1])
    learner = stages[0].new_learner(study, plan.setting(stages[0])[1])
    learner.model.double()
    numbers: Numbers = {}
    for step, stage in enumerate(stages, start=1):
        experience, queries = scenario.experience(stage.prefix), scenario.queries(stage.prefix)
        with _in_double():
            learner.learn(experience, stage.seed(study))
            answers = learner.answer(queries)
        given = answers[answers.isfinite()]
        # On a stream, a learner does not know of classes that it has not met.
        answers = functional.pad(answers, (0, len(scenario.outputs) - answers.shape[1]), value=-torch.inf)
        numbers[f"answers {step}"] = _sums(given)
        numbers[f"weights {step}"] = _sums(learner.parameter_vector().detach())
        for score in scenario.score(answers, stage.prefix):
            numbers[f"{score.part} {score.metric} {step}"] = np.nan_to_num(score.values, nan=-1).tolist()
    return numbers


def _sums(values: Tensor) -> list[float]:
    return [float(values.abs().mean()), float(values.square().mean().sqrt())]


@contextmanager
def _in_double() -> Iterator[None]:
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


class InDouble:
    """A scenario whose samples come in float64."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._pools: dict[int, Pool] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scenario, name)

    def experience(self, prefix: Any) -> Any:
        found = self._scenario.experience(prefix)
        parts = {part: getattr(found, part) for part in ("training", "validation")}
        return replace(found, **{part: replace(each, pool=self._double(each.pool)) for part, each in parts.items()})

    def queries(self, prefix: Any) -> Any:
        found = self._scenario.queries(prefix)
        return replace(found, pool=self._double(found.pool))

    def _double(self, pool: Pool) -> Any:
        return self._pools.setdefault(id(pool), DoublePool(pool))


class DoublePool:
    """The samples of a pool in float64."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.digest = f"{pool.digest} in float64"
        self.augmented = pool.augmented

    @property
    def together(self) -> "DoublePool":
        found = together(self._pool)
        return self if found is self._pool else DoublePool(found)

    def whole(self) -> Inputs:
        return _doubled(self._pool.whole())

    def drawn(self, ids: Tensor, random: np.random.Generator) -> Inputs:
        return _doubled(self._pool.drawn(ids, random))


def _doubled(inputs: Any) -> Any:
    double: dict[type, Callable[[Any], Any]] = {
        Clips: lambda clips: replace(clips, parts=clips.parts.double()),
        Places: lambda places: replace(places, features=places.features.double()),
        Graphs: lambda graphs: replace(graphs, content=_doubled(graphs.content)),
    }
    return double[type(inputs)](inputs)
