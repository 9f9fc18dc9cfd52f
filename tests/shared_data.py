"""Real data sets, where they are at hand: the folder named by SKELETON_CGL_DATA, or shared/data beside the checkout."""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("SKELETON_CGL_DATA", Path(__file__).parents[2] / "shared" / "data"))


def needs(name: str) -> pytest.MarkDecorator:
    """Skip a test, saying so, where a real data set is not at hand."""
    return pytest.mark.skipif(not (FOLDER / name).exists(), reason=f"{name} is not at hand (SKELETON_CGL_DATA)")
