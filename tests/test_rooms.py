"""The rooms of the design and what each may import."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("proxy", "harness", "servers")
EDGES = {
    "ledger",
    "beside",
    "options",
    "sharedoptions",
    "httpserve",
    "grants",
    "kin",
    "deskline",
    "deskserve",
    "waiting",
    "seats",
    "upstream",
    "upstreamline",
    "downstream",
    "pouring",
    "context",
    "signals",
    "spanfile",
    "relay",
    "relays",
    "control",
    "pumps",
    "settling",
    "strand",
    "stdio",
    "child",
    "cli",
    "bridgecli",
    "http",
    "forward",
    "forwardserve",
    "switchboard",
    "tunnels",
    "certificates",
    "tlstrust",
    "bridge",
    "bridgeserve",
    "bridgesession",
    "connectserve",
    "nursery",
    "spanread",
    "argumentschema",
    "otlp",
    "otlpsdk",
    "plainfile",
    "saying",
    "yamlfile",
}
"""Modules of proxy/ that know the system, or a costly library; every other one is pure."""
IMPURE = {
    "anyio",
    "os",
    "sys",
    "time",
    "opentelemetry",
    "click",
    "threading",
    "subprocess",
    "socket",
    "signal",
    "random",
}
NOT_MODULES = {"utils", "helpers", "types", "constants", "base", "config", "registry", "plugins", "manager"}


def test_every_broad_except_of_the_harness_has_its_reason_beside_it() -> None:
    broad = [
        f"{relative(path)}:{number}"
        for path in modules("harness")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"except (Exception|BaseException)\b[^#]*$", line)
    ]
    assert broad == []


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield node.module or ""


@cache
def roots(path: Path) -> frozenset[str]:
    return frozenset(name.partition(".")[0] for name in imports(path))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


everything = [path for room in ROOMS for path in modules(room)]


@pytest.mark.parametrize("path", everything, ids=relative)
def test_a_room_imports_only_the_rooms_below_it(path: Path) -> None:
    room = relative(path).partition("/")[0]
    allowed = {"proxy": {"proxy"}, "harness": {"harness", "proxy"}, "servers": {"servers"}}[room]
    if relative(path) == "harness/targets/fixtures.py":
        allowed = allowed | {"servers"}
    assert roots(path) & set(ROOMS) <= allowed


@pytest.mark.parametrize("path", modules("proxy"), ids=relative)
def test_the_proxy_knows_neither_the_sdk_nor_pydantic(path: Path) -> None:
    assert not roots(path) & {"mcp", "mcp_types", "pydantic"}


pure = [path for path in modules("proxy") if path.stem not in EDGES]
pure += [ROOT / "harness" / "trace.py", ROOT / "harness" / "verdict.py", ROOT / "harness" / "convert.py"]
pure += sorted((ROOT / "harness" / "assertions").glob("*.py"))
pure += sorted((ROOT / "harness" / "targets" / "profiles").glob("*.py"))


@pytest.mark.parametrize("path", [path for path in pure if path.exists()], ids=relative)
def test_a_pure_module_knows_no_system_and_no_clock(path: Path) -> None:
    assert not roots(path) & IMPURE


@pytest.mark.parametrize("path", everything, ids=relative)
def test_a_module_is_of_a_size_to_be_read_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 300
    assert path.stem not in NOT_MODULES
    if path.stem != "__init__" or text.strip():
        assert ast.get_docstring(ast.parse(text))


def test_a_module_of_tests_is_of_a_size_to_be_read_too() -> None:
    assert [relative(path) for path in modules("tests") if len(path.read_text().splitlines()) > 300] == []


COMMANDS = {"proxy": ("--version", "proxy", "validate", "run", "trace"), "servers": ("validate", "run")}
"""The packages with common names, and the commands that need them."""


def wiretrap(folder: Path, *arguments: str) -> tuple[int, str, str]:
    program = Path(sys.executable).with_name("wiretrap")
    ran = subprocess.run(
        [program, *arguments],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize("text", ["", "raise RuntimeError('nobody home')", "import no_such_module", None])
@pytest.mark.parametrize("room", COMMANDS)
def test_a_package_of_somebody_elses_with_a_rooms_name_is_one_line_and_exit_2(
    room: str, text: str | None, tmp_path: Path
) -> None:
    if text is None:
        (tmp_path / f"{room}.py").write_text("x = 1")
    else:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text(text)
    for command in COMMANDS[room]:
        code, out, err = wiretrap(tmp_path, command, "x.yaml")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"wiretrap: the package `{room}` that Python finds is not Wiretrap's (it ")
        assert "install wiretrap into an environment of its own" in err


def test_the_proxy_and_a_trace_need_no_servers(tmp_path: Path) -> None:
    (tmp_path / "servers").mkdir()
    (tmp_path / "servers" / "__init__.py").write_text("raise RuntimeError")
    assert wiretrap(tmp_path, "--version")[0] == 0
    assert wiretrap(tmp_path, "trace", "--help")[0] == 0
    assert wiretrap(tmp_path, "proxy", "stdio", "--server", "x", "--quiet", "--spans", "s", "--", "true")[0] == 0


def test_what_serves_stdio_loads_neither_asyncio_nor_openssl() -> None:
    """They would cost it a fifth of its start and seven megabytes."""
    program = "import sys, proxy.cli, proxy.stdio; print(*sorted({'asyncio', 'ssl', 'hashlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_what_runs_a_trial_loads_neither_asyncio_nor_jsonschema_before_it_needs_them() -> None:
    """They would be a fifth of the start of `wiretrap run` and of each of its workers."""
    loaded = "print(*sorted({'asyncio', 'jsonschema', 'ssl'} & set(sys.modules)))"
    program = f"import sys, harness.worker, harness.commands.run; {loaded}"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
