"""Test the replay slider, which shows the answers of a closed round up to a time, also by key."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from playwright.async_api import expect

from judge.models import Answer, Round
from tests.browser.conftest import Visitor
from tests.dashboard.conftest import judge_nodes
from tests.factories import make_season

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def judge_two_nodes() -> Round:
    """Judge two nodes: the first answers after 5 s and 10 s, the second after 30 s."""
    season = make_season("Autumn")
    first, second = judge_nodes(season, count=2, rounds=1)
    judge_round = season.rounds.get()
    for node, position, came in ((first, 1, 5), (first, 2, 10), (second, 1, 30), (second, 2, 30)):
        answers = Answer.objects.filter(node=node, question__position=position)
        answers.update(received_at=judge_round.opens_at + timedelta(seconds=came))
    return judge_round


async def test_answers_after_the_replay_time_are_hidden(visitor: Visitor) -> None:
    judge_round = await sync_to_async(judge_two_nodes)()
    await visitor.open(judge_round.get_absolute_url())
    slider = visitor.page.get_by_label("Replay")
    shown = visitor.page.locator(
        ".heat tbody td.right:not(.later), .heat tbody td.wrong:not(.later)"
    )
    await expect(shown).to_have_count(4)

    await slider.fill("7")

    await expect(shown).to_have_count(1)
    output = visitor.page.locator("output[for=replay-at]")
    await expect(output).to_have_text("7 s after opening: 1 of 4 answers")

    await slider.press("End")

    await expect(shown).to_have_count(4)
    await expect(slider).to_have_attribute("aria-valuetext", "30 s after opening: 4 of 4 answers")
    assert visitor.complaints == []


async def test_replay_plays_from_the_beginning(visitor: Visitor) -> None:
    judge_round = await sync_to_async(judge_two_nodes)()
    await visitor.open(judge_round.get_absolute_url())
    await visitor.page.get_by_role("button", name="Play").click()
    await expect(visitor.page.locator(".heat tbody td.later")).to_have_count(4)
    await visitor.page.get_by_role("button", name="Pause").click()
    await expect(visitor.page.get_by_role("button", name="Play")).to_be_visible()
    assert visitor.complaints == []


async def test_replay_cannot_play_if_the_visitor_prefers_reduced_motion(visitor: Visitor) -> None:
    judge_round = await sync_to_async(judge_two_nodes)()
    await visitor.page.emulate_media(reduced_motion="reduce")
    await visitor.open(judge_round.get_absolute_url())
    await expect(visitor.page.get_by_label("Replay")).to_be_visible()
    await expect(visitor.page.get_by_role("button", name="Play")).to_be_hidden()
