"""Test the page of an experiment's report, opened from a file without a network."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from node_client.lab.report.making import make_report
from node_client.lab.report.page import make_page, read_plotly
from node_client.lab.results import read_results
from tests.browser.conftest import Visitor
from tests.browser.touring import AXE, find_faults
from tests.node_client.lab.folders import LabFolder
from tests.processes import PROJECT

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
PLOTLY = PROJECT / "static" / "vendor" / "plotly-basic-4.1.1.min.js"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an experiment."""
    folder = tmp_path_factory.mktemp("lab")
    lab = LabFolder(folder, seeds=[1, 2, 3])
    lab.add_all({"8/0": [0.1, 0.3], "4/4": [0.3, 0.5]})
    page = make_page(make_report(read_results(folder)), plotly=read_plotly(PLOTLY))
    (folder / "report.html").write_text(page, encoding="utf-8")
    return folder / "report.html"


@pytest_asyncio.fixture(loop_scope="session")
async def reader(written: Path, browser: Browser) -> AsyncIterator[Visitor]:
    """A visitor with the page open on an offline phone."""
    async with await browser.new_context(
        viewport={"width": 360, "height": 740}, offline=True
    ) as context:
        visitor = Visitor(await context.new_page(), written.as_uri())
        visitor.listen()
        await visitor.page.add_init_script(path=AXE)
        await visitor.page.goto(visitor.site)
        yield visitor


async def test_every_figure_is_drawn_without_console_errors(reader: Visitor) -> None:
    plots = reader.page.locator(".plot")
    assert await plots.count() > 5
    assert await reader.page.locator(".plot:has(.main-svg)").count() == await plots.count()
    assert reader.complaints == []


async def test_page_fits_on_a_phone(reader: Visitor) -> None:
    assert not await reader.page.evaluate("document.documentElement.scrollWidth > innerWidth")


async def test_page_has_no_serious_accessibility_faults_in_either_scheme(reader: Visitor) -> None:
    await reader.page.set_viewport_size({"width": 1280, "height": 740})
    assert await find_faults(reader.page, "en") == []


async def test_figures_are_drawn_in_the_colours_of_the_scheme(reader: Visitor) -> None:
    line = reader.page.locator("[data-figure=cumulative] .js-line").last
    light = await line.evaluate("line => getComputedStyle(line).stroke")
    await reader.page.emulate_media(color_scheme="dark")
    await expect(line).not_to_have_css("stroke", light)
