"""What is in a set of graphs that are classified as a whole."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.graphs.items import NO_CLASS
from skeleton_cgl.graphs.summaries.counts import counts_of_edges, counts_of_features, counts_of_items, spread_of
from skeleton_cgl.graphs.summaries.words import (
    class_word,
    features_in_words,
    lines_on_classes,
    lines_on_items,
    spread_in_words,
    told,
)

_FEW_TEXTS, _LONGEST_TEXT = 3, 90


def summarise_graph_set(graphs: GraphSet) -> dict[str, Any]:
    """Return plain values: counts of everything, nodes and edges of a graph, kinds of features, and a few texts."""
    apart = graphs.edges[0] != graphs.edges[1]
    of_graph = np.searchsorted(graphs.starts, graphs.edges[1, apart], side="right") - 1
    edges = np.bincount(of_graph, minlength=len(graphs))
    counted = counts_of_items(graphs)
    if graphs.many_labels:
        counted["classes"] = _answers(graphs)
    return {
        **counted,
        "graphs": len(graphs),
        "nodes": spread_of(graphs.sizes),
        "edges": {
            **counts_of_edges(graphs.edges, int(graphs.starts[-1])),
            **spread_of(edges),
            "graphs_without": int((edges == 0).sum()),
        },
        "features": _features(graphs.features, graphs.codes),
        "edge_features": None if graphs.edge_features is None else _features(graphs.edge_features, graphs.edge_codes),
        "without_class": 0 if graphs.many_labels else int((graphs.labels == NO_CLASS).sum()),
        "texts": None if graphs.texts is None else list(graphs.texts[:_FEW_TEXTS]),
        "notes": list(graphs.notes),
    }


def headline_of_graph_set(summary: dict[str, Any]) -> str:
    counts = f"{summary['graphs']:,} graphs, {summary['nodes']['mean']:,.1f} nodes on average"
    return f"{counts}, {len(summary['classes'])} {class_word(summary)}"


def lines_on_graph_set(summary: dict[str, Any]) -> Iterator[str]:
    edges = summary["edges"]
    # A link that stands both ways is one to the reader.
    name, share, ways = ("links", 0.5, "each both ways") if edges["both_ways"] else ("edges", 1, "directed")
    yield from told("nodes", f"{spread_in_words(summary['nodes'])} of a graph")
    yield from told(name, f"{spread_in_words(edges, share)} of a graph, {ways}; {edges['loops']:,} self-loops")
    if edges["graphs_without"]:
        yield from told("", f"{edges['graphs_without']:,} graphs without any")
    yield from told("features", _in_words(summary["features"]))
    yield from told("of edges", "none" if summary["edge_features"] is None else _in_words(summary["edge_features"]))
    if summary["without_class"]:
        yield from told("labelled", f"{summary['without_class']:,} of {summary['graphs']:,} graphs have no class")
    yield from lines_on_items(summary)
    for place, text in enumerate(summary["texts"] or ()):
        yield from told("" if place else "texts", _cut(text))
    yield from _lines_on_labels(summary) if summary["many_labels"] else lines_on_classes(summary)


def _answers(graphs: GraphSet) -> list[dict[str, Any]]:
    """Return how many graphs have each label, have it not, and of how many that is not known."""
    return [
        {
            "label": label,
            "name": name,
            "positive": int((column == 1).sum()),
            "negative": int((column == 0).sum()),
            "missing": int(np.isnan(column).sum()),
        }
        for label, (name, column) in enumerate(zip(graphs.classes, graphs.labels.T, strict=True))
    ]


def _features(features: np.ndarray, codes: tuple[int, ...] | None) -> dict[str, Any]:
    return {**counts_of_features(features), "kinds": None if codes is None else list(codes)}


def _in_words(features: dict[str, Any]) -> str:
    if features["kinds"] is None:
        return features_in_words(features)
    return f"{features['number']:,}, numbers of kinds: {', '.join(map(str, features['kinds']))}"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


def _lines_on_labels(summary: dict[str, Any]) -> Iterator[str]:
    width = max(6, *(len(entry["name"]) for entry in summary["classes"]))
    yield f"  {'labels':<{width + 9}}  positive  negative   missing"
    for entry in summary["classes"]:
        counts = "  ".join(f"{entry[answer]:>8,}" for answer in ("positive", "negative", "missing"))
        yield f"    {entry['label']:>3}  {entry['name']:<{width}}  {counts}"
