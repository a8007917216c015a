"""Every message of the node socket, as msgspec structs.

A message is one JSON object whose `type` names its struct. A node's message has an `id` that the
node chose; the reply repeats it as `reply_to`. A server message whose `reply_to` is null is a
doorbell: it announces a change that can also be requested, because doorbells may be lost.

The server refuses messages with unknown fields, so that mistakes are noticed; a client ignores
such fields, so that a newer server can send more than it knows.
"""

from swarm_protocol.messages.fields import (
    MAX_ANSWERS,
    MAX_COMPLETION_CHARS,
    MAX_COMPLETIONS,
    MAX_LOGPROBS_CHARS,
    MAX_REASONS,
    MAX_REQUESTED,
    MAX_ROLLOUT_BYTES,
    MAX_ROLLOUTS,
    MAX_USED,
    NO_NUL,
    Arm,
    Assignment,
    Config,
    ConfigValue,
    Count,
    FinishReason,
    Id,
    Index,
    Logprob,
    Name,
    PackedLogprobs,
    Preference,
    PublicKey,
    Reflection,
    RoundPhase,
    Share,
    Signature,
    StandingRemark,
    Text,
)
from swarm_protocol.messages.from_node import (
    AnswerText,
    Hardware,
    Hello,
    NodeMessage,
    PublishRollouts,
    ReportTraining,
    RequestQuestions,
    RequestRollouts,
    RequestRound,
    RequestStanding,
    SubmitAnswers,
)
from swarm_protocol.messages.from_server import (
    AnswersReceived,
    ChainHead,
    NodeStanding,
    OfferedQuestion,
    QuestionsOffered,
    ReceivedAnswer,
    Refused,
    Rejected,
    Restored,
    RolloutsPublished,
    RolloutsSampled,
    RoundInfo,
    RoundState,
    SeasonInfo,
    SeasonState,
    ServerMessage,
    SignedReceipt,
    TaskChoice,
    TrainingReported,
    Welcome,
)
from swarm_protocol.messages.rollouts import (
    Completion,
    ExternalRollout,
    Rollout,
    RolloutName,
    TaskSpec,
)

__all__ = [
    "MAX_ANSWERS",
    "MAX_COMPLETIONS",
    "MAX_COMPLETION_CHARS",
    "MAX_LOGPROBS_CHARS",
    "MAX_REASONS",
    "MAX_REQUESTED",
    "MAX_ROLLOUTS",
    "MAX_ROLLOUT_BYTES",
    "MAX_USED",
    "NO_NUL",
    "AnswerText",
    "AnswersReceived",
    "Arm",
    "Assignment",
    "ChainHead",
    "Completion",
    "Config",
    "ConfigValue",
    "Count",
    "ExternalRollout",
    "FinishReason",
    "FromNode",
    "FromServer",
    "Hardware",
    "Hello",
    "Id",
    "Index",
    "Logprob",
    "Name",
    "NodeMessage",
    "NodeStanding",
    "OfferedQuestion",
    "PackedLogprobs",
    "Preference",
    "PublicKey",
    "PublishRollouts",
    "QuestionsOffered",
    "ReceivedAnswer",
    "Reflection",
    "Refused",
    "Rejected",
    "ReportTraining",
    "RequestQuestions",
    "RequestRollouts",
    "RequestRound",
    "RequestStanding",
    "Restored",
    "Rollout",
    "RolloutName",
    "RolloutsPublished",
    "RolloutsSampled",
    "RoundInfo",
    "RoundPhase",
    "RoundState",
    "SeasonInfo",
    "SeasonState",
    "ServerMessage",
    "Share",
    "Signature",
    "SignedReceipt",
    "StandingRemark",
    "SubmitAnswers",
    "TaskChoice",
    "TaskSpec",
    "Text",
    "TrainingReported",
    "Welcome",
]

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
FromServer = (
    Welcome
    | RolloutsPublished
    | RolloutsSampled
    | TrainingReported
    | SeasonState
    | RoundState
    | QuestionsOffered
    | AnswersReceived
    | NodeStanding
    | Refused
)
