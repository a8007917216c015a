"""The messages between the verifier and its child; no I/O.

A message is sent as its length in bytes, a four-byte integer in network order, and then as
MessagePack (https://msgpack.org), in which texts need no escaping.

The parent sends one request and reads one reply: `Draws` is answered by `Drawn`, and `ScoreRequest`
by `Scored` when its results are on the board (`swarm_tasks.step_board`). Any request may be
answered by `Failed` instead. When the child has started it sends `Ready`, or `Failed` if it cannot
work at all.
"""

import struct
from typing import TypeVar

import msgspec
from msgspec import Struct

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Config
from swarm_tasks.answers import AnswerRules
from swarm_tasks.keyspace import Part


class Message(Struct, frozen=True, tag_field="type"):
    """A request or a reply."""


class Draw(Struct, frozen=True):
    """Task indices to try in order, until one gives a question that belongs to `part`.

    If `part` is None, every question is accepted.
    """

    dataset: str
    config: Config
    seed: int
    indices: list[int]
    part: Part | None


class Draws(Message, frozen=True, tag="draws"):
    """A request for several questions, one for each draw.

    The draws have at most MAX_STEPS indices in total.
    """

    draws: list[Draw]


class Job(Struct, frozen=True):
    """A task to make, and the texts to score as answers to it."""

    dataset: str
    config: Config
    seed: int
    index: int
    texts: list[str]


class ScoreRequest(Message, frozen=True, tag="score"):
    """A request to make the tasks of `jobs` and score their texts, in order, by `rules`.

    The jobs have at most MAX_STEPS steps, one for each task and each text. After `seconds` no
    further text is started; the steps that were not done stay pending.
    """

    jobs: list[Job]
    rules: AnswerRules
    seconds: float


class Ready(Message, frozen=True, tag="ready"):
    """The child has started; `isolation` names its active protections."""

    isolation: list[str]


class GeneratedTask(Message, frozen=True, tag="made"):
    """The result of a `Draw`: its first index whose question belongs to `part`, and the question.

    If there is none, `index` is None and `question` is empty.
    """

    index: int | None
    question: str


class Scored(Message, frozen=True, tag="scored"):
    """The reply to a `ScoreRequest` that is done or out of time; the step board has the results."""


class Failed(Message, frozen=True, tag="failed"):
    """A request or a draw could not be served."""

    code: ErrorCode
    message: str

    @property
    def refusal(self) -> RefusedError:
        """The error that the parent raises when it receives this message."""
        return RefusedError(self.code, self.message)


class Drawn(Message, frozen=True, tag="drawn"):
    """The result of each draw, in order."""

    made: list[GeneratedTask | Failed]


Request = Draws | ScoreRequest
Reply = Ready | Drawn | Scored | Failed

ReplyT = TypeVar("ReplyT", Ready, Drawn, Scored)

_LENGTH = struct.Struct("!I")
LENGTH_BYTES = _LENGTH.size

_encoder = msgspec.msgpack.Encoder()
_request_decoder: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_reply_decoder: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


def encode_message(message: Message) -> bytearray:
    """Return a message as bytes, with its length before it."""
    frame = bytearray(LENGTH_BYTES)
    _encoder.encode_into(message, frame, LENGTH_BYTES)
    _LENGTH.pack_into(frame, 0, len(frame) - LENGTH_BYTES)
    return frame


def read_length(header: bytes | bytearray) -> int:
    """Return the length of a message from the LENGTH_BYTES bytes before it."""
    (length,) = _LENGTH.unpack(header)
    return int(length)


def decode_request(raw: bytes) -> Request:
    """Return the request in a message. Raises msgspec.DecodeError if the message has no request."""
    return _request_decoder.decode(raw)


def decode_reply(raw: bytes, expected: type[ReplyT]) -> ReplyT:
    """Return the reply in a message, which must be of the type `expected`.

    Raises RefusedError for `Failed`, and msgspec.DecodeError for another type or invalid bytes.
    """
    try:
        reply = _reply_decoder.decode(raw)
    except (UnicodeDecodeError, RecursionError) as problem:
        # An answer that takes control of the child can send any bytes.
        raise msgspec.DecodeError(str(problem)) from problem
    if isinstance(reply, Failed):
        raise reply.refusal
    if not isinstance(reply, expected):
        raise msgspec.ValidationError(f"got {type(reply).__name__}, expected {expected.__name__}")
    return reply
