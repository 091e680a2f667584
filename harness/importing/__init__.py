"""Runs that were recorded elsewhere, as traces of ours: one module a format, behind `harness.importing.form`."""
