"""What all tests share."""

import gc
import importlib
import os
import pkgutil
import signal
import sqlite3
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A slow example on a busy machine is no failure: what must be fast is measured, by `make bench`. And examples are the
# same in every run, so that no change is refused for what an older one did: `make properties` looks for new ones.
settings.register_profile(
    "wiretrap", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("anew", settings.get_profile("wiretrap"), derandomize=False, print_blob=True)
settings.load_profile("wiretrap")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in its background so, and every process of a test would have it from us.
    signal.signal(signal.SIGINT, signal.default_int_handler)

MEASURING = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")
"""What makes coverage measure the processes that are started, too."""


@pytest.fixture(autouse=True, scope="session")
def measuring() -> Iterator[dict[str, str]]:
    """Coverage makes a process start twice as slowly, so only tests marked `measured` have theirs measured.

    Those are the ones whose processes show the edges: everything else is measured in process.
    """
    with pytest.MonkeyPatch.context() as patch:
        found = {name: os.environ[name] for name in MEASURING if name in os.environ}
        for name in found:
            patch.delenv(name)
        yield found


@pytest.fixture(autouse=True)
def _only_marked_tests_measure_their_processes(
    request: pytest.FixtureRequest, measuring: dict[str, str]
) -> Iterator[None]:
    if not measuring or request.node.get_closest_marker("measured") is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        for name, value in measuring.items():
            patch.setenv(name, value)
        yield


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """A measured process that is killed may leave half a file, over which coverage would fall when it adds up all."""
    result = yield
    if "PYTEST_XDIST_WORKER" not in os.environ:
        for path in session.config.rootpath.glob(".coverage.*"):
            if not is_whole(path):
                path.unlink(missing_ok=True)
    return result


def is_whole(path: Path) -> bool:
    """Whether a data file of coverage's can be read to its end."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as data:
            data.execute("select version from coverage_schema")
            return bool(data.execute("pragma quick_check").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays, and a tenth of the time was the collector's, which walked it again and again.

    Nor is it traced, which took more time than all the rest: of what coverage measures, only the top of each module is
    run here that no test runs later, so all are imported before.
    """
    tracer = sys.gettrace()
    if tracer is not None:
        for room in ("proxy", "harness", "servers"):
            for module in pkgutil.walk_packages([room], f"{room}."):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)
        sys.settrace(None)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        sys.settrace(tracer)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Tracing takes most of the time of a test that goes over the same lines hundreds of times.

    So properties and tests marked `untraced` are left out of coverage: it only ever says too little for that.
    """
    tracer = sys.gettrace()
    if tracer is None or not any(item.get_closest_marker(name) for name in ("hypothesis", "untraced")):
        return (yield)
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)
