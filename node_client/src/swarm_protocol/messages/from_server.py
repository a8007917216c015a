"""The messages from the server to a node."""

from msgspec import Struct

from swarm_protocol.messages.fields import Arm, Assignment, Config, RoundPhase, StandingRemark
from swarm_protocol.messages.rollouts import ExternalRollout
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_protocol.returning import RETURN_WITHIN_S


class ServerMessage(Struct, frozen=True, tag_field="type"):
    """Base of all messages from the server.

    `reply_to` is the id of the request that the message answers, null if it answers none.
    """

    reply_to: str | None


class TaskChoice(Struct, frozen=True):
    """One dataset of a season's mix, with its configuration and relative weight."""

    dataset: str
    config: Config
    weight: float


class SeasonInfo(Struct, frozen=True):
    """The rules of a season.

    `completions` is L, `local` I and `external` J of SAPO (arXiv 2509.08721, Algorithm 1).
    `max_new_tokens` and `temperature` (0 means greedy) apply to answers to the judge's questions.
    `assignment` says who decides a node's arm: its owner (`choice`), or the judge (`coin`).
    `batch` is how many rollouts a node generates in each step, in every arm; null is I + J.
    `isolated_publish` says whether isolated nodes publish rollouts, though they receive none.
    `system_prompt` is given to models with every question, in training and by the judge.
    `answers` names the rules by which answers are read (`swarm_tasks.answers`).
    `sampling` lists the allowed values of RequestRollouts' `prefer`; older servers do not send it.
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
    # Plain texts, so that a client can decode strategies that only a newer server knows.
    sampling: list[str] = []


class RoundInfo(Struct, frozen=True):
    """A judge round, without its sealed questions and secret. Times are ISO 8601 in UTC.

    `questions` is the number of questions. `commitment` is the hash of the secret and the rules
    from which the questions are drawn (`swarm_tasks.quiz`). A node that records the commitment can
    check, once the round has closed, that the questions were not replaced.
    """

    number: int
    phase: RoundPhase
    opens_at: str
    closes_at: str
    questions: int
    commitment: str = ""


class Restored(Struct, frozen=True):
    """The operator restored a backup whose last round was `round`.

    `sequence` is the number of the chain's link that records this.
    """

    sequence: int
    round: int


class ChainHead(Struct, frozen=True):
    """The newest link of the site's chain (`swarm_record.chain`): its number and its hash.

    `signature` is the site's signature of both, and `key` the site's public key. `restored`
    describes the last restore of a backup, and is null if there was none. The rounds after that
    backup were lost, and their numbers are used again.
    """

    sequence: int
    head: str
    key: str
    signature: str
    restored: Restored | None = None


class Welcome(ServerMessage, frozen=True, tag="welcome"):
    """The hello was accepted.

    `server` is the site's name, `node` the node's name, and `now` the server's time. `arm` is the
    node's arm in the season: the one in its hello, or the one that the coin assigned. `season` is
    null if none is running, and `round` if there is no current round. If the server will soon
    refuse this client's version, `upgrade` is the oldest version that it will still accept,
    otherwise null.

    The server refuses messages with fields that it does not know. The welcome says which of the
    newer fields it knows:

    - if `logprobs` is true, `logprobs` of RequestRollouts, and `logprobs` and `logprob` of
      Completion;
    - if `provenance` is true, `used` and `reflection` of ReportTraining;
    - if `declarations` is true, `informative` of PublishRollouts and `prefer` of RequestRollouts;
    - if `chain` is not null, `key` of Hello and `signature` of AnswerText.

    `return_within` is the longest wait, in seconds, between two attempts of a node to reconnect
    during a round (`swarm_protocol.returning`).
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
    """One rollout or answer that was not accepted, with the reason.

    `item` is the id of the rollout or of the question. `code` is an ErrorCode of the server's
    version: a client may receive one that it does not know.
    """

    item: str
    code: str
    message: str
    fix: str


class RolloutsPublished(ServerMessage, frozen=True, tag="rollouts.published"):
    """The reply to published rollouts.

    `accepted` is the number of rollouts that the pool accepted or already had under the same id.
    `rejected` lists all others, such as copies of other rollouts in the pool.
    """

    accepted: int
    rejected: list[Rejected]


