"""The official conformance suite, direct and through the proxy: `make conformance`."""
