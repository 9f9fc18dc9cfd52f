"""What a store has of every study, as plain values and as text."""

from pathlib import Path
from typing import Any

from skeleton_cgl.engine.store import Store


def status_of(path: str | Path) -> list[dict[str, Any]]:
    """Return for every study: its stages done and left, runs finished, seconds of one worker left, failures."""
    with Store(path, must_exist=True) as store:
        done, failed, seconds = store.done(), store.failed(), store.seconds()
        return [_status(store, study, done, failed, seconds) for study in store.studies()]


def _status(
    store: Store, study: dict[str, Any], done: set[str], failed: dict[str, str], seconds: dict
) -> dict[str, Any]:
    runs = store.runs(study["id"])
    kinds = {key: (run["backbone"], run["method"]) for run in runs for key in run["keys"]}
    left = [key for key in kinds if key not in done]
    known = [seconds[kinds[key]] for key in left if kinds[key] in seconds]
    return {
        "study": study["name"],
        "id": study["id"],
        "created": study["created"],
        "stages": len(kinds),
        "done": len(kinds) - len(left),
        "runs": len(runs),
        "finished_runs": sum(all(key in done for key in run["keys"]) for run in runs),
        "seconds_left": round(sum(known) * len(left) / len(known), 1) if known else None if left else 0,
        "failures": {key: failed[key] for key in kinds if key in failed},
    }


def describe_status(studies: list[dict[str, Any]]) -> str:
    """Return a status as text, a few lines per study."""
    lines = []
    for study in studies:
        left = study["stages"] - study["done"]
        time = "" if not left else ", time unknown" if study["seconds_left"] is None else _left(study["seconds_left"])
        lines.append(f"{study['id']}  {study['study']}  ({study['created']})")
        lines.append(f"   {study['done']} of {study['stages']} stages done, {left} left{time}")
        lines.append(f"   {study['finished_runs']} of {study['runs']} runs finished")
        if study["failures"]:
            lines.append(f"   {len(study['failures'])} failed; `run --retry` tries them again:")
            lines += [f"     {reason}" for reason in sorted(set(study["failures"].values()))]
    return "\n".join(lines) if lines else "no study yet"


def _left(seconds: float) -> str:
    return f", about {max(1, round(seconds / 60))} min of one worker"
