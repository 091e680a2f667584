"""The `repo` fixture: issues, pull requests and branches of one repository, with tools that merge and delete.

Holds no files and no history: a branch is a name and where it points. Does not know who may merge what.
"""

import hashlib
import sqlite3
from collections.abc import Mapping

from servers.command import main
from servers.fixture import Fixture, Json, Parameter, Tool, ToolError, Value
from servers.repotables import (
    BRANCH,
    COMMENT,
    ISSUE,
    ISSUE_COLUMNS,
    ISSUE_HEAD,
    PULL,
    PULL_COLUMNS,
    PULL_HEAD,
    SCHEMA,
    SEED,
    as_pull,
)
from servers.shapes import DONE, INTEGER, TEXT, list_of, object_of

_ISSUE = f"SELECT {', '.join(ISSUE_COLUMNS)} FROM issues WHERE id = :issue_id"  # noqa: S608 - columns of ours
_PULL = f"SELECT {', '.join(PULL_COLUMNS)} FROM pull_requests WHERE id = :pull_request_id"  # noqa: S608 - as above


def _one(connection: sqlite3.Connection, query: str, arguments: Mapping[str, Value], what: str) -> tuple[Value, ...]:
    try:
        row: tuple[Value, ...] | None = connection.execute(query, arguments).fetchone()
    except OverflowError:  # past 64 bits, so it is no row's id
        row = None
    if row is None:
        raise ToolError(f"{what} not found")
    return row


def _branch(connection: sqlite3.Connection, name: Value) -> dict[str, Json]:
    query = "SELECT name, head, protected FROM branches WHERE name = :name"
    name, head, protected = _one(connection, query, {"name": name}, f"Branch {name!a}")
    return {"name": name, "head": head, "protected": bool(protected)}


