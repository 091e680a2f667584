"""What the options of a `wiretrap proxy` command come to: a policy, an identity, a place to record.

Refuses to know how the client and the server are reached.
"""

import os
from collections.abc import Mapping
from time import gmtime, strftime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from proxy.context import Context, ContextError, read_context, redact_key
from proxy.faults import Fault, FaultPlan, load_faults
from proxy.glob import check_server_id, glob_server
from proxy.policy import Policy, deny_policy, load_policy
from proxy.record import Identity, parse_traceparent
from proxy.saying import say
from proxy.secretvalues import named_secrets
from proxy.sharedoptions import Shared

if TYPE_CHECKING:
    from proxy.grants import Grants
    from proxy.held import Grant
    from proxy.kin import Process
    from proxy.otlp import Exporter
    from proxy.redact import Redactor
    from proxy.waiting import Waiting

_Said: TypeAlias = "tuple[Policy | None, tuple[Grant, ...], tuple[Fault, ...]]"
NOBODY = "the policy asks for approvals, and without --grants and --approvals nobody can give one"


class Start(NamedTuple):
    """What the shared options come to. `said` tells a person of record, policy and export; `key` is the run's."""

    identity: Identity
    policy: Policy | None
    folder: str
    key: bytes
    redactor: "Redactor | None"
    exporter: "Exporter | None"
    splice: bool
    said: str
    warning: str = ""
    deny: tuple[str, ...] = ()
    grants: "Grants | None" = None
    approvals: str | None = None

    def waiting(self, parent: "Process | None" = None) -> "Waiting":
        """Where calls wait for an approval; `parent` started us, and a desk of its own is none."""
        from proxy.deskline import DeskLine  # noqa: PLC0415  (few policies ask for approvals)
        from proxy.waiting import Waiting  # noqa: PLC0415  (the same)

        return Waiting(self.grants, None if self.approvals is None else DeskLine(self.approvals, parent))

    faults: tuple[Fault, ...] = ()

    def fault_plan(self) -> FaultPlan | None:
        """The faults, each of which has seen no call yet; None where there are none."""
        return FaultPlan(self.faults) if self.faults else None

    @property
    def spoils(self) -> bool:
        """Whether faults change answers, so that these must be there whole."""
        return any(not fault.held_back for fault in self.faults)

    def with_policy(self, path: str | None) -> "Start":
        """The same with the policy that stands in a file, None for none, behind `--deny`. Raises PolicyError."""
        policy = _load(path, self.deny)
        digest = ""
        if self.identity.command_sha256:
            from proxy.digests import policy_digest  # noqa: PLC0415  (as in `_digests`)

            grants = () if self.grants is None else self.grants.grants
            digest = policy_digest(self.key, policy, grants, self.faults)
        return self._replace(policy=policy, identity=self.identity._replace(policy_sha256=digest))


def read_first(options: Shared) -> tuple[Context, bytes]:
    """The context and the run's key, from which it is known what is secret. Raises ContextError."""
    problem = check_server_id(options["server"])
    if problem is not None:
        raise ContextError(f"--server: {problem}")
    return read_context_and_key(options["context_file"])


def read_context_and_key(path: str | None) -> tuple[Context, bytes]:
    """The context of a file, or an empty one, and the run's key. Raises ContextError."""
    context = read_context(path) if path is not None else Context()
    return context, redact_key(context, path)


def make_redactor(context: Context, key: bytes, served: Mapping[str, str]) -> "Redactor | None":
    """What takes the secrets out of the record; None where there are none. Says which values are too short.

    `served` is the environment that a server of ours gets.
    """
    secrets = named_secrets(context.secrets, served, os.environ)
    if not secrets:
        return None
    from proxy.redact import Redactor  # noqa: PLC0415  (compiles patterns, which most connections can do without)

    redactor = Redactor(secrets.values(), key, tuple(secrets))
    if redactor.too_short:
        say(f"not redacted, since shorter than 8 characters: {', '.join(redactor.too_short)}", redactor)
    return redactor if redactor.active else None


