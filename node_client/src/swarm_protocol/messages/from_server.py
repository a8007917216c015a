"""What the server says."""

from msgspec import Struct

from swarm_protocol.messages.fields import (
    Arm,
    Assignment,
    Config,
    RoundPhase,
    StandingRemark,
)
from swarm_protocol.messages.rollouts import (
    ExternalRollout,
)
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_protocol.returning import RETURN_WITHIN_S


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
    `batch` is how many rollouts a node generates in each step, in every arm; null is I + J.
    `isolated_publish` says whether isolated nodes share rollouts, though they take none.
    `system_prompt` is what models are told beside every question, in training and by the judge.
    `answers` names the rules by which answers are read (`swarm_tasks.answers`).
    `sampling` names the preferences with which rollouts may be requested; older servers leave it
    out.
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
    isolated_publish: bool = False
    batch: int | None = None
    answers: str = "answers-1"
    # Words, so that a client can read those of a newer server.
    sampling: list[str] = []


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


class Restored(Struct, frozen=True):
    """The operator restored a backup, whose last round was `round`; link `sequence` says so."""

    sequence: int
    round: int


class ChainHead(Struct, frozen=True):
    """The newest link of the site's chain (`swarm_record.chain`): its place and its hash.

    `key` is the site's public key, and `signature` its signature of the two. `restored` is the last
    time that the chain was cut short: rounds after it are numbered anew.
    """

    sequence: int
    head: str
    key: str
    signature: str
    restored: Restored | None = None


class Welcome(ServerMessage, frozen=True, tag="welcome"):
    """The hello was accepted. `season` is null while none is running.

    `arm` is the node's arm in the season, whoever decided it. `upgrade` names the client version
    below which nodes will be refused soon, when this client is older; else null. `logprobs` says
    that the server knows the fields of that name, `provenance` that it knows `used` and
    `reflection` of a report, `declarations` that it knows `informative` of a publication and
    `prefer` of a request; an older one would refuse them. `return_within` is the longest pause,
    in seconds, between two attempts of a node to come back in a round (`swarm_protocol.returning`).
    With a `chain` the server knows `key` of the hello and `signature` of an answer.
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
    provenance: bool = False
    declarations: bool = False
    return_within: float = RETURN_WITHIN_S
    chain: ChainHead | None = None


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


class RolloutsSampled(ServerMessage, frozen=True, tag="rollouts.sampled"):
    """Rollouts of others: fewer than asked for when the pool holds fewer."""

    rollouts: list[ExternalRollout]


class TrainingReported(ServerMessage, frozen=True, tag="training.reported"):
    """The report was stored."""


class SeasonState(ServerMessage, frozen=True, tag="season.state"):
    """Doorbell: the season's rules changed, or a season began or ended."""

    season: SeasonInfo | None


class RoundState(ServerMessage, frozen=True, tag="round.state"):
    """The current round, as a reply or as a doorbell when its phase changed.

    A doorbell has the newest link of the chain too.
    """

    round: RoundInfo | None
    now: str
    chain: ChainHead | None = None


class OfferedQuestion(Struct, frozen=True):
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
    questions: list[OfferedQuestion]
    system_prompt: str = SYSTEM_PROMPT


class ReceivedAnswer(Struct, frozen=True):
    """An answer that a receipt is for, and its question's place in the round, from 1."""

    question: str
    position: int


class SignedReceipt(Struct, frozen=True):
    """The site's signature, by `key`, that it has stored these signed answers, in this order.

    `swarm_record.answers.encode_signed_receipt` says what is signed.
    """

    commitment: str
    received_at: str
    answers: list[ReceivedAnswer]
    key: str
    signature: str


class AnswersReceived(ServerMessage, frozen=True, tag="answers.received"):
    """Which answers are stored durably; `duplicate` ones were stored before.

    The receipt is for those of them that are stored with the signature that they came with; null
    without any.
    """

    round: int
    accepted: list[str]
    duplicate: list[str]
    rejected: list[Rejected]
    receipt: SignedReceipt | None = None


class NodeStanding(ServerMessage, frozen=True, tag="standing"):
    """This node's row of the season's leaderboard; null figures until a round was scored.

    `rank` is a range: nodes that cannot be told apart share it; null while `remark` says why the
    node is not ranked. `score` and `interval` are fractions in [0, 1], over `n` questions.

    `ranked` is how many nodes have a rank. `published` counts this node's rollouts that the pool
    took in the season, `delivered_to_others` how many times one was given to another node, and
    `used_by_others` how many times another node trained on one. `hand_out` is "lowered" while
    others are given its rollouts less than those of others, "withheld" while not at all, else
    "full". Null where the coordinator does not tell.
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
    used_by_others: int | None = None
    hand_out: str | None = None


class Refused(ServerMessage, frozen=True, tag="error"):
    """A request was refused; the connection closes only if `fatal`, or by `errors.RETURN_CODES`.

    One that replies to nothing (`reply_to` is null) is about the connection.
    """

    code: str
    message: str
    fix: str
    fatal: bool = False
    retry_after: float | None = None
