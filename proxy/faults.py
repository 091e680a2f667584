"""Which calls go wrong on purpose, and how: faults that a scenario asks for, so that recovery can be judged.

Pure, but for `load_faults`, which reads a file. Refuses to know frames, and what policy says: a fault only ever holds
back or replaces what policy has let through.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from proxy.fieldreading import FieldReading
from proxy.glob import check_glob, compile_glob
from proxy.problem import Path, Problem, ProblemError, describe
from proxy.sha import sha256_hex
from proxy.spans import JSON

Kind: TypeAlias = Literal["error", "timeout", "delay", "empty", "cut", "lost"]
"""error and timeout: the call never reaches its server, and is answered by an error of ours or by nothing. delay:
its answer is late. empty and cut: the call is executed, and its answer loses its content, or the end of it. lost: the
call is executed, and nobody gets its answer."""
Form: TypeAlias = Literal["tool_error", "error"]

KINDS: tuple[Kind, ...] = get_args(Kind)
HELD_BACK: frozenset[Kind] = frozenset({"error", "timeout"})
"""Faults of calls that never reach their server."""
LONGEST = 3600.0
"""Seconds that a delay may have."""
SAID = "the tool failed: internal error"
"""What an injected error says where the fault does not."""
FIELDS = ("tool", "call", "probability", "seed", "fault", "message", "as", "seconds", "keep")
"""What a fault may have in a file."""
_ONLY: Mapping[str, Kind] = {"message": "error", "as": "error", "seconds": "delay", "keep": "cut"}


class FaultError(ProblemError):
    """Faults that cannot be used. They stop the start."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, of the calls whose canonical name fits `glob`: of the one numbered `call` (from 1), or of each with
    `probability`, drawn from `seed`.

    `message` and `form` are those of an error, `seconds` is how late a delayed answer is, `keep` how many characters
    of text a cut one has, None for half of them.
    """

    glob: str
    kind: Kind
    call: int | None = None
    probability: float = 0.0
    seed: str = ""
    message: str = SAID
    form: Form = "tool_error"
    seconds: float = 0.0
    keep: int | None = None
    pattern: re.Pattern[str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", compile_glob(self.glob))

    @property
    def held_back(self) -> bool:
        """Whether the call never reaches its server."""
        return self.kind in HELD_BACK

    @property
    def rule(self) -> str:
        """The fault in a few words, for the record."""
        when = f"call {self.call}" if self.call is not None else f"probability {self.probability:g} seed {self.seed}"
        return f"{self.kind} {self.glob} {when}"

    def falls_on(self, number: int) -> bool:
        """Whether it falls on the call with this number (from 1) among those that fit; the same for each run."""
        if self.call is not None:
            return number == self.call
        drawn = bytes.fromhex(sha256_hex(f"{self.seed}\0{self.glob}\0{number}".encode("utf-8", "surrogatepass")))
        return int.from_bytes(drawn[:8], "big") < self.probability * 2**64


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault that falls on a call: which, and the call's number among those that it speaks of."""

    fault: Fault
    number: int


