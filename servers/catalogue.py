"""Every fixture server by its name. Holds no behaviour and does not import the MCP SDK."""

from collections.abc import Mapping
from types import MappingProxyType

from servers.crm import CRM
from servers.fixture import Fixture
from servers.ticketing import TICKETING

FIXTURES: Mapping[str, Fixture] = MappingProxyType({fixture.name: fixture for fixture in (CRM, TICKETING)})
"""Fixture name (as in a scenario's `fixture:`) to the fixture."""
