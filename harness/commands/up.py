"""`wiretrap up FILE`: several proxies at once, from one file, until they are told to end.

Refuses to know how a proxy is started and watched.
"""

import asyncio
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from harness.processes import ProcessError, become_subreaper, end_descendants
from harness.runfolder import new_run_id, write_new
from harness.up.proxies import Proxy, ProxyError, Shared
from harness.up.supervising import Supervision
from harness.up.upfile import UpFile, UpFileError, load_up_file
from proxy.httpserve import PortError, address_of, check_folder, listen
from proxy.options import spans_folder
from proxy.saying import say
from proxy.spanfile import SpanFileError
from proxy.spans import JSON
from proxy.visible import visible

GRACE = 0.2
"""Seconds that processes which a server left behind have between SIGTERM and SIGKILL."""
CONFIGS = ("claude", "json")


def shown(urls: Mapping[str, str], config: str) -> str:
    """A client's configuration with every server at its proxy's URL.

    `claude` is what Claude Code takes, each with its transport; `json` has the URLs alone, as Cursor takes it.
    """
    kind: dict[str, JSON] = {"type": "http"} if config == "claude" else {}
    return json.dumps({"mcpServers": {name: {**kind, "url": url} for name, url in urls.items()}}, indent=2)


@click.command("up", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Say where everything is as one line of JSON, not as a table.")
@click.option(
    "--print-config",
    "config",
    type=click.Choice(CONFIGS),
    help="Print a client's configuration in place of the table: claude for Claude Code, json with URLs alone.",
)
def command(path: Path, *, as_json: bool, config: str | None) -> int:
    """Start a proxy for each server of FILE, each at a port of its own, and keep them until Ctrl-C or SIGTERM.

    All have one run id and one folder of spans. SIGHUP has the policies read again; where one is broken, the old ones
    stand. The exit code is 0 when all ended as they were told, 1 when a proxy ended by itself, 2 when not all could be
    started, and 74 when a record is not whole.
    """
    try:
        file = load_up_file(path, os.environ)
        run_id = file.run or new_run_id()
        spans = file.spans or spans_folder(run_id, os.environ)
        check_folder(spans)
        with listen("127.0.0.1", file.health) as health:
            become_subreaper()
            folder = Path(tempfile.mkdtemp(prefix="wiretrap-up-"))
            try:
                shared = Shared(file, folder, _write_context(folder, file, run_id, spans))
                told = _Told(run_id, spans, address_of(health, "/"), as_json=as_json, config=config)
                supervision = Supervision(shared, run_id, spans, say, lambda: load_up_file(path, os.environ), {})
                return asyncio.run(supervision.serve(health, told))
            finally:
                with suppress(ProcessError):
                    end_descendants(os.getpid(), grace=GRACE)
                shutil.rmtree(folder, ignore_errors=True)
    except UpFileError as error:
        for problem in error.problems:
            say(str(problem))
    except PortError as error:
        say(f"{path}: health: {error}")
    except (ProxyError, SpanFileError) as error:
        say(str(error))
    return 2


class _Told:
    """Says where everything is, once all take requests."""

    def __init__(self, run_id: str, spans: str, health: str, *, as_json: bool, config: str | None) -> None:
        self._run_id, self._spans, self._health = run_id, spans, health
        self._as_json, self._config = as_json, config

    def __call__(self, proxies: Mapping[str, Proxy]) -> None:
        # Whoever does not read it goes without.
        with suppress(BrokenPipeError):
            self._tell(proxies)

    def _tell(self, proxies: Mapping[str, Proxy]) -> None:
        urls = {name: proxy.url for name, proxy in proxies.items()}
        rows = [("server", "url for the client", "in front of")]
        rows += [(name, url, visible(_before(proxies[name]))) for name, url in urls.items()]
        wide, wider = (max(len(row[place]) for row in rows) for place in (0, 1))
        table = "".join(f"{name:<{wide}}  {url:<{wider}}  {before}\n" for name, url, before in rows)
        table += f"\nrun {self._run_id}, spans {visible(self._spans)}\nhealth {self._health}\n"
        if self._as_json:
            servers: dict[str, JSON] = dict(urls)
            told: JSON = {"run_id": self._run_id, "spans": self._spans, "health": self._health, "servers": servers}
            click.echo(json.dumps(told))
        if self._config is not None:
            click.echo(shown(urls, self._config))
        if not self._as_json:
            click.echo(table, nl=False, err=self._config is not None)


def _before(proxy: Proxy) -> str:
    return proxy.server.url or proxy.server.command[0]


def _write_context(folder: Path, file: UpFile, run_id: str, spans: str) -> Path:
    named: list[JSON] = list(file.secrets)
    key = secrets.token_hex(32)
    context: dict[str, JSON] = {"run_id": run_id, "redact_key": key, "secrets": named, "spans": spans}
    return write_new(folder / "context.json", json.dumps(context))
