"""Ways to run an agent."""
