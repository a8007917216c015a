"""Test that a new participant can join a demo with the lines of its Join page.

It downloads half a gigabyte, so `make test` skips it; there the same lines install small wheels
(`tests/dashboard/operations/test_installers.py`). To try some lines of the page:

    JOINING=cpu-uv,cuda-venv pytest tests/swarm/test_joining.py


`TORCH_CPU` names a directory with a wheel of PyTorch for the CPU, if PyTorch's own index cannot be
reached. The participant's machine has no compiler.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.joining.lines import demo_to_join, try_line
from bench.joining.newcomer import Newcomer
from bench.site import RunningSite
from tests.local.launcher import plain_environment

pytestmark = pytest.mark.swarm

LINES = os.environ.get("JOINING", "").split(",")
TORCH_CPU = os.environ.get("TORCH_CPU")
SCORED_WITHIN_S = 120


@pytest.fixture(scope="module")
def site() -> Iterator[RunningSite]:
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        for name in os.environ.keys() - plain_environment().keys():
            patch.delenv(name)
        yield stack.enter_context(demo_to_join(torch_cpu=Path(TORCH_CPU) if TORCH_CPU else None))


@pytest.mark.skipif(not LINES[0], reason="downloads half a gigabyte; JOINING names lines to try")
@pytest.mark.parametrize("line", LINES)
def test_new_participant_has_a_score_two_minutes_after_the_installation(
    site: RunningSite, line: str
) -> None:
    figures = try_line(site, line)
    assert 0 < figures["shared_after_s"] < figures["scored_after_s"] < SCORED_WITHIN_S


def test_participants_machine_has_no_compiler(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path, site="http://127.0.0.1")
    assert not newcomer.run("command -v gcc || command -v cc || command -v clang || true")
