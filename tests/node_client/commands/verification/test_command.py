import asyncio
import json
import subprocess
import sys
from http import HTTPStatus
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from node_client.cli import app
from node_client.commands.problems import DOUBTFUL, FAILED, UNCHECKED
from node_client.commands.verification import download
from node_client.commands.verification.checks import CheckOutcome
from node_client.commands.verification.command import verify_round
from node_client.errors import UncheckableError
from node_client.storage.commitments import CommitmentLog
from node_client.storage.state import StateDir
from swarm_tasks.verifier import Verifier
from tests.node_client.commands.verification.rounds import NUMBER, Published
from tests.node_client.coordinator import Coordinator, open_round, running

RECORD = f"/api/v1/rounds/{NUMBER}"
ANSWERS = f"/rounds/{NUMBER}/answers.jsonl"
ASKED = f"/rounds/{NUMBER}/asked.jsonl"


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path)


def serve(coordinator: Coordinator, published: Published) -> None:
    lines = "".join(json.dumps(answer) + "\n" for answer in published.answers)
    coordinator.pages[RECORD] = (HTTPStatus.OK, json.dumps(published.record))
    coordinator.pages[ANSWERS] = (HTTPStatus.OK, lines)
    coordinator.pages["/rounds/chain.jsonl"] = (HTTPStatus.NOT_FOUND, "")
    earlier = "".join(json.dumps(each) + "\n" for each in published.asked)
    coordinator.pages[ASKED] = (HTTPStatus.OK, earlier)


async def verify(coordinator: Coordinator, state: StateDir) -> Result:
    arguments = ["verify-round", coordinator.site.base, str(NUMBER), "--state-dir", str(state.path)]
    return await asyncio.to_thread(CliRunner().invoke, app, arguments)


async def check(
    coordinator: Coordinator, state: StateDir, verifier: Verifier
) -> tuple[CheckOutcome, str]:
    """Do what the command does, with a running verifier; return the outcome and the output."""
    console = Console(file=StringIO())
    outcome = await asyncio.to_thread(
        verify_round,
        coordinator.site,
        NUMBER,
        state=state,
        console=console,
        verifier=verifier,
    )
    assert isinstance(console.file, StringIO)
    return outcome, console.file.getvalue()


async def verify_in_a_process(coordinator: Coordinator, state: StateDir) -> tuple[int, str]:
    """Run the command in its own process; return its exit code and its output."""
    command = ["-m", "node_client", "verify-round", coordinator.site.base, str(NUMBER)]
    ran = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        "--state-dir",
        str(state.path),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await ran.communicate()
    assert ran.returncode is not None
    return ran.returncode, output.decode()


@pytest.mark.slow
async def test_honest_round_is_confirmed_check_by_check(
    published: Published, state: StateDir
) -> None:
    async with running(Coordinator()) as coordinator:
        serve(coordinator, published)
        result = await verify(coordinator, state)
    assert result.exit_code == 0, result.output
    signs = [line[0] for line in result.output.splitlines()[1:-1]]
    assert signs == ["–", "–", "✓", "–", "✓", "✓", "✓", "✓", "–", "–", "–", "–"]
    assert "all is as the site published it" in result.output


async def test_dishonest_round_is_refuted_with_the_difference(
    published: Published, state: StateDir, verifier: Verifier
) -> None:
    published.answers[0]["text"] = "<answer>999</answer>"
    async with running(Coordinator()) as coordinator:
        serve(coordinator, published)
        outcome, output = await check(coordinator, state, verifier)
    assert outcome is CheckOutcome.DIFFERS
    assert "✗ answers" in output
    expected = (
        "answer of able-owl to question 1: published 1.0, solved, right; here 0.0, not solved"
    )
    assert expected in output


@pytest.mark.slow
async def test_changed_text_of_a_right_answer_exits_with_1(
    published: Published, state: StateDir
) -> None:
    """The verdict is the published one; only the text attributed to the node differs."""
    right = next(answer for answer in published.answers if answer["solved"])
    right["text"] = f"not {right['text']}, but <answer>-1</answer>"
    async with running(Coordinator()) as coordinator:
        serve(coordinator, published)
        code, output = await verify_in_a_process(coordinator, state)
    assert code == FAILED == 1, output
    assert f"answer of {right['node']} to question" in output
    assert "published 1.0, solved, right; here 0.0, not solved" in output


@pytest.mark.parametrize("unchanged", [True, False])
async def test_commitment_noted_by_the_node_is_compared(
    published: Published, state: StateDir, verifier: Verifier, unchanged: bool
) -> None:
    async with running(Coordinator()) as coordinator:
        serve(coordinator, published)
        commitment = published.record["commitment"] if unchanged else "c0ffee"
        log = CommitmentLog(state.commitments, site=coordinator.site)
        log.record(open_round(NUMBER, commitment=commitment))
        outcome, output = await check(coordinator, state, verifier)
    assert outcome is (CheckOutcome.HOLDS if unchanged else CheckOutcome.DIFFERS)
    assert f"{'✓' if unchanged else '✗'} noted before" in output


