"""The reasons for which the server refuses a request, each with a code and a remedy.

Codes never change their meaning, so a client can decide by the code what to do; messages are for
people. `FIXES` has the remedy for each code. After a code in `FATAL` the server closes the
connection with the close code in `CLOSE_CODES`, and the node does not connect again. After a code
in `RETURN_CODES` it closes the connection too, but the node connects again later.
"""

from enum import StrEnum


class ErrorCode(StrEnum):
    """The codes of refusals, in the form `<area>.<problem>`. A code never changes its meaning."""

    AUTH_INVALID = "auth.invalid"
    AUTH_SUPERSEDED = "auth.superseded"
    CLIENT_TOO_OLD = "client.too_old"
    PROTOCOL_VERSION = "protocol.version"
    PROTOCOL_NOT_JSON = "protocol.not_json"
    PROTOCOL_TOO_LARGE = "protocol.too_large"
    PROTOCOL_UNKNOWN_TYPE = "protocol.unknown_type"
    PROTOCOL_INVALID = "protocol.invalid"
    PROTOCOL_HELLO = "protocol.hello"
    RATE_LIMITED = "rate.limited"
    RATE_FLOOD = "rate.flood"
    SEASON_NONE = "season.none"
    TASK_DATASET = "task.dataset"
    TASK_CONFIG = "task.config"
    TASK_FOREIGN = "task.foreign"
    TASK_INDEX = "task.index"
    TASK_EXHAUSTED = "task.exhausted"
    RELAY_ISOLATED = "relay.isolated"
    RELAY_ISOLATED_PUBLISH = "relay.isolated_publish"
    RELAY_ROLLOUT = "relay.rollout"
    RELAY_COPY = "relay.copy"
    RELAY_SAMPLING = "relay.sampling"
    ROUND_UNKNOWN = "round.unknown"
    ROUND_NOT_OPEN = "round.not_open"
    ROUND_PENDING = "round.pending"
    ROUND_UNDRAWN = "round.undrawn"
    ANSWER_LATE = "answer.late"
    ANSWER_NOT_YOURS = "answer.not_yours"
    ANSWER_SIGNATURE = "answer.signature"
    VERIFIER_FAILED = "verifier.failed"
    SERVER_BUSY = "server.busy"
    SERVER_RESTART = "server.restart"
    SERVER_MAINTENANCE = "server.maintenance"
    SERVER_INTERNAL = "server.internal"


