"""What is in a graph, as plain values for machines and as text for people."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.homophily import graph_homophily
from skeleton_cgl.parts import NAMES, UNUSED

_MOST_NAMED = 12
"""Groups beyond these are counted, not named."""


def summarise(graph: Graph) -> dict[str, Any]:
    """Return plain values: counts of everything, degrees, homophily (None where no edge counts) and digest."""
    homophily = graph_homophily(graph.labels, graph.edges)
    return {
        "graph": graph.name,
        "digest": graph.digest,
        "nodes": len(graph),
        "edges": _edges(graph),
        "degrees": _degrees(graph),
        "features": _features(graph),
        "many_labels": graph.many_labels,
        "classes": [
            {"label": label, "name": name, "nodes": int(count)}
            for label, (name, count) in enumerate(zip(graph.classes, class_counts(graph), strict=True))
        ],
        "labels_per_node": _labels_per_node(graph),
        "groups": {
            name: [
                {"name": each, "nodes": int(count)}
                for each, count in zip(
                    groups.names, np.bincount(groups.numbers, minlength=len(groups.names)), strict=True
                )
            ]
            for name, groups in graph.groups.items()
        },
        "times": None if graph.times is None else _times(graph.times),
        "split": None if graph.split is None else _split(graph.split),
        "homophily": None if math.isnan(homophily) else homophily,
    }


def class_counts(graph: Graph) -> np.ndarray:
    """Return (K,) how many nodes have each class or label."""
    if graph.many_labels:
        return graph.labels.sum(axis=0, dtype=np.int64)
    return np.bincount(graph.labels[graph.labels >= 0], minlength=len(graph.classes))


def degrees_of(graph: Graph) -> np.ndarray:
    """Return (N,) how many other nodes each has an edge with, whichever way it leads."""
    ends = np.sort(graph.edges[:, graph.edges[0] != graph.edges[1]], axis=0)
    links = np.unique(ends[0] * len(graph) + ends[1])
    return np.bincount(np.concatenate([links // len(graph), links % len(graph)]), minlength=len(graph))


def _edges(graph: Graph) -> dict[str, Any]:
    sources, targets = graph.edges
    loops = sources == targets
    there, back = (np.sort(one * len(graph) + other) for one, other in ((sources, targets), (targets, sources)))
    return {
        "number": int((~loops).sum()),
        "both_ways": bool(np.array_equal(there, back)),
        "loops": int(loops.sum()),
    }


def _degrees(graph: Graph) -> dict[str, Any]:
    degrees = degrees_of(graph)
    return {
        "least": int(degrees.min()),
        "median": float(np.median(degrees)),
        "mean": float(degrees.mean()),
        "most": int(degrees.max()),
        "isolated": int((degrees == 0).sum()),
    }


def _features(graph: Graph) -> dict[str, Any]:
    nodes, number = graph.features.shape
    dense = isinstance(graph.features, np.ndarray)
    values = graph.features if isinstance(graph.features, np.ndarray) else graph.features.data
    return {
        "number": number,
        "kept": "dense" if dense else "sparse",
        "nonzero": float(np.count_nonzero(values) / (nodes * number)),
    }


def _labels_per_node(graph: Graph) -> list[int]:
    """Return how many nodes have no label, one, two, and so on up to the most a node has."""
    each = graph.labels.sum(axis=1, dtype=np.int64) if graph.many_labels else (graph.labels >= 0).astype(np.int64)
    return [int(count) for count in np.bincount(each)]


def _times(times: np.ndarray) -> dict[str, int]:
    return {"first": int(times.min()), "last": int(times.max()), "different": len(np.unique(times))}


def _split(split: np.ndarray) -> dict[str, int]:
    parts = {**dict(enumerate(NAMES)), UNUSED: "unused"}
    return {name: int((split == part).sum()) for part, name in parts.items()}


def describe(summary: dict[str, Any]) -> str:
    """Return a summary as text of a few lines, with the "tasks" of a scenario if they are there."""
    edges, degrees, features = summary["edges"], summary["degrees"], summary["features"]
    word = "labels" if summary["many_labels"] else "classes"
    width = max(len(entry["name"]) for entry in summary["classes"])
    homophily = summary["homophily"]
    lines = [
        f"{summary.get('archive', summary['graph'])}: {headline(summary)}",
        f"  edges        {_ways(edges)}; {edges['loops']:,} self-loops",
        f"  degrees      {degrees['least']} to {degrees['most']}, median {degrees['median']:g}, "
        f"mean {degrees['mean']:.2f}; {degrees['isolated']:,} without an edge",
        f"  homophily    {'unknown' if homophily is None else f'{homophily:.3f}'} of edges",
        f"  features     {features['number']:,}, {features['kept']}, {_percent(features['nonzero'])} not zero",
        *_told("labelled", _labelled(summary)),
        *(line for name, found in summary["groups"].items() for line in _told(name, _groups(found))),
        *_told("times", _period(summary["times"])),
        *_told("split", ", ".join(f"{count:,} {part}" for part, count in (summary["split"] or {}).items())),
        *(_tasks(summary["tasks"], word) if "tasks" in summary else []),
        *_told("provenance", _pairs(summary.get("provenance", {}))),
        f"  digest       {summary['digest']}",
        f"  {word}",
        *(f"    {entry['label']:>3}  {entry['name']:<{width}}  {entry['nodes']:>8,}" for entry in summary["classes"]),
    ]
    return "\n".join(lines)


def headline(summary: dict[str, Any]) -> str:
    """Return the counts that tell a graph in a line."""
    word = "labels" if summary["many_labels"] else "classes"
    return f"{summary['nodes']:,} nodes, {summary['edges']['number']:,} edges, {len(summary['classes'])} {word}"


def _ways(edges: dict[str, Any]) -> str:
    if edges["both_ways"]:
        return f"{edges['number']:,}: {edges['number'] // 2:,} links, each both ways"
    return f"{edges['number']:,}, directed"


def _told(name: str, words: str) -> list[str]:
    return [f"  {name:<12} {words}"] if words else []


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _labelled(summary: dict[str, Any]) -> str:
    counts: list[int] = summary["labels_per_node"]
    if not summary["many_labels"]:
        return f"{counts[0]:,} of {summary['nodes']:,} nodes have no class" if counts[0] else ""
    mean = sum(number * count for number, count in enumerate(counts)) / summary["nodes"]
    told = ", ".join(f"{count:,} with {number}" for number, count in enumerate(counts) if count)
    return f"{mean:.2f} labels per node: {told}"


def _groups(found: list[dict[str, Any]]) -> str:
    named = ", ".join(f"{each['name']} {each['nodes']:,}" for each in found[:_MOST_NAMED])
    return f"{len(found)}: {named}{', …' if len(found) > _MOST_NAMED else ''}"


def _tasks(tasks: dict[str, Any], word: str) -> Iterator[str]:
    """Yield a line for the tasks that a scenario would make, and for each kind of domains and periods."""
    groups = tasks["classes"]
    shown = " | ".join(",".join(map(str, task)) for task in groups[:_MOST_NAMED])
    more = " | …" if len(groups) > _MOST_NAMED else ""
    yield from _told("tasks", f"{len(groups)} of {word}: {shown}{more}")
    yield from _told("orders", f"{_number(tasks['task_orders'])} of tasks, {_number(tasks['class_orders'])} of {word}")
    for name, orders in tasks["domain_orders"].items():
        yield from _told("", f"{_number(orders)} of domains by {name}")
    if tasks["periods"] is not None:
        yield from _told("", f"one of {tasks['periods']:,} periods, the calendar's")


def _number(orders: int | str) -> str:
    return orders if isinstance(orders, str) else f"{orders:,}"


def _pairs(values: dict[str, Any]) -> str:
    """Return values as words, those of a map inside as "name=value"."""
    return ", ".join(
        " ".join(f"{inner}={each}" for inner, each in value.items()) if isinstance(value, dict) else f"{name} {value}"
        for name, value in values.items()
    )


def _period(times: dict[str, int] | None) -> str:
    return "" if times is None else f"{times['first']} to {times['last']}, {times['different']} different"
