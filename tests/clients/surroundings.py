"""What the checks of real clients stand on: a ticketing server over each transport, the proxy before it, the record.

Refuses to know the clients.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.spanread import read_spans
from proxy.spans import JSON
from tests.peers.catalogue import Call
from tests.peers.places import is_made

WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))
DEADLINE = 120.0


def need(*peers: str) -> None:
    for peer in peers:
        if not is_made(peer):
            pytest.skip(
                f"the peer {peer!r} is not there; `make test-clients` makes it, where npm is had for those of npm"
            )


def ticketing(folder: Path) -> list[str]:
    """The command of a server over a database of its own."""
    database = folder / "tickets.db"
    command = [sys.executable, "-P", "-m", "servers.ticketing", "--db", str(database)]
    if not database.exists():
        subprocess.run([*command, "--init"], check=True)
    return command


def proxied(command: Sequence[str], spans: Path, *options: str) -> list[str]:
    front = [WIRETRAP, "proxy", "stdio", "--quiet", "--server", "ticketing", "--spans", str(spans)]
    return [*front, *options, "--", *command]


@contextmanager
def listening(command: Sequence[str]) -> Iterator[str]:
    """A process that says its url as JSON on its first line, for as long as it is wanted; the url."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            url = json.loads(process.stdout.readline())["url"]
            assert isinstance(url, str)
            yield url
        finally:
            process.terminate()


@contextmanager
def over_http(folder: Path, spans: Path | None, *options: str) -> Iterator[str]:
    """The url of a server, behind the proxy where there is a folder for its spans."""
    with listening([*ticketing(folder), "--http", "0"]) as url:
        if spans is None:
            yield url
            return
        front = [WIRETRAP, "proxy", "http", "--quiet", "--server", "ticketing", "--url", url, "--port", "0"]
        with listening([*front, "--spans", str(spans), *options]) as through:
            yield through


def recorded(spans: Path) -> list[tuple[Call, str]]:
    """The recorded calls in order, each with its outcome."""
    notes: list[str] = []
    found = [span for span in read_spans([str(spans)], notes.append) if v.TOOL_NAME in span.attributes]
    requests = [span for span in found if span.attributes[v.SPAN_KIND] == "request"]
    requests.sort(key=lambda span: int(str(span.attributes[v.MONO])))
    return [
        (
            Call(str(span.attributes[v.TOOL_NAME]), json.loads(str(span.attributes[v.TOOL_ARGUMENTS]))),
            str(span.attributes[v.OUTCOME]),
        )
        for span in requests
    ]


def quiet(home: Path, **more: str) -> dict[str, str]:
    """An environment in which an agent has a home of its own, and reaches nobody beyond this machine."""
    home.mkdir(parents=True, exist_ok=True)
    nowhere = "http://127.0.0.1:9"
    return {
        "PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8",
        "HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "http_proxy": nowhere, "https_proxy": nowhere,
        "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
        "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DO_NOT_TRACK": "1", "GEMINI_TELEMETRY_ENABLED": "false",
        **more,
    }  # fmt: skip


def as_json(text: str) -> list[dict[str, JSON]]:
    found: list[dict[str, JSON]] = json.loads(text)
    return found
