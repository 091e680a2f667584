"""Credentials that a target over HTTP is given stand nowhere in the run folder, also where it repeats them."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from harness.judgemodel import model_judge
from harness.judges import JudgeFileError
from harness.runsecrets import run_secrets
from harness.targetfile import Remote
from proxy.spans import JSON
from tests.harness.runs import run, write_scenario
from tests.harness.targets.boxes import Asked, box

BASIC = b64encode(b"me:word-of-mine").decode()


def values(agent: Remote, **environment: str) -> set[str]:
    return set(run_secrets((), environment, [agent]).values())


def test_headers_are_secret_by_their_names_and_what_comes_from_a_variable_always() -> None:
    headers = {
        "Authorization": f"Basic {BASIC}",
        "X-Api-Key": "key-9f31",
        "Cookie": "a=cookie-a; b=cookie-b",
        "X": "plain",
    }
    told = values(Remote("http", "http://h/", headers))
    assert {BASIC, "word-of-mine", "key-9f31", "cookie-a", "cookie-b"} <= told
    assert "plain" not in told
    named = Remote("chat", "http://h/", header_env={"X-Plain": "MY_TOKEN"})
    assert values(named, MY_TOKEN="Bearer bear-9f31") == {"Bearer bear-9f31", "bear-9f31"}
    assert values(named) == set()


def test_so_are_the_fields_of_a_query_and_of_a_request() -> None:
    request: JSON = {"api_key": "key-9f31", "list": [{"token": "{prompt}", "password": "pass-9f31"}], "model": "m"}
    told = values(Remote("chat", "http://h/in?token=tok%2Fen&page=plain", request=request))
    assert told == {"key-9f31", "pass-9f31", "tok/en"}


def test_the_token_of_the_receiver_of_spans_is_secret_in_the_run() -> None:
    assert set(run_secrets((), {}, (), "http://h/?token=tok-9f31").values()) == {"tok-9f31"}


def repeating(asked: Asked) -> None:
    """An answer that repeats every header everywhere."""
    asked.document()
    said = " ".join(f"{name}: {value}" for name, value in asked.headers.items())
    body: JSON = {
        "messages": [{"role": "assistant", "content": said}],
        "tool_calls": [{"name": "send", "arguments": {"text": said}}],
        "events": [{"type": "goal", "id": said}],
    }
    asked.answer(json.dumps(body).encode())


def test_what_an_agent_repeats_of_its_headers_is_in_no_file_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_TOKEN", "Bearer bear-9f31-of-mine")
    scenario = write_scenario(tmp_path, servers=None, assertions=[{"type": "no_denied_tool_call"}])
    headers: JSON = {"X-Api-Key": "key-9f31-of-mine", "Cookie": "sid=cookie-9f31-of-mine", "X-Plain": "seen-by-all"}
    agent = tmp_path / "agent.yaml"
    with box(repeating) as url:
        http: JSON = {"url": url, "headers": headers, "header_env": {"Authorization": "THE_TOKEN"}}
        agent.write_text(json.dumps({"http": http}))
        ran = run([scenario], tmp_path, agent=agent)
    texts = {file: file.read_text() for file in ran.folder.rglob("*") if file.is_file()}
    assert [str(file) for file, text in texts.items() if "9f31" in text] == []
    trial = ran.folder / "small" / "1"
    for name in ("agent.out", "trace.json", "reported.json"):
        assert "seen-by-all" in texts[trial / name]
        assert "[redacted:" in texts[trial / name]


@pytest.mark.parametrize("url", ["http://[1", "http://me:word-9f31@h/", "ftp://h/"])
def test_the_address_of_a_judge_is_no_other_than_a_targets(url: str) -> None:
    with pytest.raises(
        JudgeFileError, match=r"WIRETRAP_JUDGE_URL: .*(address of a server|may not stand in a URL)"
    ) as told:
        model_judge("gemini-x", {"WIRETRAP_JUDGE_URL": url, "GEMINI_API_KEY": "x"})
    assert "9f31" not in str(told.value)
