"""Frames do not reveal questions before a round opens, nor specs or the secret before it closes.

A round of real questions is played over two sockets, and all frames that nodes get are searched.
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
class Transcript:
    """Raw frames that two nodes received, before and after the round opened."""

    judge_round: Round
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    @property
    def frames(self) -> list[str]:
        return self.before + self.after

    @property
    def messages(self) -> list[ServerMessage]:
        return [decode_from_server(frame) for frame in self.frames]


class RecordedNodes:
    """Two nodes, and a list of all frames that they receive."""

    def __init__(self, *sockets: NodeSocket, patch: pytest.MonkeyPatch) -> None:
        self.sockets = sockets
        self.received: list[str] = []
        for socket in sockets:
            self._record(socket, patch)

    def _record(self, socket: NodeSocket, patch: pytest.MonkeyPatch) -> None:
        receive = socket.connection.recv

        async def receive_and_record() -> str:
            frame = str(await receive())
            self.received.append(frame)
            return frame

        patch.setattr(socket.connection, "recv", receive_and_record)

    async def ask(self, *messages: NodeMessage) -> None:
        """Send each message from every node and wait for the replies."""
        for message in messages:
            for socket in self.sockets:
                await socket.ask(message)

    async def ring(self, wanted: type[SeasonState] | type[RoundState]) -> None:
        """Wait until every node has received a doorbell of a type."""
        for socket in self.sockets:
            while not isinstance(await socket.hear(), wanted):
                pass


async def play_until_scoring(nodes: RecordedNodes, verifier: Verifier) -> Transcript:
    """Start a season, and schedule, open and answer a round with all nodes."""
    season = await sync_to_async(Season.objects.create)(
        name="Sealed", tasks=msgspec.to_builtins(list(STARTER_TASKS)), questions_per_round=8
    )
    await nodes.ask(make_hello())
    await sync_to_async(start_season)(season, now=timezone.now())
    await nodes.ring(SeasonState)
    now = timezone.now()
    judge_round = await sync_to_async(schedule_round)(
        season, opens_at=now, now=now, verifier=verifier
    )
    await nodes.ring(RoundState)
    take = RequestQuestions(id="take", round=judge_round.number)
    await nodes.ask(take, RequestRound(id="scheduled"), RequestStanding(id="standing"))
    await advance(nodes)
    transcript = Transcript(judge_round, before=list(nodes.received))
    questions = [str(question.pk) async for question in judge_round.questions.all()]
    submit = SubmitAnswers(id="submit", round=judge_round.number, answers=answers_to(questions))
    await nodes.ask(RequestRound(id="open"), take, submit, submit)
    await advance(nodes)
    await nodes.ask(RequestRound(id="scoring"))
    transcript.after = nodes.received[len(transcript.before) :]
    return transcript


async def advance(nodes: RecordedNodes) -> None:
    """Advance the round once and wait for the doorbells."""
    assert await sync_to_async(advance_rounds)(now=timezone.now())
    await nodes.ring(RoundState)


@pytest_asyncio.fixture
async def transcript(
    gateway: str,
    amber: Member,
    bold: Member,
    verifier: Verifier,
    monkeypatch: pytest.MonkeyPatch,
) -> Transcript:
    """The frames that nodes received before a round closed; the round is closed now."""
    async with (
        node_socket(gateway, amber.token, greet=False) as one,
        node_socket(gateway, bold.token, greet=False) as two,
    ):
        played = await play_until_scoring(RecordedNodes(one, two, patch=monkeypatch), verifier)
    await sync_to_async(grade_batch)(verifier=verifier)
    await sync_to_async(advance_rounds)(now=timezone.now())
    await played.judge_round.arefresh_from_db()
    assert played.judge_round.phase == Round.Phase.CLOSED
    return played


async def test_transcript_contains_every_kind_of_frame(transcript: Transcript) -> None:
    kinds = {type(message) for message in transcript.messages}
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


async def test_frames_before_closing_do_not_contain_the_secret(transcript: Transcript) -> None:
    secret = bytes(transcript.judge_round.secret)
    encodings = {
        *(secret.hex(), secret.hex().upper()),
        base64.b64encode(secret).decode().rstrip("="),
        base64.urlsafe_b64encode(secret).decode().rstrip("="),
        str(int.from_bytes(secret)),
        str(list(secret)).replace(" ", ""),
    }
    for frame in transcript.frames:
        assert not [encoding for encoding in encodings if encoding in frame]
        assert "secret" not in frame


async def test_frames_before_closing_do_not_contain_task_indices_or_specs(
    transcript: Transcript,
) -> None:
    questions = transcript.judge_round.questions.all()
    specs = [msgspec.convert(question.spec, TaskSpec) async for question in questions]
    assert len(specs) == 8
    for frame in transcript.frames:
        assert not [spec for spec in specs if str(spec.index) in frame]
        assert not [spec for spec in specs if encode(spec) in frame]
        assert '"index"' not in frame
        assert '"spec"' not in frame


async def test_frames_before_opening_do_not_contain_questions(transcript: Transcript) -> None:
    async for question in transcript.judge_round.questions.all():
        sealed = (str(question.pk), json.dumps(question.prompt, ensure_ascii=False))
        for part in sealed:
            assert not [frame for frame in transcript.before if part in frame]
            assert [frame for frame in transcript.after if part in frame], part


async def test_every_round_state_contains_the_commitment(transcript: Transcript) -> None:
    rules = msgspec.convert(transcript.judge_round.rules, QuizRules)
    promised = commit_quiz(rules, secret=bytes(transcript.judge_round.secret))
    states = [message for message in transcript.messages if isinstance(message, RoundState)]
    stated = {(state.round.phase, state.round.commitment) for state in states if state.round}
    assert stated == {(phase, promised) for phase in ("scheduled", "open", "scoring")}
