"""Names of the span attributes, in one place with the version of the conventions they follow.

Refuses to know how a span is built, written or read.
"""

SEMCONV = "OpenTelemetry GenAI and MCP semantic conventions 0.1.0"
"""The conventions that the names without the `wiretrap.` prefix come from."""

SCOPE = "wiretrap"
"""Instrumentation scope of every span of ours; a reader ignores spans of any other scope."""

# From the conventions.
METHOD = "mcp.method.name"
PROTOCOL_VERSION = "mcp.protocol.version"
SESSION_ID = "mcp.session.id"
RESOURCE_URI = "mcp.resource.uri"
REQUEST_ID = "jsonrpc.request.id"
OPERATION = "gen_ai.operation.name"
TOOL_NAME = "gen_ai.tool.name"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
PROMPT_NAME = "gen_ai.prompt.name"
AGENT_NAME = "gen_ai.agent.name"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
NETWORK_TRANSPORT = "network.transport"
ERROR_TYPE = "error.type"
STATUS_CODE = "rpc.response.status_code"
HTTP_STATUS = "http.response.status_code"

# Whose span it is.
RUN_ID = "wiretrap.run.id"
SCENARIO_ID = "wiretrap.scenario.id"
TRIAL = "wiretrap.trial"
AGENT_ID = "wiretrap.agent.id"
CONNECTION = "wiretrap.connection"
SERVER_ID = "wiretrap.server.id"
SERVER_TRUST = "wiretrap.server.trust"
TRANSPORT = "wiretrap.transport"

# What it is. Stands on every span of ours.
SPAN_KIND = "wiretrap.span"
"""request, decision, held, notification, malformed, unmatched, unread, connection_opened, connection_closed,
agent_run or event."""

# What crossed the wire.
ID_TEXT = "wiretrap.request.id"
"""The request's id as its JSON text crossed the wire, so that 1 and "1" stay two ids."""
ANSWER_ID = "wiretrap.answer.id"
"""The JSON text of an answer's id that is not its request's, but that clients take for it."""
TOOL_CANONICAL = "wiretrap.tool.canonical"
DIRECTION = "wiretrap.direction"
SEQ = "wiretrap.seq"
RESULT_SEQ = "wiretrap.result.seq"
MONO = "wiretrap.mono"
RESULT_MONO = "wiretrap.result.mono"
OUTCOME = "wiretrap.outcome"
DECISION = "wiretrap.decision"
DECISION_RULE = "wiretrap.decision.rule"
DECISION_REASON = "wiretrap.decision.reason"
DECISION_ENFORCED = "wiretrap.decision.enforced"
HELD_ID = "wiretrap.held.id"
"""What an operator names a call by that waits for an approval."""
HELD_SHA256 = "wiretrap.held.sha256"
"""What an approval of it has to name: SHA-256 over RFC 8785 of [canonical name, arguments]."""
ID_REUSED = "wiretrap.id_reused"
CANCELLED = "wiretrap.cancelled"
INTERIM = "wiretrap.interim"
"""true where the answer was no end of the call: it asked for input, and the call goes on in another round."""
ROUND_OF = "wiretrap.round.of"
"""Span id of the first round of the call that this request goes on with."""
ROUND = "wiretrap.round"
"""How many rounds came before this one; absent in the first."""
REFUSED_BY_US = "wiretrap.refused"
"""true where the answer that the peer got is the proxy's own, so that no one blames the server."""
FAULT = "wiretrap.fault"
"""Which injected fault the call or its answer met, so that no one blames the server."""
FAULT_OUTCOME = "wiretrap.fault.outcome"
"""How the server itself answered a call whose answer a fault withheld or replaced."""
FAULT_RESULT = "wiretrap.fault.result"
"""The text of that answer, which the client never got: of its result, or of its error object."""
MALFORMED = "wiretrap.malformed"
"""Why a frame is not one strict JSON-RPC message, in words; with no policy in force the frame went on all the same."""
REDACTIONS = "wiretrap.redactions"

# Payloads: the exact text, and of each its size in bytes, digest, and whether the text was cut.
PARAMS = "wiretrap.params"
RESULT = "wiretrap.result"
"""The text of a result that is not a tool's, or of the error object, whichever answered."""
REQUEST = "wiretrap.request"

# A tunnel through a forward proxy whose content nobody reads: on all spans of its connection but the first.
UNREAD_HOST = "wiretrap.unread.host"
UNREAD_REASON = "wiretrap.unread.reason"
UNREAD_SENT = "wiretrap.unread.sent"
"""Bytes that the client sent, on the last span of the connection."""
UNREAD_RECEIVED = "wiretrap.unread.received"
"""The same of the server."""

# The start of a connection that belongs to a run: what it was made of, keyed with the run's key.
COMMAND_SHA256 = "wiretrap.command.sha256"
POLICY_SHA256 = "wiretrap.policy.sha256"
"""Of the policy and the injected faults; absent without either."""

# The end of a connection.
CLOSE_REASON = "wiretrap.close.reason"
SPANS_RECORDED = "wiretrap.spans.recorded"
SPANS_DROPPED = "wiretrap.spans.dropped"
EXPORT_DROPPED = "wiretrap.export.dropped"
"""How many spans a live export had lost when the connection closed; absent without one. The file has them."""

# What an exporter says of the copy that it sends; never in the file.
EXPORT_MENDED = "wiretrap.export.mended"
"""Names of the attributes (or `name`, `status`) in which the copy has other characters, or digits for a number."""
EXPORT_CUT = "wiretrap.export.cut"
"""Names of those of which the copy has only the beginning."""

# What the harness writes itself.
EVENT_TYPE = "wiretrap.event.type"
EVENT_FIELDS = "wiretrap.event.fields"
"""JSON text: the fields of an event that the harness made, beside its type."""
REPORTED = "wiretrap.reported"
"""true where the fact is the target's own word and nobody saw it."""


def payload_bytes(payload: str) -> str:
    """Name of the attribute that holds a payload's size in bytes.

    `payload` is arguments, result, params, request or fault.result.
    """
    return f"wiretrap.{payload}.bytes"


def payload_sha256(payload: str) -> str:
    """Name of the attribute that holds the SHA-256, in hex, of a payload's recorded text."""
    return f"wiretrap.{payload}.sha256"


def payload_truncated(payload: str) -> str:
    """Name of the attribute that is true when the recorded text of a payload was cut."""
    return f"wiretrap.{payload}.truncated"
