"""The formats that runs are read from, by the name that the command takes. A new one is a module and a line here."""

from collections.abc import Mapping

from harness.importing.agentmark import read_agentmark
from harness.importing.arena import read_arena
from harness.importing.form import Format
from harness.importing.owasp import read_owasp

FORMATS: Mapping[str, Format] = {"agent-arena": read_arena, "agent-mark": read_agentmark, "owasp": read_owasp}
