"""The cheapest MCP server over HTTP there is: what stands in front of it is what is measured.

python http_server.py; its port is the first line on stdout. Besides `echo` it has `large` (a result of so many bytes),
`events` (so many events, each with the moment of its sending in nanoseconds), `silent` (so many seconds), `hang` (no
answer, or a comment and no more) and `left` (the moment when the last connection that hung was closed).
"""

import asyncio
import json
import sys
from time import monotonic_ns

from tests.bench.server import result_of

CHUNK = 256 * 1024
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
APART = 0.01
"""Seconds between two events."""
LEFT = [0]


def framed(event: bytes) -> bytes:
    """An event as a chunk."""
    return b"%x\r\n%s\r\n" % (len(event), event)


class Client(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.data = b""
        self.hangs = False
        self.room = asyncio.Event()
        self.room.set()
        self.task: asyncio.Task[None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self.room.set()
        if self.hangs:
            LEFT[0] = monotonic_ns()

    def pause_writing(self) -> None:
        """It reads slowly."""
        self.room.clear()

    def resume_writing(self) -> None:
        """It has read."""
        self.room.set()

    def data_received(self, data: bytes) -> None:
        """A request, or a part of one."""
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[:end].lower()
            at = head.find(b"content-length:")
            size = int(head[at + 15 :].split(b"\r", 1)[0]) if at >= 0 else 0
            if len(self.data) < end + 4 + size:
                return
            body = self.data[end + 4 : end + 4 + size]
            self.data = self.data[end + 4 + size :]
            if body:
                self.asked(json.loads(body))
            else:
                self.transport.write(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")

    def asked(self, message: "dict[str, object]") -> None:
        """Answer a message."""
        if "id" not in message:
            self.transport.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
            return
        params = message.get("params")
        match message.get("method"), params:
            case "tools/call", {"name": "large", "arguments": {"bytes": int(size)}}:
                self.task = asyncio.ensure_future(self.large(message["id"], size))
                return
            case "tools/call", {"name": "events", "arguments": {"count": int(count)}}:
                self.task = asyncio.ensure_future(self.events(message["id"], count))
                return
            case "tools/call", {"name": "silent", "arguments": {"seconds": int() | float() as seconds}}:
                self.transport.write(STREAM)
                self.task = asyncio.ensure_future(self.silent(message["id"], seconds))
                return
            case "tools/call", {"name": "hang", "arguments": {"stream": bool(stream)}}:
                self.hangs = True
                self.transport.write(STREAM + framed(b": hi\n\n") if stream else b"")
                return
            case "tools/call", {"name": "left"}:
                result: object = {"content": [], "left": LEFT[0], "hangs": True}
            case _:
                result = result_of(message)
        said = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}, separators=(",", ":")).encode()
        self.transport.write(HEAD % len(body) + body)

    async def large(self, number: object, size: int) -> None:
        """A result of one long text."""
        before = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' % json.dumps(number).encode()
        after = b'"}]}}'
        self.transport.write(HEAD % (len(before) + size + len(after)) + before)
        while size > 0 and not self.transport.is_closing():
            await self.room.wait()
            self.transport.write(b"x" * min(CHUNK, size))
            size -= CHUNK
        self.transport.write(after)

    async def silent(self, number: object, seconds: float) -> None:
        """Nothing for a while, and the result."""
        await asyncio.sleep(seconds)
        result = {"jsonrpc": "2.0", "id": number, "result": {"content": []}}
        self.transport.write(framed(b"data: " + json.dumps(result).encode() + b"\n\n") + b"0\r\n\r\n")

    async def events(self, number: object, count: int) -> None:
        """Events with the moment at which each is sent, and the result."""
        self.transport.write(STREAM)
        for at in range(count):
            params = {"progressToken": 1, "progress": at, "message": str(monotonic_ns())}
            event = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            self.transport.write(framed(b"data: " + json.dumps(event).encode() + b"\n\n"))
            await asyncio.sleep(APART)
        result = {"jsonrpc": "2.0", "id": number, "result": {"content": []}}
        self.transport.write(framed(b"data: " + json.dumps(result).encode() + b"\n\n") + b"0\r\n\r\n")


async def main() -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Client, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
