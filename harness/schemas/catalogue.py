"""The schemas by name, as they are printed and as they lie in docs/schemas.

Refuses to know what they say.
"""

import json
from collections.abc import Callable, Mapping

from harness.schemas.reports import report_schema
from harness.schemas.traces import trace_schema
from harness.schemas.written import agent_schema, policy_schema, scenario_schema
from proxy.spans import JSON

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMAS: Mapping[str, Callable[[], dict[str, JSON]]] = {
    "agent": agent_schema,
    "policy": policy_schema,
    "report": report_schema,
    "scenario": scenario_schema,
    "trace": trace_schema,
}


def schema_of(name: str) -> dict[str, JSON]:
    """The schema with this name. Raises KeyError for one that there is not."""
    schema = SCHEMAS[name]()
    return {"$schema": DIALECT, "title": f"Wiretrap {name}", **_untitled(schema)}


def schema_text(name: str) -> str:
    """The same as text."""
    return json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"


def _untitled(schema: dict[str, JSON]) -> dict[str, JSON]:
    """The schema without the titles that are made of the fields' own names; a property may be called title."""
    found: dict[str, JSON] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in ("properties", "$defs") and isinstance(value, dict):
            found[key] = {name: _untitled(one) if isinstance(one, dict) else one for name, one in value.items()}
        elif isinstance(value, dict) and key not in ("default", "const"):
            found[key] = _untitled(value)
        elif isinstance(value, list) and key not in ("enum", "required"):
            found[key] = [_untitled(one) if isinstance(one, dict) else one for one in value]
        else:
            found[key] = value
    return found
