import base64
import hashlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import EmbeddedResource, TextContent, TextResourceContents

from servers.catalogue import FIXTURES
from servers.database import journal_path
from servers.folder import FolderError
from servers.manifest import row_number
from servers.places import open_place
from servers.seed import SeedError, parse_seed
from servers.serving import build_server
from tests.servers.wire import call, changes, content, definitions, exchange, made, refusal

MODES = ["legacy", "2026-07-28"]
T = TypeVar("T")


def ask(path: Path, mode: str, question: Callable[[Client], Awaitable[T]]) -> T:
    """What the server in this process answers to one question of a client."""

    async def run() -> T:
        with open_place(path, FIXTURES["files"], "wire-1") as place:
            async with Client(build_server(place), mode=mode) as client:
                return await question(client)

    return anyio.run(run)


def refused(path: Path, mode: str, question: Callable[[Client], Awaitable[object]]) -> int:
    """The code of the JSON-RPC error that a question is answered with."""

    async def caught(client: Client) -> int:
        with pytest.raises(MCPError) as error:
            await question(client)
        assert "\n" not in str(error.value)
        return error.value.code

    return ask(path, mode, caught)


def row(path: str, text: str) -> dict[str, object]:
    data = text.encode()
    return {
        "path": path,
        "kind": "file",
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "text": text,
    }


@pytest.mark.parametrize("mode", MODES)
def test_the_files_are_listed_with_their_sizes(tmp_path: Path, mode: str) -> None:
    path = made(tmp_path, "files")
    listed = content(call(path, "list_files", {}, mode))
    assert isinstance(listed, dict)
    assert [file["path"] for file in listed["files"]] == ["README.md", "minutes/2026-03-02.md", "plan.txt"]
    assert all(file["bytes"] == (path / file["path"]).stat().st_size for file in listed["files"])


@pytest.mark.parametrize("mode", MODES)
def test_a_file_is_written_read_and_deleted_and_each_change_is_in_the_journal(tmp_path: Path, mode: str) -> None:
    path = made(tmp_path, "files")
    new = {"path": "new/é.txt", "content": "one\r\n"}
    assert content(call(path, "write_file", new, mode)) == {"path": "new/é.txt", "created": True, "bytes": 5}
    assert (path / "new" / "é.txt").read_bytes() == b"one\r\n"
    assert content(call(path, "read_file", {"path": "new/é.txt"}, mode)) == {
        "path": "new/é.txt",
        "content": "one\r\n",
        "bytes": 5,
    }
    assert content(call(path, "write_file", {**new, "content": "two"}, mode)) == {
        "path": "new/é.txt",
        "created": False,
        "bytes": 3,
    }
    assert content(call(path, "delete_file", {"path": "new/é.txt"}, mode)) == {"path": "new/é.txt", "deleted": True}
    assert not (path / "new").exists()
    # before a reader comes: one that may not write leaves the files of the write-ahead log behind
    assert sorted(file.name for file in tmp_path.iterdir()) == ["files.db", "files.db.journal.db"]
    one, two = row("new/é.txt", "one\r\n"), row("new/é.txt", "two")
    assert [(change[0], *change[2:]) for change in changes(path)] == [
        ("wire-1", "files", row_number("new/é.txt"), "insert", None, one),
        ("wire-1", "files", row_number("new/é.txt"), "update", one, two),
        ("wire-1", "files", row_number("new/é.txt"), "delete", two, None),
    ]


def test_reads_refused_calls_and_writes_of_the_same_text_leave_the_journal_empty(tmp_path: Path) -> None:
    path = made(tmp_path, "files")
    call(path, "read_file", {"path": "plan.txt"})
    call(path, "write_file", {"path": "plan.txt", "content": (path / "plan.txt").read_text()})
    for tool in ("read_file", "delete_file"):
        assert refusal(call(path, tool, {"path": "absent.txt"})) == "'absent.txt': there is no such file"
        assert refusal(call(path, tool, {"path": "../files.db/plan.txt"})).startswith("path '../files.db/plan.txt' has")
    assert refusal(call(path, "write_file", {"path": "minutes", "content": "x"})) == "'minutes' is no file"
    assert refusal(call(path, "write_file", {"path": "plan.txt/x", "content": "x"})).startswith("'plan.txt/x': a link")
    assert refusal(call(path, "read_file", {"path": "a\0b"})) == "path 'a\\x00b' has a control character"
    assert changes(path) == []


def test_calls_open_at_once_each_own_their_changes_and_1_is_not_the_text_1(tmp_path: Path) -> None:
    path = made(tmp_path, "files")
    calls: list[tuple[int | str, str, dict[str, object]]] = []
    for number in range(1, 6):
        calls.append((number, "write_file", {"path": f"int{number}.txt", "content": "x"}))
        calls.append((str(number), "write_file", {"path": f"text{number}.txt", "content": "x"}))
    exchange(path, "wire-3", calls)
    found = {(change[1], change[6]["path"]) for change in changes(path) if isinstance(change[6], dict)}
    assert found == {(json.dumps(id_), arguments["path"]) for id_, _, arguments in calls}


def test_a_file_that_is_no_text_is_refused_by_read_file_and_is_a_blob_as_a_resource(tmp_path: Path) -> None:
    path = made(tmp_path, "files")
    (path / "raw.bin").write_bytes(b"\xff\xfe")
    assert refusal(call(path, "read_file", {"path": "raw.bin"})).startswith("'raw.bin' is no text in UTF-8")
    (blob,) = ask(path, "legacy", lambda client: client.read_resource("files:///raw.bin")).contents
    assert blob.model_dump(by_alias=True, exclude_none=True) == {
        "uri": "files:///raw.bin",
        "mimeType": "application/octet-stream",
        "blob": base64.b64encode(b"\xff\xfe").decode(),
    }


