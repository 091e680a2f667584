"""Ways to run an agent."""

from harness.rooms import check_room

# Before any module in here imports it. The proxy alone, and reading a trace, need no servers.
check_room("servers")
