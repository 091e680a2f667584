"""A real collector between our exporter and a receiver: what the wire protocol really carries."""

import json
from pathlib import Path

import pytest

from harness.convert import convert
from harness.tracefile import trace_chunks
from proxy.spanread import read_spans
from tests.otlp.receiver import Received, http_receiver
from tests.otlp.rotel import collector, rotel_agent
from tests.otlp.sessions import Session, export, identity, told, trace_text

pytestmark = pytest.mark.skipif(rotel_agent() is None, reason="rotel is not installed; it is for Linux and Python 3.11")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_collector_passes_on_exactly_the_spans_of_the_file(protocol: str, tmp_path: Path) -> None:
    received = Received()
    with http_receiver(received) as onward, collector(tmp_path, onward) as between:
        url = between.http if protocol == "http" else between.grpc
        session = Session(tmp_path / "spans", ("--otlp", url, "--deny", "mcp/s/evil"))
        for number in range(100):
            session.call(("works", "fails", "breaks", "evil")[number % 4], f'call {number} \\" \u2028 \U0001f4ee')
        assert session.end() == 0
        assert session.errors == ""
        received.wait(len(session.spans))
    assert told(received.spans) == told(session.spans)
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(received.jaeger, indent=1))
    from_jaeger = "".join(trace_chunks(convert(read_spans([answer], print))))
    assert from_jaeger == trace_text(session.spans)
    assert trace_text([*session.spans, *received.spans]) == from_jaeger


def test_what_a_collector_that_is_killed_midway_did_not_get_is_exported_later(tmp_path: Path) -> None:
    received = Received()
    with http_receiver(received) as onward:
        with collector(tmp_path, onward) as between:
            session = Session(tmp_path / "spans", ("--otlp", between.http), hurry=True)
            for number in range(50):
                session.call(text=f"call {number}")
            received.wait(20)
        for number in range(200):
            session.call(text=f"after {number}")
        assert session.end() == 0
        assert "spans are not known to have arrived" in session.errors
        again = tmp_path / "again"
        again.mkdir()
        with collector(again, onward) as between:
            for url in (between.http, between.grpc):
                done = export(tmp_path / "spans", url=url)
                assert (done.returncode, done.stderr) == (0, "")
                assert done.stdout == f"{len(session.spans)} of {len(session.spans)} spans accepted by {url}\n"
            received.wait(2 * len(session.spans) + 20)
    assert {identity(span) for span in received.spans} == {identity(span) for span in session.spans}
    assert trace_text(received.spans) == trace_text(session.spans)
