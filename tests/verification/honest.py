"""A site that judged three nodes in three rounds of sums, and what one of the nodes kept of it.

Nothing is made up: rounds, answers, scores and links come from the judge's services, signatures
and files from the client's own code.
"""

import copy
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from asgiref.sync import async_to_sync
from django.http import StreamingHttpResponse
from django.test import Client

from judge.models import Round, Season
from judge.selectors.rounds import describe_round
from judge.services.answers import Submission, store_submissions
from judge.services.grading import grade_batch
from judge.services.receipts import Signer
from judge.services.record import read_chain_head
from judge.services.rounds import advance_rounds
from judge.services.scheduling import LEAD_TIME, schedule_round
from judge.services.seasons import start_season
from judge.services.standings import refresh_standings
from node_client.commands.verification.download import MissingError
from node_client.runtime.signing import AnswerSigner
from node_client.site import Site
from node_client.storage.commitments import CommitmentLog
from node_client.storage.heads import HeadLog
from node_client.storage.receipts import ReceiptLog
from node_client.storage.state import StateDir
from swarm_protocol.messages import AnswerText, QuestionsOffered, RequestQuestions
from swarm_record.keys import public_key_of
from swarm_tasks.verifier import Verifier
from swarm_web.gateway.handlers.judging import _offer
from swarm_web.nodes.models import Node, NodeKey
from swarm_web.nodes.presence import touch
from swarm_web.nodes.services import create_node
from tests.judge.conftest import SUMS, answer

Meanwhile = Callable[[], object]
SITE = Site("http://testserver")
# Which of the four questions of a round each node solves; `-` is left out.
SHEETS = {"amber": "rrrw", "bold": "rwr-", "calm": "wwrw"}


def nothing() -> None:
    """Let nothing happen meanwhile."""


@dataclass
class Member:
    """A node that signs, with its state folder."""

    node: Node
    state: StateDir
    signing: AnswerSigner = field(init=False)
    heads: HeadLog = field(init=False)
    commitments: CommitmentLog = field(init=False)
    now: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.state.path.mkdir(parents=True, exist_ok=True)
        self.signing = AnswerSigner(
            self.state.signing_key(),
            site=SITE,
            receipts=ReceiptLog(self.state.receipts),
            node=lambda: self.node.name,
        )
        self.heads = HeadLog(self.state.heads, site=SITE)
        self.commitments = CommitmentLog(
            self.state.commitments, site=SITE, clock=lambda: self.now.astimezone(UTC)
        )

    def signer(self, *, now: datetime) -> Signer:
        key, _ = NodeKey.objects.get_or_create(
            node=self.node,
            public=public_key_of(self.state.signing_key()),
            defaults={"first_seen": now},
        )
        return Signer(self.node.name, key.pk, key.public)

    def look(self, judge_round: Round, *, now: datetime) -> None:
        """Note what a welcome or a doorbell tells."""
        self.now, head = now, read_chain_head(now=now)
        self.heads.note(head)
        self.commitments.follow(head)
        self.commitments.note(describe_round(judge_round))

    def take(self, judge_round: Round, *, now: datetime) -> QuestionsOffered:
        return _offer(self.node, RequestQuestions("take", judge_round.number), now=now)


class JudgedSite:
    """The site and its nodes, run by hand."""

    def __init__(self, folder: Path, verifier: Verifier, *, now: datetime) -> None:
        self.verifier, self.now = verifier, now
        self.season = Season.objects.create(
            name="Sums",
            tasks=SUMS,
            questions_per_round=4,
            minimum_questions=4,
            open_seconds=60,
            scoring_seconds=30,
        )
        start_season(self.season, now=self.now)
        self.members = {
            name: Member(create_node(name=name)[0], StateDir(folder / name)) for name in SHEETS
        }

    def copy(self, folder: Path) -> "JudgedSite":
        """Return this site for a test that plays on, with the nodes' files in another folder."""
        other = copy.copy(self)
        other.members = {}
        for name, member in self.members.items():
            shutil.copytree(member.state.path, folder / name)
            other.members[name] = Member(member.node, StateDir(folder / name))
        return other

    def play(self, *, sheets: dict[str, str] = SHEETS, before_close: Meanwhile = nothing) -> Round:
        """Play a whole round; `before_close` is called when all is graded."""
        judge_round = self.open()
        for name, sheet in sheets.items():
            self.answer(judge_round, name, sheet)
        return self.close(judge_round, before_close=before_close)

    def open(self) -> Round:
        judge_round = self.schedule()
        self.now += LEAD_TIME
        return self.start(judge_round)

    def start(self, judge_round: Round) -> Round:
        """Open a round whose time has come, with all nodes there."""
        for member in self.members.values():
            touch([member.node], now=self.now)
        advance_rounds(now=self.now)
        judge_round.refresh_from_db()
        self.tell(judge_round)
        return judge_round

    def tell(self, judge_round: Round) -> None:
        """Let all nodes hear of a round, and of the newest link."""
        for member in self.members.values():
            member.look(judge_round, now=self.now)

    def schedule(self) -> Round:
        return schedule_round(
            self.season, opens_at=self.now + LEAD_TIME, now=self.now, verifier=self.verifier
        )

    def answer(self, judge_round: Round, name: str, sheet: str) -> None:
        """Let a node answer, sign, and keep its receipt."""
        member = self.members[name]
        offered = member.take(judge_round, now=self.now)
        questions = judge_round.questions.order_by("position")
        answers = [
            answer(question, right=letter == "r")
            for question, letter in zip(questions, sheet, strict=True)
            if letter != "-"
        ]
        signed: list[AnswerText] = member.signing.sign(answers, offered)
        (receipt,) = store_submissions(
            [
                Submission(
                    member.node.pk,
                    judge_round.number,
                    signed,
                    self.now,
                    member.signer(now=self.now),
                )
            ]
        )
        assert not isinstance(receipt, Exception)
        assert not receipt.rejected
        assert receipt.signed is not None
        member.signing.keep(judge_round.number, signed, receipt.signed)

    def close(self, judge_round: Round, *, before_close: Meanwhile = nothing) -> Round:
        self.now += timedelta(seconds=61)
        grade_batch(verifier=self.verifier)
        before_close()
        advance_rounds(now=self.now)
        judge_round.refresh_from_db()
        if judge_round.phase != Round.Phase.CLOSED:
            self.now += timedelta(seconds=31)
            advance_rounds(now=self.now)
            judge_round.refresh_from_db()
        refresh_standings(self.season, now=self.now)
        self.tell(judge_round)
        return judge_round


def read_page(address: str, *, most: int) -> Iterator[bytes]:
    """Fetch a page as the client does, from the site in this process and its transaction."""
    response = Client().get(address.removeprefix(SITE.base))
    if response.status_code == 404:
        raise MissingError(f"{address} does not exist.", fix="")
    assert response.status_code == 200, response.content
    if isinstance(response, StreamingHttpResponse):
        yield async_to_sync(_read_all)(response)
    else:
        yield response.content


async def _read_all(response: StreamingHttpResponse) -> bytes:
    return b"".join([part async for part in response])


@contextmanager
def borrowed(verifier: Verifier) -> Iterator[Verifier]:
    """Give a verifier that somebody else closes."""
    yield verifier
