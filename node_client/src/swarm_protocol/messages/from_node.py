"""The messages from a node to the server."""

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
    """Base of all messages from a node. The node chooses `id`; the reply repeats it."""

    id: Id


class Hardware(Struct, frozen=True, forbid_unknown_fields=True):
    """What a node trains on: the name of the device, and its memory in bytes."""

    device: Name
    memory: Count


# With `omit_defaults`, here and below, newer fields are sent only if set: an older server would
# refuse them.
class Hello(NodeMessage, frozen=True, tag="hello", omit_defaults=True):
    """The first message of a connection: protocol and client version, and the node's model.

    `parameters` is the number of the model's parameters, and `tokenizer` a fingerprint of its
    tokenizer. `arm` is the arm that the node asks for; in a season that assigns arms by coin, the
    welcome has the assigned arm. A `base` node answers the judge with an untrained model and never
    trains. `hardware` is shown on the node's page; it is sent only if the owner agreed. `key` is
    the public key with which the node's signatures of answers are checked.
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
    """Publish rollouts of the latest step.

    `informative` has the ids of the rollouts that have both right and wrong completions. Ids of
    rollouts that are not in the message are ignored. Only servers whose welcome sets `declarations`
    accept `informative`.
    """

    rollouts: Annotated[list[Rollout], Meta(min_length=1, max_length=MAX_ROLLOUTS)]
    informative: Annotated[list[Id], Meta(max_length=MAX_ROLLOUTS)] = field(default_factory=list)


class RequestRollouts(NodeMessage, frozen=True, tag="rollouts.request", omit_defaults=True):
    """Request `count` rollouts of other owners' nodes, drawn by the strategy `prefer`.

    - `any` draws uniformly.
    - `informative` draws uniformly from the rollouts that their senders declared informative, and
      then from the others until there are `count`.
    - `by_node` draws an owner uniformly, and then one of the rollouts of the owner's nodes. A node
      without an owner counts as its own owner.
    - `by_task` draws a dataset uniformly, and then one of its rollouts.
    - `fresh` draws recent rollouts with a higher probability.

    Rollouts of a node whose hand-out level is `lowered` are drawn less often, and those of a node
    whose level is `withheld` never. The season's `sampling` lists the allowed strategies. A server
    whose season has no such field allows `any`, and `informative` if its welcome sets
    `declarations`.

    If `logprobs` is true, rollouts come with their senders' log-probs, if the senders gave any.
    """

    count: Annotated[int, Meta(ge=1, le=MAX_REQUESTED)]
    logprobs: bool = False
    prefer: Preference = "any"


class ReportTraining(NodeMessage, frozen=True, tag="training.report", omit_defaults=True):
    """Report the progress of training, after each step.

    The counters are totals since the node joined this season, so a report that is sent twice
    counts once. `training_reward` and `informative_share` are over the node's own rollouts of the
    step. `external_dropped` counts the external rollouts that were not trained on, by reason; the
    client defines the reasons' codes.

    `used` names the external rollouts that the node trained on and has not reported yet. A rollout
    is credited at most once to the node that generated it, and only if it was delivered to the
    reporting node. `reflection` has, for each pattern (recheck, hesitation, exploration), the share
    of the step's own completions that show it. Only servers whose welcome sets `provenance` accept
    `used` and `reflection`.
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
    """Request the current judge round."""


class RequestQuestions(NodeMessage, frozen=True, tag="questions.request"):
    """Request the questions of a round, and a place in the round if the node has none.

    Unless the request is refused, each question that the node does not answer counts as wrong.
    """

    round: Count


class AnswerText(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The answer to one judge question; `question` is the question's id.

    `signature` is valid under the `key` of the node's hello, over the bytes that
    `swarm_record.answers.encode_signed_answer` returns. Only servers whose welcome has a `chain`
    accept `signature`.
    """

    question: Id
    text: Text
    finish_reason: FinishReason
    signature: Signature | None = None


class SubmitAnswers(NodeMessage, frozen=True, tag="answers.submit"):
    """Submit answers. The first stored answer to a question counts; later ones change nothing."""

    round: Count
    answers: Annotated[list[AnswerText], Meta(min_length=1, max_length=MAX_ANSWERS)]


class RequestStanding(NodeMessage, frozen=True, tag="standing.request"):
    """Request this node's own row of the leaderboard."""


FromNode = (
    Hello
    | PublishRollouts
    | RequestRollouts
    | ReportTraining
    | RequestRound
    | RequestQuestions
    | SubmitAnswers
    | RequestStanding
)
