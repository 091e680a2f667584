"""Every fixture server by its name. Holds no behaviour and does not import the MCP SDK."""

from collections.abc import Mapping
from types import MappingProxyType

from servers.crm import CRM
from servers.directory import DIRECTORY
from servers.files import FILES
from servers.mail import MAIL
from servers.places import AnyFixture
from servers.repo import REPO
from servers.ticketing import TICKETING

FIXTURES: Mapping[str, AnyFixture] = MappingProxyType(
    {fixture.name: fixture for fixture in (CRM, DIRECTORY, FILES, MAIL, REPO, TICKETING)}
)
"""Fixture name (as in a scenario's `fixture:`) to the fixture."""
