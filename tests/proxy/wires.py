"""A connection without pipes for the tests of the wire: a relay over a real span file, and everything it gave out."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from proxy import vocabulary as v
from proxy.faults import FaultPlan
from proxy.policy import Policy, deny_policy, parse_policy
from proxy.record import Identity
from proxy.relay import Passage, Relay
from proxy.spanfile import SpanFile
from proxy.spanread import read_spans
from proxy.spans import JSON, Span

EVIL = deny_policy(["mcp/x/evil"])
ALLOWING = Policy()
OBSERVING = Policy("observe", "allow", EVIL.rules)


def policy_of(**fields: JSON) -> Policy:
    return parse_policy(dict(fields), "test", lambda _: None)


class Wire:
    """One connection to the server `x`; `to_server` and `to_client` are all bytes that went there.

    What passes as it is does so in the way of the pumps.
    """

    def __init__(
        self,
        folder: Path,
        policy: Policy | None = None,
        *,
        server: str = "x",
        parent: bool = False,
        faults: FaultPlan | None = None,
    ) -> None:
        path = folder / f"{server}.{len(list(folder.iterdir()))}.jsonl"
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self.file = SpanFile(str(path), self._fd)
        context = ("a" * 32, "b" * 16) if parent else ("", "")
        identity = Identity(server, "third_party", "stdio", "c1", "run", "scenario", 2, "agent", *context)
        self.relay = Relay(identity, policy, "0.1.0", self.file, faults=faults)
        self.to_server = b""
        self.to_client = b""
        self.last = Passage()
        self.ended = False

    def _pass(self, passage: Passage) -> Passage:
        self.to_server += passage.to_server
        self.to_client += passage.to_client
        self.relay.settle()
        self.last = passage
        return passage

    def passed(self, passage: Passage) -> None:
        """What became of a call that waited for an approval."""
        self.to_server += passage.to_server
        self.to_client += passage.to_client

    def client(self, *chunks: bytes | str) -> Passage:
        """Bytes from the client; text is a line without its line feed."""
        for chunk in chunks:
            data = chunk if isinstance(chunk, bytes) else chunk.encode() + b"\n"
            passed = self.relay.passes("client", data)
            if passed:
                self._pass(Passage(to_server=data[:passed]))
            if passed < len(data) or not data:
                rest = self._pass(self.relay.from_client(data[passed:]))
                self.last = rest._replace(to_server=data[:passed] + rest.to_server)
        return self.last

    def server(self, *chunks: bytes | str) -> Passage:
        """Bytes from the server; text is a line without its line feed."""
        for chunk in chunks:
            data = chunk if isinstance(chunk, bytes) else chunk.encode() + b"\n"
            passed = self.relay.passes("server", data)
            if passed:
                self._pass(Passage(to_client=data[:passed]))
            if passed < len(data) or not data:
                rest = self._pass(self.relay.from_server(data[passed:]))
                self.last = rest._replace(to_client=data[:passed] + rest.to_client)
        return self.last

    def end(self, reason: str = "client_ended") -> None:
        """Both sides end, unless they have."""
        if self.ended:
            return
        self.ended = True
        self._pass(self.relay.client_ended())
        self._pass(self.relay.server_ended())
        self.relay.close(reason)

    def break_record(self) -> None:
        """From here on the kernel takes no byte of the record: no space is left on the device."""
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, self._fd)
        os.close(full)

    def negotiate(self, version: str) -> None:
        """The opening of an older era, of which nothing is kept in `to_server` and `to_client`."""
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        self.client(json.dumps({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}))
        result = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        self.server(json.dumps({"jsonrpc": "2.0", "id": "init", "result": result}))
        self.to_server = b""
        self.to_client = b""

    @property
    def replies(self) -> list[JSON]:
        """What the client got, each line parsed."""
        return [json.loads(line) for line in self.to_client.splitlines()]

    def spans(self, kind: str | None = None) -> list[Span]:
        """The recorded spans, of one kind where it is given."""
        notes: list[str] = []
        found = list(read_spans([self.file.path], notes.append))
        assert notes == []
        return [span for span in found if kind in (None, span.attributes[v.SPAN_KIND])]

    def only(self, kind: str) -> Span:
        """The one span of a kind."""
        (span,) = self.spans(kind)
        return span


@contextmanager
def wire(policy: Policy | None = None) -> Iterator[Wire]:
    """A connection in a folder of its own, for hypothesis, which makes many in one test."""
    with TemporaryDirectory() as folder:
        made = Wire(Path(folder), policy)
        yield made
        made.end()
        assert made.relay.failure == ""


def call(name: str = "evil", *, id_text: str | None = "1", arguments: str = "{}") -> str:
    """A tools/call as one line of text; `id_text` None for none."""
    number = "" if id_text is None else f'"id":{id_text},'
    return f'{{"jsonrpc":"2.0",{number}"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}'


def ping(id_text: str, extra: str = "") -> str:
    return f'{{"jsonrpc":"2.0","id":{id_text},"method":"ping"{extra}}}'


def answer(id_text: str, result: str = "{}") -> str:
    return f'{{"jsonrpc":"2.0","id":{id_text},"result":{result}}}'


def failure(code: str, id_text: str = "1") -> str:
    return f'{{"jsonrpc":"2.0","id":{id_text},"error":{{"code":{code},"message":"no"}}}}'


def by_id(connection: Wire) -> dict[object, Span]:
    return {span.attributes[v.ID_TEXT]: span for span in connection.spans("request")}
