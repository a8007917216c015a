"""With `--wait-when-refused`, a refused node waits until it is stopped instead of exiting."""

import asyncio
import time
from http import HTTPStatus
from pathlib import Path

import pytest

from node_client.commands.problems import REFUSED
from tests.node_client.coordinator import Coordinator, running
from tests.node_client.forked import running_forked

PATIENCE_S = 60


def await_text(log: Path, text: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not log.exists() or text not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "denial",
    [
        (HTTPStatus.FORBIDDEN, '{"code": "auth.invalid", "message": "Unknown.", "fix": "Ask."}'),
        (HTTPStatus.NOT_FOUND, "{}"),
    ],
    ids=["refused", "not a coordinator"],
)
async def test_refused_node_waits_until_it_is_stopped(
    tmp_path: Path, denial: tuple[HTTPStatus, str]
) -> None:
    coordinator, log = Coordinator(), tmp_path / "log"
    coordinator.denial = denial
    async with running(coordinator):
        words = ("join", coordinator.site.base, "--token", "wrong", "--wait-when-refused")
        folder = ("--state-dir", str(tmp_path / "state"))
        with running_forked("node_client", *words, *folder, log=log) as process:
            await asyncio.to_thread(await_text, log, "waits to be stopped")
            assert process.is_alive()
        assert process.exitcode == REFUSED