FIXES: dict[ErrorCode, str] = {
    ErrorCode.AUTH_INVALID: (
        "If the token was replaced or revoked, get a new one: run swarm-node login with the "
        "coordinator's address."
    ),
    ErrorCode.AUTH_SUPERSEDED: (
        "Another client connected with this token. Use a separate token on each machine."
    ),
    ErrorCode.CLIENT_TOO_OLD: (
        "Update the client with the command on the coordinator's join page."
    ),
    ErrorCode.PROTOCOL_VERSION: "Install the client that the coordinator's join page names.",
    ErrorCode.PROTOCOL_NOT_JSON: "Send one UTF-8 JSON object in each text frame.",
    ErrorCode.PROTOCOL_TOO_LARGE: "Split the message: a frame may hold at most 1 MiB.",
    ErrorCode.PROTOCOL_UNKNOWN_TYPE: "Use a type that docs/protocol.md lists.",
    ErrorCode.PROTOCOL_INVALID: "Send exactly the fields that docs/protocol.md lists for the type.",
    ErrorCode.PROTOCOL_HELLO: "Send exactly one hello, as the first message of each connection.",
    ErrorCode.RATE_LIMITED: "Wait for retry_after seconds, then send again.",
    ErrorCode.RATE_FLOOD: (
        "Connect again after retry_after seconds, and wait for retry_after of each refusal."
    ),
    ErrorCode.SEASON_NONE: (
        "No season is running. Train alone until the coordinator announces one."
    ),
    ErrorCode.TASK_DATASET: "Use a dataset of the season's task mix (see the welcome).",
    ErrorCode.TASK_CONFIG: "Use the configuration that the season's task mix gives the dataset.",
    ErrorCode.TASK_FOREIGN: "Use the season's seed and generator version (see the welcome).",
    ErrorCode.TASK_INDEX: "Draw indices from the training part of the index range.",
    ErrorCode.TASK_EXHAUSTED: (
        "Start another season in which this dataset has wider ranges, fewer questions in a round or"
        " more time between rounds: the season's form says for how many rounds each dataset lasts."
    ),
    ErrorCode.RELAY_ISOLATED: "Train on own rollouts only: this node is not in the swarm arm.",
    ErrorCode.RELAY_ISOLATED_PUBLISH: (
        "Nothing to do: in this season isolated nodes share no rollouts. Newer clients send none."
    ),
    ErrorCode.RELAY_ROLLOUT: (
        "Share rollouts with no more, and no longer, completions than the season allows (see the"
        " welcome)."
    ),
    ErrorCode.RELAY_COPY: "Share each rollout once, and no rollouts that other nodes generated.",
    ErrorCode.RELAY_SAMPLING: (
        "Request rollouts with a preference that the season's sampling lists (see the welcome)."
    ),
    ErrorCode.ROUND_UNKNOWN: "Request the current round first.",
    ErrorCode.ROUND_NOT_OPEN: ("Wait for the next round: the coordinator announces when it opens."),
    ErrorCode.ROUND_PENDING: "Nothing to do: this node takes part in the next round that opens.",
    ErrorCode.ROUND_UNDRAWN: (
        "Try again in a minute: the previous round is waiting for the value of the public beacon."
    ),
    ErrorCode.ANSWER_LATE: "Answer before the deadline: shorten answers or use a faster device.",
    ErrorCode.ANSWER_NOT_YOURS: "Answer only questions that this node received in this round.",
    ErrorCode.ANSWER_SIGNATURE: (
        "Sign with the key of the hello, as docs/verification.md describes, or do not sign at all."
    ),
    ErrorCode.VERIFIER_FAILED: (
        "Try again; if it fails again, tell the operator which dataset it was."
    ),
    ErrorCode.SERVER_BUSY: "Wait for retry_after seconds, then send again.",
    ErrorCode.SERVER_RESTART: "Nothing to do: the client connects again after retry_after seconds.",
    ErrorCode.SERVER_MAINTENANCE: (
        "Nothing to do: the node trains alone, and connects again when the maintenance is over."
    ),
    ErrorCode.SERVER_INTERNAL: (
        "Try again; if it fails again, tell the operator when it happened."
    ),
}

# After one of these the server closes the connection with this close code. Close codes from 4000 on
# are the application's (RFC 6455, 7.4.2); the last three digits are those of a similar HTTP status.
# After all other codes, except RETURN_CODES, the connection stays open.
CLOSE_CODES: dict[str, int] = {
    ErrorCode.AUTH_INVALID: 4401,
    ErrorCode.AUTH_SUPERSEDED: 4409,
    ErrorCode.CLIENT_TOO_OLD: 4426,
    ErrorCode.PROTOCOL_VERSION: 4426,
}
FATAL = frozenset(CLOSE_CODES)

# After one of these the server closes the connection with this close code, and the node connects
# again after the refusal's `retry_after`. 1012 and 1013 are in IANA's registry (RFC 6455, 11.7).
RETURN_CODES: dict[str, int] = {
    ErrorCode.SERVER_RESTART: 1012,
    ErrorCode.SERVER_MAINTENANCE: 1013,
    ErrorCode.RATE_FLOOD: 4429,
}


_KNOWN = frozenset(code.value for code in ErrorCode)


class RefusedError(Exception):
    """A request was refused: `message` says what was wrong, and `fix` what to do about it.

    `code` is an ErrorCode, or a text that only a newer server knows. `fix` is required for such a
    text; for an ErrorCode, the default is in `FIXES`. `retry_after` is the wait in seconds that the
    server asks for, None if it asks for none.
    """

    def __init__(
        self, code: str, message: str, *, fix: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code: str = ErrorCode(code) if code in _KNOWN else code
        self.message = message
        self.fix = FIXES[ErrorCode(code)] if fix is None else fix
        self.retry_after = retry_after

    @property
    def fatal(self) -> bool:
        """Whether this refusal ends the node's connection for good.

        The server then closes the connection, and the node must not connect again. False for a code
        that only a newer server knows.
        """
        return self.code in FATAL
