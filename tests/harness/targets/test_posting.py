"""What is made of each kind of answer that a target may give over HTTP."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.targets.programs.posting import _events, main
from proxy.spans import JSON
from tests.harness.targets.boxes import Asked, box, deltas

ASK: dict[str, JSON] = {
    "contract": "chat",
    "headers": {},
    "header_env": {},
    "max_bytes": 10_000,
    "answer": None,
    "body": {"say": "hello"},
}


def ask(folder: Path, url: str, **fields: JSON) -> tuple[int, dict[str, JSON]]:
    """The exit code and the report of one question."""
    task, report = folder / "task.json", folder / "report.json"
    task.write_text(json.dumps({"ask": {**ASK, "url": url, **fields}}))
    code = main(str(task), str(report))
    found: JSON = json.loads(report.read_text())
    assert isinstance(found, dict)
    assert report.stat().st_mode & 0o777 == 0o600
    return code, found


def failure(report: dict[str, JSON]) -> tuple[str, str]:
    found = report["failure"]
    assert isinstance(found, dict)
    return str(found["status"]), str(found["reason"])


def sse(*events: str) -> Callable[[Asked], None]:
    return lambda asked: asked.stream(*events)


@pytest.mark.parametrize(
    ("handle", "path", "said"),
    [
        (sse(*deltas("Hel", "lo ", "wörld")), None, "Hello wörld"),
        (sse('{"t": "a"}', '{"t": "b"}'), "t", "ab"),
        (sse("plain ", "words"), "", "plain words"),
        (lambda asked: asked.answer(b'{"choices": [{"message": {"content": "whole"}}]}'), None, "whole"),
        (lambda asked: asked.answer(b'{"out": [{"text": "x"}]}'), "out.0.text", "x"),
        (lambda asked: asked.answer("plän".encode(), "text/plain"), None, "plän"),
    ],
    ids=["deltas", "events of its own", "plain events", "one document", "its own document", "plain text"],
)
def test_text_is_taken_in_however_it_comes(
    handle: Callable[[Asked], None], path: str | None, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with box(handle) as url:
        code, report = ask(tmp_path, url, answer=path)
    assert (code, report["failure"]) == (0, None)
    assert capfd.readouterr().out == said
    assert isinstance(report["first_ms"], float)


def test_tokens_that_an_answer_counts_are_its_report(tmp_path: Path) -> None:
    with box(sse(*deltas("x"))) as url:
        _, report = ask(tmp_path, url)
    event = {"type": "model_call", "in": 10, "cached": 2, "out": 4, "error": False}
    assert report["reported"] == {"events": [event]}


@pytest.mark.parametrize(
    ("handle", "says"),
    [
        (lambda asked: asked.answer(b"no", status=500), "HTTP status 500"),
        (lambda asked: asked.answer(b"x" * 20_000, "text/plain"), "longer than max_bytes = 10000"),
        (lambda asked: asked.answer(b"cut", "text/plain", length=90), "broke off"),
        (lambda asked: asked.answer(b"{", "application/json"), "no JSON"),
        (lambda asked: asked.answer(b"[" * 9_000, "application/json"), "no JSON"),
        (lambda asked: asked.answer(b'{"choices": []}'), "no text at choices.0.message.content"),
        (lambda asked: asked.answer(b'{"error": {"message": "rate limited"}}'), "with an error: rate limited"),
        (sse(*deltas("half")[:1]), "ended before its last event"),
        (lambda asked: asked.close_connection, "broke off before its answer"),
    ],
    ids=["500", "too long", "cut", "no JSON", "too deep", "no text", "an error", "half a stream", "nothing"],
)
def test_an_answer_that_is_none_says_what_is_wrong(handle: Callable[[Asked], None], says: str, tmp_path: Path) -> None:
    with box(handle) as url:
        code, report = ask(tmp_path, url)
    status, reason = failure(report)
    assert (code, status) == (1, "agent_crash")
    assert says in reason


@pytest.mark.parametrize("error", [b'"my model failed"', b'{"message": "my model failed"}'])
def test_an_account_that_names_an_error_is_none_either(error: bytes, tmp_path: Path) -> None:
    with box(lambda asked: asked.answer(b'{"messages": [], "error": %b}' % error)) as url:
        code, report = ask(tmp_path, url, contract="http")
    assert (code, *failure(report)) == (1, "agent_crash", "the target answered with an error: my model failed")
    assert "reported" not in report


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"output": "done"}', "note: the target's answer has no messages; it has fields that nobody reads: 'output'"),
        (b'{"messages": [], "events": []}', "note: the target's answer has no messages"),
        (b'{"messages": [{"role": "assistant", "content": "x"}], "error": null}', ""),
    ],
)
def test_an_account_that_tells_nothing_is_told_of(
    body: bytes, says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with box(lambda asked: asked.answer(body)) as url:
        code, _ = ask(tmp_path, url, contract="http")
    assert (code, capfd.readouterr().err.strip()) == (0, says)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirection_is_refused(status: int, tmp_path: Path) -> None:
    seen: list[str] = []

    def handle(asked: Asked) -> None:
        seen.append(asked.path)
        asked.send_response(status)
        asked.send_header("location", "/elsewhere")
        asked.end_headers()

    with box(handle) as url:
        _, report = ask(tmp_path, f"{url}/here")
    assert failure(report) == (
        "agent_crash",
        f"the target answered with a redirection ({status}), which is not followed",
    )
    assert seen == ["/here"]


def test_a_target_that_is_not_there_says_nothing_of_the_agent(tmp_path: Path) -> None:
    with box(lambda _: None) as url:
        pass
    _, report = ask(tmp_path, url)
    assert failure(report)[0] == "infra_error"
    assert "cannot be reached" in failure(report)[1]


def test_headers_are_sent_and_a_variable_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: dict[str, str] = {}

    def handle(asked: Asked) -> None:
        got.update(asked.headers.items())
        asked.answer(b"fine", "text/plain")

    monkeypatch.setenv("BOX_TOKEN", "Bearer abcdefgh")
    headers: dict[str, JSON] = {"headers": {"X-Team": "blue"}, "header_env": {"Authorization": "BOX_TOKEN"}}
    with box(handle) as url:
        assert ask(tmp_path, url, **headers)[0] == 0
        monkeypatch.delenv("BOX_TOKEN")
        _, report = ask(tmp_path, url, **headers)
    assert (got["x-team"], got["authorization"]) == ("blue", "Bearer abcdefgh")
    assert failure(report) == ("infra_error", "the header Authorization wants the variable BOX_TOKEN, which is not set")


def test_the_environments_proxy_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with box(lambda asked: asked.answer(b"direct", "text/plain")) as url:
        assert ask(tmp_path, url)[0] == 0


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"[]", "no object"),
        (b'{"messages": 1}', "messages is no list of objects"),
        (b'{"tool_calls": ["x"]}', "tool_calls is no list of objects"),
    ],
)
def test_an_account_of_another_shape_is_refused(body: bytes, says: str, tmp_path: Path) -> None:
    with box(lambda asked: asked.answer(body)) as url:
        _, report = ask(tmp_path, url, contract="http")
    assert says in failure(report)[1]


def test_an_account_is_kept_and_its_last_word_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    account = {"messages": [{"role": "assistant", "content": "done"}], "tool_calls": [{"name": "x"}], "more": 1}
    with box(lambda asked: asked.answer(json.dumps(account).encode())) as url:
        _, report = ask(tmp_path, url, contract="http")
    assert report["reported"] == {"messages": account["messages"], "tool_calls": [{"name": "x"}]}
    assert capfd.readouterr().out == "done"


@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1), max_size=5
    ),
    cuts=st.lists(st.integers(0, 200), max_size=8),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_however_a_stream_is_cut_into_chunks_its_events_are_the_same(
    texts: list[str], cuts: list[int], end: str
) -> None:
    data = "".join(f": a comment{end}event: x{end}data: {text}{end}{end}" for text in texts).encode()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    chunks = [data[one:other] for one, other in pairwise(places)]
    assert list(_events(iter(chunks))) == texts
