"""Where the data that was written elsewhere is, for tests that skip without it."""

import os
from pathlib import Path

import pytest


def shared_data(*parts: str) -> Path:
    """A path in the shared data; skips the test when it is absent."""
    root = Path(os.environ.get("WIRETRAP_SHARED") or Path(__file__).parents[2].parent / "shared")
    path = root.joinpath("data", *parts)
    if not path.exists():
        pytest.skip(f"there is no shared data in this checkout: {Path(*parts)}")
    return path
