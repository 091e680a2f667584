"""A small synchronous MCP client over a channel of lines, so that a scripted agent sends the same frames every way.

Refuses to know processes, event loops and scripts. Speaks revision 2025-11-25 and answers no server request but ping.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol

from harness.references import texts_of_result
from harness.targets.deadline import Deadline, TimeUpError
from proxy import __version__
from proxy.spans import JSON

PROTOCOL_VERSION = "2025-11-25"
METHOD_NOT_FOUND = -32601
REQUEST_TIMEOUT = -32001
"""The code that the official SDKs use for it (types.REQUEST_TIMEOUT of the TypeScript SDK: -32001)."""


class ClientError(ValueError):
    """A server that cannot be talked to. The message names the server."""


class ServerEndedError(ClientError):
    """The server's side closed while an answer was awaited."""


class ProtocolError(ClientError):
    """The server sent what MCP does not allow here."""


class Channel(Protocol):
    """Lines to and from one server. Implementations raise ServerEndedError, TimeUpError and TrialCancelledError.

    `deadline` is when they stop waiting; it may be replaced between calls.
    """

    deadline: Deadline

    def send(self, line: bytes) -> None:
        """Send one line, with its newline."""

    def receive(self) -> bytes:
        """The next line from the server, blocking until it is whole."""

    def close_input(self) -> None:
        """Tell the server that no more lines come."""

    def close(self) -> None:
        """Wait until the server has ended."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request came back with: exactly one of `result` and `error`."""

    result: dict[str, JSON] | None = None
    error: dict[str, JSON] | None = None

    @property
    def failed(self) -> bool:
        """True for a JSON-RPC error and for a tool's isError."""
        return self.result is None or self.result.get("isError") is True

    @property
    def text(self) -> str:
        """The texts of the result, of a resource and a prompt too, or the error's message."""
        if self.result is None:
            return str((self.error or {}).get("message", ""))
        return "\n".join(texts_of_result(self.result))


@dataclass(slots=True)
class Client:
    """One MCP connection. Use it from one thread: a request is sent, and its answer awaited before the next."""

    server: str
    channel: Channel
    name: str = "wiretrap-scripted-agent"
    capabilities: dict[str, JSON] = field(default_factory=dict)
    _last_id: int = 0

    def initialize(self) -> None:
        """Open the connection: initialize, then notifications/initialized."""
        client: dict[str, JSON] = {"name": self.name, "version": __version__}
        answer = self.request(
            "initialize", {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        )
        if answer.result is None:
            raise ProtocolError(f"server {self.server}: initialize was refused: {answer.text}")
        capabilities = answer.result.get("capabilities")
        self.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self._send({"method": "notifications/initialized"})

    def list_tools(self) -> tuple[str, ...]:
        """Names of the server's tools, all pages; empty where the server offers none."""
        return tuple(name for tool in self.tool_definitions() if isinstance(name := tool["name"], str))

    def tool_definitions(self) -> tuple[dict[str, JSON], ...]:
        """The server's tools as it defines them, all pages, those without a name apart."""
        return self._listed("tools", "name")

    def resource_definitions(self) -> tuple[dict[str, JSON], ...]:
        """The same of its resources; templates are none."""
        return self._listed("resources", "uri")

    def prompt_definitions(self) -> tuple[dict[str, JSON], ...]:
        """The same of its prompts."""
        return self._listed("prompts", "name")

    def _listed(self, kind: Literal["tools", "resources", "prompts"], key: str) -> tuple[dict[str, JSON], ...]:
        if kind not in self.capabilities:
            return ()
        found: list[dict[str, JSON]] = []
        params: dict[str, JSON] = {}
        while True:
            answer = self.request(f"{kind}/list", params)
            if answer.result is None:
                raise ProtocolError(f"server {self.server}: {kind}/list was refused: {answer.text}")
            items = answer.result.get(kind)
            for item in items if isinstance(items, list) else []:
                if isinstance(item, dict) and isinstance(item.get(key), str):
                    found.append(item)
            cursor = answer.result.get("nextCursor")
            if not isinstance(cursor, str) or params.get("cursor") == cursor:
                return tuple(found)
            params = {"cursor": cursor}

    def call_tool(self, tool: str, arguments: dict[str, JSON], patience: float | None = None) -> Answer:
        """Call one tool and wait for its answer; after `patience` seconds without one the call is cancelled.

        An answer that is not waited for is an error of the code REQUEST_TIMEOUT.
        """
        params: dict[str, JSON] = {"name": tool, "arguments": arguments}
        if patience is None:
            return self.request("tools/call", params)
        whole = self.channel.deadline
        self.channel.deadline = Deadline.after(min(patience, whole.left()), whole.cancel)
        try:
            return self.request("tools/call", params)
        except TimeUpError:
            self.channel.deadline = whole
            if whole.left() == 0:
                raise
            self._send({"method": "notifications/cancelled", "params": {"requestId": self._last_id}})
            return Answer(error={"code": REQUEST_TIMEOUT, "message": f"no answer within {patience:g} s"})
        finally:
            self.channel.deadline = whole

    def read_resource(self, uri: str) -> Answer:
        """Read one resource."""
        return self.request("resources/read", {"uri": uri})

    def get_prompt(self, prompt: str, arguments: dict[str, JSON]) -> Answer:
        """Take one prompt; its arguments are texts."""
        return self.request("prompts/get", {"name": prompt, "arguments": arguments})

    def request(self, method: str, params: dict[str, JSON]) -> Answer:
        """Send a request and wait for its answer; meanwhile server requests are answered and notifications dropped."""
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" in message:
                if "id" in message:
                    self._answer(message)
            elif message.get("id") == self._last_id and not isinstance(message.get("id"), bool):
                return self._read_answer(method, message)

    def _read_answer(self, method: str, message: dict[str, JSON]) -> Answer:
        match message:
            case {"error": dict(error)}:
                return Answer(error=error)
            case {"result": dict(result)}:
                return Answer(result=result)
        raise ProtocolError(f"server {self.server}: the answer to {method} has neither a result nor an error object")

    def _answer(self, request: dict[str, JSON]) -> None:
        if request["method"] == "ping":
            self._send({"id": request["id"], "result": {}})
        else:
            error: dict[str, JSON] = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
            self._send({"id": request["id"], "error": error})

    def _send(self, message: dict[str, JSON]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"))
        self.channel.send(text.encode() + b"\n")

    def _receive(self) -> dict[str, JSON]:
        while True:
            line = self.channel.receive()
            # A banner or a blank line is no message; the official SDK's clients pass over it too.
            with suppress(ValueError, RecursionError):
                message: JSON = json.loads(line)
                if isinstance(message, dict):
                    return message
