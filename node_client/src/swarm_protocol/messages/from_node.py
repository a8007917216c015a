"""What a node says."""

from typing import Annotated

from msgspec import Meta, Struct, field

from swarm_protocol.messages.fields import (
    MAX_ANSWERS,
    MAX_REASONS,
    MAX_REQUESTED,
    MAX_ROLLOUTS,
    MAX_USED,
    Arm,
    Count,
    FinishReason,
    Id,
    Name,
    Preference,
    PublicKey,
    Reflection,
    Share,
    Signature,
    Text,
)
from swarm_protocol.messages.rollouts import Rollout, RolloutName


class NodeMessage(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    """What a node says; `id` names the request."""

    id: Id


class Hardware(Struct, frozen=True, forbid_unknown_fields=True):
    """What a node trains on: the device's name, and the bytes of memory that it has."""

    device: Name
    memory: Count


# What came later is left out where there is none, here and below: older servers refuse it.
class Hello(NodeMessage, frozen=True, tag="hello", omit_defaults=True):
    """The first message of a connection: who speaks, and in which version.

    `arm` is the owner's wish; in a season that assigns arms by coin the welcome says which arm it
    became. A `base` node answers the judge with an untrained model and never trains. `hardware` is
    shown on the node's page; it is told only by owners who chose to. `key` is the public key with
    which the node signs its answers.
    """

    protocol: int
    client: Name
    model: Name
    tokenizer: Name
    arm: Arm
    parameters: Count = 0
    hardware: Hardware | None = None
    key: PublicKey | None = None


class PublishRollouts(NodeMessage, frozen=True, tag="rollouts.publish", omit_defaults=True):
    """Share rollouts of the latest step.

    `informative` has the ids of those of them with right and wrong completions, which teach
    something whatever reward their receiver trains with. An id that names none of them is ignored.
    It is for servers whose welcome says `declarations`.
    """

    rollouts: Annotated[list[Rollout], Meta(min_length=1, max_length=MAX_ROLLOUTS)]
    informative: Annotated[list[Id], Meta(max_length=MAX_ROLLOUTS)] = field(default_factory=list)


class RequestRollouts(NodeMessage, frozen=True, tag="rollouts.request", omit_defaults=True):
    """Ask for `count` rollouts of other nodes, drawn from the pool as `prefer` says.

    `any` draws uniformly. With `informative`, those that their senders declared so come first,
    drawn uniformly among themselves; the others fill up what is left of `count`. `by_node` draws
    an owner first, all alike, and then one of the rollouts of the owner's nodes; `by_task` does so
    with datasets; with `fresh` the younger are likelier. A season names in `sampling` those that it
    allows. A server whose season has no such field knows `any`, and `informative` if its welcome
    says `declarations`.

    They come with their senders' log-probs, as far as there are any, if `logprobs` asks for them.
    """

    count: Annotated[int, Meta(ge=1, le=MAX_REQUESTED)]
    logprobs: bool = False
    prefer: Preference = "any"


class ReportTraining(NodeMessage, frozen=True, tag="training.report", omit_defaults=True):
    """Tell how training goes, after each step.

    The counters are totals since the node joined this season, so a report that is sent twice
    counts once. `training_reward` is the mean over the node's *own* rollouts of the step.

    `external_dropped` maps the reason, a code of the node's own, to how many external rollouts
    were not trained on.

    `used` names the external rollouts that the node trained on and has not told yet: those that
    were delivered to it are credited to who made them, each once. `reflection` is the share of the
    step's own completions that show a pattern: recheck, hesitation, exploration. Both are for
    servers whose welcome says `provenance`.
    """

    step: Count
    training_reward: Share
    informative_share: Share
    local_used: Count
    external_used: Count
    external_dropped: Annotated[dict[Id, Count], Meta(max_length=MAX_REASONS)] = field(
        default_factory=dict
    )
    used: Annotated[list[RolloutName], Meta(max_length=MAX_USED)] = field(default_factory=list)
    reflection: dict[Reflection, Share] = field(default_factory=dict)


class RequestRound(NodeMessage, frozen=True, tag="round.request"):
    """Ask which judge round is current."""


class RequestQuestions(NodeMessage, frozen=True, tag="questions.request"):
    """Take a seat in a round: from now on an unanswered question counts as wrong."""

    round: Count


class AnswerText(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The answer to one judge question.

    `signature` is made with the key of the node's hello, over the bytes that
    `swarm_record.answers.encode_signed_answer` returns. For servers whose welcome has a `chain`.
    """

    question: Id
    text: Text
    finish_reason: FinishReason
    signature: Signature | None = None


class SubmitAnswers(NodeMessage, frozen=True, tag="answers.submit"):
    """Hand in answers. The first answer to a question counts; repeating it changes nothing."""

    round: Count
    answers: Annotated[list[AnswerText], Meta(min_length=1, max_length=MAX_ANSWERS)]


class RequestStanding(NodeMessage, frozen=True, tag="standing.request"):
    """Ask for this node's own row of the leaderboard."""
