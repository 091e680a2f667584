"""Verdicts by other harnesses' own rules, one module a harness; nothing else leans on any of them."""