@pytest.mark.parametrize("mode", MODES)
def test_every_file_is_a_resource(tmp_path: Path, mode: str) -> None:
    path = made(tmp_path, "files")
    content(call(path, "write_file", {"path": "a b/é%.txt", "content": "text"}))
    (path / "way").symlink_to("plan.txt")
    resources = ask(path, mode, lambda client: client.list_resources()).resources
    assert [(resource.uri, resource.name) for resource in resources] == [
        ("files:///README.md", "README.md"),
        ("files:///a%20b/%C3%A9%25.txt", "a b/é%.txt"),
        ("files:///minutes/2026-03-02.md", "minutes/2026-03-02.md"),
        ("files:///plan.txt", "plan.txt"),
    ]
    assert all(resource.size == (path / resource.name).stat().st_size for resource in resources)
    (read,) = ask(path, mode, lambda client: client.read_resource(resources[1].uri)).contents
    assert isinstance(read, TextResourceContents)
    assert (read.uri, read.text) == ("files:///a%20b/%C3%A9%25.txt", "text")


@pytest.mark.parametrize(("mode", "code"), [("legacy", -32002), ("2026-07-28", -32602)])
@pytest.mark.parametrize("uri", ["files:///absent", "files:///%2e%2e/files.db", "files:///way", "file:///etc/hostname"])
def test_a_resource_that_is_not_there_is_the_eras_own_error(tmp_path: Path, mode: str, code: int, uri: str) -> None:
    path = made(tmp_path, "files")
    (path / "way").symlink_to("plan.txt")
    assert refused(path, mode, lambda client: client.read_resource(uri)) == code


@pytest.mark.parametrize("mode", MODES)
def test_the_prompt_carries_the_file_it_is_asked_for(tmp_path: Path, mode: str) -> None:
    path = made(tmp_path, "files")
    (prompt,) = ask(path, mode, lambda client: client.list_prompts()).prompts
    assert (prompt.name, [argument.name for argument in prompt.arguments or []]) == ("summarize_file", ["path"])
    got = ask(path, mode, lambda client: client.get_prompt("summarize_file", {"path": "plan.txt"}))
    text, file = [message.content for message in got.messages]
    assert isinstance(text, TextContent)
    assert text.text.startswith("Summarise the following file")
    assert isinstance(file, EmbeddedResource)
    assert isinstance(file.resource, TextResourceContents)
    assert (file.resource.uri, file.resource.text) == ("files:///plan.txt", (path / "plan.txt").read_text())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("other", {"path": "plan.txt"}), ("summarize_file", {}), ("summarize_file", {"path": "../files.db/plan.txt"})],
)
def test_a_prompt_that_cannot_be_made_is_an_error(tmp_path: Path, name: str, arguments: dict[str, str]) -> None:
    assert refused(made(tmp_path, "files"), "legacy", lambda client: client.get_prompt(name, arguments)) == -32602


def test_the_definitions_say_what_each_tool_does(tmp_path: Path) -> None:
    tools = definitions(made(tmp_path, "files"))
    assert [
        (tool.name, tool.annotations.read_only_hint, tool.annotations.destructive_hint)
        for tool in tools
        if tool.annotations is not None
    ] == [
        ("list_files", True, False),
        ("read_file", True, False),
        ("write_file", False, True),
        ("delete_file", False, True),
    ]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([{"path": "../x", "text": "x"}], "row 1: path '../x' has"),
        ([{"path": "a", "text": "x"}, {"path": "a", "text": "y"}], "row 2, column path: 'a' is there already"),
        ([{"path": "a", "text": "x"}, {"path": "a/b", "text": "y"}], "row 2: 'a/b': a link or a file is in the way"),
        ([{"path": "a", "text": 5}], "row 1, column text: must be text (in quotes), not 5"),
        ([{"path": "a"}], "row 1, column text: must be text (in quotes), not None"),
        ([{"text": "a"}], "row 1, column path: must be text (in quotes), not None"),
        ([{"path": "a", "text": "x", "mode": 1}], "row 1: there is no column 'mode'; there are path, text"),
        ([{"path": "a", "text": "\ud800"}], "row 1: "),
    ],
)
def test_a_seed_that_is_no_files_is_refused_and_leaves_nothing(tmp_path: Path, files: object, said: str) -> None:
    with pytest.raises(SeedError) as caught:
        made(tmp_path, "files", parse_seed({"files": files}, "s.yaml"))
    assert f"s.yaml: table files, {said}" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_seed_replaces_all_files_and_may_have_none(tmp_path: Path) -> None:
    path = made(tmp_path, "files", parse_seed({}, "s.yaml"))
    assert content(call(path, "list_files", {})) == {"files": []}
    with pytest.raises(SeedError, match="there is no table 'tickets'; there is files"):
        made(tmp_path / "..", "files", parse_seed({"tickets": []}, "s.yaml"))


def test_a_second_init_and_a_start_on_nothing_are_refused(tmp_path: Path) -> None:
    path = made(tmp_path, "files")
    with pytest.raises(FolderError, match="exists; remove it"):
        made(tmp_path, "files")
    with (
        pytest.raises(FolderError, match="no such folder; make it first with --init"),
        open_place(tmp_path / "absent", FIXTURES["files"], None),
    ):
        pass
    assert path.is_dir()


def test_a_folder_that_was_there_already_is_served_with_a_journal_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "files.db"
    path.mkdir()
    (path / "old.txt").write_text("old")
    content(call(path, "delete_file", {"path": "old.txt"}))
    assert [change[4] for change in changes(path)] == ["delete"]
    assert journal_path(path).parent == tmp_path
