"""What the maker of an external rollout told about how likely its completions were."""

from dataclasses import dataclass

from swarm_protocol.logprobs import decode_logprobs
from swarm_protocol.messages import Completion


@dataclass(frozen=True)
class SenderLogprobs:
    """The log-prob of a completion where it was made, and by token where tokens are the same."""

    total: float
    tokens: list[float] | None = None


def read_sender(
    completion: Completion, *, token_count: int, same_tokenizer: bool
) -> SenderLogprobs | None:
    """Return what a completion came with; None if that is nothing, or nothing that can be read.

    Values by token need the same tokenizer and this node's number of tokens: a model may sample
    tokens that the tokenizer would not choose for the text. Otherwise their sum is what is left.
    """
    tokens = decode_logprobs(completion.logprobs) if completion.logprobs else None
    if not tokens:
        return None if completion.logprob is None else SenderLogprobs(completion.logprob)
    if same_tokenizer and len(tokens) == token_count:
        return SenderLogprobs(sum(tokens), tokens)
    return SenderLogprobs(sum(tokens))
