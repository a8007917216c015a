"""Test the search for rollouts by keyboard, and that the address contains the search."""

import pytest
from asgiref.sync import sync_to_async
from playwright.async_api import expect

from tests.browser.conftest import Visitor
from tests.factories import make_archived_rollout, make_node, make_season

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def archive_two() -> None:
    season, author = make_season("Autumn"), make_node()[0]
    for fruit in ("apples", "pears"):
        make_archived_rollout(season, author, question=f"How many {fruit}?")


async def test_search_by_keyboard_survives_a_reload(visitor: Visitor) -> None:
    await sync_to_async(archive_two)()
    await visitor.open("/rollouts/")
    cards = visitor.page.locator(".cards article")
    await expect(cards).to_have_count(2)
    await visitor.page.get_by_label("Words in the question").focus()
    await visitor.page.keyboard.type("pears")
    await visitor.page.keyboard.press("Enter")
    await expect(cards).to_have_count(1)
    await visitor.page.reload()
    await expect(cards).to_contain_text("How many pears?")
    await expect(visitor.page.get_by_label("Words in the question")).to_have_value("pears")
    assert visitor.complaints == []
