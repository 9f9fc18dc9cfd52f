"""What is in a graph whose links are classified or asked for."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from skeleton_cgl.graphs.items import NO_CLASS, NO_GROUP
from skeleton_cgl.graphs.link_set import LINKED, LinkSet, pair_keys
from skeleton_cgl.graphs.summaries.counts import counts_of_degrees, counts_of_features, counts_of_items, parts_of
from skeleton_cgl.graphs.summaries.words import (
    degrees_in_words,
    features_in_words,
    lines_on_classes,
    lines_on_items,
    parts_in_words,
    percent,
    told,
)


def summarise_links(links: LinkSet) -> dict[str, Any]:
    """Return plain values: counts of everything, degrees, and what there is of links answered and repeated.

    answered: the share of directed links between two nodes whose other direction is a link too, None where links have
    no direction. repeated: how many links are of a pair that came before.
    """
    loops = links.ends[0] == links.ends[1]
    pairs = pair_keys(links.ends, links.nodes, links.directed)
    return {
        **counts_of_items(links),
        "nodes": links.nodes,
        "links": {
            "number": len(links),
            "directed": links.directed,
            "loops": int(loops.sum()),
            "repeated": len(links) - len(np.unique(pairs)),
            "answered": _answered(links.ends[:, ~loops], links.nodes) if links.directed else None,
            "without_class": int((links.labels == NO_CLASS).sum()),
            "without_group": {
                called: int((groups.numbers == NO_GROUP).sum()) for called, groups in links.groups.items()
            },
        },
        "degrees": counts_of_degrees(links.ends, links.nodes),
        "features": None if links.features is None else counts_of_features(links.features),
        "negatives": None if links.negatives_split is None else parts_of(links.negatives_split),
        "notes": list(links.notes),
    }


def headline_of_links(summary: dict[str, Any]) -> str:
    counts = f"{summary['nodes']:,} nodes, {summary['links']['number']:,} links"
    return counts if _alike(summary) else f"{counts}, {len(summary['classes'])} classes"


def lines_on_links(summary: dict[str, Any]) -> Iterator[str]:
    links, features = summary["links"], summary["features"]
    yield from told("links", "; ".join(_links(links)))
    yield from told("degrees", degrees_in_words(summary["degrees"]))
    yield from told("features", "none; a scenario takes degrees" if features is None else features_in_words(features))
    if links["without_class"]:
        yield from told("labelled", f"{links['without_class']:,} of {links['number']:,} links have no class")
    for called, number in links["without_group"].items():
        if number:
            yield from told("grouped", f"{number:,} of {links['number']:,} links have no {called}")
    yield from told("negatives", parts_in_words(summary["negatives"] or {}))
    yield from lines_on_items(summary)
    if not _alike(summary):
        yield from lines_on_classes(summary)


def _answered(ends: np.ndarray, nodes: int) -> float:
    there, back = (pair_keys(each, nodes, directed=True) for each in (ends, ends[::-1]))
    return float(np.isin(there, back).mean()) if len(there) else 0.0


def _links(links: dict[str, Any]) -> Iterator[str]:
    directed = f"directed, {percent(links['answered'])} answered" if links["directed"] else "without a direction"
    yield f"{links['number']:,}, {directed}"
    yield f"{links['loops']:,} self-loops"
    if links["repeated"]:
        yield f"{links['repeated']:,} of a pair that came before"


def _alike(summary: dict[str, Any]) -> bool:
    """Return whether links are told apart from pairs without one alone."""
    return [entry["name"] for entry in summary["classes"]] == [LINKED]
