"""What the agent of a framework needs of its interpreter, and what to do where that is not there.

Refuses to know how an agent is run. It is asked before the agent is, so the answer is none of the agent's.
"""

import subprocess
import sys
from importlib.util import find_spec

from harness.targetfile import Called, Framework

MODULES: dict[Framework, tuple[str, ...]] = {
    "python": (),
    "openai-agents": ("agents",),
    "langchain": ("langchain_mcp_adapters",),
    "pydantic-ai": ("pydantic_ai", "fastmcp"),
}
"""Modules that `programs/calling.py` imports for each."""
LANGCHAIN = "python3 -m venv .langchain && .langchain/bin/pip install langchain langchain-mcp-adapters"
"""Makes the interpreter that LangChain wants: its adapter pins mcp 1.x, and Wiretrap stands on mcp 2.x."""
PATIENCE = 30.0
_ASK = "import importlib.util, sys; print(*[name for name in sys.argv[1:] if importlib.util.find_spec(name) is None])"


def lacking(agent: Called) -> str | None:
    """What its interpreter lacks and what to do, in a sentence; None where it has all, or cannot be asked."""
    missing = _missing(agent.interpreter, MODULES[agent.framework])
    if not missing:
        return None
    what = f"the target {agent.framework} needs {' and '.join(missing)}, which {agent.interpreter} does not have"
    match agent.framework:
        case "langchain":
            name = "interpreter: .langchain/bin/python"
            return f"{what}; beside the agent file run `{LANGCHAIN}`, and write `{name}` beside its function"
        case framework:
            return f"{what}; install Wiretrap there with its extra: pip install 'wiretrap[{framework}]'"


def _missing(interpreter: str, modules: tuple[str, ...]) -> list[str]:
    if not modules or interpreter == sys.executable:
        return [name for name in modules if find_spec(name) is None]
    try:
        asked = subprocess.run(
            [interpreter, "-P", "-c", _ASK, *modules], capture_output=True, text=True, check=True, timeout=PATIENCE
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return []  # whoever starts the agent says what is wrong with it
    return asked.stdout.split()
