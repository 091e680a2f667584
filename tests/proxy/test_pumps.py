import fcntl
import json
import os
import sys
import termios
from pathlib import Path
from select import POLLOUT, poll
from threading import Event, Thread
from time import monotonic

import pytest

from proxy import relay
from proxy.pumps import Pumps
from proxy.record import Identity
from proxy.relay import Relay
from proxy.spanfile import SpanFile
from tests.proxy.deniedlines import code_of
from tests.proxy.pipereader import DEADLINE, Reader
from tests.proxy.wires import EVIL, call


class Told(Relay):
    """A relay that tells when what was owed has been recorded, because of a pause or at the end."""

    settled = Event()

    def settle(self) -> None:
        super().settle()
        self.settled.set()


class Ends:
    """Both pumps over four pipes; a client and a server write and read their ends."""

    def __init__(self, folder: Path, *, reads: bool = True) -> None:
        self.spans = SpanFile.create(folder, "x")
        self.relay = Told(Identity("x", "trusted", "stdio", "c"), EVIL, "0", self.spans)
        self.settled = self.relay.settled = Event()
        client_in, self.client = os.pipe()
        self.client_read, client_out = os.pipe()
        server_read, server_in = os.pipe()
        server_out, self.server = os.pipe()
        self.to_server = Reader(server_read)
        if reads:
            self.to_client = Reader(self.client_read)
        self.reasons: list[str] = []
        os.set_blocking(client_in, False)
        self.pumps = Pumps(self.relay, (client_in, client_out), (server_out, server_in), self.reasons.append)
        self.client_in = client_in
        self.pumps.start()

    def finish(self) -> None:
        for thread in (self.pumps.upward, self.pumps.downward):
            thread.join(DEADLINE)
            assert not thread.is_alive()
        self.relay.close(self.reasons[0])


def there(ends: Ends) -> int:
    """Bytes that the client has not read yet."""
    return int.from_bytes(fcntl.ioctl(ends.client_read, termios.FIONREAD, bytes(4)), sys.byteorder)


def requests(ends: Ends) -> int:
    return Path(ends.spans.path).read_bytes().count(b'"stringValue":"request"')


def test_both_pumps_carry_lines_and_refusals_to_their_ends(tmp_path: Path) -> None:
    ends = Ends(tmp_path)
    os.write(ends.client, call("ok").encode() + b"\n" + call("evil", id_text="2").encode() + b"\n")
    assert ends.to_server.wait_for(10) == call("ok").encode() + b"\n"
    ends.to_client.wait_for(10)
    os.write(ends.server, b'{"jsonrpc":"2.0","id":1,"result":{}}\nunterminated')
    os.close(ends.client)
    assert ends.to_server.all() == call("ok").encode() + b"\n"
    os.close(ends.server)
    refusal, answer, tail = ends.to_client.all().split(b"\n")
    assert code_of(json.loads(refusal)) == 10001
    assert answer == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert tail == b"unterminated"
    ends.finish()
    assert ends.reasons == ["client_ended", "server_ended"]
    os.close(ends.client_in)


def test_a_server_that_ends_first_is_the_end_for_the_client(tmp_path: Path) -> None:
    ends = Ends(tmp_path)
    os.close(ends.server)
    assert ends.to_client.all() == b""
    assert ends.reasons == ["server_ended"]
    os.close(ends.client)
    ends.finish()
    os.close(ends.client_in)


def test_an_answer_is_recorded_when_the_server_pauses_though_nothing_more_comes(
    tmp_path: Path,
) -> None:
    ends = Ends(tmp_path)
    os.write(ends.client, call("ok").encode() + b"\n")
    ends.to_server.wait_for(10)
    os.write(ends.server, b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    assert ends.settled.wait(DEADLINE)
    assert b'"request"' in Path(ends.spans.path).read_bytes()
    os.close(ends.client)
    os.close(ends.server)
    ends.finish()
    os.close(ends.client_in)


def answers_of(size: int, calls: int) -> list[bytes]:
    bare = [b'{"jsonrpc":"2.0","id":%d,"result":{"text":""}}\n' % one for one in range(1, calls + 1)]
    return [one[:-4] + b"x" * (size - len(one)) + one[-4:] for one in bare]


@pytest.mark.parametrize("size", [1500, 4096, 5000, 30_000, 70_000])
def test_answers_are_recorded_though_their_client_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    # Neither their number nor their size counts here, so that what is recorded is so because the client does not read.
    monkeypatch.setattr(relay, "OWED_ANSWERS", 1000)
    monkeypatch.setattr(relay, "OWED_BYTES", 10_000_000)
    answers = answers_of(size, 60)
    ends = Ends(tmp_path, reads=False)
    asked = "".join(call("ok", id_text=str(one)) + "\n" for one in range(1, 61))
    os.write(ends.client, asked.encode())
    ends.to_server.wait_for(len(asked))
    speaker = Thread(target=lambda: [os.write(ends.server, one) for one in answers])
    speaker.start()
    room, end = poll(), monotonic() + DEADLINE
    room.register(ends.pumps.to_client.fd, POLLOUT)
    while room.poll(0) or requests(ends) < there(ends) // size:
        assert monotonic() < end, f"{there(ends)} bytes are there, of which {requests(ends)} answers are recorded"
        ends.settled.wait(0.05)
        ends.settled.clear()
    reader = Reader(ends.client_read)
    speaker.join(DEADLINE)
    os.close(ends.client)
    os.close(ends.server)
    ends.finish()
    assert reader.all() == b"".join(answers)
    assert requests(ends) == 60
    os.close(ends.client_in)


def test_a_line_of_ours_that_waits_for_the_client_keeps_no_answer_off_the_record(
    tmp_path: Path,
) -> None:
    ends = Ends(tmp_path, reads=False)
    os.write(ends.client, call("ok").encode() + b"\n")
    ends.to_server.wait_for(len(call("ok")) + 1)
    ends.pumps.to_client.post(b"x" * 200_000 + b"\n")
    assert os.read(ends.client_read, 1) == b"x"  # so it is being written
    os.write(ends.server, answers_of(100, 1)[0])
    assert ends.settled.wait(DEADLINE)
    assert requests(ends) == 1
    reader = Reader(ends.client_read)
    os.close(ends.client)
    os.close(ends.server)
    ends.finish()
    assert reader.all().endswith(b"x\n" + answers_of(100, 1)[0])
    os.close(ends.client_in)