@pytest.mark.slow
async def test_ungraded_answer_exits_with_3(published: Published, state: StateDir) -> None:
    last = published.answers_of("calm-elk")[-1]
    assert last["solved"] is False
    published.leave_ungraded(last)
    async with running(Coordinator()) as coordinator:
        serve(coordinator, published)
        result = await verify(coordinator, state)
    assert result.exit_code == DOUBTFUL == 3, result.output
    assert "! answers" in result.output
    assert "1 not graded in time" in result.output


async def test_open_round_cannot_be_checked(state: StateDir) -> None:
    async with running(Coordinator()) as coordinator:
        coordinator.pages[RECORD] = (HTTPStatus.OK, '{"phase": "open", "commitment": "c0ffee"}')
        result = await verify(coordinator, state)
    assert result.exit_code == UNCHECKED
    assert "still sealed" in result.output
    assert "when it has closed" in result.output


async def test_missing_round_cannot_be_checked(state: StateDir) -> None:
    async with running(Coordinator()) as coordinator:
        coordinator.pages[RECORD] = (HTTPStatus.NOT_FOUND, "{}")
        result = await verify(coordinator, state)
    assert result.exit_code == UNCHECKED
    assert "/rounds/" in result.output


@pytest.mark.parametrize("page", [RECORD, ANSWERS])
async def test_round_of_a_failing_site_cannot_be_checked(
    published: Published, state: StateDir, page: str
) -> None:
    async with running(Coordinator()) as coordinator:
        serve(coordinator, published)
        coordinator.pages[page] = (HTTPStatus.INTERNAL_SERVER_ERROR, "")
        result = await verify(coordinator, state)
    assert result.exit_code == UNCHECKED
    assert "500" in result.output


async def test_round_of_an_unreachable_site_cannot_be_checked(state: StateDir) -> None:
    async with running(Coordinator()) as coordinator:
        pass
    result = await verify(coordinator, state)
    assert result.exit_code == UNCHECKED
    assert "cannot be read" in result.output


@pytest.mark.parametrize("file", ["commitments", "heads", "receipts"])
async def test_round_cannot_be_checked_if_own_records_cannot_be_read(
    published: Published, state: StateDir, verifier: Verifier, file: str
) -> None:
    (state.path / f"{file}.jsonl").mkdir()
    async with running(Coordinator()) as coordinator:
        serve(coordinator, published)
        with pytest.raises(UncheckableError, match=file):
            await check(coordinator, state, verifier)


@pytest.mark.parametrize("limit", ["MAX_RECORD_BYTES", "MAX_ANSWERS_BYTES", "MAX_LINE_BYTES"])
async def test_oversized_response_is_cut_off(
    published: Published,
    state: StateDir,
    verifier: Verifier,
    limit: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(download, limit, 100)
    async with running(Coordinator()) as coordinator:
        serve(coordinator, published)
        with pytest.raises(UncheckableError, match=r"(more|larger) than 100 bytes"):
            await check(coordinator, state, verifier)


async def test_refuted_round_stays_refuted_if_the_rest_is_unreadable(
    published: Published, state: StateDir, verifier: Verifier
) -> None:
    published.record["secret"] = "ff" * 32
    async with running(Coordinator()) as coordinator:
        serve(coordinator, published)
        coordinator.pages[ANSWERS] = (HTTPStatus.OK, "not an answer\n")
        outcome, output = await check(coordinator, state, verifier)
    assert outcome is CheckOutcome.DIFFERS
    assert "answers cannot be read" in output


async def test_refuted_season_stays_refuted_if_the_rest_is_unreadable(state: StateDir) -> None:
    result = await verify_season_with_a_broken_chain(state)
    assert result.exit_code == FAILED, result.output
    assert "✗ chain" in result.output
    assert "cannot be read" in result.output


async def test_text_of_the_site_cannot_control_the_terminal(
    published: Published, state: StateDir, verifier: Verifier
) -> None:
    published.record["rules"]["season"] = "\x1b[2J[red]season"
    published.record["questions"][0]["prompt"] = "\x1b[31m[bold]prompt"
    async with running(Coordinator()) as coordinator:
        serve(coordinator, published)
        _, output = await check(coordinator, state, verifier)
    assert "\x1b" not in output
    assert "[red]season" in output
    assert "[bold]prompt" in output


@pytest.mark.slow
def test_checking_a_round_does_not_import_torch_or_websockets() -> None:
    code = (
        "import sys, node_client.cli, node_client.commands.verification.command\n"
        "sys.exit(bool({'torch', 'transformers', 'websockets'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_season_cannot_be_checked_if_own_records_cannot_be_read(state: StateDir) -> None:
    state.heads.mkdir()
    result = await verify_season_with_a_broken_chain(state)
    assert result.exit_code == UNCHECKED, result.output


async def verify_season_with_a_broken_chain(state: StateDir) -> Result:
    season = {"season": "autumn", "questions_per_round": 8, "minimum_questions": 0}
    async with running(Coordinator()) as coordinator:
        coordinator.pages["/api/v1/seasons?"] = (HTTPStatus.OK, json.dumps({"items": [season]}))
        coordinator.pages["/rounds/chain.jsonl"] = (HTTPStatus.OK, "not a link\n")
        command = ["verify-season", coordinator.site.base, "--state-dir", str(state.path)]
        return await asyncio.to_thread(CliRunner().invoke, app, command)
