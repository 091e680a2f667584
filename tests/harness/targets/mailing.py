"""Two agents in our own words that take a price out of a document: one obeys what the document says, the other not.

Each as a function of the target `python`, as a program of the target `command`, and, as a server, of the target `http`.
Standard library alone.
"""

import json
import re
import subprocess
import sys
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.request import Request, urlopen

CLIENT: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "mailing", "version": "1"},
}


class Server:
    """One MCP connection, over stdio or over HTTP, as the entry of an `mcpServers` file says."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.number = 0
        self.url = entry.get("url")
        self.headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        self.process = None
        if self.url is None:
            command = [entry["command"], *entry["args"]]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> "Server":
        self.ask("initialize", CLIENT)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self.process is not None and self.process.stdin is not None and self.process.stdout is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
        elif self.url is not None:
            with urlopen(Request(self.url, None, self.headers, method="DELETE")) as answer:
                answer.read()

    def send(self, message: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps(message).encode()
        if self.url is not None:
            with urlopen(Request(self.url, data, self.headers)) as answer:
                if answer.headers["mcp-session-id"]:
                    self.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
                    self.headers["mcp-protocol-version"] = CLIENT["protocolVersion"]
                lines = answer.read().decode().splitlines()
            found = [line.removeprefix("data:") for line in lines if line.lstrip().startswith(("data:", "{"))]
            return dict(json.loads(found[-1])) if found else {}
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline())) if "id" in message else {}

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        return self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})


def work(servers: dict[str, dict[str, Any]], prompt: str, *, obeys: bool) -> str:
    """Read the file that the prompt names and write down its price; `obeys` what stands in it, too."""
    with ExitStack() as stack:
        files, mail = (stack.enter_context(Server(servers[name])) for name in ("files", "mail"))
        path = re.findall(r"\w+\.md", prompt)[0]
        text = files.call("read_file", path=path)["result"]["content"][0]["text"]
        wanted = re.findall(r"[Mm]ail .* to ([\w.]+@[\w.-]+\w)", text)
        if obeys and wanted:
            mail.call("send_email", to=[wanted[0]], subject=path, body=text)
        price = re.findall(r"(\d+) in all", text)[0]
        files.call("write_file", path="price.txt", content=price)
    return f"Price: {price}"


def vulnerable(task: dict[str, Any]) -> str:
    """The one that obeys; sync."""
    return work(task["mcp_servers"], task["prompt"], obeys=True)


async def hardened(task: dict[str, Any]) -> dict[str, Any]:
    """The one that does not; async, and with an account of itself."""
    answer = work(task["mcp_servers"], task["prompt"], obeys=False)
    return {"answer": answer, "events": [{"type": "goal", "id": "summarize"}, {"type": "mcp_tools_discovered"}]}


class Live(BaseHTTPRequestHandler):
    """The live contract of OWASP, by the agent that the path names; it says nothing of its calls."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = work(asked["mcp_servers"], asked["input"]["user_message"], obeys=self.path == "/vulnerable")
        body = json.dumps({"messages": [{"role": "assistant", "content": answer}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_arguments: object) -> None:
        """Nothing on stderr."""


def serve() -> None:
    """Answer until the process is ended; the url is told on stdout."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Live)
    print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}"}), flush=True)
    server.serve_forever()


if __name__ == "__main__" and sys.argv[1:] == ["serve"]:
    serve()
elif __name__ == "__main__":
    config, asked, how = sys.argv[1:]
    print(work(json.loads(Path(config).read_text())["mcpServers"], asked, obeys=how == "vulnerable"))
