"""What the proxy says to people: one line on stderr, without secrets. Refuses to know what is said."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proxy.redact import Redactor


def say(text: str, redactor: "Redactor | None" = None) -> None:
    """Write one line; nothing where there is nothing to say."""
    if text:
        said = text if redactor is None else redactor.text(text)[0]
        # A path or a message may come from elsewhere: nothing in it is to steer the terminal.
        shown = "".join([letter if letter.isprintable() else repr(letter)[1:-1] for letter in said])
        sys.stderr.write(f"wiretrap: {shown}\n")
        sys.stderr.flush()
