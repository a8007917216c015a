"""Every message of the node socket, as msgspec structs.

A message is one JSON object whose `type` names its struct. What a node sends carries an `id` that
the node chose; the reply repeats it as `reply_to`. A server message without `reply_to` is a
doorbell: it announces something that can also be asked for, because pushes may be lost.

The server refuses unknown fields, so a typing mistake is seen at once; a client ignores them, so
that a server may say more than an older client knows.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from swarm_protocol.prompts import SYSTEM_PROMPT

# ---- sizes, in characters or items; one frame is also capped in bytes (codec.MAX_FRAME_BYTES)
MAX_COMPLETION_CHARS = 16_384
MAX_COMPLETIONS = 64
MAX_ROLLOUTS = 32
MAX_REQUESTED = 64
# A rollout may be this large as JSON: bounds the pool's memory, and many fit into one frame.
MAX_ROLLOUT_BYTES = 1 << 17
MAX_ANSWERS = 256
# The packed log-probs of 16,384 tokens.
MAX_LOGPROBS_CHARS = 43_692

# NUL is legal JSON but not legal text in Postgres; refuse it at the door.
NO_NUL = r"^[^\x00]*\Z"

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+\Z")]
Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]
Text = Annotated[str, Meta(max_length=MAX_COMPLETION_CHARS, pattern=NO_NUL)]
PackedLogprobs = Annotated[
    str, Meta(max_length=MAX_LOGPROBS_CHARS, pattern=r"^[A-Za-z0-9+/]*={0,2}\Z")
]
Logprob = Annotated[float, Meta(ge=-1e6, le=0)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Share = Annotated[float, Meta(ge=0, le=1)]
Index = Annotated[int, Meta(ge=0, lt=2**31)]

Arm = Literal["swarm", "isolated", "base"]
Assignment = Literal["choice", "coin"]
StandingRemark = Literal["", "too_few", "base", "quarantined"]
FinishReason = Literal["stop", "length"]
RoundPhase = Literal["scheduled", "open", "scoring", "closed", "void"]
ConfigValue = bool | int | float | Annotated[str, Meta(max_length=64)] | list[str]
Config = Annotated[dict[Name, ConfigValue], Meta(max_length=32)]


# ---- what both directions share


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

    text: Text
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


# ---- node to server


class NodeMessage(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    """What a node says; `id` names the request."""

    id: Id


class Hello(NodeMessage, frozen=True, tag="hello"):
    """The first message of a connection: who speaks, and in which version.

    `arm` is the owner's wish; in a season that assigns arms by coin the welcome says which arm it
    became. A `base` node answers the judge with an untrained model and never trains.
    """

    protocol: int
    client: Name
    model: Name
    tokenizer: Name
    arm: Arm
    parameters: Count = 0


class PublishRollouts(NodeMessage, frozen=True, tag="rollouts.publish"):
    """Share rollouts of the latest step."""

    rollouts: Annotated[list[Rollout], Meta(min_length=1, max_length=MAX_ROLLOUTS)]


class RequestRollouts(NodeMessage, frozen=True, tag="rollouts.request", omit_defaults=True):
    """Ask for `count` rollouts of other nodes, drawn uniformly from the pool.

    They come with their senders' log-probs, as far as there are any, if `logprobs` asks for them.
    """

    count: Annotated[int, Meta(ge=1, le=MAX_REQUESTED)]
    logprobs: bool = False


class ReportTraining(NodeMessage, frozen=True, tag="training.report"):
    """Tell how training goes, after each step.

    The counters are totals since the node joined this season, so a report that is sent twice
    counts once. `training_reward` is the mean over the node's *own* rollouts of the step.
    """

    step: Count
    training_reward: Share
    informative_share: Share
    local_used: Count
    external_used: Count
    external_dropped: Annotated[dict[Name, Count], Meta(max_length=16)] = field(
        default_factory=dict
    )


class RequestRound(NodeMessage, frozen=True, tag="round.request"):
    """Ask which judge round is current."""


class RequestQuestions(NodeMessage, frozen=True, tag="questions.request"):
    """Take a seat in a round: from now on an unanswered question counts as wrong."""

    round: Count


class AnswerText(Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to one judge question."""

    question: Id
    text: Text
    finish_reason: FinishReason


class SubmitAnswers(NodeMessage, frozen=True, tag="answers.submit"):
    """Hand in answers. The first answer to a question counts; repeating it changes nothing."""

    round: Count
    answers: Annotated[list[AnswerText], Meta(min_length=1, max_length=MAX_ANSWERS)]


class RequestStanding(NodeMessage, frozen=True, tag="standing.request"):
    """Ask for this node's own row of the leaderboard."""


# ---- server to node


class ServerMessage(Struct, frozen=True, tag_field="type"):
    """What the server says; `reply_to` is the request's id, or null for a doorbell."""

    reply_to: str | None


