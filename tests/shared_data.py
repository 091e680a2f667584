"""Where the data of other projects stands, for tests that skip when it is absent."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("WIRETRAP_SHARED") or Path(__file__).resolve().parents[2] / "shared")

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not on this machine")
