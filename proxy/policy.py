"""Who may call what, and how a refusal looks (design.md section 4). Pure, but for `load_policy`, which reads a file.

Refuses to know frames and connections: it is asked about a canonical name and answers with a Decision. Nothing costly
is imported before a policy needs it, since a proxy must start fast.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from proxy.fieldreading import FieldReading
from proxy.glob import check_glob, compile_glob, encode_tool_name
from proxy.holds import Hold, read_hold
from proxy.problem import Path, Problem, ProblemError, describe
from proxy.spans import JSON

Verdict: TypeAlias = Literal["allow", "deny"]
Action: TypeAlias = Literal["allow", "deny", "approve"]
Form: TypeAlias = Literal["tool_error", "error", "hidden"]
"""How a denied tools/call is answered: an isError result, a JSON-RPC error, or also gone from tools/list."""

TRUST_LABELS = ("trusted", "internal", "third_party", "untrusted")
CLIENT_REQUESTS = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
"""Methods that a server asks a client, and their key under `client_requests`."""

_ACTIONS: tuple[Action, ...] = ("allow", "deny", "approve")
_SHORT, _MOST = 256, 1024
"""Characters of a name whose decision is remembered, and how many are."""


class PolicyError(ProblemError):
    """A policy that cannot be used. It stops the start."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `trust` is empty where any label fits; `fits` is the compiled `arguments`, None where there is none.

    `hold` is set for `approve` alone.
    """

    action: Action
    glob: str
    arguments: dict[str, JSON] | None = None
    trust: tuple[str, ...] = ()
    reason: str = ""
    form: Form = "tool_error"
    hold: Hold | None = None
    fits: Callable[[JSON], bool] | None = field(default=None, compare=False, repr=False)
    pattern: re.Pattern[str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", compile_glob(self.glob))

    def names(self, canonical: str, trust: str) -> bool:
        """Whether the rule speaks of this name on a server with this label, arguments apart."""
        return (not self.trust or trust in self.trust) and self.pattern.fullmatch(canonical) is not None

    def fits_call(self, arguments: JSON) -> bool:
        """Whether the rule decides a call that it names. Absent arguments (None) are judged as {}.

        Arguments that are no object fit every `deny` and `approve`, and no `allow`: a JSON Schema says nothing of them
        by itself, and a server may make something else of them.
        """
        if self.fits is None:
            return True
        if arguments is None:
            arguments = {}
        return self.fits(arguments) if isinstance(arguments, dict) else self.action != "allow"


@dataclass(frozen=True, slots=True)
class Decision:
    """What policy says of one request. `enforced` is false where it only observes; `form` matters for a denied call.

    `hold` is set where the call may yet be approved; until then, and to whoever cannot hold it, it is denied.
    """

    verdict: Verdict
    rule: str
    reason: str
    enforced: bool
    form: Form = "tool_error"
    hold: Hold | None = None


NO_POLICY = Decision("allow", "no policy", "no policy is given", False)
"""The decision on everything where there is no policy."""


_Choice: TypeAlias = tuple[tuple[tuple[Rule, Decision], ...], Decision]
"""What is decided on a name where the arguments fit a rule, the rules in their order, and where they fit none."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules in order, the first that holds decides. `client_requests` has only the kinds that the policy speaks of."""

    mode: Literal["enforce", "observe"] = "enforce"
    default: Verdict = "allow"
    rules: tuple[Rule, ...] = ()
    client_requests: Mapping[str, Verdict] = field(default_factory=dict)
    _known: dict[tuple[str, str], "_Choice"] = field(default_factory=dict, init=False, compare=False, repr=False)
    """By name and trust label."""

    @property
    def in_force(self) -> bool:
        """Whether decisions are carried out, and frames that cannot be judged refused."""
        return self.mode == "enforce"

    @property
    def hides(self) -> bool:
        """Whether any tool may have to be taken out of a tools/list answer."""
        return self.in_force and any(rule.form == "hidden" for rule in self.rules)

    @property
    def holds(self) -> bool:
        """Whether any call has to be approved before it goes on."""
        return self.in_force and any(rule.hold is not None for rule in self.rules)

    def judge(self, canonical: str, trust: str, arguments: JSON) -> Decision:
        """Decide on a tools/call, resources/read or prompts/get. An error in here refuses the call (wire rule 9)."""
        conditional, otherwise = self._known.get((canonical, trust)) or self._choice(canonical, trust)
        return next((decision for rule, decision in conditional if rule.fits_call(arguments)), otherwise)

    def _choice(self, canonical: str, trust: str) -> "_Choice":
        conditional: list[tuple[Rule, Decision]] = []
        for rule in self.rules:
            if not rule.names(canonical, trust):
                continue
            said = f"{rule.action} {rule.glob}"
            reason = rule.reason or f"the policy has the rule {said!r}"
            verdict: Verdict = "allow" if rule.action == "allow" else "deny"
            decision = Decision(verdict, said, reason, self.in_force, rule.form, rule.hold)
            if rule.fits is None:
                break
            conditional.append((rule, decision))
        else:
            why = f"no rule of the policy {'allows' if self.default == 'deny' else 'denies'} it"
            decision = Decision(self.default, f"default {self.default}", why, self.in_force)
        choice = tuple(conditional), decision
        if len(canonical) <= _SHORT and len(self._known) < _MOST:
            self._known[canonical, trust] = choice
        return choice

    def hides_tool(self, canonical: str, trust: str) -> bool:
        """Whether the tool is gone from tools/list: a hidden deny comes before anything that may allow a call of it."""
        if not self.in_force:
            return False
        conditional, otherwise = self._known.get((canonical, trust)) or self._choice(canonical, trust)
        every = (*(decision for _, decision in conditional), otherwise)
        return next((one.form == "hidden" for one in every if one.form == "hidden" or one.verdict == "allow"), False)

    def judge_client_request(self, method: str) -> Decision:
        """Decide on what a server asks of the client: sampling, elicitation, roots. Any other method is allowed."""
        kind = CLIENT_REQUESTS.get(method)
        verdict = self.client_requests.get(kind) if kind is not None else None
        if kind is None or verdict is None:
            return Decision("allow", "default allow", "the policy does not speak of it", self.in_force, "error")
        rule = f"client_requests {kind}: {verdict}"
        return Decision(verdict, rule, f"the policy has {rule!r}", self.in_force, "error")


