"""skeleton_cgl measures how much a continual learner's final knowledge depends on the order of teaching."""

from typing import TYPE_CHECKING, Any

from skeleton_cgl.version import __version__

if TYPE_CHECKING:
    from skeleton_cgl.analysis.results import Results
    from skeleton_cgl.study import Study

__all__ = ["Results", "Study", "__version__"]

_LAZY = {"Study": "skeleton_cgl.study", "Results": "skeleton_cgl.analysis.results"}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used, so that the command line starts fast."""
    if name not in _LAZY:
        raise AttributeError(f"module 'skeleton_cgl' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
