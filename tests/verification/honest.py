"""A site that judges three nodes on sums, with the nodes' state folders.

No data is faked: rounds, answers, scores and links come from the judge's services, signatures
and files from the client's own code.
"""

import copy
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

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
from node_client.commands.verification.download import MissingError, _stream
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

Hook = Callable[[], object]
SITE = Site("http://testserver")
# A node's answers to the four questions of a round: right, wrong, or `-` for no answer.
SHEETS = {"amber": "rrrw", "bold": "rwr-", "calm": "wwrw"}


def nothing() -> None:
    """Do nothing; the default hook."""


@dataclass
class Member:
    """A node that signs its answers, with its state folder."""

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

    def note_round(self, judge_round: Round, *, now: datetime) -> None:
        """Record the chain head and commitment, as after a welcome or a doorbell."""
        self.now, head = now, read_chain_head(now=now)
        self.heads.record(head)
        self.commitments.update_restored(head)
        self.commitments.record(describe_round(judge_round))

    def take(self, judge_round: Round, *, now: datetime) -> QuestionsOffered:
        return _offer(self.node, RequestQuestions("take", judge_round.number), now=now)


class JudgedSite:
    """A site and its nodes, advanced step by step."""

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
        """Return a copy for a test that plays more rounds, with the nodes' files in `folder`."""
        other = copy.copy(self)
        other.members = {}
        for name, member in self.members.items():
            shutil.copytree(member.state.path, folder / name)
            other.members[name] = Member(member.node, StateDir(folder / name))
        return other

    def play(self, *, sheets: dict[str, str] = SHEETS, before_close: Hook = nothing) -> Round:
        """Play a round from scheduling to closing; call `before_close` after grading."""
        judge_round = self.open()
        for name, sheet in sheets.items():
            self.answer(judge_round, name, sheet)
        return self.close(judge_round, before_close=before_close)

    def open(self) -> Round:
        judge_round = self.schedule()
        self.now += LEAD_TIME
        return self.start(judge_round)

    def start(self, judge_round: Round) -> Round:
        """Open a round that is due, with all nodes connected."""
        for member in self.members.values():
            touch([member.node], now=self.now)
        advance_rounds(now=self.now)
        judge_round.refresh_from_db()
        self.notify_nodes(judge_round)
        return judge_round

    def notify_nodes(self, judge_round: Round) -> None:
        """Announce a round and the chain head to all nodes."""
        for member in self.members.values():
            member.note_round(judge_round, now=self.now)

    def schedule(self) -> Round:
        return schedule_round(
            self.season, opens_at=self.now + LEAD_TIME, now=self.now, verifier=self.verifier
        )

    def answer(self, judge_round: Round, name: str, sheet: str) -> None:
        """Submit a node's signed answers and store its receipt."""
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
        member.signing.store_receipt(judge_round.number, signed, receipt.signed)

    def close(self, judge_round: Round, *, before_close: Hook = nothing) -> Round:
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
        self.notify_nodes(judge_round)
        return judge_round


def read_page(address: str, **limits: Any) -> Iterator[bytes]:
    """Fetch a page as the client does, but those of the site in this process and transaction."""
    if not address.startswith(SITE.base):
        yield from _stream(address, **limits)
        return
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
    """Yield a verifier that its owner closes."""
    yield verifier
