"""Test the download of archived rollouts, with their verdicts and learners."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.test import AsyncClient
from django.utils import timezone

from swarm_web.dashboard.downloads.rollouts import COLUMNS
from swarm_web.relay.models import ArchivedRollout, Learned
from tests.factories import make_node, make_season, make_spec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("tidy_stores")]


def archive(*, solved: int | None, learners: tuple[str, ...] = ()) -> None:
    """Archive a rollout of the node amber; without `solved` it is not checked yet."""
    season = make_season()
    shared_at = timezone.now()
    rollout = ArchivedRollout.objects.create(
        season=season,
        author=make_node("amber")[0],
        rollout="r1",
        dataset="chain_sum",
        spec=msgspec.to_builtins(make_spec(season)),
        model="tiny",
        step=3,
        completions=[{"text": "<answer>2</answer>", "solved": True}],
        question="What is 1 + 1?",
        published_at=shared_at,
        solved=solved,
        total=1,
        learned_by=len(learners),
    )
    for at, name in enumerate(learners):
        node, _ = make_node(name)
        Learned.objects.create(rollout=rollout, node=node, at=shared_at + timedelta(minutes=at))


async def download() -> list[dict[str, Any]]:
    answer = await AsyncClient().get("/downloads/rollouts.jsonl")
    assert isinstance(answer, StreamingHttpResponse)
    text = b"".join([part async for part in answer]).decode()
    return [json.loads(line) for line in text.splitlines()]


async def test_line_contains_completions_and_learners() -> None:
    await sync_to_async(archive)(solved=1, learners=("bold", "calm"))
    (line,) = await download()
    assert tuple(line) == tuple(column.name for column in COLUMNS)
    assert (line["node"], line["question"], line["solved"]) == ("amber", "What is 1 + 1?", 1)
    assert line["completions"] == [{"text": "<answer>2</answer>", "solved": True}]
    assert [learner["node"] for learner in line["learners"]] == ["bold", "calm"]


async def test_unchecked_rollout_is_omitted() -> None:
    await sync_to_async(archive)(solved=None)
    assert await download() == []
