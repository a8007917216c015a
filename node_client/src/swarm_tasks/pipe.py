"""What the verifier and its child say to each other; no I/O.

A message is MessagePack (https://msgpack.org) behind its length in bytes, four of them in network
order: texts travel as they are, with nothing to escape and no end to look for.

The parent sends one request and reads one reply: `Draw` is answered by `GeneratedTask`, `Draws` by
`Drawn`, `SampleRequest` by `Sampled`, and `ScoreRequest` by `Scored` once every step of it is on
the board (`swarm_tasks.step_board`). `Failed` in the place of any ends the request. When the child
is up it says `Ready`, or `Failed` if it cannot work at all.
"""

import struct
from typing import TypeVar

import msgspec
from msgspec import Struct

from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import Config
from swarm_tasks.answers import AnswerRules
from swarm_tasks.keyspace import Part


class Message(Struct, frozen=True, tag_field="type"):
    """What either side says."""


class Draw(Message, frozen=True, tag="draw"):
    """Make the tasks at these indices until one's question belongs to `part` (null: the first)."""

    dataset: str
    config: Config
    seed: int
    indices: list[int]
    part: Part | None


class Draws(Message, frozen=True, tag="draws"):
    """Make what each of these asks for; their indices together fit on the board."""

    draws: list[Draw]


class SampleRequest(Message, frozen=True, tag="sample"):
    """Make the tasks at these indices."""

    dataset: str
    config: Config
    seed: int
    indices: list[int]


class Job(Struct, frozen=True):
    """Make one task and score each text as an answer to it."""

    dataset: str
    config: Config
    seed: int
    index: int
    texts: list[str]


class ScoreRequest(Message, frozen=True, tag="score"):
    """Do the jobs in order, and read their texts by `rules`.

    Their steps, one for each task and each text, fit on the board. After `seconds` no other text
    is begun; steps that were not reached stay pending.
    """

    jobs: list[Job]
    rules: AnswerRules
    seconds: float


class Ready(Message, frozen=True, tag="ready"):
    """The child is up, and these protections took hold."""

    isolation: list[str]


class GeneratedTask(Message, frozen=True, tag="made"):
    """A task was made; `index` is null when no question of a draw belonged to the part."""

    index: int | None
    question: str


class Drawn(Message, frozen=True, tag="drawn"):
    """What came of each draw, in order."""

    made: list[GeneratedTask]


class Sampled(Message, frozen=True, tag="sampled"):
    """The digests of the questions that could be made, in order (`swarm_tasks.asked`)."""

    digests: list[int]


class Scored(Message, frozen=True, tag="scored"):
    """Every step of the request was done, or its time is over."""


class Failed(Message, frozen=True, tag="failed"):
    """A request could not be served."""

    code: str
    message: str


Request = Draw | Draws | SampleRequest | ScoreRequest
Reply = Ready | GeneratedTask | Drawn | Sampled | Scored | Failed

ReplyT = TypeVar("ReplyT", Ready, GeneratedTask, Drawn, Sampled, Scored)

_LENGTH = struct.Struct("!I")
LENGTH_BYTES = _LENGTH.size

_encoder = msgspec.msgpack.Encoder()
_request_decoder: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_reply_decoder: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


def encode_message(message: Message) -> bytearray:
    """Return a message behind its length."""
    frame = bytearray(LENGTH_BYTES)
    _encoder.encode_into(message, frame, LENGTH_BYTES)
    _LENGTH.pack_into(frame, 0, len(frame) - LENGTH_BYTES)
    return frame


def read_length(header: bytes | bytearray) -> int:
    """Return how many bytes follow the first LENGTH_BYTES."""
    (length,) = _LENGTH.unpack(header)
    return int(length)


def decode_request(raw: bytes) -> Request:
    """Return the request. Raises msgspec.DecodeError."""
    return _request_decoder.decode(raw)


def decode_reply(raw: bytes, expected: type[ReplyT]) -> ReplyT:
    """Return the reply, which must be of the wanted kind.

    Raises RefusedError for `Failed`, and msgspec.DecodeError for anything that is not `wanted`.
    """
    reply = _reply_decoder.decode(raw)
    if isinstance(reply, Failed):
        raise RefusedError(reply.code, reply.message)
    if not isinstance(reply, expected):
        raise msgspec.ValidationError(f"got {type(reply).__name__}, expected {expected.__name__}")
    return reply