class RolloutsSampled(ServerMessage, frozen=True, tag="rollouts.sampled"):
    """The reply to a request for rollouts: rollouts of other owners' nodes.

    Rollouts that this node received before, or that must not be handed out, are left out. There may
    be fewer than requested, because the pool has no more or because a frame holds no more.
    """

    rollouts: list[ExternalRollout]


class TrainingReported(ServerMessage, frozen=True, tag="training.reported"):
    """The reply to a training report: it was stored."""


class SeasonState(ServerMessage, frozen=True, tag="season.state"):
    """An unrequested message (a doorbell): the season's rules changed, or a season began or ended.

    `season` is null if none is running now.
    """

    season: SeasonInfo | None


class RoundState(ServerMessage, frozen=True, tag="round.state"):
    """The current round: a reply, or an unrequested message (a doorbell) after a round has changed.

    If there is no current round, a reply has null as `round`, and a doorbell has the round that
    changed. `now` is the server's time. `chain`, the chain's newest link, is null in a reply.
    """

    round: RoundInfo | None
    now: str
    chain: ChainHead | None = None


class OfferedQuestion(Struct, frozen=True):
    """A judge question: its id, dataset and prompt, without the task spec that gives the answer."""

    id: str
    dataset: str
    prompt: str


class QuestionsOffered(ServerMessage, frozen=True, tag="questions.offered"):
    """The round's questions, the same for every node, and how to generate the answers.

    An answer has at most `max_new_tokens` tokens and is sampled at `temperature` (0 means greedy).
    `now` is the server's time. `system_prompt` is from the round's season, which may have ended
    since the round opened.
    """

    round: RoundInfo
    max_new_tokens: int
    temperature: float
    now: str
    questions: list[OfferedQuestion]
    system_prompt: str = SYSTEM_PROMPT


class ReceivedAnswer(Struct, frozen=True):
    """An answer in a receipt: the id of its question, and that question's position, from 1."""

    question: str
    position: int


class SignedReceipt(Struct, frozen=True):
    """The site's confirmation that it stored the answers in `answers` with their signatures.

    `signature` is valid under the site's public key `key`. It is over the answers in the order of
    `answers`, the round's `commitment` and the time `received_at`, as
    `swarm_record.answers.encode_signed_receipt` encodes them.
    """

    commitment: str
    received_at: str
    answers: list[ReceivedAnswer]
    key: str
    signature: str


class AnswersReceived(ServerMessage, frozen=True, tag="answers.received"):
    """The reply to submitted answers; each answer is named by its question's id.

    Answers in `accepted` are stored durably. Those in `duplicate` are not stored, because this
    node's answer to the question was stored before. `receipt` covers the submitted answers that the
    site has stored, now or before, with the submitted signature; it is null if there are none.
    """

    round: int
    accepted: list[str]
    duplicate: list[str]
    rejected: list[Rejected]
    receipt: SignedReceipt | None = None


class NodeStanding(ServerMessage, frozen=True, tag="standing"):
    """This node's row of the season's leaderboard.

    `rank` is the best and the worst rank: nodes that cannot be distinguished share ranks. It is
    null if the node is not ranked; `remark` then says why. `score` and its 95 % `interval` are
    fractions, from `n` questions in `rounds` rounds. Before the node's first scored round, `rank`,
    `score` and `interval` are null, and `remark` is empty.

    `ranked` is the number of nodes with a rank. `published` counts this node's rollouts that the
    pool accepted in the season, `delivered_to_others` their deliveries to other nodes, and
    `used_by_others` how often another node trained on one of them (`docs/protocol.md` has the
    limits of this count). `hand_out` is `full`, `lowered` or `withheld`: this node's rollouts are
    handed out normally, less often, or not at all. Each field in this paragraph is null if the
    server does not send it.
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
    """A request or the connection was refused.

    `reply_to` is null if the connection was refused, or if the request's id could not be read. If
    `fatal` is true, the server closes the connection and the node does not connect again. If `code`
    is one of `errors.RETURN_CODES`, the server closes the connection and the node connects again
    later. `retry_after` is the wait in seconds that the server asks for, null if it asks for none.
    """

    code: str
    message: str
    fix: str
    fatal: bool = False
    retry_after: float | None = None


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
