"""A call that waits for an approval, and the grant that lets it through: for this name and these arguments, in time.

Pure. Refuses to know who grants, and the wire.
"""

from dataclasses import dataclass
from typing import TypeAlias

from proxy.canonical import digest
from proxy.holds import Hold
from proxy.judging import Judgement
from proxy.record import Place, Stamp
from proxy.spans import JSON

SECOND = 1_000_000_000
"""Nanoseconds."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One approval, which lets one call through. Times are Unix nanoseconds; `source` is `operator` or `file`.

    `tool` is a canonical name; `granted_at` is None where nobody said.
    """

    id: str
    tool: str
    arguments_sha256: str
    source: str
    expires_at: int
    granted_at: int | None = None
    revoked_at: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """No approval, and why. `cancelled`: the client gave the call up, and gets no answer."""

    why: str
    cancelled: bool = False


Answer: TypeAlias = Grant | Refused


@dataclass(frozen=True, slots=True, eq=False)
class HeldCall:
    """A call that waits: what was asked, its bytes, and since when. `id` is what an operator names it by.

    `sha256` is what a grant has to name; `told` is the same of the arguments as the record tells them, where secrets
    are marks: so a digest gives no secret away, and a reader of the record gets the same one.
    """

    id: str
    one: Judgement
    hold: Hold
    raw: bytes
    place: Place
    seq: int
    since: Stamp
    sha256: str
    told: str

    @property
    def until(self) -> int:
        """When it is refused, in nanoseconds of CLOCK_MONOTONIC."""
        return self.since.mono + int(self.hold.wait * SECOND)


def call_digest(canonical: str, arguments: JSON) -> str:
    """What an approval names: SHA-256 over RFC 8785 of [canonical name, arguments], in hex (verdicts.md section 4)."""
    return digest([canonical, {} if arguments is None else arguments])


def misfit(grant: Grant, tool: str, sha256: str, wall: int) -> str | None:
    """Why a grant does not let a call through at this moment (Unix nanoseconds), in words; None where it does."""
    if grant.tool != tool:
        return f"the grant {grant.id} is for another tool"
    if grant.arguments_sha256 != sha256:
        return f"the grant {grant.id} is for other arguments"
    if grant.revoked_at is not None and grant.revoked_at <= wall:
        return f"the grant {grant.id} was revoked"
    if grant.expires_at <= wall:
        return f"the grant {grant.id} has expired"
    if grant.granted_at is not None and grant.granted_at > wall:
        return f"the grant {grant.id} is for a later time"
    return None


def refusal_of(held: HeldCall, answer: Answer, now: Stamp) -> str | None:
    """Why a held call must not go on with this answer, in words; None where it may."""
    if isinstance(answer, Refused):
        return answer.why
    if now.mono >= held.until:
        return f"no approval came within {shown_seconds(held.hold.wait)}"
    if answer.granted_at is not None and answer.granted_at + held.hold.lasts * SECOND <= now.wall:
        return f"the grant {answer.id} has expired"
    return misfit(answer, held.one.canonical, held.sha256, now.wall)


def shown_seconds(seconds: float) -> str:
    """A number of seconds in words."""
    return f"{seconds:g} s"
