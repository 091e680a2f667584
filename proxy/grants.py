"""Approvals that were made beforehand: a file of grants, and beside it the list of those that are used or revoked.

The file is read once, at the start. Refuses to know the wire and who waits.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from proxy.canonical import canonical
from proxy.fieldreading import FieldReading
from proxy.held import SECOND, Grant, HeldCall, call_digest, misfit, refusal_of
from proxy.plainfile import open_plain, read_at_most
from proxy.problem import Path, Problem, ProblemError, describe
from proxy.record import Stamp
from proxy.sha import sha256_hex
from proxy.spans import JSON
from proxy.yamlfile import YamlError, load_document

LONGEST = 16 * 1024 * 1024
"""Bytes of a file of grants, and of the list beside it."""
_LINKED = (
    "the file has several names (hard links), and each grant would be used once by each; copy it to a file of its own"
)
_FIELDS = ("id", "tool", "arguments", "expires_at", "granted_at", "revoked_at")


class GrantError(ProblemError):
    """A file of grants that cannot be used. It stops the start."""


class LedgerError(ValueError):
    """The list of used grants cannot be read or written, so that no grant of the file can be used."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What the list says of a grant: it was used or revoked, and when, in Unix nanoseconds."""

    kind: str
    at: int


class Grants:
    """The grants of one file."""

    def __init__(self, path: str, grants: tuple[Grant, ...]) -> None:
        # The file itself: neither a change of folder nor a link's name may give it another list.
        self.path = os.path.realpath(path)
        self.grants = grants
        self._used: set[str] = set()

    @property
    def list_path(self) -> str:
        """The file with the grants that are used or revoked."""
        return f"{self.path}.used"

    def take(self, held: HeldCall, now: Stamp) -> "Grant | str":
        """Use up a grant for a held call, on disk before this returns; or why there is none, "" where none fits.

        Never raises: what cannot be noted as used cannot be used.
        """
        named = [grant for grant in self.grants if grant.tool == held.one.canonical]
        fitting = [grant for grant in named if misfit(grant, held.one.canonical, held.sha256, now.wall) is None]
        if not fitting:
            return next((why for grant in named if (why := refusal_of(held, grant, now))), "")
        try:
            with _locked(self.list_path) as file:
                return self._first(held, fitting, _marks(file), file, now)
        except (OSError, ValueError) as error:
            return f"no grant of the file can be used: {error}"

    def _first(
        self, held: HeldCall, fitting: list[Grant], marks: Mapping[str, Mark], file: int, now: Stamp
    ) -> "Grant | str":
        why = ""
        for grant in fitting:
            mark = marks.get(grant.id)
            if grant.id in self._used or (mark is not None and mark.kind == "used"):
                why = f"the grant {grant.id} was used already"
                continue
            marked = grant if mark is None else replace(grant, revoked_at=mark.at)
            found = refusal_of(held, marked, now)
            if found is not None:
                why = found
                continue
            self._used.add(grant.id)
            _note(file, grant.id, "used", now.wall)
            return marked
        return why

    def revoke(self, grant_id: str, wall: int) -> str:
        """Revoke a grant; what became of it, in words. Raises LedgerError, also where the file has no such grant."""
        if all(grant.id != grant_id for grant in self.grants):
            there = ", ".join(grant.id for grant in self.grants) or "none"
            raise LedgerError(f"{self.path}: there is no grant {grant_id!r}; there are {there}")
        try:
            with _locked(self.list_path) as file:
                mark = _marks(file).get(grant_id)
                if mark is not None:
                    return f"the grant {grant_id} was {mark.kind} already"
                _note(file, grant_id, "revoked", wall)
        except OSError as error:
            raise LedgerError(f"{self.list_path}: {error.strerror}") from None
        return f"the grant {grant_id} is revoked"


