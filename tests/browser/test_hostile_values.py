"""Test that extreme values of a node do not break the layout of pages."""

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from playwright.async_api import ViewportSize

from judge.models import Answer
from judge.services.comparing import compare_season
from swarm_web.relay.models import ArchivedRollout, Contribution
from tests.browser.conftest import Visitor
from tests.dashboard.conftest import judge_nodes
from tests.factories import make_archived_rollout, make_exchange, make_season

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LONGEST = "W" * 200
SECOND = "M" * 200
# The longest allowed completion.
FLOOD = "\u202e" + "\n" * 16_383
SCREENS = (ViewportSize(width=360, height=740), ViewportSize(width=1280, height=800))


def make_pages() -> list[str]:
    """Judge nodes with the longest possible values, and return the pages that show them."""
    season = make_season("Autumn")
    nodes = judge_nodes(season, count=3)
    for node, letter, model in zip(nodes, "wm0", (LONGEST, LONGEST, SECOND), strict=True):
        node.name, node.model, node.parameters = letter * 64, model, 2**53
        node.hardware = {"device": LONGEST, "memory": 2**53}
        node.save()
        for judged in (node.scores, node.ledgers, node.standings):
            judged.update(model=model)
    Contribution.objects.update(
        step=2**53, external_dropped={f"{'r' * 62}{n:02}": 2**53 for n in range(16)}
    )
    compare_season(season, now=timezone.now())
    Answer.objects.update(text=FLOOD)
    rollout = make_archived_rollout(season, nodes[0], learners=nodes[1:])
    texts = [{**completion, "text": FLOOD} for completion in rollout.completions]
    ArchivedRollout.objects.update(completions=texts, step=2**53)
    make_exchange(season, nodes[0], nodes[1], used=2**53)
    number = season.rounds.latest("number").number
    return [
        *("/", "/leaderboard/", f"/nodes/{nodes[0].name}/", f"/rounds/{number}/", "/compare/"),
        *(f"/rounds/{number}/questions/1/", "/rollouts/", f"/rollouts/{rollout.pk}/"),
        "/rollouts/flow/",
    ]


async def test_no_page_with_extreme_values_scrolls_sideways_or_is_very_long(
    visitor: Visitor,
) -> None:
    broken = []
    for path in await sync_to_async(make_pages)():
        for screen in SCREENS:
            await visitor.page.set_viewport_size(screen)
            await visitor.open(path)
            await visitor.page.evaluate(
                "document.querySelectorAll('details').forEach((d) => (d.open = true))"
            )
            width, height = await visitor.page.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
            )
            if width > screen["width"] or height > 20 * screen["height"]:
                broken.append((path, screen["width"], width, height))
    assert broken == []
    assert visitor.complaints == []