class TaskChoice(Struct, frozen=True):
    """One dataset of a season's mix, with its configuration and relative weight."""

    dataset: str
    config: Config
    weight: float


class SeasonInfo(Struct, frozen=True):
    """The rules of a season.

    `completions` is L, `local` I and `external` J of SAPO (arXiv 2509.08721, Algorithm 1).
    `max_new_tokens` and `temperature` are the judge's generation limits (0 means greedy).
    `assignment` says who decides on a node's arm: its owner, or a coin that the judge flips.
    `system_prompt` is what models are told beside every question, in training and by the judge.
    """

    name: str
    seed: int
    generator: str
    tasks: list[TaskChoice]
    completions: int
    local: int
    external: int
    max_new_tokens: int
    temperature: float
    assignment: Assignment = "choice"
    system_prompt: str = SYSTEM_PROMPT


class RoundInfo(Struct, frozen=True):
    """A judge round as a node may see it. Times are ISO 8601 in UTC.

    `commitment` is a hash of what decides its questions (`swarm_tasks.quiz`): keep it, and after
    the round has closed anybody can check that the questions were fixed beforehand.
    """

    number: int
    phase: RoundPhase
    opens_at: str
    closes_at: str
    questions: int
    commitment: str = ""


class Welcome(ServerMessage, frozen=True, tag="welcome"):
    """The hello was accepted. `season` is null while none is running.

    `arm` is the node's arm in the season, whoever decided it. `upgrade` names the client version
    below which nodes will be refused soon, when this client is older; else null. `logprobs` says
    that the server knows the fields of that name; an older one would refuse them.
    """

    protocol: int
    server: str
    node: str
    arm: Arm
    now: str
    season: SeasonInfo | None
    round: RoundInfo | None
    upgrade: str | None = None
    logprobs: bool = False


class Rejected(Struct, frozen=True):
    """One item of a batch that was not taken, with the reason; `item` is its id.

    `code` is an ErrorCode of the server's version: a client may meet one that it does not know.
    """

    item: str
    code: str
    message: str
    fix: str


class RolloutsPublished(ServerMessage, frozen=True, tag="rollouts.published"):
    """How many rollouts the pool took; a repeated one counts as accepted."""

    accepted: int
    rejected: list[Rejected]


class ExternalRollout(Struct, frozen=True):
    """A rollout from the pool, with the name of the node that made it and its age."""

    node: str
    age_s: float
    rollout: Rollout


class RolloutsSampled(ServerMessage, frozen=True, tag="rollouts.sampled"):
    """Rollouts of others: fewer than asked for when the pool holds fewer."""

    rollouts: list[ExternalRollout]


class TrainingReported(ServerMessage, frozen=True, tag="training.reported"):
    """The report was stored."""


class SeasonState(ServerMessage, frozen=True, tag="season.state"):
    """Doorbell: the season's rules changed, or a season began or ended."""

    season: SeasonInfo | None


class RoundState(ServerMessage, frozen=True, tag="round.state"):
    """The current round, as a reply or as a doorbell when its phase changed."""

    round: RoundInfo | None
    now: str


class Question(Struct, frozen=True):
    """A judge question: the prompt and nothing that would give its answer away."""

    id: str
    dataset: str
    prompt: str


class QuestionsOffered(ServerMessage, frozen=True, tag="questions.offered"):
    """The round's questions, the same for every node.

    `system_prompt` is that of the round's season, which may have ended since the round opened.
    """

    round: RoundInfo
    max_new_tokens: int
    temperature: float
    now: str
    questions: list[Question]
    system_prompt: str = SYSTEM_PROMPT


class AnswersReceived(ServerMessage, frozen=True, tag="answers.received"):
    """Which answers are stored durably; `duplicate` ones were stored before."""

    round: int
    accepted: list[str]
    duplicate: list[str]
    rejected: list[Rejected]


class Standing(ServerMessage, frozen=True, tag="standing"):
    """This node's row of the season's leaderboard; null figures until a round was scored.

    `rank` is a range: nodes that cannot be told apart share it; null while `remark` says why the
    node is not ranked. `score` and `interval` are fractions in [0, 1], over `n` questions.

    `ranked` is how many nodes have a rank. `published` counts this node's rollouts that the pool
    took in the season, `delivered_to_others` how many times one was given to another node. Null
    where the coordinator does not tell.
    """

    node: str
    rank: tuple[int, int] | None
    score: float | None
    interval: tuple[float, float] | None
    n: int
    rounds: int
    external_used: int
    remark: StandingRemark = ""
    ranked: int | None = None
    published: int | None = None
    delivered_to_others: int | None = None


class Refused(ServerMessage, frozen=True, tag="error"):
    """A request was refused; the connection closes only if `fatal`."""

    code: str
    message: str
    fix: str
    fatal: bool = False
    retry_after: float | None = None


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
    | Standing
    | Refused
)
