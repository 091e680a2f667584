"""Live export by a real proxy process to a real receiver, also where that is absent, slow, rude or dies."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.endpoint import parse_endpoint
from proxy.otlp import BATCH_SPANS, QUEUE_SPANS, Exporter
from proxy.spans import Span, encode_span
from tests.otlp.receiver import Received, grpc_receiver, http_receiver
from tests.otlp.sessions import Session, export, identity, told, trace_text

Serve = Callable[[Received], AbstractContextManager[str]]
BOTH = pytest.mark.parametrize("serve", [http_receiver, grpc_receiver], ids=["http", "grpc"])


@contextmanager
def nobody(_: Received) -> Iterator[str]:
    """A port that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def busy_session(folder: Path, url: str, calls: int = 20, *, hurry: bool = False) -> Session:
    session = Session(folder, ("--otlp", url, "--deny", "mcp/s/evil"), hurry=hurry)
    for number in range(calls):
        session.call(("works", "fails", "breaks", "evil")[number % 4], f"call {number}")
    return session


@BOTH
def test_every_span_of_the_file_arrives_once_as_it_stands_there(serve: Serve, tmp_path: Path) -> None:
    received = Received()
    with serve(received) as url:
        session = busy_session(tmp_path, url, 200)
        assert session.end() == 0
        assert session.errors == ""
    assert told(received.spans) == told(session.spans)
    assert len({identity(span) for span in received.spans}) == len(received.spans)
    assert max(sum(len(s.spans) for r in q.resource_spans for s in r.scope_spans) for q in received.requests) <= 64
    assert trace_text(received.spans) == trace_text(session.spans)
    assert trace_text([*received.spans, *session.spans]) == trace_text(session.spans)


@BOTH
def test_what_a_backend_chokes_on_is_mended_and_cut_and_is_still_a_copy(serve: Serve, tmp_path: Path) -> None:
    received = Received()
    with serve(received) as url:
        session = Session(tmp_path, ("--otlp", url))
        session.call(text="half \udcff of a pair")
        session.call(text="\u00e9" * 100_000)
        session.call(text='\\"' * 500_000)
        assert session.end() == 0
        assert session.errors == ""
    assert max(received.sizes) < 4 * 2**20
    ours, theirs = told(session.spans), told(received.spans)
    assert [identity(span) for span in theirs] == [identity(span) for span in ours]
    assert {span.attributes.get(v.EXPORT_CUT) for span in theirs} >= {f"{v.TOOL_ARGUMENTS},{v.TOOL_RESULT}", v.REQUEST}
    assert any(v.EXPORT_MENDED in span.attributes for span in theirs)
    assert not any(
        key.startswith("wiretrap.export.") and key != v.EXPORT_DROPPED for span in ours for key in span.attributes
    )
    for mixed in ([*ours, *theirs], [*theirs, *ours]):
        assert trace_text(mixed) == trace_text(ours)


@pytest.mark.parametrize(
    ("serve", "answer"),
    [(nobody, 200), (http_receiver, None), (grpc_receiver, None), (http_receiver, 503), (grpc_receiver, 503),
     (http_receiver, 413), (grpc_receiver, 413), (http_receiver, 302)],
    ids=["absent", "http-silent", "grpc-silent", "http-503", "grpc-503", "http-413", "grpc-413", "http-redirect"],
)  # fmt: skip
def test_the_agent_notices_nothing_of_a_receiver_that_takes_nothing(
    serve: Serve, answer: int | None, tmp_path: Path
) -> None:
    with serve(Received(answer)) as url:
        session = busy_session(tmp_path / "spans", url, hurry=True)
        assert session.end() == 0
    count = len(session.spans)
    assert f"export: {count} of {count} spans are not known to have arrived at {url}" in session.errors
    (closed,) = [span for span in session.spans if span.attributes[v.SPAN_KIND] == "connection_closed"]
    assert closed.attributes[v.SPANS_DROPPED] == 0
    assert v.EXPORT_DROPPED in closed.attributes
    # The file has all of them, for a receiver that does.
    received = Received()
    with http_receiver(received) as better:
        done = export(tmp_path / "spans", url=better)
    assert (done.returncode, done.stderr) == (0, "")
    assert told(received.spans) == told(session.spans)


def test_a_receiver_that_dies_midway_costs_spans_of_the_copy_and_no_frame(tmp_path: Path) -> None:
    received = Received()
    with http_receiver(received) as url:
        session = busy_session(tmp_path, url, hurry=True)
        received.wait(10)
    for number in range(200):
        session.call(text=f"after {number}")
    assert session.end() == 0
    had = len(received.spans)
    assert f"export: {len(session.spans) - had} of {len(session.spans)} spans are not known" in session.errors
    with http_receiver(received) as url:
        assert export(tmp_path, url=url).returncode == 0
    assert {identity(span) for span in received.spans} == {identity(span) for span in session.spans}
    assert trace_text([*received.spans]) == trace_text(session.spans)