def start(
    transport: str,
    options: Shared,
    context: Context,
    key: bytes,
    redactor: "Redactor | None",
    command: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
) -> Start:
    """Everything else; `command` is the server's, and `beside` are further servers that the policy may speak of.

    Raises ValueError where an option cannot be used.
    """
    policy_file, deny, server = options["policy_file"], options["deny"], options["server"]
    faults_file = options["faults_file"]
    policy = _policy(policy_file, deny, (server, *(one for one in beside if one != server)))
    exporter = _exporter(options["otlp"])
    run_id = context.run_id or f"{strftime('%Y%m%dT%H%M%SZ', gmtime())}-{os.urandom(2).hex()}"
    folder = options["spans"] or context.spans or spans_folder(run_id, os.environ)
    parent = parse_traceparent(context.traceparent) or ("", "")
    faults = () if faults_file is None else load_faults(faults_file)
    grants = _grants(options["grants_file"])
    made_of = _digests(context, key, command, (policy, () if grants is None else grants.grants, faults))
    identity = Identity(
        server_id=server,
        trust=options["trust"],
        transport=transport,
        connection=os.urandom(8).hex(),
        run_id=run_id,
        scenario_id=context.scenario_id,
        trial=context.trial,
        agent_id=context.agent_id,
        trace_id=parent[0],
        parent_id=parent[1],
        command_sha256=made_of[0],
        policy_sha256=made_of[1],
    )
    said = "no policy" if policy is None else f"policy {policy_file or '--deny'} ({policy.mode})"
    said += "" if faults_file is None else f", faults {faults_file}"
    sent = "" if exporter is None else f", sent on to {exporter.endpoint.shown}"
    splice = options["trace_context"] == "splice"
    warning = ""
    # The servers of a trial have one policy, and whether it names one that is not there was checked before.
    rules = () if policy is None or context.scenario_id else policy.rules
    if rules and all(glob_server(rule.glob) not in {None, server} for rule in rules):
        warning = f"no rule of the policy speaks of the server {server}"
    if faults and all(glob_server(fault.glob) not in {None, server} for fault in faults):
        warning = "; ".join([*filter(None, [warning]), f"none of the faults speaks of the server {server}"])
    if policy is not None and policy.holds and grants is None and options["approvals"] is None:
        warning = f"{warning}; {NOBODY}" if warning else NOBODY
    told = f"spans {folder}, {said}{sent}"
    found = Start(identity, policy, folder, key, redactor, exporter, splice, told, warning, deny, grants)
    return found._replace(approvals=options["approvals"], faults=faults)


def _digests(context: Context, key: bytes, command: tuple[str, ...], said: "_Said") -> tuple[str, str]:
    """Those of the command and of policy, grants and faults, for the harness that gave the key; "" where none did."""
    if not context.redact_key:
        return "", ""
    from proxy.digests import command_digest, policy_digest  # noqa: PLC0415  (only a run compares them)

    return command_digest(key, command), policy_digest(key, *said)


def spans_folder(run_id: str, environment: "os._Environ[str]") -> str:
    """Where spans go when nobody said: $XDG_STATE_HOME/wiretrap/spans/<run id>."""
    home = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "wiretrap", "spans", run_id)


def _policy(path: str | None, deny: tuple[str, ...], servers: tuple[str, ...]) -> Policy | None:
    """The policy that the options give; None where they give none. A `--deny` for another server is an error."""
    policy = _load(path, deny)
    for glob in deny:
        named = glob_server(glob)
        if named not in {None, *servers}:
            there = " and ".join(repr(server) for server in servers)
            raise ContextError(f"--deny {glob} speaks of the server {named!r}, and --server is {there}")
    return policy


def _grants(path: str | None) -> "Grants | None":
    if path is None:
        return None
    from proxy.grants import load_grants  # noqa: PLC0415  (few connections have any)

    return load_grants(path)


def _load(path: str | None, deny: tuple[str, ...]) -> Policy | None:
    return load_policy(path, deny) if path is not None else deny_policy(deny) if deny else None


def _exporter(url: str | None) -> "Exporter | None":
    if url is None:
        return None
    from proxy.endpoint import parse_endpoint  # noqa: PLC0415  (most connections are not sent on)
    from proxy.otlp import Exporter  # noqa: PLC0415  (the same)

    return Exporter(parse_endpoint(url))
