"""Test that the Join page shows only the line for the chosen machine and tool."""

import pytest
from playwright.async_api import Browser, expect

from swarm_web.dashboard.reports.installing import COSTS, Build, Tool, write_install_lines
from tests.browser.conftest import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MACHINES: dict[Build, str] = {"cpu": "no NVIDIA GPU, or is a Mac", "cuda": "an NVIDIA GPU"}
LABELS: dict[Tool, str] = {"uv": "uv", "pipx": "pipx", "venv": "venv + pip"}


async def test_choice_shows_only_its_line_without_scripts(
    visitor: Visitor, browser: Browser
) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{visitor.site}/join/")
    lines = write_install_lines("http://localhost:8000")
    for build, label in MACHINES.items():
        await page.get_by_label(label, exact=True).check()
        for tool in LABELS:
            await page.get_by_label(LABELS[tool], exact=True).check()
            shown = page.locator("[id^=install-]:visible")
            await expect(shown).to_have_text([lines[build][tool]])
            cost = COSTS[build][tool]
            size = page.locator("p.quiet:visible", has_text=f"{cost.download_gb:.1f} GB")
            await expect(size).to_have_count(1)
    await context.close()
