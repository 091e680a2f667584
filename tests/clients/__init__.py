"""Real clients and agents through the proxy, and the stand-in for the models of the agents: `make test-clients`."""