@contextmanager
def _locked(path: str) -> Iterator[int]:
    """The list, open for us alone among all proxies that use it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.open(path, flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _marks(file: int) -> dict[str, Mark]:
    """What the list says of each grant; the first word counts. Raises LedgerError for a line that is none of ours."""
    size = os.fstat(file).st_size
    if size > LONGEST:
        raise LedgerError(f"the list of used grants has more than {LONGEST} bytes")
    marks: dict[str, Mark] = {}
    for line in os.pread(file, size, 0).splitlines():
        try:
            match json.loads(line):
                case {"id": str() as name, "mark": ("used" | "revoked") as kind, "at": int() as at}:
                    marks.setdefault(name, Mark(kind, at))
                case _:
                    raise ValueError
        except ValueError:
            raise LedgerError("the list of used grants has a line that is none of ours") from None
    return marks


def _note(file: int, grant_id: str, kind: str, at: int) -> None:
    line = json.dumps({"id": grant_id, "mark": kind, "at": at}).encode() + b"\n"
    if os.write(file, line) != len(line):
        raise OSError(0, "short write")
    os.fsync(file)


def load_grants(path: str) -> Grants:
    """The grants of a file. Raises GrantError with everything that is wrong, also where it cannot be read.

    A symbolic link is resolved. A file with several hard links is refused: beside each of its names there would be
    another list of uses.
    """
    try:
        real = os.path.realpath(path)
        with open_plain(real) as stream:
            if os.fstat(stream.fileno()).st_nlink > 1:
                raise GrantError([Problem(path, None, "", _LINKED)])
            text = read_at_most(stream, LONGEST)
        document = load_document(text, path)
    except YamlError as error:
        raise GrantError(error.problems) from None
    except GrantError:
        raise
    except (OSError, ValueError) as error:
        said = (error.strerror or error) if isinstance(error, OSError) else error
        raise GrantError([Problem(path, None, "", f"the grants cannot be read: {said}")]) from None
    reading = FieldReading(path, document.line, ())
    grants = parse_grants(reading, document.data)
    if reading.problems:
        raise GrantError(reading.problems)
    return Grants(real, grants)


def parse_grants(reading: FieldReading, data: JSON) -> tuple[Grant, ...]:
    """The grants of a list; what is wrong is noted. Without an `id` a grant has that of its content and place."""
    if not isinstance(data, list):
        reading.wrong((), f"expected a list of grants, not {describe(data)}")
        return ()
    found: dict[str, Grant] = {}
    for place, item in enumerate(data):
        grant = _grant(reading, (place,), item, found)
        if grant is not None:
            found[grant.id] = grant
    return tuple(found.values())


def _grant(reading: FieldReading, path: Path, data: JSON, before: Mapping[str, Grant]) -> Grant | None:
    if not isinstance(data, dict):
        reading.wrong(path, f"expected a map with tool, arguments and expires_at, not {describe(data)}")
        return None
    reading.known(path, data, _FIELDS)
    problems = len(reading.problems)
    tool, arguments = data.get("tool"), data.get("arguments")
    if not isinstance(tool, str) or tool.count("/") < 2 or not tool.startswith("mcp/"):
        reading.wrong((*path, "tool"), f"expected a canonical name, mcp/SERVER/TOOL, not {describe(tool)}")
    if not isinstance(arguments, dict):
        reading.wrong((*path, "arguments"), f"expected the call's whole arguments as a map, not {describe(arguments)}")
    expires_at = _moment(reading, (*path, "expires_at"), data.get("expires_at"), needed=True)
    granted_at = _moment(reading, (*path, "granted_at"), data.get("granted_at"))
    revoked_at = _moment(reading, (*path, "revoked_at"), data.get("revoked_at"))
    name = data.get("id", _own_id(data, before))
    if not isinstance(name, str) or not name or not name.isprintable():
        reading.wrong((*path, "id"), f"expected a name, not {describe(name)}")
    elif name in before:
        reading.wrong((*path, "id"), f"there is a grant {name!r} before it, and each is used once")
    if len(reading.problems) > problems or not isinstance(tool, str) or not isinstance(name, str):
        return None
    return Grant(name, tool, call_digest(tool, arguments), "file", expires_at or 0, granted_at, revoked_at)


def _own_id(data: dict[str, JSON], before: Mapping[str, Grant]) -> str:
    """An id that the same grant has in every reading of the file; a second one of the same kind has another."""
    text = canonical(data).encode("utf-8", "surrogatepass")
    names = (f"g-{sha256_hex(text + b'%d' % number)[:12]}" for number in range(len(before) + 1))
    return next(name for name in names if name not in before)


def _moment(reading: FieldReading, path: Path, value: JSON, *, needed: bool = False) -> int | None:
    """Unix nanoseconds of an RFC 3339 text."""
    if value is None and not needed:
        return None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        reading.wrong(path, f"expected a moment such as 2026-12-01T12:00:00Z, not {describe(value)}")
        return None
    return int(moment.timestamp()) * SECOND + moment.microsecond * 1000
