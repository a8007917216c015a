"""What the verifier and its child say to each other: JSON lines; no I/O.

The parent sends one request and reads its replies: `Draw` is answered by one `Made`; `Score` by one
`Made` and then one `Scored` for each text, in order. `Failed` in the place of `Made` ends the
request. When the child is up it says `Ready`, or `Failed` if it cannot work at all.
"""

from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import Config
from swarm_tasks.keyspace import Part

Outcome = Literal["scored", "no_answer", "verifier_error"]


class Line(Struct, frozen=True, tag_field="type"):
    """What every line is."""


class Draw(Line, frozen=True, tag="draw"):
    """Make the tasks at these indices until one's question belongs to `part` (null: the first)."""

    dataset: str
    config: Config
    seed: int
    indices: list[int]
    part: Part | None


class Score(Line, frozen=True, tag="score"):
    """Make one task and score each text as an answer to it."""

    dataset: str
    config: Config
    seed: int
    index: int
    texts: list[str]


class Ready(Line, frozen=True, tag="ready"):
    """The child is up, and these protections took hold."""

    isolation: list[str]


class Made(Line, frozen=True, tag="made"):
    """A task was made; `index` is null when no question of a draw belonged to the part."""

    index: int | None
    question: str


class Scored(Line, frozen=True, tag="scored"):
    """One text was scored; `score` counts only if the outcome is `scored`."""

    score: float
    outcome: Outcome


class Failed(Line, frozen=True, tag="failed"):
    """A request could not be served."""

    code: str
    message: str


Request = Draw | Score
Reply = Ready | Made | Scored | Failed

Wanted = TypeVar("Wanted", Ready, Made, Scored)

_request_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_reply_decoder: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def encode_line(line: Line) -> bytes:
    """Return a line with its newline."""
    return msgspec.json.encode(line) + b"\n"


def decode_request(raw: bytes) -> Request:
    """Return the request of a line. Raises msgspec.DecodeError."""
    return _request_decoder.decode(raw)


def decode_reply(raw: bytes, wanted: type[Wanted]) -> Wanted:
    """Return the reply of a line, which must be of the wanted kind.

    Raises RefusedError for `Failed`, and msgspec.DecodeError for anything that is not `wanted`.
    """
    reply = _reply_decoder.decode(raw)
    if isinstance(reply, Failed):
        raise RefusedError(reply.code, reply.message)
    if not isinstance(reply, wanted):
        raise msgspec.ValidationError(f"got {type(reply).__name__}, expected {wanted.__name__}")
    return reply
