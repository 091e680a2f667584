"""The names that the protocol gives to members, and what careless readers take for them (wire rule 7).

Refuses to know how a message is read and who may send it.
"""

from collections.abc import Iterable, Mapping

ENVELOPE_NAMES = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
PARAMS_NAMES = frozenset(
    {
        *("_meta", "name", "arguments", "uri", "cursor", "task", "taskId", "ref", "argument", "context", "level"),
        *("protocolVersion", "capabilities", "clientInfo", "inputResponses", "requestState", "requestId", "reason"),
        *("progressToken", "progress", "total", "message", "roots", "notifications"),
    }
)
"""Names that MCP gives to members of `params`, in any revision from 2024-11-05 to 2026-07-28."""

PROTOTYPE = "__proto__"
"""A key that JSON.parse takes as any other, and whose value a later copy of the object inherits from."""
PROTOTYPE_PROBLEM = f"the key {PROTOTYPE!r} gives an object other members in JavaScript"

_SHOWN = 80
"""Characters of a key or method that are repeated in a sentence of ours."""


def fold(key: str) -> str:
    """A key as a reader has it that folds case (Unicode, and the dotted and dotless i of some) or ends at U+0000."""
    return key.partition("\0")[0].casefold().replace("i\u0307", "i").replace("ı", "i")


def fold_method(method: str) -> str:
    """A method as the most careless reader has it: case folded, and no blank, control or invisible character in it.

    What counts as a blank differs: languages trim U+00A0, U+0085, U+FEFF or all up to U+0020, and some end at U+0000.
    """
    return "".join([letter for letter in fold(method.lstrip("\0")) if "!" <= letter <= "~"])


def meant(method: str, folded: Mapping[str, str]) -> str | None:
    """Which of some methods, by how they fold, a reader may take this one for; None for any other.

    Some end at U+0000, and others leave it out as a control.
    """
    found = folded.get(fold_method(method))
    return folded.get(fold_method(method.replace("\0", ""))) if found is None and "\0" in method else found


def shown(text: str) -> str:
    """A text of the wire for a sentence of ours: quoted, in escapes where it cannot be printed, and not too long."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


_FOLDED_ENVELOPE = {fold(name): name for name in ENVELOPE_NAMES}
_FOLDED_PARAMS = {fold(name): name for name in PARAMS_NAMES}


def envelope_problem(keys: Iterable[str]) -> str | None:
    """Why a careless reader could read another message in these keys of the envelope; None when none could."""
    return _problem(keys, ENVELOPE_NAMES, _FOLDED_ENVELOPE, "the message")


def params_problem(keys: Iterable[str]) -> str | None:
    """The same for the keys of `params`."""
    return _problem(keys, PARAMS_NAMES, _FOLDED_PARAMS, "params")


def _problem(keys: Iterable[str], names: frozenset[str], folded: dict[str, str], where: str) -> str | None:
    seen: set[str] = set()
    for key in keys:
        plain = fold(key)
        if plain in seen:
            return f"two keys of {where} are one after case folding: {shown(key)}"
        seen.add(plain)
        if key == PROTOTYPE:
            return PROTOTYPE_PROBLEM
        if key not in names and plain in folded:
            return f"a key of {where} is {folded[plain]!r} after case folding: {shown(key)}"
    return None
