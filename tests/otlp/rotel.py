"""A real collector, rotel from the Python index, that sends all it gets on to a receiver of ours."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import monotonic

import pytest


def rotel_agent() -> Path | None:
    """Its binary, None where the package is not installed (it is for Linux and Python 3.11 alone)."""
    found = find_spec("rotel")
    if found is None or found.origin is None:
        return None
    binary = Path(found.origin).with_name("rotel-agent")
    return binary if binary.is_file() else None


@dataclass(frozen=True)
class Collector:
    process: "subprocess.Popen[bytes]"
    http: str
    grpc: str


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@contextmanager
def collector(folder: Path, onward: str) -> Iterator[Collector]:
    """The collector, running; `onward` is the URL of the receiver behind it, without a path."""
    binary = rotel_agent()
    assert binary is not None
    # A wheel does not always keep the mark of a program.
    program = Path(shutil.copy(binary, folder / "rotel-agent"))
    program.chmod(0o700)
    grpc, http = free_port(), free_port()
    log = (folder / "rotel.log").open("wb")
    process = subprocess.Popen(
        [
            str(program), "start", "--pid-file", str(folder / "rotel.pid"),
            "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}", "--otlp-http-endpoint", f"127.0.0.1:{http}",
            "--exporter", "otlp", "--otlp-exporter-endpoint", onward, "--otlp-exporter-protocol", "http",
        ],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log,
    )  # fmt: skip
    try:
        until = monotonic() + 60
        for port in (grpc, http):
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert monotonic() < until, (folder / "rotel.log").read_text()
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(0.02)
                        pytest.fail(f"the collector ended: {(folder / 'rotel.log').read_text()}")
        yield Collector(process, f"http://127.0.0.1:{http}", f"grpc://127.0.0.1:{grpc}")
    finally:
        process.kill()
        process.wait()
        log.close()
