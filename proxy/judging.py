"""What policy says of one message: which methods are judged, by which name, and what the decision's span holds.

Refuses to know the wire's order and state.
"""

from functools import lru_cache
from json.encoder import encode_basestring_ascii as quote
from typing import Literal, NamedTuple

from proxy import vocabulary as v
from proxy.frames import Message
from proxy.keys import fold_method, meant, shown
from proxy.policy import CLIENT_REQUESTS, NO_POLICY, Decision, Policy, canonical_name
from proxy.readings import Reading
from proxy.refusals import DENIED, NOT_READABLE
from proxy.spans import encode_attribute, template

Kind = Literal["tool", "resource", "prompt"]
JUDGED: dict[str, tuple[Kind, str]] = {
    "tools/call": ("tool", "name"),
    "resources/read": ("resource", "uri"),
    "prompts/get": ("prompt", "name"),
}
"""The methods that `default` and the rules speak of, and the member of params that names the target."""

_FOLDED_CALLS = {fold_method(method): method for method in JUDGED}
_FOLDED_REQUESTS = {fold_method(method): method for method in CLIENT_REQUESTS}
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""Where a request of the era of 2026-07-28 carries its version, in `_meta`."""


class Judgement(NamedTuple):
    """A message and what policy says of it; `decision` is None for a method that is not judged.

    `canonical` and `target` are "" where the message names no target; `code` is that of a refusal.
    """

    message: Message
    decision: Decision | None
    canonical: str = ""
    target: str = ""
    code: int = DENIED

    @property
    def refused(self) -> bool:
        """Whether the message must not go on."""
        decision = self.decision
        return decision is not None and decision.verdict == "deny" and decision.enforced


def denies_requests(policy: Policy | None) -> bool:
    """Whether anything that a server asks of the client is refused."""
    return policy is not None and policy.in_force and "deny" in policy.client_requests.values()


def edits_answers(policy: Policy | None) -> bool:
    """Whether what a server sends may have to be edited or replaced."""
    return denies_requests(policy) or (policy is not None and policy.hides)


def judge_request(message: Message, policy: Policy | None, server: str, trust: str) -> Judgement:
    """Judge a message from the client. Never raises: an error in policy is a refusal (wire rule 9)."""
    method = message.method
    enforced = policy is not None and policy.in_force
    if method not in JUDGED:
        taken = None if method is None else meant(method, _FOLDED_CALLS)
        if method is None or taken is None:
            return Judgement(message, None)
        if policy is None:
            return Judgement(message, NO_POLICY)
        reason = f"the method {shown(method)} is {taken!r} to a reader that folds case or cuts blanks"
        return Judgement(message, Decision("deny", "one reading", reason, enforced), code=NOT_READABLE)
    kind, key = JUDGED[method]
    target = message.given.get(key)
    if not isinstance(target, str):
        if policy is None:
            return Judgement(message, NO_POLICY)
        return Judgement(message, Decision("deny", "a target", f"the {method} names no {kind}", enforced))
    canonical = ""
    try:
        canonical = canonical_name(server, kind, target)
        if policy is None:
            return Judgement(message, NO_POLICY, canonical, target)
        decision = policy.judge(canonical, trust, message.given.get("arguments"))
    except Exception as error:  # fail closed, whatever went wrong
        decision = Decision("deny", "policy error", f"the policy could not judge it: {type(error).__name__}", enforced)
    return Judgement(message, decision, canonical, target)


def judge_reading(reading: Reading, policy: Policy, server: str, trust: str) -> bool:
    """Whether the policy denies what one reading of a line calls; also where it names nothing, or cannot be judged."""
    method = meant(reading.method, _FOLDED_CALLS)
    if method is None:
        return False
    if reading.name is None:
        return True
    try:
        canonical = canonical_name(server, JUDGED[method][0], reading.name)
        return policy.judge(canonical, trust, reading.arguments).verdict == "deny"
    except Exception:  # fail closed, whatever went wrong
        return True


def judge_client_request(message: Message, policy: Policy | None) -> Judgement:
    """Judge a message from the server: sampling, elicitation and roots requests have a decision, others none."""
    method = message.method
    asked = None if method is None else client_request(method)
    if asked is None:
        return Judgement(message, None)
    return Judgement(message, judge_method(asked, policy))


def judge_method(method: str, policy: Policy | None) -> Decision:
    """Decide on something asked of the client, whether in a request of the server's or inside a result."""
    return NO_POLICY if policy is None else policy.judge_client_request(client_request(method) or method)


def client_request(method: str) -> str | None:
    """The method of a client request that a reader may take this one for, which folds case; None for any other."""
    return method if method in CLIENT_REQUESTS else meant(method, _FOLDED_REQUESTS)


def is_judged(method: str) -> bool:
    """Whether some reader may take this method for one that the rules speak of."""
    return method in JUDGED or meant(method, _FOLDED_CALLS) is not None


_RULING = template(v.DECISION, v.DECISION_RULE, v.DECISION_REASON)
_SHORT = 256
"""Characters of a name that is remembered with what is said of it."""


@lru_cache(256)
def about_decision(decision: Decision, method: str | None, canonical: str) -> str:
    """The encoded attributes of a decision and what it is about."""
    found = [
        _RULING % (quote(decision.verdict), quote(decision.rule), quote(decision.reason)),
        encode_attribute(v.DECISION_ENFORCED, decision.enforced),
    ]
    if method is not None:
        found.append(encode_attribute(v.METHOD, method))
    if canonical:
        found.append(encode_attribute(v.TOOL_CANONICAL, canonical))
        if method == "resources/read":
            found.append(encode_attribute(v.RESOURCE_URI, canonical.partition("/resource:")[2]))
    return ",".join(found)


class Ruling(NamedTuple):
    """A decision and what it is about, as its span tells it; "" and None where that is not known."""

    decision: Decision
    method: str | None
    canonical: str = ""
    id_text: str | None = None

    def attributes(self) -> list[str]:
        """The encoded attributes, beside the request's text.

        There are no gen_ai.* among them: other readers would count the call twice (record.md section 3).
        """
        short = len(self.canonical) + len(self.method or "") <= _SHORT
        found = [(about_decision if short else about_decision.__wrapped__)(self.decision, self.method, self.canonical)]
        if self.id_text is not None:
            found.append(encode_attribute(v.ID_TEXT, self.id_text))
        return found


def meta_text(message: Message, key: str) -> str | None:
    """A string of the request's `_meta`, or None without it."""
    meta = message.given.get("_meta")
    value = meta.get(key) if isinstance(meta, dict) else None
    return value if isinstance(value, str) else None
