"""A study as users have it: described by a file or in Python, run into a store, and read from there."""

from pathlib import Path
from typing import Any

from skeleton_cgl.analysis.results import Results
from skeleton_cgl.engine import study as engine
from skeleton_cgl.engine.run import run_study


class Study(engine.Study):
    __doc__ = engine.Study.__doc__

    def run(self, store: str | Path, workers: int = 1, **options: Any) -> Results:
        """Run what the store lacks of this study and return the results; see `skeleton_cgl.engine.run.run_study`."""
        number, summary = run_study(self, store, workers=workers, **options)
        results = Results(store, number)
        results.summary = summary
        return results
