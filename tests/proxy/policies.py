"""Policies as texts, and what is wrong with one."""

import pytest

from proxy.policy import Policy, PolicyError, parse_policy
from proxy.yamlfile import load_document


def policy(text: str) -> Policy:
    document = load_document(text, "p.yaml")
    return parse_policy(document.data, "p.yaml", document.line)


def problems(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        policy(text)
    return [str(problem) for problem in caught.value.problems]
