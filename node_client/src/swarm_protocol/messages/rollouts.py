"""Tasks, completions and rollouts, as both directions name them."""

from typing import Annotated

from msgspec import Meta, Struct

from swarm_protocol.messages.fields import (
    MAX_COMPLETIONS,
    CompletionText,
    Config,
    Count,
    FinishReason,
    Id,
    Index,
    Logprob,
    Name,
    PackedLogprobs,
)


class TaskSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """The name of one verifiable question: whoever has it can make question and answer again.

    `index` is drawn by a keyed hash (`swarm_tasks.keyspace`); `generator` is the library and
    version that the spec is valid for, such as `reasoning-gym 0.1.25`.
    """

    dataset: Name
    config: Config
    seed: Index
    index: Index
    generator: Name


# Left out where there are none, because an older peer refuses the fields.
class Completion(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One decoded answer. After `stop` the receiver appends its own end-of-sequence token.

    `logprobs` says how likely each of its tokens was, the end-of-sequence token included, in the
    distribution that it was drawn from (at the sender's temperature and top_p), packed as
    `swarm_protocol.logprobs` does. Where that is too much, `logprob` is their sum.
    """

    text: CompletionText
    finish_reason: FinishReason
    logprobs: PackedLogprobs | None = None
    logprob: Logprob | None = None


class Rollout(Struct, frozen=True, forbid_unknown_fields=True):
    """One question's spec and all completions that a node generated for it (a group).

    It carries no question, no answer and no reward: the receiver makes and computes its own.
    `model`, `step` and `tokenizer` say which policy version spoke.
    """

    id: Id
    task: TaskSpec
    completions: Annotated[list[Completion], Meta(min_length=2, max_length=MAX_COMPLETIONS)]
    model: Name
    step: Count
    tokenizer: Name


class RolloutName(Struct, frozen=True, forbid_unknown_fields=True):
    """Which rollout: the node that made it, and the id that this node gave it."""

    node: Name
    id: Id


class ExternalRollout(Struct, frozen=True):
    """A rollout from the pool, with the name of the node that made it and its age."""

    node: str
    age_s: float
    rollout: Rollout
