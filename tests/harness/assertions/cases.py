"""One passing and one failing fixture for every evasion and every false alarm that verdicts.md section 4 names."""

from tests.harness.assertions import cases_calls, cases_disclosed, cases_recipients, cases_rest, fixtures

MODULES = (cases_calls, cases_disclosed, cases_recipients, cases_rest)
CASES = tuple(fixtures.CASES)
