"""Encoding of log-probs: round trips to half a quantization step, and hostile input."""

import base64
import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_protocol.codec import UndecodableError, decode_from_node, encode
from swarm_protocol.logprobs import decode_logprobs, encode_logprobs, without_logprobs
from swarm_protocol.messages import (
    MAX_LOGPROBS_CHARS,
    Completion,
    PublishRollouts,
    RequestRollouts,
    Rollout,
    TaskSpec,
)

PLAIN = Completion(text="4", finish_reason="stop")


def publication_of(completion: Completion) -> PublishRollouts:
    spec = TaskSpec("chain_sum", {}, 1, 2, "reasoning-gym 0.1.25")
    rollout = Rollout("r", spec, [completion, PLAIN], model="toy", step=3, tokenizer="abc")
    return PublishRollouts(id="1", rollouts=[rollout])


@given(st.lists(st.floats(-31.9, 0)))
def test_values_round_trip_to_half_a_step(logprobs: list[float]) -> None:
    decoded = decode_logprobs(encode_logprobs(logprobs))
    assert decoded == pytest.approx(logprobs, abs=1 / 4096, rel=0)


def test_documented_example_is_encoded_as_documented() -> None:
    assert encode_logprobs([-0.25, -0.5, -1.125, 0.0]) == "AAIABAAJAAA="


@pytest.mark.parametrize("value", [-100.0, -math.inf])
def test_value_below_the_range_is_clipped(value: float) -> None:
    assert decode_logprobs(encode_logprobs([value])) == [-65535 / 2048]


def test_order_of_values_is_preserved() -> None:
    logprobs = [-n / 10 for n in range(300)]
    decoded = decode_logprobs(encode_logprobs(logprobs))
    assert decoded is not None
    assert all(one > other for one, other in pairwise(decoded))


@pytest.mark.parametrize("text", ["A", "AA==", "AAAA=", "A\u00e9AA", "====", "AAA\n"])
def test_invalid_text_decodes_to_none(text: str) -> None:
    assert decode_logprobs(text) is None


@given(st.binary())
def test_random_bytes_decode_to_values_in_range(packed: bytes) -> None:
    decoded = decode_logprobs(base64.b64encode(packed).decode())
    assert (decoded is None) == bool(len(packed) % 2)
    assert all(-32 < value <= 0 for value in decoded or ())


@pytest.mark.parametrize(
    "changes",
    [
        {"logprobs": "A" * (MAX_LOGPROBS_CHARS + 1)},
        {"logprobs": "not base64!"},
        {"logprob": 0.5},
        {"logprob": -1e7},
    ],
)
def test_log_probs_out_of_bounds_are_refused_by_the_codec(changes: dict[str, object]) -> None:
    frame = encode(publication_of(msgspec.structs.replace(PLAIN, **changes)))
    with pytest.raises(UndecodableError):
        decode_from_node(frame)


def test_completion_with_the_most_log_probs_round_trips() -> None:
    packed = encode_logprobs([-0.5] * 16_384)
    assert len(packed) == MAX_LOGPROBS_CHARS
    message = publication_of(msgspec.structs.replace(PLAIN, logprobs=packed))
    assert decode_from_node(encode(message)) == message


def test_frame_without_log_probs_has_no_fields_unknown_to_older_peers() -> None:
    full = Completion("4", "stop", logprobs="AAIABA==", logprob=-0.5)
    rollout = without_logprobs(publication_of(full).rollouts[0])
    assert msgspec.json.encode(rollout.completions[0]) == b'{"text":"4","finish_reason":"stop"}'
    request = encode(RequestRollouts(id="1", count=4))
    assert request == '{"type":"rollouts.request","id":"1","count":4}'
