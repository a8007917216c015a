"""Tasks, completions and rollouts, for messages in both directions."""

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
    """The identity of a task, from which its question and right answer can be generated again.

    `index` is drawn by a keyed hash (`swarm_tasks.keyspace`). `generator` is the library and
    version for which the spec is valid, such as `reasoning-gym 0.1.25`.
    """

    dataset: Name
    config: Config
    seed: Index
    index: Index
    generator: Name


# With `omit_defaults` log-probs are sent only if there are any: older peers refuse these fields.
class Completion(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One text that a model generated, without its end-of-sequence token.

    If `finish_reason` is `stop`, the receiver appends the end-of-sequence token of its own model.
    `logprobs` has the log-prob of each token, including the end-of-sequence token, encoded by
    `swarm_protocol.logprobs`. Each is the log-prob under the distribution from which the token was
    sampled, that is, with the sender's temperature and top_p. If the list is too large, `logprob`
    is sent instead: the sum of the log-probs.
    """

    text: CompletionText
    finish_reason: FinishReason
    logprobs: PackedLogprobs | None = None
    logprob: Logprob | None = None


class Rollout(Struct, frozen=True, forbid_unknown_fields=True):
    """A task spec and all completions that a node generated for its question (a group).

    The receiver generates the question and the right answer from the spec, and computes the
    rewards. `model`, `step` and `tokenizer` identify the policy that generated the completions.
    """

    id: Id
    task: TaskSpec
    completions: Annotated[list[Completion], Meta(min_length=2, max_length=MAX_COMPLETIONS)]
    model: Name
    step: Count
    tokenizer: Name


class RolloutName(Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a rollout: the node that generated it, and the id that this node gave it."""

    node: Name
    id: Id


class ExternalRollout(Struct, frozen=True):
    """A rollout from the pool, its age in seconds, and the name of the node that generated it."""

    node: str
    age_s: float
    rollout: Rollout
