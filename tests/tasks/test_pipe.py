"""The parent survives any bytes that its verifier child sends."""

import msgspec
import pytest

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.pipe import Failed, Ready, Scored, decode_reply


def nested(depth: int) -> bytes:
    """Return a reply `Ready` with an unknown field that has arrays of arrays, `depth` in all."""
    fields = [(b"type", b"\xa5ready"), (b"isolation", b"\x90"), (b"x", b"\x91" * depth + b"\x90")]
    return b"\x83" + b"".join(bytes([0xA0 + len(key)]) + key + value for key, value in fields)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x82\xa4type\xa5ready\xa9isolation\x91\xa1\xff", id="not UTF-8"),
        pytest.param(nested(100_000), id="deep"),
        pytest.param(
            msgspec.msgpack.encode({"type": "failed", "code": "no.such", "message": ""}),
            id="unknown code",
        ),
        pytest.param(msgspec.msgpack.encode(Scored()), id="another reply"),
    ],
)
def test_invalid_reply_raises_one_kind_of_error(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_reply(raw, Ready)


def test_reply_that_reports_a_failure_raises_it() -> None:
    raw = msgspec.msgpack.encode(Failed(ErrorCode.VERIFIER_FAILED, "no memory"))
    with pytest.raises(RefusedError, match="no memory"):
        decode_reply(raw, Ready)
