"""The command line that every fixture server shares: make a database or folder, or serve one over stdio or HTTP."""

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from servers.fixture import PlaceError
from servers.places import AnyFixture, init_place
from servers.seed import SeedError, read_seed


def main(fixture: AnyFixture, arguments: Sequence[str] | None = None) -> None:
    """Do what the arguments (those of the process by default) say; exit 2 with one line when they cannot be done."""
    parser = argparse.ArgumentParser(
        prog=f"servers.{fixture.name}", description=f"The fixture server {fixture.name}, over MCP on stdio or HTTP."
    )
    parser.add_argument(
        "--db", required=True, type=Path, metavar="PATH", help="the SQLite file, or the folder of files"
    )
    parser.add_argument("--init", action="store_true", help="make it with its rows or files, and exit")
    parser.add_argument("--seed", type=Path, metavar="FILE", help="rows for --init: YAML, {table: [{column: value}]}")
    parser.add_argument(
        "--http", type=int, metavar="PORT", help="serve Streamable HTTP at 127.0.0.1; 0 chooses a port, told on stdout"
    )
    options = parser.parse_args(arguments)
    if options.seed is not None and not options.init:
        parser.error("--seed needs --init; a start never seeds")
    if options.http is not None and (options.init or not 0 <= options.http <= 65535):
        parser.error("--http is a port from 0 to 65535, and does not go with --init")
    try:
        if options.init:
            init_place(options.db, fixture, None if options.seed is None else read_seed(options.seed))
        elif options.http is not None:
            import_module("servers.httpserving").serve_http(fixture, options.db, options.http)
        else:
            # The SDK's reader thread cannot be interrupted: let the kernel end us on Ctrl-C or when nobody reads us.
            for number in (signal.SIGINT, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            # The SDK takes a second to import, and making a file needs none of it. A tenth of that second is the
            # collector's, which walks again and again what stays anyway.
            gc.disable()
            serving = import_module("servers.serving")
            gc.freeze()
            gc.enable()
            serving.serve(fixture, options.db, os.environ.get("WIRETRAP_CONNECTION") or None)
    except (PlaceError, SeedError) as error:
        sys.stderr.write(f"servers.{fixture.name}: {error}\n")
        sys.exit(2)
