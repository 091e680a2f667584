"""Targets at length: every way to run the two mail agents, and agents of real frameworks (`make test-targets`)."""
