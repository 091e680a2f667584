"""What all tests share."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A slow example on a busy machine is no failure: what must be fast is measured, by `make bench`.
settings.register_profile("wiretrap", deadline=None, max_examples=60)
settings.load_profile("wiretrap")


@pytest.fixture(autouse=True, scope="module")
def _only_marked_modules_measure_their_processes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Coverage makes a process start twice as slowly, so only modules marked `measured` have theirs measured.

    Those are the ones whose processes show the edges: everything else is measured in process.
    """
    measured = any(mark.name == "measured" for mark in request.node.iter_markers())
    with pytest.MonkeyPatch.context() as patch:
        if not measured:
            for name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):
                if name in os.environ:
                    patch.delenv(name)
        yield