class FaultPlan:
    """The faults of one proxy, and how many calls each has seen so far; of several that fall on a call the first."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        self._seen = [0] * len(self.faults)

    @property
    def edits(self) -> bool:
        """Whether answers may be held back or replaced, so that they must be there whole."""
        return any(not fault.held_back for fault in self.faults)

    def strike(self, canonical: str) -> Struck | None:
        """Count a call that policy has let through; the fault that falls on it, None for none."""
        found: Struck | None = None
        for place, fault in enumerate(self.faults):
            if fault.pattern.fullmatch(canonical) is None:
                continue
            self._seen[place] += 1
            if found is None and fault.falls_on(self._seen[place]):
                found = Struck(fault, self._seen[place])
        return found


class _Reading(FieldReading):
    """A list of faults being read."""

    def faults(self, data: JSON) -> list[Fault]:
        if not isinstance(data, list):
            self.wrong((), f"expected a list of faults such as {{tool: mcp/SERVER/TOOL, call: 1, fault: error}}, "
                       f"not {describe(data)}")  # fmt: skip
            return []
        return [fault for place, one in enumerate(data) if (fault := self.fault((place,), one)) is not None]

    def fault(self, path: Path, data: JSON) -> Fault | None:
        if not isinstance(data, dict):
            self.wrong(path, f"expected a map such as {{tool: mcp/SERVER/TOOL, call: 1, fault: error}}, "
                       f"not {describe(data)}")  # fmt: skip
            return None
        before = len(self.problems)
        self.known(path, data, FIELDS)
        kind = next((one for one in KINDS if one == data.get("fault")), None)
        if kind is None:
            self.wrong((*path, "fault"), f"expected {', '.join(KINDS[:-1])} or {KINDS[-1]}, "
                       f"not {describe(data.get('fault'))}")  # fmt: skip
        for key, owner in _ONLY.items():
            if key in data and kind not in {None, owner}:
                self.wrong((*path, key), f"only the fault {owner} has {key}")
        glob = data.get("tool")
        if not isinstance(glob, str) or (wrong := check_glob(glob)) is not None:
            said = f"expected a glob such as mcp/SERVER/TOOL, not {describe(glob)}"
            self.wrong((*path, "tool"), wrong if isinstance(glob, str) and wrong is not None else said)
        call, probability, seed = self.when(path, data)
        message, form = data.get("message", SAID), data.get("as", "tool_error")
        if not isinstance(message, str) or not message:
            self.wrong((*path, "message"), f"expected text, not {describe(message)}")
        if form not in {"tool_error", "error"}:
            self.wrong((*path, "as"), f"expected tool_error or error, not {describe(form)}")
        seconds = self.number((*path, "seconds"), data.get("seconds", 0.0), 0.0, LONGEST)
        if kind == "delay" and "seconds" not in data:
            self.wrong((*path, "seconds"), "a delay says how many seconds its answer is late")
        keep = data.get("keep")
        if "keep" in data and (not _whole(keep) or (isinstance(keep, int) and keep < 0)):
            self.wrong((*path, "keep"), f"expected a number of characters, 0 or more, not {describe(keep)}")
        if len(self.problems) > before or kind is None or not isinstance(glob, str) or not isinstance(message, str):
            return None
        shape: Form = "error" if form == "error" else "tool_error"
        return Fault(glob, kind, call, probability, seed, message, shape, seconds,
                     keep if isinstance(keep, int) else None)  # fmt: skip

    def when(self, path: Path, data: dict[str, JSON]) -> tuple[int | None, float, str]:
        """Which calls a fault falls on: `call`, or `probability` and `seed`."""
        call, seed = data.get("call"), data.get("seed", "")
        if ("call" in data) == ("probability" in data):
            self.wrong(path, "a fault has exactly one of call (a number) and probability (with a seed)")
        if "call" in data and (not _whole(call) or (isinstance(call, int) and call < 1)):
            self.wrong((*path, "call"), f"expected the number of a call, from 1, not {describe(call)}")
        if ("probability" in data) != ("seed" in data):
            self.wrong((*path, "seed"), "a probability has a seed, so that the same calls fail each time, and only it")
        if not isinstance(seed, str) and not _whole(seed):
            self.wrong((*path, "seed"), f"expected a whole number or text, not {describe(seed)}")
        probability = self.number((*path, "probability"), data.get("probability", 0.0), 0.0, 1.0)
        return call if isinstance(call, int) else None, probability, str(seed)

    def number(self, path: Path, value: JSON, least: float, most: float) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most:
            return float(value)
        self.wrong(path, f"expected a number from {least:g} to {most:g}, not {describe(value)}")
        return least


def _whole(value: JSON) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def parse_faults(data: JSON, where: str, line: Callable[[Path], int | None], prefix: Path = ()) -> tuple[Fault, ...]:
    """Faults from their list. `where` is the file's name and `line` gives the line of a path, for FaultError.

    `prefix` leads from the top of the file to the list.
    """
    reading = _Reading(where, line, prefix)
    faults = reading.faults(data)
    if reading.problems:
        raise FaultError(reading.problems)
    return tuple(faults)


def load_faults(path: str) -> tuple[Fault, ...]:
    """The faults of a file, a list or `{faults: [...]}`. Raises FaultError, also when it cannot be read."""
    # Only here is a file read, and only then is YAML worth its import.
    from proxy.yamlfile import YamlError, load_document  # noqa: PLC0415  (YAML is loaded only where there are faults)

    try:
        with open(path, "rb") as file:
            document = load_document(file.read(), path)
    except OSError as error:
        raise FaultError([Problem(path, None, "", f"the faults cannot be read: {error.strerror}")]) from None
    except YamlError as error:
        raise FaultError(error.problems) from None
    match document.data:
        case {"faults": faults, **rest} if not rest:
            return parse_faults(faults, path, document.line, ("faults",))
        case data:
            return parse_faults(data, path, document.line)