def test_a_signal_during_the_last_sending_ends_it(tmp_path: Path) -> None:
    received = Received(None)
    with http_receiver(received) as url:
        session = Session(tmp_path, ("--otlp", url))
        session.call()
        received.wait_for_request()
        assert session.process.stdin is not None
        session.process.stdin.close()
        # From here on it only sends.
        while "connection_closed" not in "".join(file.read_text() for file in tmp_path.iterdir()):
            received.let_go.wait(0.005)
        os.kill(session.process.pid, signal.SIGTERM)
        # It would go on for ten minutes.
        session.end()


def test_a_server_that_does_not_start_has_its_connection_exported_too(tmp_path: Path) -> None:
    import subprocess

    from tests.otlp.sessions import PATIENT, spans_in

    received = Received()
    with http_receiver(received) as url:
        command = [
            *PATIENT,
            "proxy",
            "stdio",
            "--server",
            "s",
            "--spans",
            str(tmp_path),
            "--otlp",
            url,
            "no-such-server",
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False
        )
    assert done.returncode == 127
    assert f"sent on to {url}" in done.stderr
    assert told(received.spans) == told(spans_in(tmp_path))


def test_the_environment_thins_nothing_out_and_its_headers_apply(tmp_path: Path) -> None:
    received = Received()
    environment = {
        "OTEL_SDK_DISABLED": "true",
        "OTEL_TRACES_SAMPLER": "always_off",
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1",
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "1",
        "OTEL_RESOURCE_ATTRIBUTES": "a=b",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=42",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
    }
    with http_receiver(received) as url:
        session = Session(tmp_path, ("--otlp", url), environment)
        session.call()
        assert session.end() == 0
    assert told(received.spans) == told(session.spans)
    assert {headers["x-tenant"] for headers in received.headers} == {"42"}
    assert set(received.paths) == {"/v1/traces"}
    resources = [resource.resource.attributes for request in received.requests for resource in request.resource_spans]
    assert {attribute.key for attributes in resources for attribute in attributes} == {"service.name"}


def test_spans_that_a_backend_rejects_one_by_one_are_counted(tmp_path: Path) -> None:
    with http_receiver(Received(rejects=1)) as url:
        session = Session(tmp_path, ("--otlp", url))
        assert session.end() == 0
        assert "(these are not liked)" in session.errors
        done = export(tmp_path, url=url)
    assert done.returncode == 1
    assert "1 of" in done.stderr


def test_nothing_of_opentelemetry_is_loaded_before_there_is_something_to_send() -> None:
    import subprocess
    import sys

    program = (
        "import sys, proxy.cli, proxy.stdio, proxy.endpoint, proxy.otlp\n"
        "sys.exit(any(name.split('.')[0] in ('opentelemetry', 'grpc', 'requests') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-P", "-c", program], check=False).returncode == 0


def line(number: int, text: str = "") -> str:
    span = Span("a" * 32, f"{number + 1:016x}", "", "x", 1, 1, 2, {v.SPAN_KIND: "event", v.EVENT_FIELDS: text})
    return encode_span(span, "1")


def test_a_full_queue_drops_what_comes_and_counts_it() -> None:
    received = Received()
    with http_receiver(received) as url:
        exporter = Exporter(parse_endpoint(url))
        for number in range(QUEUE_SPANS + 10):
            exporter.offer(line(number))
        assert exporter.tally == (QUEUE_SPANS + 10, 0, 10)
        exporter.start()
        exporter.finish()
        assert exporter.wait(60)
    assert exporter.tally == (QUEUE_SPANS + 10, QUEUE_SPANS, 10)
    assert "(the queue was full)" in exporter.shortfall("FILE")
    assert len(received.spans) == QUEUE_SPANS
    assert len(received.requests) == QUEUE_SPANS // BATCH_SPANS


def test_the_queue_has_an_end_in_bytes_too() -> None:
    exporter = Exporter(parse_endpoint("http://127.0.0.1:9"))
    for number in range(4):
        exporter.offer(line(number, "x" * 20_000_000))
    assert exporter.tally.dropped == 2


def test_a_span_that_otlp_has_no_place_for_does_not_take_others_with_it() -> None:
    received = Received()
    with http_receiver(received) as url:
        exporter = Exporter(parse_endpoint(url))
        for number, kind in enumerate((1, 77, 2)):
            exporter.offer(line(number).replace('"kind":1', f'"kind":{kind}').encode())
        exporter.start()
        exporter.finish()
        assert exporter.wait(60)
    assert exporter.tally == (3, 2, 1)
    assert "kind 77" in exporter.shortfall("FILE")


def test_a_line_that_cannot_be_read_ends_the_copy_and_is_said() -> None:
    exporter = Exporter(parse_endpoint("http://127.0.0.1:9"))
    exporter.offer("no span")
    exporter.offer(line(1))
    exporter.start()
    exporter.finish()
    assert exporter.wait(60)
    assert exporter.tally.missing == 2
    assert "JSONDecodeError" in exporter.shortfall("FILE")
