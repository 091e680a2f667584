"""Every limit and time on the wire, and every fault, is documented as it is."""

import re

from proxy.bridge import NO_SESSION
from proxy.bridgeline import FIRST, QUIET, UNREAD
from proxy.bridgesession import WAITING
from proxy.connect import ORDER
from proxy.endpoint import PATH
from proxy.faults import FIELDS as FAULT_FIELDS
from proxy.faults import KINDS
from proxy.frames import CAP
from proxy.mcpheaders import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, NO_METHOD, UNPARSED
from proxy.mending import LIMIT
from proxy.nursery import GRACE, STOP_GRACE
from proxy.otlp import BATCH_SPANS, FLUSH, LINGER, QUEUE_BYTES, QUEUE_SPANS
from proxy.relay import HELD_FROM_SERVER
from proxy.seats import IDLE, MOST
from proxy.stdio import BACKSTOP, GROUP_GRACE, LEFT_GRACE, RECORD_FAILED
from tests.docs.pages import TEXTS, first_cells, section


def test_every_limit_and_every_time_on_the_wire_is_named() -> None:
    told = TEXTS["wire.md"]
    assert f"{CAP // 2**20} MiB" in told
    assert f"{HELD_FROM_SERVER // 2**10} KiB" in told
    for seconds in (BACKSTOP, GROUP_GRACE, LEFT_GRACE):
        assert f"{seconds:g} s" in section("wire.md", "How it ends")
    assert str(RECORD_FAILED) in section("wire.md", "If the record fails")
    http = TEXTS["http.md"]
    for words in (f"{CAP // 2**20} MiB", f"{IDLE / 60:g} minutes", f"At most {MOST} connections"):
        assert words in http


def test_every_limit_and_code_of_a_bridge_is_named() -> None:
    told = section("bridge.md", "HTTP in front of a server over stdio")
    for words in (f"After {FIRST:g} s", f"after {QUIET:g} s", f"up to {WAITING} messages", f"after {GRACE:g} s each"):
        assert words in told
    for words in (
        f"SIGKILL {STOP_GRACE:g} s later",
        f"{UNREAD // 2**20} MiB unread",
        f"longer than {CAP // 2**20} MiB",
    ):
        assert words in told
    for code in (HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, NO_METHOD, UNPARSED, NO_SESSION):
        assert re.search(rf"\| [^|]*{code}\b[^|]* \|", told)
    assert f"{ORDER:g} s to be accepted" in section("bridge.md", "Stdio in front of a server over HTTP")


def test_every_limit_of_an_export_is_named() -> None:
    told = section("export.md", "While it is written")
    assert f"{FLUSH:g} s" in told
    assert f"{LINGER:g} s" in told
    assert f"{BATCH_SPANS} at the most" in told
    assert f"{QUEUE_SPANS:,} spans or {QUEUE_BYTES // 2**20} MiB" in told
    assert f"{LIMIT // 2**10} KiB" in section("export.md", "What is changed in the copy")
    assert PATH in section("export.md", "Where to")


# Faults and judges


def test_every_field_and_kind_of_a_fault_is_in_a_table_and_no_other() -> None:
    assert sorted(first_cells(section("faults.md", "The file"))) == sorted([*FAULT_FIELDS, *KINDS])
