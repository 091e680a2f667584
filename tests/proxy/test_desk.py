"""The operator's desk: what is shown, whose answer counts, and who may not give one."""

import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from queue import Queue

import pytest

from proxy.desk import MOST, TRIES, Desk
from proxy.deskline import DeskError, DeskLine, ask_desk, open_folder, socket_path
from proxy.deskserve import DeskServer, listen, new_code
from proxy.deskwords import LONGEST, Lines, Said, WordsError, announce, write
from proxy.held import Answer, Grant, HeldCall, Refused
from proxy.kin import is_inside, lineage, parent, read_stat
from proxy.ledger import now
from proxy.record import Recorder
from proxy.redact import Redactor
from proxy.waiting import Waiting
from tests.proxy.test_holding import Held
from tests.proxy.wires import call, policy_of

DEADLINE = 60.0
HELD: Said = {"hold": "a1", "tool": "mcp/x/pay", "arguments": '{"amount":5}', "rule": "approve", "wait": 60}


def desk() -> Desk:
    codes = count(1)
    return Desk(lambda: f"code{next(codes)}")


def test_a_call_is_shown_with_a_code_and_granted_once_by_it_to_the_proxy_that_holds_it() -> None:
    one = desk()
    assert one.hold(7, HELD)[-1] == "  code       code1"
    assert not one.answer("grant", "a1", "code2").taken
    reply = one.answer("grant", "a1", "code1")
    assert (reply.taken, reply.source, reply.order) == (True, 7, {"grant": "a1"})
    assert not one.answer("grant", "a1", "code1").taken


def test_the_codes_are_not_among_what_is_listed() -> None:
    one = desk()
    one.hold(7, HELD)
    assert "code" not in "".join(one.pending())
    assert any("mcp/x/pay" in line for line in one.pending())


def test_wrong_codes_deny_the_call() -> None:
    one = desk()
    one.hold(7, HELD)
    replies = [one.answer("grant", "a1", "wrong") for _ in range(TRIES)]
    assert [reply.order is None for reply in replies] == [True] * (TRIES - 1) + [False]
    assert "deny" in (replies[-1].order or {})
    assert not one.answer("grant", "a1", "code1").taken


def test_nobody_takes_the_place_of_a_call_that_waits_or_ends_it_for_another() -> None:
    one = desk()
    one.hold(7, HELD)
    assert one.hold(8, {**HELD, "tool": "mcp/x/harmless"}) == []
    assert one.over(8, "a1") == []
    assert one.lost(8) == []
    assert one.lost(7) == ["over     a1"]
    assert not one.answer("grant", "a1", "code1").taken


def test_a_proxy_may_have_so_many_calls_wait_and_no_more() -> None:
    one = desk()
    shown = [one.hold(7, {**HELD, "hold": f"h{number}"}) for number in range(MOST + 1)]
    assert shown[-1] == []
    assert all(shown[:-1])


def test_what_a_terminal_would_obey_is_shown_as_an_escape() -> None:
    lines = desk().hold(7, {**HELD, "arguments": "\x1b[2J\ncode  x", "tool": "mcp/x/\u202epay"})
    assert all(line.isprintable() for line in lines)


def test_arguments_are_announced_without_secrets_and_cut_where_they_are_very_long() -> None:
    held = Held(policy_of(rules=[{"approve": "mcp/x/*"}]))
    held.session.recorder.redactor = Redactor(["hunter2hunter2"], bytes(32), ("PASSWORD",))
    held.client(call("pay", arguments='{"a": "hunter2hunter2", "b": "' + "x" * 9000 + '"}'))
    said = announce(held.held[0], held.session.recorder)
    assert "hunter2" not in str(said)
    assert said["cut"]


def test_lines_that_are_too_long_or_no_objects_are_not_listened_to() -> None:
    for data in (b"[]\n", b"x\n", b"x" * (LONGEST + 1), b"[" * 100_000 + b"\n"):
        with pytest.raises(WordsError):
            Lines().feed(data)
    lines = Lines()
    assert lines.feed(write({"a": 1})[:3]) == []
    assert lines.feed(write({"a": 1})[3:]) == [{"a": 1}]


def test_who_comes_from_where_a_proxy_does_and_the_desk_does_not_is_inside_the_agents_tree() -> None:
    shell, agent, proxy, operator = (10, 1), (20, 1), (30, 1), (40, 1)
    of_proxy, of_desk = (proxy, agent, shell), (operator, shell)
    assert is_inside(((50, 1), agent, shell), of_proxy, of_desk)
    assert is_inside((), of_proxy, of_desk)
    assert not is_inside(((50, 1), shell), of_proxy, of_desk)
    assert not is_inside(((50, 1), (20, 2), shell), of_proxy, of_desk)


def test_a_process_is_known_by_its_pid_and_start_whatever_its_name_is() -> None:
    assert read_stat(b"7 (a) b) (c)) S 3 " + b"0 " * 17 + b"99 0") == (3, 99)
    with pytest.raises(ValueError, match="no line"):
        read_stat(b"7 (a) S 3")
    mine = lineage(os.getpid())
    assert mine[0][0] == os.getpid()
    assert parent() == mine[1]
    assert lineage(2**22 + 1) == ()


def waits() -> tuple[HeldCall, Recorder]:
    """A call that waits from now on."""
    held = Held()
    held.client(call("pay"))
    return replace(held.held[0], since=now()), held.session.recorder


