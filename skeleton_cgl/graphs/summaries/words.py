"""Lines of text that summaries share."""

from collections.abc import Iterator
from typing import Any

_MOST_NAMED = 12
"""Groups and tasks beyond these are counted, not named."""


def told(name: str, words: str) -> list[str]:
    """Return a line of a summary; none where there is nothing to say."""
    return [f"  {name:<12} {words}"] if words else []


def class_word(summary: dict[str, Any]) -> str:
    """Return what classes are called, where there may be several of an item or not."""
    return "labels" if summary["many_labels"] else "classes"


def edges_in_words(edges: dict[str, Any]) -> str:
    if edges["both_ways"]:
        ways = f"{edges['number']:,}: {edges['number'] // 2:,} links, each both ways"
    else:
        ways = f"{edges['number']:,}, directed"
    return f"{ways}; {edges['loops']:,} self-loops"


def spread_in_words(spread: dict[str, Any], share: float = 1) -> str:
    """Return numbers from the least to the most; share: of all of them."""
    least, most, median, mean = (share * spread[name] for name in ("least", "most", "median", "mean"))
    return f"{least:,.0f} to {most:,.0f}, median {median:,g}, mean {mean:,.2f}"


def degrees_in_words(degrees: dict[str, Any]) -> str:
    return f"{spread_in_words(degrees)}; {degrees['isolated']:,} without an edge"


def features_in_words(features: dict[str, Any]) -> str:
    return f"{features['number']:,}, {features['kept']}, {percent(features['nonzero'])} not zero"


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def lines_on_items(summary: dict[str, Any]) -> Iterator[str]:
    """Yield what is told of items whatever they are, with "tasks" and "provenance" if they are there, and classes."""
    item, word = f"{summary['item']}s", class_word(summary)
    for name, found in summary["groups"].items():
        yield from told(name, _groups(found, item))
    yield from told("times", _period(summary["times"]))
    yield from told("split", parts_in_words(summary["split"] or {}))
    if "tasks" in summary:
        yield from _tasks(summary["tasks"], word)
    for note in summary.get("notes", ()):
        yield from told("note", " ".join(note.split()))
    yield from told("provenance", _pairs(summary.get("provenance", {})))
    yield f"  digest       {summary['digest']}"


def lines_on_classes(summary: dict[str, Any]) -> Iterator[str]:
    """Yield a table of the classes and how many items each has."""
    width = max(len(entry["name"]) for entry in summary["classes"])
    yield f"  {class_word(summary)}"
    for entry in summary["classes"]:
        yield f"    {entry['label']:>3}  {entry['name']:<{width}}  {entry[summary['item'] + 's']:>8,}"


def parts_in_words(parts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {part}" for part, count in parts.items())


def _groups(found: list[dict[str, Any]], item: str) -> str:
    named = ", ".join(f"{each['name']} {each[item]:,}" for each in found[:_MOST_NAMED])
    return f"{len(found)}: {named}{', …' if len(found) > _MOST_NAMED else ''}"


def _tasks(tasks: dict[str, Any], word: str) -> Iterator[str]:
    """Yield a line for the tasks that a scenario would make, and for each kind of domains and periods."""
    groups = tasks["classes"]
    lines = []
    if groups:
        shown = " | ".join(",".join(map(str, task)) for task in groups[:_MOST_NAMED])
        more = " | …" if len(groups) > _MOST_NAMED else ""
        yield from told("tasks", f"{len(groups)} of {word}: {shown}{more}")
        lines.append(f"{_number(tasks['task_orders'])} of tasks, {_number(tasks['class_orders'])} of {word}")
    lines += [f"{_number(orders)} of domains by {name}" for name, orders in tasks["domain_orders"].items()]
    if tasks["periods"] is not None:
        lines.append(f"one of {tasks['periods']:,} periods, the calendar's")
    for place, line in enumerate(lines):
        yield from told("" if place else "orders", line)


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