def canonical_name(server: str, kind: Literal["tool", "resource", "prompt"], name: str) -> str:
    """The one name of a tool, resource (`name` is its URI) or prompt, as globs and assertions see it.

    `/`, `:` and `%` in a tool's name are percent-encoded, so that no tool can look like a resource.
    """
    return f"mcp/{server}/{encode_tool_name(name)}" if kind == "tool" else f"mcp/{server}/{kind}:{name}"


def deny_policy(globs: Sequence[str]) -> Policy:
    """The policy of `--deny` alone: these are denied, all else is allowed. Raises PolicyError."""
    problems = [Problem("--deny", None, "", wrong) for glob in globs if (wrong := check_glob(glob)) is not None]
    if problems:
        raise PolicyError(problems)
    return Policy(rules=tuple(Rule("deny", glob, reason=f"denied by --deny {glob}") for glob in globs))


class _Reading(FieldReading):
    """One policy being read."""

    def policy(self, data: JSON) -> Policy:
        if not isinstance(data, dict):
            self.wrong((), f"expected a map with rules (and mode, default, client_requests), not {describe(data)}")
            return Policy()
        if "policy" in data:
            self.wrong(("policy",), "a policy file holds the policy's fields themselves; take the key policy out")
            return Policy()
        self.known((), data, ("mode", "default", "rules", "client_requests"))
        rules = data.get("rules", [])
        if not isinstance(rules, list):
            self.wrong(("rules",), f"expected a list of rules, not {describe(rules)}")
            rules = []
        return Policy(
            "observe" if self.choice(("mode",), data, "enforce", ("enforce", "observe")) == "observe" else "enforce",
            _verdict(self.choice(("default",), data, "allow", ("allow", "deny"))),
            tuple(rule for place, one in enumerate(rules) if (rule := self.rule(("rules", place), one)) is not None),
            self.requests(("client_requests",), data.get("client_requests", {})),
        )

    def requests(self, path: Path, data: JSON) -> dict[str, Verdict]:
        if not isinstance(data, dict):
            self.wrong(path, f"expected a map such as {{sampling: deny}}, not {describe(data)}")
            return {}
        kinds = tuple(CLIENT_REQUESTS.values())
        self.known(path, data, kinds)
        verdicts = ("allow", "deny")
        return {kind: _verdict(self.choice((*path, kind), data, "deny", verdicts)) for kind in kinds if kind in data}

    def rule(self, path: Path, data: JSON) -> Rule | None:
        if not isinstance(data, dict):
            self.wrong(path, f"expected a map such as {{deny: mcp/SERVER/TOOL}}, not {describe(data)}")
            return None
        self.known(path, data, (*_ACTIONS, "arguments", "trust", "reason", "as", "wait", "grant_lasts"))
        actions = [key for key in _ACTIONS if key in data]
        if len(actions) != 1:
            has = " and ".join(actions) or "none"
            self.wrong(path, f"a rule has exactly one of allow, deny and approve, this one has {has}")
            return None
        action, glob, before = actions[0], data[actions[0]], len(self.problems)
        if not isinstance(glob, str):
            self.wrong((*path, action), f"expected a glob such as mcp/SERVER/TOOL, not {describe(glob)}")
            return None
        if (problem := check_glob(glob)) is not None:
            self.wrong((*path, action), problem)
        reason = data.get("reason", "")
        if not isinstance(reason, str):
            self.wrong((*path, "reason"), f"expected text, not {describe(reason)}; put it in quotes")
        form = self.choice((*path, "as"), data, "tool_error", ("tool_error", "error", "hidden"))
        if "as" in data and action == "allow":
            self.wrong((*path, "as"), "only a deny and an approve have a form of refusal")
        if form == "hidden" and action == "approve":
            self.wrong((*path, "as"), "hidden does not go with approve: who may be let through must see the tool")
        if form == "hidden" and "arguments" in data:
            self.wrong((*path, "as"), "hidden does not go with arguments: a tool is hidden before it has any")
        trust = self.trust((*path, "trust"), data.get("trust")) if "trust" in data else ()
        arguments = data.get("arguments")
        fits = self.schema((*path, "arguments"), arguments) if "arguments" in data else None
        hold = read_hold(self, path, data)
        if len(self.problems) > before or not isinstance(reason, str):
            return None
        schema = arguments if isinstance(arguments, dict) else None
        shape: Form = "hidden" if form == "hidden" else "error" if form == "error" else "tool_error"
        return Rule(action, glob, schema, trust, reason, shape, hold, fits)

    def trust(self, path: Path, data: JSON) -> tuple[str, ...]:
        if not isinstance(data, list) or not data:
            self.wrong(path, f"expected a list of labels ({', '.join(TRUST_LABELS)}), not {describe(data)}")
            return ()
        for place, label in enumerate(data):
            if label not in TRUST_LABELS:
                self.wrong((*path, place), f"expected one of {', '.join(TRUST_LABELS)}, not {describe(label)}")
        return tuple(label for label in data if isinstance(label, str))

    def schema(self, path: Path, data: JSON) -> Callable[[JSON], bool] | None:
        if not isinstance(data, dict):
            self.wrong(path, f"expected a JSON Schema as a map, not {describe(data)}")
            return None
        # The library costs more than the rest of the proxy's start; most policies need none of it.
        from proxy.argumentschema import ArgumentSchemaError, compile_schema  # noqa: PLC0415  (jsonschema)

        try:
            return compile_schema(data).is_valid
        except ArgumentSchemaError as error:
            self.wrong((*path, *error.path), str(error))
            return None


