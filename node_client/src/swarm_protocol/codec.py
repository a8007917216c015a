"""Decodes frames into messages and encodes messages; no I/O.

A valid frame is decoded in one pass. A frame that fails is decoded again in two steps, first its
`type` and `id` and then the whole message. The error can then state the cause as an error code and,
if the id could be read, name the request.
"""

import re
from collections.abc import Mapping
from typing import TypeVar, get_args

import msgspec

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import FromNode, FromServer, Hello, Id, NodeMessage, ServerMessage
from swarm_protocol.version import PROTOCOL_VERSION

MAX_FRAME_BYTES = 1 << 20
_MAX_PROBLEM_CHARS = 300
_HELLO = Hello.__struct_config__.tag

Message = TypeVar("Message")

# NUL is allowed in JSON but not in Postgres' texts. In JSON it is always this escape. After an odd
# number of further backslashes, the text has a backslash and the letters u0000 instead.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")

_encoder = msgspec.json.Encoder()


class _Envelope(msgspec.Struct):
    type: str
    id: Id | None = None
    reply_to: Id | None = None
    protocol: int | None = None


_envelope = msgspec.json.Decoder(_Envelope)


def message_types(union: object) -> dict[str, type[msgspec.Struct]]:
    """Return the structs in a union of messages, by their type tag."""
    return {str(struct.__struct_config__.tag): struct for struct in get_args(union)}


_from_node: msgspec.json.Decoder[NodeMessage] = msgspec.json.Decoder(FromNode)
_from_server: msgspec.json.Decoder[ServerMessage] = msgspec.json.Decoder(FromServer)
# A decoder for each type, to find out what is wrong with a frame.
_node_decoders: dict[str, msgspec.json.Decoder[NodeMessage]] = {
    tag: msgspec.json.Decoder(struct) for tag, struct in message_types(FromNode).items()
}
_server_decoders: dict[str, msgspec.json.Decoder[ServerMessage]] = {
    tag: msgspec.json.Decoder(struct) for tag, struct in message_types(FromServer).items()
}


class UndecodableError(RefusedError):
    """A frame could not be decoded.

    `request_id` is the frame's `id` or `reply_to`, None if neither was read.
    """

    def __init__(self, code: ErrorCode, message: str, request_id: str | None = None) -> None:
        super().__init__(code, message)
        self.request_id = request_id


def encode(message: msgspec.Struct) -> str:
    """Return the message as the text of one frame."""
    return _encoder.encode(message).decode()


def decode_from_node(frame: str | bytes) -> NodeMessage:
    """Return the message in a frame from a node.

    Raises UndecodableError for a frame that is too large, has a NUL in a text, or is not a message
    of this version of the protocol.
    """
    return _decode(frame, _from_node, _node_decoders)


def decode_from_server(frame: str | bytes) -> ServerMessage:
    """Return the message in a frame from the server.

    Raises UndecodableError for a frame that is too large, has a NUL in a text, or is not a message
    that this version of the client knows.
    """
    return _decode(frame, _from_server, _server_decoders)


def _decode(
    frame: str | bytes,
    decoder: msgspec.json.Decoder[Message],
    decoders: Mapping[str, msgspec.json.Decoder[Message]],
) -> Message:
    try:
        raw = frame.encode() if isinstance(frame, str) else frame
    except UnicodeEncodeError as problem:
        raise UndecodableError(
            ErrorCode.PROTOCOL_NOT_JSON, f"not UTF-8: {_shorten(problem)}"
        ) from None
    if len(raw) > MAX_FRAME_BYTES:
        raise UndecodableError(
            ErrorCode.PROTOCOL_TOO_LARGE, f"{len(raw)} bytes, at most {MAX_FRAME_BYTES} are read"
        )
    try:
        message = decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_in_steps(raw, decoders)
    is_foreign = isinstance(message, Hello) and message.protocol != PROTOCOL_VERSION
    return _decode_in_steps(raw, decoders) if is_foreign or _holds_nul(raw) else message


def _decode_in_steps(raw: bytes, decoders: Mapping[str, msgspec.json.Decoder[Message]]) -> Message:
    """Return the message in a frame, or raise an UndecodableError that says what is wrong.

    `decoders` maps each type tag to the decoder of its message.
    """
    try:
        envelope = _envelope.decode(raw)
    except msgspec.ValidationError as problem:
        raise UndecodableError(ErrorCode.PROTOCOL_INVALID, _shorten(problem)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UndecodableError(ErrorCode.PROTOCOL_NOT_JSON, _shorten(problem)) from None
    request_id = envelope.id or envelope.reply_to
    decoder = decoders.get(envelope.type)
    if decoder is None:
        raise UndecodableError(
            ErrorCode.PROTOCOL_UNKNOWN_TYPE, f"no message {envelope.type[:64]!r}", request_id
        )
    _check_version(envelope)
    if _holds_nul(raw):
        raise UndecodableError(
            ErrorCode.PROTOCOL_INVALID, "a text holds the character NUL", request_id
        )
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UndecodableError(ErrorCode.PROTOCOL_INVALID, _shorten(problem), request_id) from None


def _holds_nul(raw: bytes) -> bool:
    """Return whether any text in a frame contains NUL."""
    return b"\\" in raw and b"\\u0000" in raw and _NUL.search(raw) is not None


def _check_version(envelope: _Envelope) -> None:
    """Raise UndecodableError for a Hello of another protocol version.

    Call this before the whole Hello is decoded, because its fields may differ in that version.
    """
    protocol = envelope.protocol
    if envelope.type == _HELLO and protocol is not None and protocol != PROTOCOL_VERSION:
        raise UndecodableError(
            ErrorCode.PROTOCOL_VERSION,
            f"protocol {protocol}, this side speaks {PROTOCOL_VERSION}",
            envelope.id,
        )


def _shorten(problem: Exception) -> str:
    """Return the first characters of an error's text, which may quote a whole frame."""
    return str(problem)[:_MAX_PROBLEM_CHARS]
