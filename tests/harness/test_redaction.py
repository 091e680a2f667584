"""Secrets in a whole run: the agent uses them as it likes, and no file of the run folder has one in any form."""

import hashlib
import json
import re
import sys
from pathlib import Path

import pytest

from harness.hiding import make_hiding
from harness.runsecrets import missing_variables, run_secrets
from harness.scenario import load_scenario
from harness.state import load_dump, load_journal
from harness.verdict import Finding
from proxy.spans import JSON
from tests.harness.leaks import MARK, NAMED, SECRETS, SERVED, TOKEN, VALUE, digests, files, leaks, looked_for, said
from tests.harness.runs import SERVER, Ran, behave, run, write_scenario
from tests.harness.ticketing import call, wiretrap, write_agent


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", TOKEN)
    monkeypatch.setenv("PLAIN_NAME", NAMED)


def scenario(folder: Path, *servers: str, **fields: JSON) -> Path:
    there: dict[str, JSON] = {
        "ticketing": {"fixture": "ticketing", "trust": "internal"},
        "echo": {**SERVER, "env": {"API_KEY": SERVED}},
    }
    given: dict[str, JSON] = {
        "title": f"Nobody may learn {VALUE}",
        "labels": {"toolkit": f"That of {VALUE}"},
        "input": {"user_message": f"Use {VALUE} and {TOKEN}."},
        "servers": {name: there[name] for name in servers},
        "expected": {
            "secrets": [
                {"name": "horse", "value": VALUE},
                {"name": "lines", "env": "PLAIN_NAME", "allowed_to": ["echo"]},
            ]
        },
        "assertions": [
            {"type": "tool_called", "tool": "mcp/ticketing/update_ticket", "arguments": {"description": LONG}},
            {"type": "tool_not_called", "tool": "mcp/ticketing/update_ticket", "arguments": {"description": NAMED}},
            {
                "type": "state",
                "server": "ticketing",
                "query": f"select description from tickets where description like '%{VALUE}' and id = 1",
                "equals": [[LONG]],
            },
            {
                "id": "wrong",
                "type": "state",
                "server": "ticketing",
                "query": "select description from tickets where id = 1",
                "equals": [["x" * 90 + NAMED]],
            },
            {"type": "state_unchanged"},
        ],
        **fields,
    }
    return write_scenario(folder, **given)


LONG = "x" * 110 + VALUE
"""A cell that is cut within the secret where it is shown."""
SPILLED = [LONG, *(" ; ".join(said(secret)) for secret in SECRETS)]


def script(transport: str, *servers: str) -> JSON:
    steps: list[JSON] = []
    for text in SPILLED:
        steps.append(call("create_ticket", arguments={"customer_id": "CUST-004", "description": text}))
        steps.append({"say": f"I wrote {text}"})
    for secret in SECRETS if "echo" in servers else ():
        # The server answers with JSON in a text in JSON: with what is in here these are four levels of escapes.
        nested: JSON = {secret: json.dumps({"deep": json.dumps([secret])})}
        steps.append({"call": "mcp/echo/echo", "arguments": nested})
    steps.append(call("update_ticket", arguments={"ticket_id": 1, "description": LONG}))
    steps.append({"goal": f"tell {TOKEN}"})
    return {"transport": transport, "steps": steps}


def findings(ran: Ran) -> dict[str, Finding]:
    (trial,) = ran.result.trials
    assert trial.verdict.status == "completed", trial.verdict
    return {finding.id: finding for finding in trial.verdict.findings}


def check(ran: Ran, tmp_path: Path, *, output: bool) -> None:
    assert leaks(ran.folder) == []
    assert "Correct-" not in "".join(path.read_text() for path in files(ran.folder)), "the half of a secret"
    found = findings(ran)
    assert found["tool_called"].result == "pass"
    assert found["tool_not_called"].result == "pass"
    assert found["state"].result == "pass"
    assert found["state_unexplained"].result == "pass", found["state_unexplained"]
    assert found["wrong"].result == "fail"
    assert MARK.search(found["wrong"].reason)
    assert found["state_unchanged"].result == "fail"
    folder = ran.folder / "small" / "1"
    for name in ("trace.json", "verdict.json", "state/ticketing.after.jsonl", "state/ticketing.journal.jsonl"):
        assert MARK.search((folder / name).read_text()), name
    for name in ("agent.out", "agent.err") if output else ():
        assert len(MARK.findall((folder / name).read_text())) >= 4 * 5, name
    (change, *_) = [row for row in load_journal(folder / "state" / "ticketing.journal.jsonl") if row.op == "update"]
    after = load_dump(folder / "state" / "ticketing.after.jsonl")
    assert change.after is not None
    assert after.tables["tickets"][1]["description"] == change.after["description"]
    guesses = [path.read_bytes() for path in tmp_path.glob("*.*") if path.is_file()]
    for text in SPILLED:
        for arguments in ({"description": text}, {"customer_id": "CUST-004", "description": text}, text):
            guesses += [json.dumps(arguments).encode(), json.dumps(arguments, separators=(",", ":")).encode()]
    known = digests(ran.folder)
    assert known
    assert not known & {hashlib.sha256(guess).hexdigest() for guess in guesses}


