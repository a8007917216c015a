"""Completions as a policy wrote them."""

from dataclasses import dataclass

from node_client.model.words import Words
from swarm_protocol.messages import FinishReason


@dataclass(frozen=True)
class Generated:
    """One completion as the policy wrote it; `token_ids` end with EOS after a `stop`.

    `logprobs` has one value for each token: of the distribution that it was drawn from.
    """

    text: str
    finish_reason: FinishReason
    token_ids: list[int]
    logprobs: list[float]


def finish(row: list[int], logprobs: list[float], *, words: Words) -> Generated:
    """Cut a sampled row after its first EOS and decode it."""
    end = words.end_of(row)
    if end is None:
        return Generated(words.decode(row), "length", token_ids=row, logprobs=logprobs)
    return Generated(
        text=words.decode(row[:end]),
        finish_reason="stop",
        token_ids=row[: end + 1],
        logprobs=logprobs[: end + 1],
    )
