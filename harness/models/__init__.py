"""Models behind one interface: a script, and those of providers."""
