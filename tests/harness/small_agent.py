"""A command agent of the standard library alone; its argument says how it behaves."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

NASTY = "\x00\x1b[2J\r\n</failure>]]>|`<b>@you #1 [x](http://y.z) {0} \ud800\uffff \u202e"
"""Text that breaks a terminal, XML, a Markdown table, a SARIF message or an encoder."""


class Server:
    def __init__(self, entry: dict[str, object], own_session: bool = False) -> None:
        command, arguments = entry["command"], entry["args"]
        assert isinstance(command, str)
        assert isinstance(arguments, list)
        self.arguments = arguments
        self.process = subprocess.Popen(
            [command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=own_session,
        )
        self.last = 0
        self.ask(
            "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "small", "version": "1"}},
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, object]) -> bytes:
        assert self.process.stdout is not None
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        return self.process.stdout.readline()

    def call(self, tool: str, **arguments: object) -> bytes:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def servers(own_session: bool = False) -> dict[str, Server]:
    config = json.loads(Path(os.environ["WIRETRAP_MCP_CONFIG"]).read_text())
    return {name: Server(entry, own_session) for name, entry in config["mcpServers"].items()}


def tell_started() -> None:
    if "STARTED" in os.environ:
        with open(os.environ["STARTED"], "w", encoding="utf-8") as file:
            file.write("started\n")


def stay() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        signal.pause()


def start_daemon(*, stubborn: bool) -> None:
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, b"x")
            if stubborn:
                stay()
            signal.pause()
        os._exit(0)
    os.read(read, 1)


def main(behaviour: str) -> int:
    match behaviour:
        case "polite" | "exit3":
            for server in servers().values():
                server.call("echo", text="hello")
                server.close()
            sys.stdout.write("All done.\n")
            return 3 if behaviour == "exit3" else 0
        case "daemons":
            for server in servers(own_session=True).values():
                server.call("echo", text="hello")
            start_daemon(stubborn=False)
            start_daemon(stubborn=False)
        case "endless":
            servers(own_session=True)
            start_daemon(stubborn=True)
            tell_started()
            stay()
        case "chatter":
            sys.stdout.write("x" * 10_000_000)
        case "kills_proxy":
            for server in servers().values():
                server.call("echo", text="hello")
                server.process.kill()
        case "kills_itself":
            os.kill(os.getpid(), signal.SIGKILL)
        case "kills_worker":
            start_daemon(stubborn=True)
            os.kill(os.getppid(), signal.SIGKILL)
            stay()
        case "nasty":
            for server in servers().values():
                server.call(NASTY, text=NASTY)
                server.call("echo", text=NASTY, long="x" * 1_000_000)
                server.close()
            os.write(1, b"\xff\x00\x1b[2J" + b"y" * 1_000_000)
        case "knocks":
            config = json.loads(Path(os.environ["WIRETRAP_MCP_CONFIG"]).read_text())
            for entry in config["mcpServers"].values():
                subprocess.run([entry["command"], *entry["args"]], stdin=subprocess.DEVNULL, check=False)
        case "calls_on":
            for server in servers().values():
                while server.call("echo", text="again"):
                    pass
        case "calls_four":
            for server in servers().values():
                for number in range(4):
                    server.call("echo", number=number)
        case "tells_what_it_got":
            Path(os.environ["TOLD"]).write_text(
                json.dumps(
                    {
                        "arguments": sys.argv[2:],
                        "prompt": os.environ.get("WIRETRAP_PROMPT"),
                        "input": json.loads(Path(os.environ["WIRETRAP_INPUT_FILE"]).read_text()),
                        "variables": sorted(name for name in os.environ if name.startswith("WIRETRAP_")),
                        "stdin": sys.stdin.read(),
                        "cwd": os.getcwd(),
                        "config": json.loads(Path(os.environ["WIRETRAP_MCP_CONFIG"]).read_text()),
                    }
                )
            )
        case "spills":
            texts = json.loads(Path(sys.argv[2]).read_text())
            ticketing = servers()["ticketing"]
            for text in texts:
                ticketing.call("create_ticket", customer_id="CUST-004", description=text)
            ticketing.call("update_ticket", ticket_id=1, description=texts[0])
            ticketing.close()
            for stream in (1, 2):
                said = "\n".join(["It says:", *texts]).encode("utf-8", "surrogateescape")
                for place in range(0, len(said), 1000):
                    os.write(stream, said[place : place + 1000])
        case "behind":
            ticketing = servers()["ticketing"]
            ticketing.call("update_ticket", ticket_id=1, status="escalated")
            ticketing.close()
            database = ticketing.arguments[ticketing.arguments.index("--db") + 1]
            with sqlite3.connect(database) as connection:
                connection.execute("update tickets set tier = 'premium' where id = 1")
            connection.close()
        case _:
            raise ValueError(behaviour)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
