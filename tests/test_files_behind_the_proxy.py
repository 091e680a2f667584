"""The resources and the prompt of the files server through a real proxy process, with policy in force."""

import json
import os
from pathlib import Path

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import TextResourceContents

from harness.targets.fixtures import fixture_command, init_fixture
from harness.targets.proxied import wiretrap_command

DENIED = 10001
"""The proxy's code of a denied request (design.md section 4)."""


def proxied(folder: Path) -> StdioServerParameters:
    init_fixture("files", folder / "files.db", None, None)
    denied = [
        word for glob in ("resource:files:///minutes/*", "delete_file") for word in ("--deny", f"mcp/files/{glob}")
    ]
    spans = ["--spans", str(folder / "spans"), "--quiet"]
    program, *rest = wiretrap_command()
    return StdioServerParameters(
        command=program,
        args=[
            *(*rest, "proxy", "stdio", "--server", "files", *denied, *spans, "--"),
            *fixture_command("files", folder / "files.db"),
        ],
        env=dict(os.environ),
    )


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_what_policy_denies_of_a_folder_has_no_other_spelling(tmp_path: Path, mode: str) -> None:
    async def run() -> None:
        async with Client(proxied(tmp_path), mode=mode) as client:
            uris = [resource.uri for resource in (await client.list_resources()).resources]
            assert uris == ["files:///README.md", "files:///minutes/2026-03-02.md", "files:///plan.txt"]
            (plan,) = (await client.read_resource("files:///plan.txt")).contents
            assert isinstance(plan, TextResourceContents)
            assert plan.text.startswith("Move the archive")
            with pytest.raises(MCPError) as denied:
                await client.read_resource("files:///minutes/2026-03-02.md")
            assert denied.value.code == DENIED
            for other in (
                "files:///%6Dinutes/2026-03-02.md",
                "files:///./minutes/2026-03-02.md",
                "files:////minutes/2026-03-02.md",
            ):
                with pytest.raises(MCPError) as absent:
                    await client.read_resource(other)
                assert absent.value.code in (-32002, -32602)
            assert (await client.call_tool("delete_file", {"path": "plan.txt"})).is_error
            prompt = await client.get_prompt("summarize_file", {"path": "plan.txt"})
            assert len(prompt.messages) == 2

    anyio.run(run)
    assert (tmp_path / "files.db" / "plan.txt").exists()
    spans = [line for file in (tmp_path / "spans").iterdir() for line in file.read_text().splitlines()]
    names = [json.loads(line) for line in spans]
    recorded = json.dumps(names)
    assert "mcp/files/resource:files:///minutes/2026-03-02.md" in recorded
    assert "mcp/files/prompt:summarize_file" in recorded
