"""Signed answers over a socket: the chain head, receipts and the limit of new keys."""

from datetime import timedelta

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.models import Answer, Season
from swarm_protocol.messages import (
    AnswersReceived,
    AnswerText,
    QuestionsOffered,
    Refused,
    RequestQuestions,
    ServerMessage,
    SubmitAnswers,
    Welcome,
)
from swarm_record.answers import AnswerEntry, encode_signed_answer, encode_signed_receipt, hash_text
from swarm_record.chain import encode_signed_head
from swarm_record.keys import is_signed, make_key, public_key_of, sign
from swarm_web.nodes.models import NodeKey
from tests.factories import make_hello, make_round
from tests.gateway.conftest import Member, invite
from tests.sockets import NodeSocket, node_socket

PRIVATE = make_key()
KEY = public_key_of(PRIVATE)


async def answer_one(node: NodeSocket, number: int) -> tuple[AnswerEntry, AnswersReceived, str]:
    """Sign and submit an answer; return it, the acknowledgement and the commitment."""
    offered = await node.ask(RequestQuestions(id="take", round=number))
    assert isinstance(offered, QuestionsOffered)
    asked, commitment = offered.questions[0], offered.round.commitment
    entry = AnswerEntry("amber", 1, asked.id, hash_text("2"), KEY)
    signature = sign(PRIVATE, encode_signed_answer(entry, number=number, commitment=commitment))
    entry = AnswerEntry("amber", 1, asked.id, hash_text("2"), KEY, signature)
    submission = SubmitAnswers("s", number, [AnswerText(asked.id, "2", "stop", signature)])
    received = await node.ask(submission)
    assert isinstance(received, AnswersReceived)
    return entry, received, commitment


async def test_signed_answer_is_stored_with_its_key_and_gets_a_receipt(
    gateway: str, season: Season, amber: Member
) -> None:
    judge_round = await sync_to_async(make_round)(season, questions=2)
    await sync_to_async(invite)(judge_round, amber)
    async with node_socket(gateway, amber.token, greet=False) as node:
        welcome = await node.ask(msgspec.structs.replace(make_hello(), key=KEY))
        assert isinstance(welcome, Welcome)
        entry, received, commitment = await answer_one(node, judge_round.number)
    chain, receipt = welcome.chain, received.receipt
    assert chain is not None
    stated = encode_signed_head(sequence=chain.sequence, head=chain.head)
    assert is_signed(stated, key=chain.key, signature=chain.signature)
    assert receipt is not None
    stated = encode_signed_receipt(
        [entry],
        number=judge_round.number,
        commitment=commitment,
        received_at=receipt.received_at,
    )
    assert is_signed(stated, key=chain.key, signature=receipt.signature)
    stored = await Answer.objects.select_related("key").aget()
    assert (stored.key.public if stored.key else "", stored.signature) == (KEY, entry.signature)


async def test_client_without_a_key_gets_no_receipt(
    gateway: str, season: Season, amber: Member
) -> None:
    judge_round = await sync_to_async(make_round)(season, questions=1)
    await sync_to_async(invite)(judge_round, amber)
    async with node_socket(gateway, amber.token) as node:
        offered = await node.ask(RequestQuestions(id="take", round=judge_round.number))
        assert isinstance(offered, QuestionsOffered)
        answers = [AnswerText(offered.questions[0].id, "2", "stop")]
        received = await node.ask(SubmitAnswers("s", judge_round.number, answers))
    assert isinstance(received, AnswersReceived)
    assert received.accepted
    assert received.receipt is None


async def test_new_keys_of_a_node_are_limited_and_known_keys_are_accepted(
    gateway: str, season: Season, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_web.nodes.arrivals.MOST_NEW_KEYS", 2)
    keys = [public_key_of(make_key()) for _ in range(3)]
    replies = [await greet(gateway, amber, key) for key in (*keys, keys[0])]
    assert [isinstance(each, Welcome) for each in replies] == [True, True, False, True]
    refused = replies[2]
    assert isinstance(refused, Refused)
    assert (refused.code, refused.fatal) == ("rate.limited", False)
    assert refused.retry_after
    assert await NodeKey.objects.filter(node=amber.node).acount() == 2
    long_ago = timezone.now() - timedelta(days=2)
    await NodeKey.objects.filter(public=keys[0]).aupdate(first_seen=long_ago)
    assert isinstance(await greet(gateway, amber, keys[2]), Welcome)


async def greet(gateway: str, member: Member, key: str) -> ServerMessage:
    """Send a hello with a key and return the reply."""
    async with node_socket(gateway, member.token, greet=False) as node:
        return await node.ask(msgspec.structs.replace(make_hello(), key=key))