def list_issues(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """The heads of the issues, oldest first."""
    rows = connection.execute(
        "SELECT id, title, author, state, assignee FROM issues WHERE :state = 'all' OR state = :state ORDER BY id",
        {"state": "all", **arguments},
    )
    names = ("id", "title", "author", "state", "assignee")
    return {"issues": [dict(zip(names, row, strict=True)) for row in rows]}


def get_issue(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """One issue with its comments."""
    issue = dict(zip(ISSUE_COLUMNS, _one(connection, _ISSUE, arguments, "Issue"), strict=True))
    rows = connection.execute("SELECT id, body FROM comments WHERE issue_id = :issue_id ORDER BY id", arguments)
    return {**issue, "comments": [{"id": number, "body": body} for number, body in rows]}


def update_issue(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Replace state or assignee of an issue and give it whole."""
    if arguments.keys() == {"issue_id"}:
        raise ToolError("Nothing to update: give state or assignee")
    get_issue(connection, arguments)
    connection.execute(
        "UPDATE issues SET state = coalesce(:state, state), assignee = coalesce(:assignee, assignee)"
        " WHERE id = :issue_id",
        {"state": None, "assignee": None, **arguments},
    )
    return get_issue(connection, arguments)


def comment_on_issue(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Put a comment under an issue, open or closed."""
    get_issue(connection, arguments)
    number, body = connection.execute(
        "INSERT INTO comments (issue_id, body) VALUES (:issue_id, :body) RETURNING id, body", arguments
    ).fetchone()
    return {"id": number, "body": body}


def list_branches(connection: sqlite3.Connection, _: Mapping[str, Value]) -> dict[str, Json]:
    """Every branch, by name."""
    names = connection.execute("SELECT name FROM branches ORDER BY name").fetchall()
    return {"branches": [_branch(connection, name) for (name,) in names]}


def create_branch(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """A new branch that points where another one does."""
    start = _branch(connection, arguments["from"])
    if not arguments["name"]:
        raise ToolError("name: a branch has a name")
    try:
        connection.execute(
            "INSERT INTO branches (name, head) VALUES (:name, :head)",
            {"name": arguments["name"], "head": str(start["head"])},
        )
    except sqlite3.IntegrityError:
        raise ToolError(f"Branch {arguments['name']!a} is there already") from None
    return _branch(connection, arguments["name"])


def delete_branch(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Delete a branch; a protected one, and one with an open pull request, is refused."""
    branch = _branch(connection, arguments["name"])
    if branch["protected"]:
        raise ToolError(f"Branch {arguments['name']!a} is protected")
    query = "SELECT id FROM pull_requests WHERE state = 'open' AND :name IN (source, target) ORDER BY id"
    if found := connection.execute(query, arguments).fetchone():
        raise ToolError(f"Pull request {found[0]} is open on branch {arguments['name']!a}")
    connection.execute("DELETE FROM branches WHERE name = :name", arguments)
    return {"name": branch["name"], "deleted": True}


def list_pull_requests(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """The heads of the pull requests, oldest first."""
    rows = connection.execute(
        "SELECT id, title, author, source, target, state FROM pull_requests"
        " WHERE :state = 'all' OR state = :state ORDER BY id",
        {"state": "all", **arguments},
    )
    names = ("id", "title", "author", "source", "target", "state")
    return {"pull_requests": [dict(zip(names, row, strict=True)) for row in rows]}


def get_pull_request(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """One pull request, with the state of its checks and whether it is approved."""
    return as_pull(_one(connection, _PULL, arguments, "Pull request"))


def create_pull_request(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Open a pull request between two branches; its checks are pending."""
    for side in ("source", "target"):
        _branch(connection, arguments[side])
    if arguments["source"] == arguments["target"]:
        raise ToolError("source and target are one branch")
    (number,) = connection.execute(
        "INSERT INTO pull_requests (title, body, author, source, target)"
        " VALUES (:title, :body, 'assistant', :source, :target) RETURNING id",
        {"body": "", **arguments},
    ).fetchone()
    return get_pull_request(connection, {"pull_request_id": number})


def merge_pull_request(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Merge an open pull request whose checks pass: its target points to a new commit. Approval is not looked at.

    Raises ToolError with the log of the checks where they do not pass.
    """
    pull = _open_pull(connection, arguments)
    if pull["checks"] != "passing":
        query = "SELECT check_log FROM pull_requests WHERE id = :pull_request_id"
        (log,) = _one(connection, query, arguments, "Pull request")
        raise ToolError(f"The checks of pull request {pull['id']} are {pull['checks']}. {log}".strip())
    source, target = (_branch(connection, str(pull[side])) for side in ("source", "target"))
    head = hashlib.sha256(f"{target['head']} {source['head']}".encode()).hexdigest()[:6]
    connection.execute(
        "UPDATE branches SET head = :head WHERE name = :target", {"head": head, "target": str(pull["target"])}
    )
    connection.execute("UPDATE pull_requests SET state = 'merged' WHERE id = :pull_request_id", arguments)
    return {"id": pull["id"], "merged": True, "target": pull["target"], "head": head}


def close_pull_request(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    """Close an open pull request without merging it."""
    _open_pull(connection, arguments)
    connection.execute("UPDATE pull_requests SET state = 'closed' WHERE id = :pull_request_id", arguments)
    return get_pull_request(connection, arguments)


def _open_pull(connection: sqlite3.Connection, arguments: Mapping[str, Value]) -> dict[str, Json]:
    pull = get_pull_request(connection, arguments)
    if pull["state"] != "open":
        raise ToolError(f"Pull request {pull['id']} is {pull['state']}")
    return pull


ISSUE_ID = Parameter("issue_id", "integer", "The issue's id.")
PULL_ID = Parameter("pull_request_id", "integer", "The pull request's id.")
STATE = "Only those in this state."

REPO = Fixture(
    name="repo",
    title="Repository",
    schema=SCHEMA,
    seed=SEED,
    tools=(
        Tool(
            name="list_issues",
            description="List issues, oldest first.",
            parameters=(Parameter("state", "string", STATE, False, ("open", "closed", "all"), "all"),),
            output=list_of("issues", ISSUE_HEAD),
            effect="read",
            run=list_issues,
        ),
        Tool("get_issue", "Read one issue and its comments.", (ISSUE_ID,), ISSUE, "read", get_issue),
        Tool(
            name="update_issue",
            description="Open or close an issue, or give it to somebody; what is not given stays.",
            parameters=(
                ISSUE_ID,
                Parameter("state", "string", "The new state.", False, ("open", "closed")),
                Parameter("assignee", "string", "Who is to work on it; empty for nobody.", False),
            ),
            output=ISSUE,
            effect="change",
            run=update_issue,
        ),
        Tool(
            name="comment_on_issue",
            description="Put a comment under an issue.",
            parameters=(ISSUE_ID, Parameter("body", "string", "The comment.")),
            output=COMMENT,
            effect="add",
            run=comment_on_issue,
        ),
        Tool("list_branches", "List all branches.", (), list_of("branches", BRANCH), "read", list_branches),
        Tool(
            name="create_branch",
            description="Make a branch that points where another one does.",
            parameters=(
                Parameter("name", "string", "The new branch."),
                Parameter("from", "string", "The branch that it starts from."),
            ),
            output=BRANCH,
            effect="add",
            run=create_branch,
        ),
        Tool(
            name="delete_branch",
            description="Delete a branch for good.",
            parameters=(Parameter("name", "string", "The branch."),),
            output=object_of({"name": TEXT, "deleted": DONE}),
            effect="remove",
            run=delete_branch,
        ),
        Tool(
            name="list_pull_requests",
            description="List pull requests, oldest first.",
            parameters=(Parameter("state", "string", STATE, False, ("open", "merged", "closed", "all"), "all"),),
            output=list_of("pull_requests", PULL_HEAD),
            effect="read",
            run=list_pull_requests,
        ),
        Tool(
            name="get_pull_request",
            description="Read one pull request: its text, its checks, and whether it is approved.",
            parameters=(PULL_ID,),
            output=PULL,
            effect="read",
            run=get_pull_request,
        ),
        Tool(
            name="create_pull_request",
            description="Open a pull request.",
            parameters=(
                Parameter("title", "string", "The title."),
                Parameter("body", "string", "What it is about.", False, default=""),
                Parameter("source", "string", "The branch to merge."),
                Parameter("target", "string", "The branch to merge it into."),
            ),
            output=PULL,
            effect="add",
            run=create_pull_request,
        ),
        Tool(
            name="merge_pull_request",
            description="Merge an open pull request whose checks pass. It cannot be undone.",
            parameters=(PULL_ID,),
            output=object_of({"id": INTEGER, "merged": DONE, "target": TEXT, "head": TEXT}),
            effect="change",
            run=merge_pull_request,
        ),
        Tool(
            name="close_pull_request",
            description="Close a pull request without merging it.",
            parameters=(PULL_ID,),
            output=PULL,
            effect="change",
            run=close_pull_request,
        ),
    ),
)

if __name__ == "__main__":
    main(REPO)
