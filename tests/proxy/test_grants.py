"""Approvals from a file: what it may say, and that each lets one call through, whoever asks and however often."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.fieldreading import FieldReading
from proxy.grants import GrantError, Grants, LedgerError, load_grants, parse_grants
from proxy.held import Grant, HeldCall
from proxy.record import Stamp
from proxy.spans import JSON
from tests.proxy.test_holding import PAY, Held

NOW = Stamp(1, 1_800_000_000 * 1_000_000_000)
LATER, EARLIER = "2027-06-01T12:00:00Z", "2027-01-01T00:00:00+00:00"


def one(**fields: JSON) -> dict[str, JSON]:
    return {"tool": "mcp/x/pay", "arguments": {"amount": 5}, "expires_at": LATER, **fields}


def grants(folder: Path, *said: JSON) -> Grants:
    file = folder / "grants.yaml"
    file.write_text(json.dumps(list(said)))
    return load_grants(str(file))


def waiting(text: str = PAY) -> HeldCall:
    held = Held()
    held.client(text)
    return held.held[0]


def test_a_grant_is_used_once_also_by_another_proxy_and_the_list_of_it_is_private(tmp_path: Path) -> None:
    first, second = grants(tmp_path, one(id="g")), grants(tmp_path, one(id="g"))
    taken = first.take(waiting(), NOW)
    assert isinstance(taken, Grant)
    assert (taken.id, taken.source) == ("g", "file")
    assert first.take(waiting(), NOW) == "the grant g was used already"
    assert second.take(waiting(), NOW) == "the grant g was used already"
    assert os.stat(first.list_path).st_mode & 0o777 == 0o600
    Path(first.list_path).unlink()
    assert first.take(waiting(), NOW) == "the grant g was used already"


def test_a_grant_is_used_once_whatever_name_of_its_file_the_proxies_got(tmp_path: Path) -> None:
    given = grants(tmp_path, one(id="g"), one(id="h", arguments={"amount": 6}))
    (tmp_path / "elsewhere").symlink_to(tmp_path)
    (tmp_path / "link.yaml").symlink_to(tmp_path / "elsewhere" / "grants.yaml")
    names = [given.path, str(tmp_path / "link.yaml"), str(tmp_path / "elsewhere" / "grants.yaml")] * 4
    proxies, held = [load_grants(name) for name in names], [waiting() for _ in names]
    with ThreadPoolExecutor(len(names)) as pool:
        taken = list(pool.map(lambda proxy, call: proxy.take(call, NOW), proxies, held))
    assert sum(isinstance(one, Grant) for one in taken) == 1
    assert load_grants(names[1]).revoke("h", NOW.wall) == "the grant h is revoked"
    assert given.revoke("h", NOW.wall) == "the grant h was revoked already"
    assert sorted(file.name for file in tmp_path.glob("*.used")) == ["grants.yaml.used"]


def test_a_file_of_grants_with_several_hard_links_is_refused(tmp_path: Path) -> None:
    given = grants(tmp_path, one(id="g"))
    os.link(given.path, tmp_path / "other.yaml")
    for name in ("grants.yaml", "other.yaml"):
        with pytest.raises(GrantError, match=r"several names \(hard links\)"):
            load_grants(str(tmp_path / name))


@pytest.mark.parametrize("name", ["\0", "x" * 300, "folder", "pipe", "none", "round"])
def test_a_file_of_grants_that_cannot_be_opened_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "round").symlink_to("round")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GrantError, match="the grants cannot be read"):
        load_grants(str(tmp_path / name))


def test_two_grants_of_one_kind_let_two_calls_through(tmp_path: Path) -> None:
    given = grants(tmp_path, one(), one())
    assert len({grant.id for grant in given.grants}) == 2
    assert [isinstance(given.take(waiting(), NOW), Grant) for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"arguments": {"amount": 6}}, "for other arguments"),
        ({"arguments": {"amount": 5, "to": "x"}}, "for other arguments"),
        ({"expires_at": EARLIER}, "has expired"),
        ({"revoked_at": EARLIER}, "was revoked"),
        ({"granted_at": LATER}, "for a later time"),
        ({"granted_at": EARLIER}, "has expired"),
        ({"tool": "mcp/x/other"}, ""),
    ],
)
def test_a_grant_that_does_not_fit_is_not_used_up_and_says_why(
    fields: dict[str, JSON], why: str, tmp_path: Path
) -> None:
    given = grants(tmp_path, one(id="g", **fields))
    found = given.take(waiting(), NOW)
    assert isinstance(found, str)
    assert why in found
    assert not (Path(given.list_path).exists() and Path(given.list_path).read_text())


def test_a_grant_that_is_revoked_while_a_proxy_runs_lets_nothing_through(tmp_path: Path) -> None:
    running = grants(tmp_path, one(id="g"))
    assert load_grants(running.path).revoke("g", NOW.wall - 1) == "the grant g is revoked"
    assert running.take(waiting(), NOW) == "the grant g was revoked"
    assert running.revoke("g", NOW.wall) == "the grant g was revoked already"
    with pytest.raises(LedgerError, match="there is no grant 'h'; there are g"):
        running.revoke("h", NOW.wall)


def test_a_file_that_is_changed_after_the_start_grants_nothing_more(tmp_path: Path) -> None:
    running = grants(tmp_path, one(id="g", expires_at=EARLIER))
    grants(tmp_path, one(id="g"))
    assert running.take(waiting(), NOW) == "the grant g has expired"


@pytest.mark.parametrize("damage", ["no line of ours\n", '{"id": "g", "mark": "kept", "at": 1}\n'])
def test_a_list_of_used_grants_that_cannot_be_read_lets_nothing_through(damage: str, tmp_path: Path) -> None:
    given = grants(tmp_path, one(id="g"))
    Path(given.list_path).write_text(damage)
    assert "no grant of the file can be used" in str(given.take(waiting(), NOW))


def test_a_list_of_used_grants_that_cannot_be_written_lets_nothing_through(tmp_path: Path) -> None:
    given = grants(tmp_path, one(id="g"))
    Path(given.list_path).symlink_to(tmp_path / "elsewhere")
    assert "no grant of the file can be used" in str(given.take(waiting(), NOW))


@pytest.mark.parametrize(
    ("said", "field", "why"),
    [
        ("{}", "", "expected a list of grants"),
        ("[5]", "[0]", "expected a map with tool"),
        ("[{tool: pay, arguments: {}, expires_at: '2027-06-01T12:00Z'}]", "[0].tool", "a canonical name"),
        ("[{tool: mcp/x/pay, expires_at: '2027-06-01T12:00Z'}]", "[0].arguments", "whole arguments as a map"),
        ("[{tool: mcp/x/pay, arguments: {}}]", "[0].expires_at", "expected a moment"),
        (
            "[{tool: mcp/x/pay, arguments: {}, expires_at: '2027-06-01T12:00'}]",
            "[0].expires_at",
            "expected a moment",
        ),
        (
            "[{tool: mcp/x/pay, arguments: {}, expires_at: '2027-06-01T12:00Z', uses: 2}]",
            "[0].uses",
            "unknown field",
        ),
        (
            "[{id: a, tool: mcp/x/b, arguments: {}, expires_at: '2027-06-01T12:00Z'},"
            " {id: a, tool: mcp/x/b, arguments: {}, expires_at: '2027-06-01T12:00Z'}]",
            "[1].id",
            "there is a grant 'a' before it",
        ),
    ],
)
def test_a_file_of_grants_that_is_wrong_names_file_line_and_field(
    said: str, field: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "g.yaml"
    file.write_text(said)
    with pytest.raises(GrantError) as caught:
        load_grants(str(file))
    (problem,) = caught.value.problems
    assert problem.field == field
    assert why in problem.message


KEYS = st.sampled_from(["id", "tool", "arguments", "expires_at", "x"])


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
        max_leaves=6,
    )
)
def test_whatever_a_file_of_grants_holds_it_is_read_or_its_problems_are_told(said: JSON) -> None:
    reading = FieldReading("g", lambda path: 1, ())
    found = parse_grants(reading, said)
    assert reading.problems or found == ()
