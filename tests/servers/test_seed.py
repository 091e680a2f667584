import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.catalogue import FIXTURES
from servers.crm import CRM
from servers.database import init_database
from servers.places import init_place
from servers.seed import SeedError, parse_seed, read_seed
from servers.ticketing import TICKETING
from tests.servers.wire import rows


def seed_file(folder: Path, text: str) -> Path:
    path = folder / "seed.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "word",
    ["no", "on", "yes", "True", "NULL", "~", "2026-01-31", "1:30", "1_000", "012", "0x1F", ".5", ".inf", "=", "<<"],
)
def test_words_that_yaml_would_turn_into_something_else_stay_text(tmp_path: Path, word: str) -> None:
    seed = read_seed(seed_file(tmp_path, f"tickets: [{{description: {word}}}]"))
    assert seed.tables == {"tickets": ({"description": word},)}


@pytest.mark.parametrize(
    ("word", "value"),
    [("true", True), ("false", False), ("null", None), ("", None), ("0", 0), ("-7", -7), ("1.5", 1.5), ("1e3", 1000.0)],
)
def test_the_spellings_of_json_are_what_they_are_in_json(tmp_path: Path, word: str, value: object) -> None:
    ((row,),) = read_seed(seed_file(tmp_path, f"t:\n- c: {word}\n")).tables.values()
    assert row["c"] == value
    assert type(row["c"]) is type(value)


@settings(max_examples=100)
@given(
    st.dictionaries(
        st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=5),
        st.none()
        | st.booleans()
        | st.integers(-(2**40), 2**40)
        | st.text(st.characters(min_codepoint=32, max_codepoint=126)),
        min_size=1,
        max_size=4,
    )
)
def test_a_seed_written_as_json_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, row: dict[str, object]
) -> None:
    path = seed_file(tmp_path_factory.mktemp("seed"), json.dumps({"t": [row]}))
    assert read_seed(path).tables == {"t": (row,)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a map of tables"),
        ("[]", "must be a map of tables"),
        ("tickets: 3", "table tickets: must be a list of rows"),
        ("tickets: {id: 1}", "table tickets: must be a list of rows"),
        ("tickets: [3]", "table tickets, row 1: must be a map"),
        ("tickets: [{id: 1}, {id: [2]}]", "table tickets, row 2, column id: must be text, a number"),
        ("tickets: []\ntickets: []", "line 2: 'tickets' is repeated"),
        ("tickets:\n- id: 1\n  id: 2", "line 3: 'id' is repeated"),
        ("tickets:\n- &a {id: 1}\n- *a", "line 3: an alias is not allowed"),
        ("1: []", "line 1: a key must be text"),
        ("tickets: [", "line 1"),
        ("tickets: !!python/name:os.system []", "line 1"),
        ("a: []\n---\nb: []", "line 2"),
        ("tickets: \x07", "is not YAML that can be read"),
    ],
)
def test_a_seed_of_another_shape_is_an_error_that_names_the_file_and_the_place(
    tmp_path: Path, text: str, message: str
) -> None:
    path = seed_file(tmp_path, text)
    with pytest.raises(SeedError) as caught:
        read_seed(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_seed_that_is_missing_or_no_text_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(SeedError, match=r"absent\.yaml: cannot be read"):
        read_seed(tmp_path / "absent.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(SeedError, match=r"bytes\.yaml: cannot be read"):
        read_seed(tmp_path / "bytes.yaml")


TICKET = {"id": 1, "customer_id": "C", "description": "d"}
CUSTOMER = {"id": "C", "name": "n", "tier": "t", "status": "s", "credit_hold": True}


@pytest.mark.parametrize(
    ("fixture", "document", "message"),
    [
        ("ticketing", {"customers": []}, "x.yaml: there is no table 'customers'; there is tickets"),
        ("ticketing", {"TICKETS": []}, "x.yaml: there is no table 'TICKETS'; there is tickets"),
        ("ticketing", {"sqlite_sequence": []}, "x.yaml: there is no table 'sqlite_sequence'; there is tickets"),
        ("ticketing", {"tickets": [{**TICKET, "prio": 1}]}, "table tickets, row 1: there is no column 'prio'"),
        ("ticketing", {"tickets": [{**TICKET, "ID": 1}]}, "table tickets, row 1: there is no column 'ID'"),
        ("ticketing", {"tickets": [{**TICKET, "id": "1"}]}, "row 1, column id: must be an integer of 64 bits, not '1'"),
        (
            "ticketing",
            {"tickets": [{**TICKET, "id": True}]},
            "row 1, column id: must be an integer of 64 bits, not True",
        ),
        ("ticketing", {"tickets": [{**TICKET, "id": 2**63}]}, "row 1, column id: must be an integer of 64 bits"),
        (
            "ticketing",
            {"tickets": [{**TICKET, "customer_id": 7}]},
            "column customer_id: must be text (in quotes), not 7",
        ),
        (
            "ticketing",
            {"tickets": [{**TICKET, "status": "new"}]},
            "table tickets, row 1: CHECK constraint failed: status",
        ),
        ("ticketing", {"tickets": [{**TICKET, "tier": "gold"}]}, "table tickets, row 1: CHECK constraint failed: tier"),
        ("ticketing", {"tickets": [TICKET, TICKET]}, "table tickets, row 2: UNIQUE constraint failed: tickets.id"),
        ("ticketing", {"tickets": [{}]}, "table tickets, row 1: NOT NULL constraint failed: tickets.customer_id"),
        ("ticketing", {"tickets": [{**TICKET, "description": "\ud800"}]}, "table tickets, row 1"),
        (
            "crm",
            {"customers": [{**CUSTOMER, "credit_hold": "no"}]},
            "column credit_hold: must be true or false, not 'no'",
        ),
        ("crm", {"customers": [{**CUSTOMER, "credit_hold": 2}]}, "column credit_hold: must be true or false, not 2"),
        ("crm", {"customers": [{**CUSTOMER, "name": None}]}, "row 1: NOT NULL constraint failed: customers.name"),
    ],
)
def test_rows_that_do_not_fit_the_tables_are_an_error_and_leave_no_file(
    tmp_path: Path, fixture: str, document: object, message: str
) -> None:
    with pytest.raises(SeedError) as caught:
        init_place(tmp_path / "x.db", FIXTURES[fixture], parse_seed(document, "x.yaml"))
    assert message in str(caught.value)
    assert str(caught.value).startswith("x.yaml: ")
    assert list(tmp_path.iterdir()) == []


def test_a_seed_replaces_all_of_the_fixtures_own_rows(tmp_path: Path) -> None:
    seed = parse_seed({"customers": [CUSTOMER, {**CUSTOMER, "id": "D", "credit_hold": 0}]}, "x.yaml")
    init_database(tmp_path / "a.db", CRM, seed)
    assert rows(tmp_path / "a.db", "SELECT id, credit_hold FROM customers") == [("C", 1), ("D", 0)]
    init_database(tmp_path / "b.db", CRM, parse_seed({}, "y.yaml"))
    assert rows(tmp_path / "b.db", "SELECT * FROM customers") == []


def test_a_seeded_ticket_takes_the_defaults_for_what_is_absent(tmp_path: Path) -> None:
    init_database(tmp_path / "a.db", TICKETING, parse_seed({"tickets": [TICKET]}, "x.yaml"))
    assert rows(tmp_path / "a.db", "SELECT * FROM tickets") == [(1, "C", "open", "unknown", "d")]