class Serving:
    """A desk in a thread of this process; `shown` are its lines."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.shown: Queue[str] = Queue()
        self.server = DeskServer(listen(folder), self.show)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def show(self, lines: list[str]) -> None:
        for line in lines:
            self.shown.put(line)

    def run(self) -> None:
        while not self.ended.is_set():
            self.server.turn(0.01)

    def code(self) -> str:
        while True:
            line = self.shown.get(timeout=DEADLINE)
            if line.startswith("  code"):
                return line.split()[-1]

    def close(self) -> None:
        self.ended.set()
        self.thread.join(DEADLINE)
        self.server.close(self.folder)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    one = Serving(str(tmp_path / "desk"))
    yield one
    one.close()


def test_an_operator_lets_a_waiting_call_through_over_a_private_socket(serving: Serving) -> None:
    assert os.stat(serving.folder).st_mode & 0o777 == 0o700
    assert os.stat(f"{serving.folder}/desk.sock").st_mode & 0o777 == 0o600
    answers: Queue[Answer] = Queue()
    held, recorder = waits()
    waiting = Waiting(None, DeskLine(serving.folder))
    waiting.ask(held, recorder, answers.put)
    code = serving.code()
    name = held.id
    assert "not the code" in str(ask_desk(serving.folder, {"answer": "grant", "id": name, "code": "x"})["error"])
    assert name in str(ask_desk(serving.folder, {"list": True})["pending"])
    assert ask_desk(serving.folder, {"answer": "grant", "id": name, "code": code}) == {"done": f"{name} is granted"}
    granted = answers.get(timeout=DEADLINE)
    assert isinstance(granted, Grant)
    assert (granted.source, granted.arguments_sha256) == ("operator", held.sha256)
    waiting.close()


def test_a_call_whose_client_gave_it_up_leaves_the_desk(serving: Serving) -> None:
    answers: Queue[Answer] = Queue()
    held, recorder = waits()
    waiting = Waiting(None, DeskLine(serving.folder))
    waiting.ask(held, recorder, answers.put)
    code = serving.code()
    waiting.forget(held)
    assert isinstance(answers.get(timeout=DEADLINE), Refused)
    assert serving.shown.get(timeout=DEADLINE).startswith("over")
    answer = ask_desk(serving.folder, {"answer": "grant", "id": held.id, "code": code})
    assert "waits here (any more)" in str(answer["error"])
    waiting.close()


def test_a_desk_that_opens_while_a_call_waits_is_told_of_it(tmp_path: Path) -> None:
    answers: Queue[Answer] = Queue()
    held, recorder = waits()
    folder = str(tmp_path / "desk")
    waiting = Waiting(None, DeskLine(folder))
    waiting.ask(held, recorder, answers.put)
    late = Serving(folder)
    try:
        ask_desk(folder, {"answer": "deny", "id": held.id, "code": late.code()})
        assert answers.get(timeout=DEADLINE) == Refused("the operator denied it")
    finally:
        late.close()
        waiting.close()


def test_a_call_that_nobody_answers_is_refused_in_time_and_says_why(tmp_path: Path) -> None:
    answers: Queue[Answer] = Queue()
    held = Held(policy_of(rules=[{"approve": "mcp/x/pay", "wait": "1ms"}]))
    held.client(call("pay"))
    for waiting in (Waiting(), Waiting(None, DeskLine(str(tmp_path / "none")))):
        waiting.ask(held.held[0], held.session.recorder, answers.put)
        refused = answers.get(timeout=DEADLINE)
        assert isinstance(refused, Refused)
        assert refused.why.startswith("no approval came within 0.001 s")
        waiting.close()


def test_a_folder_that_others_may_enter_is_no_place_for_a_desk(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for use in (lambda: listen(str(tmp_path)), lambda: DeskLine(str(tmp_path)).connect()):
        with pytest.raises(DeskError, match="0700"):
            use()
    with pytest.raises(DeskError, match="approve listen"):
        open_folder(str(tmp_path / "none"))


def test_a_second_desk_in_one_folder_does_not_start(serving: Serving) -> None:
    with pytest.raises(DeskError, match="another desk"):
        listen(serving.folder)


def test_a_desk_of_the_client_that_is_watched_is_not_asked(tmp_path: Path) -> None:
    one = Serving(str(tmp_path / "desk"))
    try:
        with pytest.raises(DeskError, match="started by the client"):
            DeskLine(one.folder, lineage(os.getpid())[0]).connect()
    finally:
        one.close()


def test_a_proxy_never_answers_at_the_desk_itself(serving: Serving) -> None:
    line = DeskLine(serving.folder)
    line.connect()
    line.say(HELD)
    line.say({"answer": "grant", "id": "a1", "code": serving.code()})
    assert "error" in line.hear()[0]
    line.close()


def test_what_a_stranger_sends_does_not_end_the_desk(serving: Serving) -> None:
    place = open_folder(serving.folder)
    for data in (b"\0\xff\n", b"[]\n", b"{}\n", b'{"hold": 5}\n', b'{"answer": 1, "id": [], "code": {}}\n', b"x"):
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(DEADLINE)
            line.connect(socket_path(place))
            line.sendall(data)
    os.close(place)
    assert ask_desk(serving.folder, {"list": True}) == {"pending": []}


def test_codes_differ() -> None:
    assert len({new_code() for _ in range(100)}) == 100
