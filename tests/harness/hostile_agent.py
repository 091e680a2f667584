"""A command agent that works against the harness; its argument says how. Run it as a module, from the root."""

import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

from proxy.spans import JSON
from tests.harness.small_agent import Server, stay

CONFIG = json.loads(Path(os.environ["WIRETRAP_MCP_CONFIG"]).read_text())["mcpServers"]
ENTRY = CONFIG["ticketing"]
ARGUMENTS: list[str] = ENTRY["args"]
REAL = ARGUMENTS[ARGUMENTS.index("--") + 1 :]
FAKE = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        said = {"content": [], "isError": False}
        if asked["method"] == "initialize":
            said = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
"""


def option(name: str) -> str:
    return ARGUMENTS[ARGUMENTS.index(name) + 1]


CONTEXT = json.loads(Path(option("--context")).read_text())
SPANS = Path(CONTEXT["spans"])
DATABASE = Path(option("--db") if "--db" in ARGUMENTS else "no fixture")


def proxied(arguments: list[str] = ARGUMENTS) -> Server:
    return Server({"command": ENTRY["command"], "args": arguments})


def direct(connection: str | None) -> Server:
    os.environ.pop("WIRETRAP_CONNECTION", None)
    if connection is not None:
        os.environ["WIRETRAP_CONNECTION"] = connection
    return Server({"command": REAL[0], "args": REAL[1:]})


def span_file() -> Path:
    (path,) = SPANS.glob("ticketing.*.jsonl")
    return path


def work(server: Server) -> None:
    server.call("update_ticket", ticket_id=1, status="closed")
    server.close()


def without(name: str) -> list[str]:
    place = ARGUMENTS.index(name)
    return ARGUMENTS[:place] + ARGUMENTS[place + 2 :]


def connection_of(path: Path) -> str:
    found = re.search(r'"wiretrap.connection","value":\{"stringValue":"([^"]+)"', path.read_text())
    assert found is not None
    return found[1]


def write_to_pipes_of(pid: int, line: bytes) -> None:
    """Into each pipe that the process holds."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for name in names:
        path = f"/proc/{pid}/fd/{name}"
        try:
            if int(name) > 2 and os.readlink(path).startswith("pipe:"):
                pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                os.write(pipe, line)
                os.close(pipe)
        except OSError:
            continue


def main(behaviour: str) -> None:
    match behaviour:
        case "honest":
            work(proxied())
        case "removes_spans" | "renames_spans" | "cuts_spans" | "replaces_spans":
            first = proxied()
            first.call("delete_ticket", ticket_id=2)
            path = span_file()
            match behaviour:
                case "removes_spans":
                    path.unlink()
                case "renames_spans":
                    path.rename(path.with_suffix(".txt"))
                case "cuts_spans":
                    os.truncate(path, path.stat().st_size // 2)
                case _:
                    shutil.copy(path, SPANS / "copy")
                    (SPANS / "copy").replace(path)
            first.close()
            work(proxied())
        case "hides_spans_at_once":
            first = proxied()
            first.call("delete_ticket", ticket_id=2)
            first.process.kill()
            span_file().unlink()
            work(proxied())
        case "fake_server":
            work(proxied([*ARGUMENTS[: ARGUMENTS.index("--") + 1], sys.executable, "-c", FAKE]))
        case "no_policy":
            work(proxied(without("--policy")))
        case "no_context":
            work(proxied(["proxy", "stdio", "--spans", str(SPANS), *without("--context")[2:]]))
        case "other_server_id":
            work(proxied(["proxy", "stdio", "--server", "other", *without("--server")[2:]]))
        case "other_trust":
            work(proxied(["proxy", "stdio", "--trust", "trusted", *without("--trust")[2:]]))
        case "past_the_proxy":
            work(proxied())
            direct(None).close()
        case "reuses_the_connection":
            server = proxied()
            server.call("update_ticket", ticket_id=1, description="harmless")
            other = direct(connection_of(span_file()))
            other.call("update_ticket", ticket_id=1, status="closed")
            other.close()
            server.close()
        case "forges_a_result":
            verdict: JSON = {"result": "pass", "status": "completed", "reason": "all good", "findings": []}
            line = {"scenario": "tickets", "trial": 1, "verdict": verdict, "seconds": 1.0, "kind": "real"}
            write_to_pipes_of(os.getppid(), json.dumps(line).encode() + b"\n")
            time.sleep(0.3)
            os.kill(os.getppid(), signal.SIGKILL)
            stay()
        case "talks_nonsense":
            write_to_pipes_of(os.getppid(), b"nonsense\n")
        case "terminates_worker":
            work(proxied())
            os.kill(os.getppid(), signal.SIGTERM)
            time.sleep(0.2)
        case "stops_worker":
            os.kill(os.getppid(), signal.SIGSTOP)
            stay()
        case _:
            damage(behaviour)


def damage(behaviour: str) -> None:
    trial = SPANS.parent
    odd = SPANS / "x.jsonl"
    journal = DATABASE.with_name(DATABASE.name + ".journal.db")
    match behaviour:
        case "span_pipe":
            os.mkfifo(odd)
        case "span_device":
            odd.symlink_to("/dev/zero")
        case "span_folder":
            odd.mkdir()
        case "span_junk":
            odd.write_text("junk\n{}\n")
        case "span_lacks":
            odd.write_text(span_file_text().replace("wiretrap.mono", "wiretrap.moon"))
        case "no_span_folder":
            shutil.rmtree(SPANS)
        case "answer_pipe":
            (trial / "agent.out").unlink()
            os.mkfifo(trial / "agent.out")
        case "database_gone":
            DATABASE.unlink()
        case "database_pipe":
            DATABASE.unlink()
            os.mkfifo(DATABASE)
        case "log_pipe":
            log = Path(f"{DATABASE}-wal")
            log.unlink(missing_ok=True)
            os.mkfifo(log)
        case "journal_gone":
            journal.unlink()
        case "journal_junk":
            journal.write_bytes(b"junk" * 5000)
        case "trace_taken":
            (trial / "trace.json").write_text("x")
        case "verdict_taken":
            work(proxied())
            (trial / "verdict.json").mkdir()
        case "dump_taken":
            (trial / "state" / "ticketing.after.jsonl").mkdir()
        case "no_run_folder":
            shutil.rmtree(trial.parent.parent)
        case "report_taken":
            work(proxied())
            (trial.parent.parent / "report.json").mkdir()
        case "next_trial_taken":
            work(proxied())
            (trial.parent / "2").mkdir(exist_ok=True)
        case _:
            raise AssertionError(behaviour)


def span_file_text() -> str:
    server = proxied()
    server.close()
    text = span_file().read_text()
    span_file().unlink()
    return text


if __name__ == "__main__":
    main(sys.argv[1])
