"""All proxies of one file as long as they are wanted: started, watched, told of new policies, and ended together.

Refuses to know how they are shown, and what goes through them.
"""

import asyncio
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.up.healthport import HealthPort
from harness.up.proxies import Proxy, ProxyError, Shared, SilentError, await_ready, start_proxy, write_policy
from harness.up.upfile import UpFile, UpFileError
from proxy.httpserve import RECORD_FAILED
from proxy.otlp import FLUSH
from proxy.spans import JSON

GRACE = 1.2
"""Seconds that proxies have to end by themselves, with whole records, when they are told to."""
_STOP = (signal.SIGTERM, signal.SIGINT)


@dataclass(slots=True)
class Supervision:
    """`say` tells a person something; `read` reads the file again, and raises UpFileError."""

    shared: Shared
    run_id: str
    spans: str
    say: Callable[[str], None]
    read: Callable[[], UpFile]
    proxies: dict[str, Proxy]
    stopping: bool = False

    async def look(self) -> tuple[bool, Mapping[str, JSON]]:
        """Whether all is well, and how each proxy is."""
        found = await asyncio.gather(*(proxy.health() for proxy in self.proxies.values()))
        well = not self.stopping and all(one["state"] == "running" and not one["record_failure"] for one in found)
        servers: dict[str, JSON] = dict(zip(self.proxies, found, strict=True))
        return well, {"ok": well, "run_id": self.run_id, "spans": self.spans, "servers": servers}

    async def start(self) -> None:
        """Start all, and wait until they take requests. Raises ProxyError for the first that does not."""
        for server_id, server in self.shared.file.servers.items():
            self.proxies[server_id] = await start_proxy(self.shared, server_id, server)
        found = await asyncio.gather(*map(await_ready, self.proxies.values()), return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException):
                raise one

    async def watch(self, proxy: Proxy) -> None:
        """Note its end, and say it where nobody told it to end."""
        proxy.code = await proxy.process.wait()
        if not self.stopping:
            self.say(f"server {proxy.id}: its proxy ended with {_ended_as(proxy.code)}; its clients are cut off")

    async def watch_all(self) -> None:
        """Watch every proxy until the last has ended."""
        await asyncio.gather(*map(self.watch, self.proxies.values()))

    async def reload(self) -> None:
        """Read the file again, and have every proxy take its policy; where anything is wrong the old ones stand."""
        try:
            new = self.read()
        except UpFileError as error:
            self.say(f"no policy is changed, the old ones stand: {error}")
            return
        old = self.shared.file
        if _without_policy(new) != _without_policy(old):
            self.say(f"only policies are read again; for the other changes in {old.path} start anew")
        done = []
        for server_id, proxy in self.proxies.items():
            server = new.servers.get(server_id)
            if server is None or proxy.code is not None:
                continue
            try:
                await proxy.reload(write_policy(self.shared.folder, server_id, server))
            except SilentError as error:
                self.say(f"{error}, so which policy stands there is not known; send SIGHUP again when it does")
            except (ProxyError, OSError) as error:
                self.say(f"the old policy stands: {error}")
            else:
                done.append(server_id)
        if done:
            self.say(f"policies read again: {', '.join(done)}")

    async def end(self) -> None:
        """Tell all to end, and give them their time."""
        self.stopping = True
        for proxy in self.proxies.values():
            proxy.tell(signal.SIGTERM)
        waits = [asyncio.create_task(proxy.process.wait()) for proxy in self.proxies.values()]
        if waits:
            # The record is whole by then; what is left to do is to send the copy of it, and to say what was not sent.
            sending = FLUSH if self.shared.file.otlp is not None else 0.0
            _, late = await asyncio.wait(waits, timeout=GRACE + sending)
            for proxy in self.proxies.values() if late else ():
                proxy.tell(signal.SIGKILL)
            await asyncio.gather(*waits)
        for proxy in self.proxies.values():
            proxy.code = proxy.process.returncode
            proxy.writer.close()

    async def serve(self, health: socket.socket, ready: Callable[[Mapping[str, Proxy]], None]) -> int:
        """Start all, serve until told to stop or none is left, and end all; the exit code. Raises ProxyError.

        0 when all ended as they were told, 74 when a record is not whole, 1 when a proxy ended by itself.
        """
        stop, reload = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in _STOP:
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, reload.set)
        try:
            starting = asyncio.create_task(self.start())
            stopped = asyncio.create_task(_set(stop))
            await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                starting.cancel()
                await asyncio.gather(starting, return_exceptions=True)
                return 0
            await starting
            watching = asyncio.create_task(self.watch_all())
            server = await HealthPort(self.look).start(health)
            ready(self.proxies)
            reloads = asyncio.create_task(self._reloads(reload))
            await asyncio.wait({stopped, watching}, return_when=asyncio.FIRST_COMPLETED)
            fell = [proxy.id for proxy in self.proxies.values() if proxy.code is not None]
            reloads.cancel()
            server.close()
            await asyncio.gather(reloads, return_exceptions=True)
        finally:
            await self.end()
        codes = [proxy.code for proxy in self.proxies.values()]
        await watching
        return RECORD_FAILED if RECORD_FAILED in codes else int(bool(fell) or any(codes))

    async def _reloads(self, wanted: asyncio.Event) -> None:
        while True:
            await wanted.wait()
            wanted.clear()
            await self.reload()


async def _set(event: asyncio.Event) -> None:
    await event.wait()


def _ended_as(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _without_policy(file: UpFile) -> UpFile:
    servers = {name: replace(server, policy=None) for name, server in file.servers.items()}
    return replace(file, path=Path(), servers=servers)
