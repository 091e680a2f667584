"""The agent over HTTP that docs/targets.md shows is one."""

import json
import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

from harness.tracefile import load_trace
from tests.harness.runs import ROOT, run, write_scenario


def test_the_agent_of_the_docs_answers_by_the_contract(tmp_path: Path) -> None:
    found = re.search(r"```python file=http_agent.py\n(.*?)```", (ROOT / "docs" / "targets.md").read_text(), re.S)
    assert found is not None
    names: dict[str, type[BaseHTTPRequestHandler]] = {}
    exec(found[1], names)
    agent = tmp_path / "agent.yaml"
    with HTTPServer(("127.0.0.1", 0), names["Agent"]) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        agent.write_text(json.dumps({"http": {"url": f"http://127.0.0.1:{server.server_port}/"}}))
        scenario = write_scenario(tmp_path, servers=None, assertions=[{"type": "tool_called", "tool": "add_note"}])
        ran = run([scenario], tmp_path, agent=agent)
        server.shutdown()
        thread.join()
    trace = load_trace(ran.folder / "small" / "1" / "trace.json")
    assert [(one.role, one.content) for one in trace.messages][-1] == ("assistant", "Written down: Say hello.")
    assert [call.name for call in trace.tool_calls] == ["add_note"]
    assert (ran.folder / "small" / "1" / "agent.out").read_text() == "Written down: Say hello."
