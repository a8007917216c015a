"""What a sender told of its completions is used as far as it can be, and never trusted."""

import pytest

from node_client.learning.sender import SenderLogprobs, read_sender
from swarm_protocol.logprobs import encode_logprobs
from swarm_protocol.messages import Completion

PACKED = encode_logprobs([-0.5, -1.0, -0.25])


def told(*, logprobs: str | None = None, logprob: float | None = None) -> Completion:
    return Completion("4", "stop", logprobs=logprobs, logprob=logprob)


def test_tokens_are_compared_one_by_one_where_they_are_the_same() -> None:
    sender = read_sender(told(logprobs=PACKED), token_count=3, same_tokenizer=True)
    assert sender == SenderLogprobs(-1.75, [-0.5, -1.0, -0.25])


@pytest.mark.parametrize(("token_count", "same"), [(3, False), (4, True), (2, True)])
def test_their_sum_is_left_where_tokens_differ(token_count: int, same: bool) -> None:
    sender = read_sender(told(logprobs=PACKED), token_count=token_count, same_tokenizer=same)
    assert sender == SenderLogprobs(-1.75)


def test_the_log_prob_of_a_whole_completion_is_taken() -> None:
    sender = read_sender(told(logprob=-7.5), token_count=3, same_tokenizer=True)
    assert sender == SenderLogprobs(-7.5)


@pytest.mark.parametrize("logprobs", [None, "", "AAA", "AA=="])
def test_what_cannot_be_unpacked_counts_as_nothing_told(logprobs: str | None) -> None:
    assert read_sender(told(logprobs=logprobs), token_count=3, same_tokenizer=True) is None


def test_what_cannot_be_unpacked_leaves_the_sum() -> None:
    sender = read_sender(told(logprobs="AAA", logprob=-2.0), token_count=3, same_tokenizer=True)
    assert sender == SenderLogprobs(-2.0)
