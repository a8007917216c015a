"""No frame gives a round's questions away before their time, nor their answers before it closed.

A round of real questions is played over two sockets, and all that the nodes hear is searched.
"""

import base64
import json
from dataclasses import dataclass, field

import msgspec
import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.models import Round, Season
from judge.services.grading import grade_batch
from judge.services.rounds import advance_rounds
from judge.services.scheduling import schedule_round
from judge.services.seasons import start_season
from swarm_protocol.codec import decode_from_server, encode
from swarm_protocol.messages import (
    AnswersReceived,
    NodeMessage,
    NodeStanding,
    QuestionsOffered,
    Refused,
    RequestQuestions,
    RequestRound,
    RequestStanding,
    RoundState,
    SeasonState,
    ServerMessage,
    SubmitAnswers,
    TaskSpec,
    Welcome,
)
from swarm_tasks.quiz import QuizRules, commit_quiz
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import Verifier
from tests.factories import make_hello
from tests.gateway.conftest import Member
from tests.gateway.sessions import answers_to
from tests.sockets import NodeSocket, node_socket


@dataclass
class Hearing:
    """What two nodes heard of a round: raw frames, those before the questions apart."""

    judge_round: Round
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    @property
    def frames(self) -> list[str]:
        return self.before + self.after

    @property
    def messages(self) -> list[ServerMessage]:
        return [decode_from_server(frame) for frame in self.frames]


class Table:
    """Two nodes, and a list of every frame that they hear."""

    def __init__(self, *sockets: NodeSocket, patch: pytest.MonkeyPatch) -> None:
        self.sockets = sockets
        self.heard: list[str] = []
        for socket in sockets:
            self._listen_in(socket, patch)

    def _listen_in(self, socket: NodeSocket, patch: pytest.MonkeyPatch) -> None:
        receive = socket.connection.recv

        async def receive_and_note() -> str:
            frame = str(await receive())
            self.heard.append(frame)
            return frame

        patch.setattr(socket.connection, "recv", receive_and_note)

    async def ask(self, *messages: NodeMessage) -> None:
        """Let every node ask something, and then the next thing."""
        for message in messages:
            for socket in self.sockets:
                await socket.ask(message)

    async def ring(self, wanted: type[SeasonState] | type[RoundState]) -> None:
        """Wait until every node has heard a doorbell."""
        for socket in self.sockets:
            while not isinstance(await socket.hear(), wanted):
                pass


async def play_until_scoring(table: Table, verifier: Verifier) -> Hearing:
    """Let a season begin and a round be scheduled, opened and answered by everybody."""
    season = await sync_to_async(Season.objects.create)(
        name="Sealed", tasks=msgspec.to_builtins(list(STARTER_TASKS)), questions_per_round=8
    )
    await table.ask(make_hello())
    await sync_to_async(start_season)(season, now=timezone.now())
    await table.ring(SeasonState)
    now = timezone.now()
    judge_round = await sync_to_async(schedule_round)(
        season, opens_at=now, now=now, verifier=verifier
    )
    await table.ring(RoundState)
    take = RequestQuestions(id="take", round=judge_round.number)
    await table.ask(take, RequestRound(id="scheduled"), RequestStanding(id="standing"))
    await advance(table)
    hearing = Hearing(judge_round, before=list(table.heard))
    questions = [str(question.pk) async for question in judge_round.questions.all()]
    hand_in = SubmitAnswers(id="hand-in", round=judge_round.number, answers=answers_to(questions))
    await table.ask(RequestRound(id="open"), take, hand_in, hand_in)
    await advance(table)
    await table.ask(RequestRound(id="scoring"))
    hearing.after = table.heard[len(hearing.before) :]
    return hearing


async def advance(table: Table) -> None:
    """Let beat come once, and the nodes hear what it did."""
    assert await sync_to_async(advance_rounds)(now=timezone.now())
    await table.ring(RoundState)


@pytest_asyncio.fixture
async def hearing(
    gateway: str,
    amber: Member,
    bold: Member,
    verifier: Verifier,
    monkeypatch: pytest.MonkeyPatch,
) -> Hearing:
    """What was heard of a round before it closed; it is closed now."""
    async with (
        node_socket(gateway, amber.token, greet=False) as one,
        node_socket(gateway, bold.token, greet=False) as two,
    ):
        heard = await play_until_scoring(Table(one, two, patch=monkeypatch), verifier)
    await sync_to_async(grade_batch)(verifier=verifier)
    await sync_to_async(advance_rounds)(now=timezone.now())
    await heard.judge_round.arefresh_from_db()
    assert heard.judge_round.phase == Round.Phase.CLOSED
    return heard


async def test_every_kind_of_frame_that_might_tell_too_much_is_searched(hearing: Hearing) -> None:
    kinds = {type(message) for message in hearing.messages}
    assert kinds == {
        *(
            Welcome,
            SeasonState,
            RoundState,
            Refused,
            NodeStanding,
            QuestionsOffered,
            AnswersReceived,
        )
    }


async def test_no_frame_before_a_round_closes_holds_its_secret(hearing: Hearing) -> None:
    secret = bytes(hearing.judge_round.secret)
    ways_to_write_it = {
        *(secret.hex(), secret.hex().upper()),
        base64.b64encode(secret).decode().rstrip("="),
        base64.urlsafe_b64encode(secret).decode().rstrip("="),
        str(int.from_bytes(secret)),
        str(list(secret)).replace(" ", ""),
    }
    for frame in hearing.frames:
        assert not [way for way in ways_to_write_it if way in frame]
        assert "secret" not in frame


async def test_no_frame_before_a_round_closes_holds_a_questions_index_or_spec(
    hearing: Hearing,
) -> None:
    questions = hearing.judge_round.questions.all()
    specs = [msgspec.convert(question.spec, TaskSpec) async for question in questions]
    assert len(specs) == 8
    for frame in hearing.frames:
        assert not [spec for spec in specs if str(spec.index) in frame]
        assert not [spec for spec in specs if encode(spec) in frame]
        assert '"index"' not in frame
        assert '"spec"' not in frame


async def test_no_frame_before_a_round_opens_holds_a_question(hearing: Hearing) -> None:
    async for question in hearing.judge_round.questions.all():
        sealed = (str(question.pk), json.dumps(question.prompt, ensure_ascii=False))
        for part in sealed:
            assert not [frame for frame in hearing.before if part in frame]
            assert [frame for frame in hearing.after if part in frame], part


async def test_every_round_state_carries_the_commitment_from_scheduled_on(hearing: Hearing) -> None:
    rules = msgspec.convert(hearing.judge_round.rules, QuizRules)
    promised = commit_quiz(rules, secret=bytes(hearing.judge_round.secret))
    states = [message for message in hearing.messages if isinstance(message, RoundState)]
    told = {(state.round.phase, state.round.commitment) for state in states if state.round}
    assert told == {(phase, promised) for phase in ("scheduled", "open", "scoring")}
