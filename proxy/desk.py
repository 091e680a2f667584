"""An operator's desk: which calls wait there, the one-time code of each, and whose answer counts.

Pure: codes are given to it. Refuses to know sockets and processes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest

from proxy.deskwords import Said, text_of
from proxy.visible import visible

TRIES = 3
"""Wrong codes after which a call is denied."""
MOST = 64
"""Calls of one proxy that wait at once; more are not shown, and so are refused."""
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Characters of codes: none that a person takes for another one."""
CODE = 8
"""Characters of a code: one guess in 10^11 is right."""


@dataclass(slots=True)
class Ticket:
    """A call that waits; `source` is the proxy that holds it."""

    source: int
    said: Said
    code: str = field(repr=False)
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What an answer came to: a sentence for whoever gave it, and the order for the proxy `source`, None for none."""

    text: str
    taken: bool
    source: int = -1
    order: Said | None = None


class Desk:
    """The tickets of a desk, by id."""

    def __init__(self, new_code: Callable[[], str]) -> None:
        self._new_code = new_code
        self.tickets: dict[str, Ticket] = {}

    def hold(self, source: int, said: Said) -> list[str]:
        """A proxy says that a call waits; the lines that the operator is shown. Nothing where it may not wait here."""
        name = text_of(said, "hold")
        own = sum(ticket.source == source for ticket in self.tickets.values())
        if not name or name in self.tickets or own >= MOST:
            return []
        ticket = self.tickets[name] = Ticket(source, said, self._new_code())
        return [*shown(name, ticket), f"  code       {ticket.code}"]

    def over(self, source: int, name: str) -> list[str]:
        """A proxy says that a call waits no longer."""
        ticket = self.tickets.get(name)
        if ticket is None or ticket.source != source:
            return []
        del self.tickets[name]
        return [f"over     {visible(name)}"]

    def lost(self, source: int) -> list[str]:
        """A proxy is gone, and its calls with it."""
        names = [name for name, ticket in self.tickets.items() if ticket.source == source]
        return [line for name in names for line in self.over(source, name)]

    def pending(self) -> list[str]:
        """The lines that say what waits, without the codes."""
        return [line for name, ticket in self.tickets.items() for line in shown(name, ticket)]

    def answer(self, verdict: str, name: str, code: str) -> Reply:
        """Somebody's answer: it counts with the call's code alone, once, and only while the call waits."""
        ticket = self.tickets.get(name)
        if ticket is None or verdict not in {"grant", "deny"}:
            return Reply(f"no call {visible(name)!r} waits here (any more)", taken=False)
        if not compare_digest(code.encode("utf-8", "surrogatepass"), ticket.code.encode()):
            ticket.wrong += 1
            if ticket.wrong < TRIES:
                return Reply(f"that is not the code of {name}", taken=False)
            del self.tickets[name]
            order: Said = {"deny": name, "why": f"a wrong code was given {TRIES} times"}
            return Reply(f"that is not the code of {name}; it is denied now", False, ticket.source, order)
        del self.tickets[name]
        done = "granted" if verdict == "grant" else "denied"
        return Reply(f"{name} is {done}", True, ticket.source, {verdict: name})


def shown(name: str, ticket: Ticket) -> list[str]:
    """The lines that say what waits. What a terminal would obey shows as an escape."""
    said = ticket.said
    cut = said.get("cut")
    more = f" … and {cut} characters more" if isinstance(cut, int) and cut else ""
    wait = said.get("wait")
    return [
        f"waiting  {visible(name)}",
        f"  tool       {visible(text_of(said, 'tool'))}",
        f"  arguments  {visible(text_of(said, 'arguments'))}{more}",
        f"  sha256     {visible(text_of(said, 'arguments_sha256'))}",
        f"  why        {visible(text_of(said, 'rule'))}: {visible(text_of(said, 'reason'))}",
        f"  for        {wait if isinstance(wait, int | float) else '?'} s",
    ]
