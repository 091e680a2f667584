from pathlib import Path

import pytest

from tests.servers.wire import call, changes, content, made, refusal, rows

MODES = ["legacy", "2026-07-28"]
PULLS = "SELECT id, state FROM pull_requests ORDER BY id"
HEADS = "SELECT name, head FROM branches ORDER BY name"


def _heads(path: Path) -> list[tuple[str, str]]:
    return [(str(name), str(head)) for name, head in rows(path, HEADS)]


@pytest.mark.parametrize("mode", MODES)
def test_issues_and_pull_requests_are_listed_by_their_state(tmp_path: Path, mode: str) -> None:
    path = made(tmp_path, "repo")
    listed = content(call(path, "list_issues", {"state": "closed"}, mode))
    assert listed == {"issues": []}
    pulls = content(call(path, "list_pull_requests", {}, mode))
    assert isinstance(pulls, dict)
    assert [(pull["id"], pull["author"]) for pull in pulls["pull_requests"]] == [(11, "tamsin"), (12, "oyelaran")]
    assert changes(path) == []


def test_a_merge_changes_the_pull_request_and_the_head_of_its_target_in_one_call(tmp_path: Path) -> None:
    path = made(tmp_path, "repo")
    before = dict(_heads(path))
    merged = content(call(path, "merge_pull_request", {"pull_request_id": 11}))
    assert isinstance(merged, dict)
    after = dict(_heads(path))
    assert after == {**before, "main": merged["head"]}
    assert merged["head"] != before["main"]
    assert rows(path, PULLS) == [(11, "merged"), (12, "open")]
    assert len(changes(path)) == 2
    assert refusal(call(path, "merge_pull_request", {"pull_request_id": 11})) == "Pull request 11 is merged"


def test_a_merge_whose_checks_fail_is_refused_with_their_log(tmp_path: Path) -> None:
    path = made(tmp_path, "repo")
    said = refusal(call(path, "merge_pull_request", {"pull_request_id": 12}))
    assert said == "The checks of pull request 12 are failing. dates_test: expected 2026-03-01, got 01.03.2026"
    assert changes(path) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("main", "Branch 'main' is protected"),
        ("dates", "Pull request 12 is open on branch 'dates'"),
        ("nowhere", "Branch 'nowhere' not found"),
    ],
)
def test_a_branch_that_is_protected_or_in_use_or_not_there_is_not_deleted(tmp_path: Path, name: str, says: str) -> None:
    path = made(tmp_path, "repo")
    assert refusal(call(path, "delete_branch", {"name": name})) == says
    assert changes(path) == []


def test_a_branch_is_free_once_its_pull_request_is_closed(tmp_path: Path) -> None:
    path = made(tmp_path, "repo")
    closed = content(call(path, "close_pull_request", {"pull_request_id": 12}))
    assert isinstance(closed, dict)
    assert closed["state"] == "closed"
    assert content(call(path, "delete_branch", {"name": "dates"})) == {"name": "dates", "deleted": True}
    assert [name for name, _ in _heads(path)] == ["fix/last-row", "main"]


def test_work_of_several_steps_builds_on_what_the_steps_before_made(tmp_path: Path) -> None:
    path = made(tmp_path, "repo")
    assert content(call(path, "create_branch", {"name": "new", "from": "main"})) == {
        "name": "new",
        "head": "a1f0c2",
        "protected": False,
    }
    assert refusal(call(path, "create_branch", {"name": "new", "from": "main"})) == "Branch 'new' is there already"
    opened = content(call(path, "create_pull_request", {"title": "New", "source": "new", "target": "main"}))
    assert isinstance(opened, dict)
    assert (opened["id"], opened["author"], opened["checks"], opened["approved"]) == (13, "assistant", "pending", False)
    assert content(call(path, "comment_on_issue", {"issue_id": 2, "body": "#13"})) == {"id": 1, "body": "#13"}
    issue = content(call(path, "update_issue", {"issue_id": 2, "assignee": "tamsin"}))
    assert isinstance(issue, dict)
    assert (issue["state"], issue["assignee"], issue["comments"]) == ("open", "tamsin", [{"id": 1, "body": "#13"}])


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("get_issue", {"issue_id": 2**70}, "Issue not found"),
        ("get_pull_request", {"pull_request_id": 1}, "Pull request not found"),
        ("update_issue", {"issue_id": 1}, "Nothing to update: give state or assignee"),
        ("comment_on_issue", {"issue_id": 9, "body": "x"}, "Issue not found"),
        ("create_branch", {"name": "", "from": "main"}, "name: a branch has a name"),
        ("create_branch", {"name": "x", "from": "y"}, "Branch 'y' not found"),
        ("create_pull_request", {"title": "x", "source": "main", "target": "main"}, "source and target are one branch"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    tmp_path: Path, tool: str, arguments: dict[str, object], says: str
) -> None:
    path = made(tmp_path, "repo")
    assert refusal(call(path, tool, arguments)) == says
    assert changes(path) == []
