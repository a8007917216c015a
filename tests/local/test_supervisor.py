"""Test that processes are restarted, logged, and stopped in order."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from swarm_web.local import LaunchError
from swarm_web.local.console import Console
from swarm_web.local.process import SiteProcess
from swarm_web.local.supervisor import Supervisor
from tests.local.processes import processes_inside
from tests.local.transcript import Transcript

FOREVER = "print('up', flush=True); import time; time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + FOREVER
POLITE = (
    "import signal, sys, time;"
    "signal.signal(signal.SIGTERM, lambda *_: (print('goodbye', flush=True), sys.exit()));"
    "print('up', flush=True);"
    "time.sleep(60)"
)
WITH_CHILD = "import subprocess; subprocess.Popen(['sleep', '60']); print('up', flush=True)"


def python(code: str, *, name: str, folder: Path, stop_timeout_s: float = 5.0) -> SiteProcess:
    """Return a process that runs a line of Python in `folder`."""
    command = (sys.executable, "-c", code)
    return SiteProcess(name=name, command=command, folder=folder, stop_timeout_s=stop_timeout_s)


async def supervise(out: Transcript, *tiers: list[SiteProcess]) -> None:
    """Run tiers of processes until a signal stops them."""
    async with Supervisor(Console(out)) as supervisor:
        for tier in tiers:
            await supervisor.start(*tier)
        await asyncio.Event().wait()


async def has_ended(task: asyncio.Task[None]) -> bool:
    """Return whether the task ends soon without being cancelled, as `wait_for` would do."""
    await asyncio.wait({task}, timeout=5)
    return task.done()


async def test_output_lines_are_prefixed_with_the_name_of_the_process(tmp_path: Path) -> None:
    out = Transcript()
    async with Supervisor(Console(out)) as supervisor:
        await supervisor.run(python("print('one\\ntwo')", name="speaker", folder=tmp_path))
    assert out.getvalue().splitlines()[:2] == ["speaker    | one", "speaker    | two"]


async def test_ended_process_is_restarted(tmp_path: Path) -> None:
    out = Transcript()
    async with Supervisor(Console(out)) as supervisor:
        await supervisor.start(python("print('born')", name="mayfly", folder=tmp_path))
        await out.shows("mayfly     | born", times=2)
    assert "mayfly ended with status 0" in out.getvalue()


async def test_killed_process_is_reported_with_the_name_of_the_signal(tmp_path: Path) -> None:
    out = Transcript()
    code = "import os; os.kill(os.getpid(), 9)"
    async with Supervisor(Console(out)) as supervisor:
        await supervisor.start(python(code, name="mayfly", folder=tmp_path))
        await out.shows("mayfly was killed by SIGKILL")


async def test_restarted_process_is_reported_when_it_is_ready(tmp_path: Path) -> None:
    out = Transcript()
    (tmp_path / "ready").touch()
    process = SiteProcess(
        name="server",
        command=(sys.executable, "-c", FOREVER),
        folder=tmp_path,
        is_ready=(tmp_path / "ready").exists,
    )
    async with Supervisor(Console(out)) as supervisor:
        await supervisor.start(process)
        await out.shows("server     | up")
        (tmp_path / "ready").unlink()
        (pid,) = processes_inside(tmp_path)
        os.kill(pid, signal.SIGKILL)
        await out.shows("server is started again")
        await out.shows("server     | up", times=2)
        assert "ready again" not in out.getvalue()
        (tmp_path / "ready").touch()
        await out.shows("server is ready again")


@pytest.mark.slow
async def test_delay_before_a_restart_doubles(tmp_path: Path) -> None:
    out = Transcript()
    async with Supervisor(Console(out)) as supervisor:
        await supervisor.start(python("", name="mayfly", folder=tmp_path))
        await out.shows("started again after 0.5 s")
        await out.shows("started again after 1 s")


async def test_children_of_an_ended_process_are_killed_before_its_restart(
    tmp_path: Path,
) -> None:
    out = Transcript()
    async with Supervisor(Console(out)) as supervisor:
        await supervisor.start(python(WITH_CHILD, name="parent", folder=tmp_path))
        await out.shows("parent ended with status 0")
        assert not processes_inside(tmp_path)


async def test_ctrl_c_stops_all_processes_and_the_supervisor(tmp_path: Path) -> None:
    out = Transcript()
    processes = [python(FOREVER, name=name, folder=tmp_path) for name in ("a", "b", "c")]
    running = asyncio.create_task(supervise(out, processes))
    await out.shows("| up", times=3)
    os.kill(os.getpid(), signal.SIGINT)
    assert await has_ended(running)
    assert not processes_inside(tmp_path)


async def test_ctrl_c_during_a_start_stops_started_processes(tmp_path: Path) -> None:
    out = Transcript()
    never = SiteProcess(
        name="never",
        command=(sys.executable, "-c", FOREVER),
        folder=tmp_path,
        is_ready=lambda: False,
    )
    running = asyncio.create_task(supervise(out, [never]))
    await out.shows("| up")
    os.kill(os.getpid(), signal.SIGINT)
    assert await has_ended(running)
    assert not processes_inside(tmp_path)


async def test_tiers_stop_in_reverse_order(tmp_path: Path) -> None:
    out = Transcript()
    tiers = [[python(POLITE, name=name, folder=tmp_path)] for name in ("database", "web")]
    running = asyncio.create_task(supervise(out, *tiers))
    await out.shows("| up", times=2)
    os.kill(os.getpid(), signal.SIGINT)
    assert await has_ended(running)
    goodbyes = [line.split()[0] for line in out.getvalue().splitlines() if "goodbye" in line]
    assert goodbyes == ["web", "database"]


async def test_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    out = Transcript()
    stubborn = python(STUBBORN, name="stubborn", folder=tmp_path, stop_timeout_s=0.2)
    running = asyncio.create_task(supervise(out, [stubborn]))
    await out.shows("| up")
    os.kill(os.getpid(), signal.SIGINT)
    assert await has_ended(running)
    assert "stubborn did not end in time; killing it" in out.getvalue()
    assert not processes_inside(tmp_path)


async def test_second_ctrl_c_kills_immediately(tmp_path: Path) -> None:
    out = Transcript()
    stubborn = python(STUBBORN, name="stubborn", folder=tmp_path, stop_timeout_s=60)
    running = asyncio.create_task(supervise(out, [stubborn]))
    await out.shows("| up")
    os.kill(os.getpid(), signal.SIGINT)
    await out.shows("again kills")
    os.kill(os.getpid(), signal.SIGINT)
    assert await has_ended(running)
    assert not processes_inside(tmp_path)


async def test_error_names_a_process_that_ends_while_starting(tmp_path: Path) -> None:
    process = SiteProcess(
        name="broken",
        command=(sys.executable, "-c", "import sys; sys.exit('no such table')"),
        folder=tmp_path,
        is_ready=lambda: False,
    )
    out = Transcript()
    with pytest.raises(LaunchError, match="broken ended with status 1 while starting"):
        async with Supervisor(Console(out)) as supervisor:
            await supervisor.start(process)
    assert "broken     | no such table" in out.getvalue()


async def test_error_names_a_process_that_is_not_ready_in_time(tmp_path: Path) -> None:
    process = SiteProcess(
        name="slow",
        command=(sys.executable, "-c", FOREVER),
        folder=tmp_path,
        is_ready=lambda: False,
        ready_timeout_s=0.1,
    )
    with pytest.raises(LaunchError, match="slow was not ready within"):
        async with Supervisor(Console(Transcript())) as supervisor:
            await supervisor.start(process)
    assert not processes_inside(tmp_path)


async def test_error_of_a_failed_step_contains_its_status(tmp_path: Path) -> None:
    process = python("import sys; sys.exit(3)", name="migrate", folder=tmp_path)
    with pytest.raises(LaunchError, match="migrate failed with status 3"):
        async with Supervisor(Console(Transcript())) as supervisor:
            await supervisor.run(process)


async def test_error_names_a_process_whose_program_is_missing(tmp_path: Path) -> None:
    process = SiteProcess(name="web", command=(str(tmp_path / "nothing"),))
    with pytest.raises(LaunchError, match=r"web cannot be started: .*No such file"):
        async with Supervisor(Console(Transcript())) as supervisor:
            await supervisor.start(process)


async def test_processes_run_outside_the_process_group_of_the_launcher(tmp_path: Path) -> None:
    out = Transcript()
    code = "import os; print('group', os.getpgrp(), flush=True)"
    async with Supervisor(Console(out)) as supervisor:
        await supervisor.run(python(code, name="part", folder=tmp_path))
    assert f"group {os.getpgrp()}" not in out.getvalue()
    assert not processes_inside(tmp_path)


async def test_very_long_line_is_printed_in_pieces(tmp_path: Path) -> None:
    out = Transcript()
    async with Supervisor(Console(out)) as supervisor:
        await supervisor.run(python("print('x' * 300_000)", name="long", folder=tmp_path))
    assert out.getvalue().count("x") == 300_000
