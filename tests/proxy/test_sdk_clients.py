"""The official SDK on both ends of the proxy, in both eras: requests both ways, progress, cancellation."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Literal

import anyio
import mcp_types as t
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext

from proxy import vocabulary as v
from proxy.spanread import read_spans

SERVER = str(Path(__file__).with_name("asking_server.py"))
WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))
Mode = Literal["legacy", "2026-07-28"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client saw of the server."""

    tools: tuple[str, ...]
    asked: t.CallToolResult
    progress: tuple[tuple[float, float | None], ...]
    after: t.CallToolResult
    log: str


async def on_elicit(context: ClientRequestContext, params: t.ElicitRequestParams) -> t.ElicitResult:
    await anyio.sleep(0.02)  # so that answers come in another order than their requests
    return t.ElicitResult(action="accept", content={"name": "Ann"})


async def on_sample(context: ClientRequestContext, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
    await anyio.sleep(0.05)
    return t.CreateMessageResult(role="assistant", content=t.TextContent(text="hello"), model="none")


async def on_roots(context: ClientRequestContext) -> t.ListRootsResult:
    return t.ListRootsResult.model_validate({"roots": [{"uri": "file:///w"}]})


async def session(mode: Mode, folder: Path, *options: str, proxied: bool) -> Seen:
    log = folder / f"log-{proxied}"
    command = [sys.executable, "-P", SERVER, str(log)]
    if proxied:
        front = [WIRETRAP, "proxy", "stdio", "--quiet", "--server", "x", "--spans", str(folder / "spans"), *options]
        command = front + command
    parameters = StdioServerParameters(command=command[0], args=command[1:])
    reported: list[tuple[float, float | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total))

    with anyio.fail_after(60):
        async with Client(
            parameters,
            mode=mode,
            elicitation_callback=on_elicit,
            sampling_callback=on_sample,
            list_roots_callback=on_roots,
        ) as client:
            tools = tuple(tool.name for tool in (await client.list_tools()).tools)
            asked = await client.call_tool("ask", {})
            await client.call_tool("progress", {}, progress_callback=on_progress)
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "slow", {})
                while not log.exists() or b"slow began" not in log.read_bytes():
                    await anyio.sleep(0.01)
                group.cancel_scope.cancel()
            while b"slow was cancelled" not in log.read_bytes():
                await anyio.sleep(0.01)
            after = await client.call_tool("plain", {})
    return Seen(tools, asked, tuple(reported), after, log.read_text())


@pytest.fixture(scope="module")
def directly(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mode], Seen]:
    """What a client sees without the proxy, in one session for each mode."""

    @cache
    def see(mode: Mode) -> Seen:
        return anyio.run(partial(session, mode, tmp_path_factory.mktemp("direct"), proxied=False))

    return see


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("options", [(), ("--deny", "mcp/x/evil")], ids=["no policy", "a policy"])
def test_a_client_sees_through_the_proxy_what_it_sees_without(
    mode: Mode, options: tuple[str, ...], tmp_path: Path, directly: Callable[[Mode], Seen]
) -> None:
    proxied = anyio.run(partial(session, mode, tmp_path, *options, proxied=True))
    assert proxied == directly(mode)
    assert [block.text for block in proxied.asked.content if isinstance(block, t.TextContent)] == [
        "hello, Ann, at file:///w"
    ]
    spans = list(read_spans([str(tmp_path / "spans")], lambda note: None))
    outcomes = {
        span.attributes[v.TOOL_NAME]: span.attributes[v.OUTCOME] for span in spans if v.TOOL_NAME in span.attributes
    }
    assert outcomes == {"ask": "ok", "progress": "ok", "plain": "ok", "slow": outcomes["slow"]}
    # The SDK's server answers a cancelled call with an error in one era and not at all in the other.
    assert outcomes["slow"] in ("cancelled", "protocol_error")
    (slow,) = [span for span in spans if span.attributes.get(v.TOOL_NAME) == "slow"]
    assert slow.attributes[v.CANCELLED] is True
    if mode == "legacy":
        methods = {
            span.attributes[v.METHOD]: span.attributes[v.OUTCOME]
            for span in spans
            if span.attributes[v.SPAN_KIND] == "request" and span.attributes[v.DIRECTION] == "server_to_client"
        }
        assert methods == {"sampling/createMessage": "ok", "elicitation/create": "ok", "roots/list": "ok"}
