"""Sessions through a real proxy process that exports, and what is compared between a file and a receiver."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.convert import convert
from harness.tracefile import trace_chunks
from proxy.spanread import read_spans
from proxy.spans import JSON, Span

WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))
SERVER = """
import json, sys
for line in sys.stdin.buffer:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    name = asked["params"].get("name")
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s"}}
    elif name == "breaks":
        answer["error"] = {"code": -32000, "message": "broken"}
    else:
        text = asked["params"]["arguments"].get("text", "")
        answer["result"] = {"content": [{"type": "text", "text": text}], "isError": name == "fails"}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\\n")
    sys.stdout.buffer.flush()
"""
DEADLINE = 60.0
PATIENT = (
    sys.executable, "-P", "-c",
    "import sys, proxy.otlp; proxy.otlp.FLUSH = 600.0; from harness.cli import main; sys.exit(main())",
)  # fmt: skip
"""The command, with all the time in the world to send on what is left at its end."""
IN_A_HURRY = (WIRETRAP,)
ENDLESS = {"OTEL_EXPORTER_OTLP_TIMEOUT": "600"}


@dataclass
class Session:
    """A client of one proxy.

    What it sends on at its end may take as long as it takes, so that a busy machine loses nothing; but in a `hurry` it
    has the seconds that it always has, and its exporter waits longer for an answer than anybody here for the proxy.
    """

    folder: Path
    options: Sequence[str] = ()
    environment: dict[str, str] = field(default_factory=dict)
    hurry: bool = False
    errors: str = ""

    def __post_init__(self) -> None:
        options = ("--server", "s", "--spans", str(self.folder), "--quiet", *self.options)
        self.process = subprocess.Popen(
            (*(IN_A_HURRY if self.hurry else PATIENT), "proxy", "stdio", *options, "--", sys.executable, "-c", SERVER),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            env={**os.environ, **(ENDLESS if self.hurry else {}), **self.environment},
        )  # fmt: skip
        self._id = 0
        params: dict[str, JSON] = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c"}}
        self._ask("initialize", params)

    def call(self, name: str = "works", text: str = "x") -> None:
        self._ask("tools/call", {"name": name, "arguments": {"text": text}})

    def _ask(self, method: str, params: dict[str, JSON]) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._id += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}).encode() + b"\n"
        while line:
            line = line[os.write(self.process.stdin.fileno(), line) :]
        last = b""
        while last != b"\n":
            ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE)
            chunk = os.read(self.process.stdout.fileno(), 1 << 20) if ready else b""
            assert chunk, "no answer came"
            last = chunk[-1:]

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            code = self.process.wait(DEADLINE)
        finally:
            self.process.kill()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    @property
    def spans(self) -> list[Span]:
        return spans_in(self.folder)


def spans_in(*paths: Path) -> list[Span]:
    notes: list[str] = []
    found = list(read_spans(paths, notes.append))
    assert notes == []
    return found


def told(spans: Iterable[Span]) -> list[Span]:
    """Spans in one order, to be compared."""
    return sorted((replace(span, attributes=dict(sorted(span.attributes.items()))) for span in spans), key=identity)


def identity(span: Span) -> tuple[str, str]:
    return span.trace_id, span.span_id


def trace_text(spans: Iterable[Span]) -> str:
    return "".join(trace_chunks(convert(spans)))


def export(*paths: Path, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WIRETRAP, "export", *map(str, paths), "--otlp", url], capture_output=True, text=True, timeout=60, check=False
    )
