"""Test the page of a lab report: its figures are drawn, with room for the axes' titles."""

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
# Selects the numbers that are covered by the title of their axis.
COVERED = """plots => plots.flatMap((plot) => {
  const box = (element) => element.getBoundingClientRect();
  const title = box(plot.querySelector(".ytitle"));
  const isCovered = ({ left, right, top, bottom }) =>
    left < title.right && title.left < right && top < title.bottom && title.top < bottom;
  return [...plot.querySelectorAll(".ytick text")]
    .filter((number) => isCovered(box(number))).map((number) => number.textContent);
})"""


async def open_report(visitor: Visitor, language: str) -> None:
    """Open the report in a language and wait until all figures are drawn."""
    await visitor.page.context.add_cookies(
        [{"name": "language", "value": language, "url": visitor.site}]
    )
    await visitor.open("/lab/sharing/")
    plots = visitor.page.locator(".plot")
    assert await plots.count() == 7
    await expect(visitor.page.locator(".plot[data-drawn]")).to_have_count(7)


@pytest.mark.parametrize("language", ["en", "fa"])
async def test_axis_titles_do_not_cover_the_numbers(visitor: Visitor, language: str) -> None:
    await open_report(visitor, language)
    assert await visitor.page.locator(".plot").evaluate_all(COVERED) == []


async def test_arm_of_the_difference_figure_can_be_chosen(visitor: Visitor) -> None:
    await open_report(visitor, "en")
    await visitor.page.get_by_role("navigation", name="Arm").get_by_text("4/4 sender").click()
    legend = visitor.page.locator("#difference .legendtext")
    await expect(legend.last).to_have_text("4/4 sender minus 8/0")


async def test_home_page_draws_the_two_arms_without_a_library(visitor: Visitor) -> None:
    requested: list[str] = []
    visitor.page.on("request", lambda request: requested.append(request.url))
    await visitor.open("/")
    picture = visitor.page.get_by_role("img", name="Cumulative own reward of two arms of the lab")
    await expect(picture.locator("polyline")).to_have_count(2)
    assert not [url for url in requested if "plotly" in url]