def _verdict(text: str) -> Verdict:
    return "allow" if text == "allow" else "deny"


def parse_policy(data: JSON, where: str, line: Callable[[Path], int | None], prefix: Path = ()) -> Policy:
    """A policy from its map. `where` is the file's name and `line` gives the line of a path, for PolicyError.

    `prefix` leads from the top of the file to the map.
    """
    reading = _Reading(where, line, prefix)
    policy = reading.policy(data)
    if reading.problems:
        raise PolicyError(reading.problems)
    return policy


def load_policy(path: str, deny: Sequence[str] = ()) -> Policy:
    """The policy of a file; `deny` are globs that come before its rules. Raises PolicyError, also when unreadable."""
    # Only here is a file read, and only then is YAML worth its import.
    from proxy.yamlfile import YamlError, load_document  # noqa: PLC0415  (YAML is loaded only where there is a policy)

    try:
        with open(path, "rb") as file:
            document = load_document(file.read(), path)
    except OSError as error:
        raise PolicyError([Problem(path, None, "", f"the policy cannot be read: {error.strerror}")]) from None
    except YamlError as error:
        raise PolicyError(error.problems) from None
    policy = parse_policy(document.data, path, document.line)
    return Policy(policy.mode, policy.default, deny_policy(deny).rules + policy.rules, policy.client_requests)
