"""The scenarios that are shipped, read once for all tests that go through them."""

from harness.discovery import load_scenarios
from harness.targets.fixtures import fixture_offers
from tests.harness.runs import SCENARIOS

SHIPPED = load_scenarios([SCENARIOS], fixture_offers())