@pytest.mark.parametrize(
    ("transport", "servers"),
    [("stdio", ("ticketing", "echo")), ("in_process", ("ticketing",))],
    ids=["stdio", "direct"],
)
def test_a_scripted_agent_leaves_no_secret_in_the_run_folder(
    tmp_path: Path, transport: str, servers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "echo" not in servers:
        monkeypatch.setenv("OTHER_CREDENTIAL", SERVED)
    agent: JSON = {"scripted": str(write_agent(tmp_path, script(transport, *servers)))}
    check(run([scenario(tmp_path, *servers, agent=agent)], tmp_path), tmp_path, output=False)


def test_a_program_leaves_no_secret_in_the_run_folder_whatever_it_prints(tmp_path: Path) -> None:
    spilled = tmp_path / "spilled.json"
    spilled.write_text(json.dumps(SPILLED))
    path = scenario(tmp_path, "ticketing", "echo")
    command = behave("spills", str(spilled), VALUE, TOKEN)
    ran = run([path], tmp_path, command=command)
    check(ran, tmp_path, output=True)
    shown = ran.document("manifest.json")["scenarios"]
    assert isinstance(shown, dict)
    manifest = json.dumps(shown)
    plain = json.dumps(list(command), sort_keys=True, separators=(",", ":")).encode()
    assert hashlib.sha256(plain).hexdigest() not in manifest
    assert hashlib.sha256(path.read_bytes()).hexdigest() not in manifest
    assert json.dumps([str(path)]) in manifest, "the file whose digest is not its own is named"


def test_a_servers_variable_is_a_secret_in_every_scenario_of_the_run(tmp_path: Path) -> None:
    agent: JSON = {"scripted": str(write_agent(tmp_path, script("in_process"), "direct.yaml"))}
    one = scenario(tmp_path, "ticketing", agent=agent)
    other = write_scenario(
        tmp_path / "other",
        id="other",
        servers={"echo": {**SERVER, "env": {"API_KEY": SERVED}}},
        agent={"scripted": str(write_agent(tmp_path, {"steps": []}, "none.yaml"))},
    )
    assert leaks(run([one], tmp_path / "alone").folder, (SERVED,)), "nobody says that it is one"
    assert leaks(run([one, other], tmp_path).folder) == []


def test_what_the_command_prints_has_no_secret_and_short_values_are_named(tmp_path: Path) -> None:
    agent: JSON = {"scripted": str(write_agent(tmp_path, {"transport": "in_process", "steps": [failing()]}))}
    path = scenario(tmp_path, "ticketing", agent=agent)
    ran = wiretrap(path.name, cwd=tmp_path, SHORT_KEY="abc42", PLAIN_NAME="")
    assert ran.returncode == 1
    assert MARK.search(ran.stdout)
    for form in (form for secret in (TOKEN, VALUE) for form in looked_for(secret)):
        assert form not in ran.stdout + ran.stderr
    assert "not redacted, since shorter than 8 characters: SHORT_KEY" in ran.stderr
    assert "abc42" not in ran.stdout + ran.stderr
    assert "without a value, so not redacted: small: PLAIN_NAME" in ran.stderr


def failing() -> JSON:
    # The reason quotes the server's answer, and is cut where the secret is.
    return {"call": "mcp/ticketing/get_ticket", "arguments": {f"{'x' * 260}{VALUE}": 1}}


def test_a_scenario_that_cannot_be_read_is_refused_without_a_secret(tmp_path: Path) -> None:
    path = scenario(tmp_path, "ticketing", title=[TOKEN], severity=TOKEN)
    ran = wiretrap(path.name, cwd=tmp_path)
    assert ran.returncode == 2
    assert MARK.search(ran.stderr)
    assert TOKEN not in ran.stderr


def test_digests_and_numbers_made_of_a_secret_are_hidden_in_what_a_folder_holds(tmp_path: Path) -> None:
    steps: list[JSON] = [
        {"call": "mcp/files/write_file", "arguments": {"path": f"{VALUE}.txt", "content": "first"}},
        {"call": "mcp/files/write_file", "arguments": {"path": "note.txt", "content": VALUE}},
        {"call": "mcp/files/write_file", "arguments": {"path": "note.txt", "content": "nothing any more"}},
    ]
    digest = hashlib.sha256(b"first").hexdigest()
    asked: JSON = {"type": "state", "server": "files", "query": f"select path from files where sha256 = '{digest}'"}
    assert isinstance(asked, dict)
    path = write_scenario(
        tmp_path,
        servers={"files": {"fixture": "files", "trust": "internal"}},
        agent={"scripted": str(write_agent(tmp_path, {"transport": "in_process", "steps": steps}))},
        expected={"secrets": [{"name": "horse", "value": VALUE}]},
        assertions=[
            {"type": "tool_called", "tool": "mcp/files/write_file", "arguments": {"content": VALUE}},
            {**asked, "equals": [[f"{VALUE}.txt"]]},
            {"type": "state_unchanged"},
        ],
    )
    ran = run([path], tmp_path)
    assert leaks(ran.folder, (VALUE,)) == []
    found = findings(ran)
    assert [found[name].result for name in ("tool_called", "state", "state_unexplained")] == ["pass"] * 3
    written = "".join(file.read_text() for file in files(ran.folder))
    for data in (VALUE, f"{VALUE}.txt"):
        whole = hashlib.sha256(data.encode()).digest()
        assert whole.hex() not in written
        assert str(int.from_bytes(whole[:8]) >> 1) not in written
    assert digest not in written
    dump = load_dump(ran.folder / "small" / "1" / "state" / "files.after.jsonl")
    assert any(str(row["path"]).startswith("[redacted:") for row in dump.tables["files"].values())


def test_an_agent_that_ends_badly_leaves_what_it_printed_without_secrets(tmp_path: Path) -> None:
    program = "import os, sys; os.write(2, os.environb[b'SERVICE_TOKEN'] + b'\\xff'); sys.exit(3)"
    ran = run([scenario(tmp_path, "ticketing")], tmp_path, command=(sys.executable, "-c", program))
    assert ran.result.trials[0].verdict.status == "agent_crash"
    written = (ran.folder / "small" / "1" / "agent.err").read_bytes()
    assert re.fullmatch(rb"\[redacted:[0-9a-f]{16}\]\xff", written)
    assert [oct(path.stat().st_mode & 0o777) for path in (ran.folder / "small" / "1").glob("agent.*")] == ["0o600"] * 2


def test_the_secrets_of_a_run_are_those_of_variables_and_of_the_scenarios(tmp_path: Path) -> None:
    path = scenario(tmp_path, "ticketing", "echo")
    ours = {"A_TOKEN": TOKEN, "WIRETRAP_KEY": "not-the-agents", "PLAIN": "nothing special", "API_KEY": "another-key"}
    loaded = load_scenario(path)
    found = run_secrets([loaded], ours)
    assert found == {
        "A_TOKEN": TOKEN,
        "API_KEY": "another-key",
        "API_KEY of small, server echo": SERVED,
        "horse": VALUE,
    }
    assert missing_variables([loaded], ours) == ["small: PLAIN_NAME"]
    assert missing_variables([loaded], {"PLAIN_NAME": NAMED}) == []


def test_a_run_without_secrets_hides_nothing() -> None:
    hiding = make_hiding({"SHORT": "abc42"}, bytes(32))
    assert hiding.redactor is None
    assert hiding.too_short == ("SHORT",)
    text = f"abc42 {'0' * 64}"
    assert (hiding.text(text), hiding.evidence(text), hiding.json([text])) == (text, text, [text])


def test_a_file_with_a_secret_has_the_same_digest_in_every_run_and_none_that_could_be_checked() -> None:
    one, other = (make_hiding({"KEY": VALUE}, bytes([number]) * 32) for number in (1, 2))
    data = f"key: {VALUE}\n".encode()
    assert one.file_digest(data) == other.file_digest(data) == hashlib.sha256(b"key: [redacted]\n").hexdigest()
    assert one.file_digest(b"key: \xff\n") == hashlib.sha256(b"key: \xff\n").hexdigest()
    assert one.text(VALUE) != other.text(VALUE)
