"""One child process of ours for each server: started, asked how it is, told to take another policy, and ended.

Refuses to know what a proxy does with its server.
"""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from harness.runfolder import replace
from harness.targets.proxied import wiretrap_command
from harness.up.upfile import UpFile, UpServer
from proxy.control import VARIABLE
from proxy.spans import JSON

PATIENCE = 5.0
"""Seconds in which a proxy answers its supervisor; one that does not is not well."""
Answer: TypeAlias = Mapping[str, JSON]


class ProxyError(ValueError):
    """A proxy that did not start, or does not answer; the message names its server."""


class SilentError(ProxyError):
    """A proxy that does not answer; what it was told it may yet do."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all proxies of one `up` have in common. `folder` is private and goes with it; the others are paths in it."""

    file: UpFile
    folder: Path
    context: Path


@dataclass(slots=True)
class Proxy:
    """One running proxy. `code` is its exit code once it has ended, `url` where clients reach it."""

    id: str
    server: UpServer
    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    url: str = ""
    port: int = 0
    code: int | None = None
    _asked: int = 0
    _answered: int = 0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def order(self, order: JSON) -> Answer:
        """Tell it something; its answer. Raises SilentError.

        While an order is without its answer no other is sent; once that comes, however late, the next one is.
        """
        async with self._turn:
            with suppress(OSError, ValueError):
                async with asyncio.timeout(PATIENCE):
                    while self._answered < self._asked:
                        await self._next()
                    self._asked += 1
                    line = json.dumps({"number": self._asked, "order": order})
                    self.writer.write(line.encode() + b"\n")
                    return await self._next()
        raise SilentError(f"server {self.id}: its proxy does not answer")

    async def _next(self) -> Answer:
        """The answer to the first order that has none. Raises OSError where none can come."""
        line = await self.reader.readline()
        match json.loads(line) if line.endswith(b"\n") else None:
            case {"number": int() as number, "answer": dict() as answer} if self._answered < number <= self._asked:
                self._answered = number
                return answer
            case _:
                raise ConnectionError("no answer of ours")

    async def health(self) -> dict[str, JSON]:
        """How it is, as docs/up.md says."""
        found: dict[str, JSON] = {
            "url": self.url,
            "port": self.port,
            "state": "running" if self.code is None else "ended",
            "exit_code": self.code,
            "connections": None,
            "calls": None,
            "record_failure": None,
        }
        if self.code is None:
            try:
                found |= await self.order("health")
            except ProxyError:
                found["state"] = "silent" if self.process.returncode is None else "ended"
        return found

    async def reload(self, policy: Path | None) -> None:
        """Have it judge by another policy from the next frame on. Raises ProxyError where the old one still stands.

        Raises SilentError where that is not known.
        """
        found = await self.order({"reload": None if policy is None else str(policy)})
        if "error" in found:
            raise ProxyError(f"server {self.id}: {found['error']}")

    def tell(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)


def write_policy(folder: Path, server_id: str, server: UpServer) -> Path | None:
    """The server's policy as a file for its proxy, None where it has none. A reader sees the old one or the new one."""
    if server.policy is None:
        return None
    path = folder / f"{server_id}.policy.json"
    # In ASCII: YAML folds some line ends of Unicode, and a glob would become another.
    replace(path, json.dumps(server.policy, indent=2))
    return path


def arguments(shared: Shared, server_id: str, server: UpServer, policy: Path | None) -> tuple[str, ...]:
    """The command line of a server's proxy."""
    file = shared.file
    options = ["--server", server_id, "--port", str(server.port), "--trust", server.trust]
    options += ["--context", str(shared.context), "--trace-context", file.trace_context, "--quiet"]
    if policy is not None:
        options += ["--policy", str(policy)]
    if file.otlp is not None:
        options += ["--otlp", file.otlp]
    if file.grants:
        options += ["--grants", file.grants]
    if file.approvals:
        options += ["--approvals", file.approvals]
    if server.url:
        return (*wiretrap_command(), "proxy", "http", "--url", server.url, *options)
    return (*wiretrap_command(), "proxy", "bridge", *options, "--", *server.command)


async def start_proxy(shared: Shared, server_id: str, server: UpServer) -> Proxy:
    """Start a server's proxy; it is not ready yet. It ends when this process does, however that ends."""
    policy = write_policy(shared.folder, server_id, server)
    ours, theirs = socket.socketpair()
    with theirs:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WIRETRAP_")}
        process = await asyncio.create_subprocess_exec(
            *arguments(shared, server_id, server, policy),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env={**environment, **server.env, VARIABLE: str(theirs.fileno())},
            cwd=shared.file.folder,
            pass_fds=(theirs.fileno(),),
            # Ctrl-C on the terminal reaches us alone: so none ends before the others are told.
            start_new_session=True,
        )
    reader, writer = await asyncio.open_connection(sock=ours)
    return Proxy(server_id, server, process, reader, writer)


async def await_ready(proxy: Proxy) -> None:
    """Wait until it takes requests. Raises ProxyError where it ended instead; it has said why itself."""
    assert proxy.process.stdout is not None
    line = await proxy.process.stdout.readline()
    try:
        told = json.loads(line)
        proxy.url, proxy.port = told["url"], told["port"]
    except (ValueError, KeyError, TypeError):
        code = await proxy.process.wait()
        raise ProxyError(f"server {proxy.id}: its proxy did not start (exit code {code}); why stands above") from None
