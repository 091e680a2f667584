"""Whether a package of a common name that was found is ours: others install a `proxy` or a `servers` too.

Refuses to know what is in them.
"""

import sys
from importlib import import_module
from typing import NoReturn


def check_room(name: str) -> None:
    """End the process with one line on stderr and exit code 2 where the package `name` is not Wiretrap's own.

    Ours has its own name as WIRETRAP_ROOM. What is not ours may do anything when it is imported, also fail.
    """
    try:
        room = import_module(name)
    except Exception as error:  # somebody else's package, which may raise anything
        _refuse(name, f"it cannot be imported: {type(error).__name__}: {error}")
    if getattr(room, "WIRETRAP_ROOM", None) != name:
        paths = getattr(room, "__path__", None)
        _refuse(name, f"it is at {getattr(room, '__file__', None) or ', '.join(paths or ['an unknown place'])}")


def _refuse(name: str, why: str) -> NoReturn:
    sys.stderr.write(
        f"wiretrap: the package `{name}` that Python finds is not Wiretrap's ({why}); take it off PYTHONPATH, or "
        "install wiretrap into an environment of its own\n"
    )
    raise SystemExit(2)
