"""Assertions, one module a family; the union of them in `harness.assertions.assertion` is what a scenario may name."""
