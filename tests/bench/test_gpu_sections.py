import time

import pytest

from bench.gpu.plan import Section
from bench.gpu.sections import run_sections

PATIENCE_S = 120.0


@pytest.mark.slow
def test_failing_section_does_not_lose_results_of_other_sections() -> None:
    outcome = run_sections(
        [
            Section("broken", "json:loads", {"s": "nonsense"}),
            Section("dead", "os:_exit", {"status": 3}),
            Section("sound", "bench.gpu.device:inspect_device", {"device": "cpu"}),
        ],
        until=time.monotonic() + PATIENCE_S,
        longest_s=PATIENCE_S,
    )
    assert list(outcome.results) == ["sound"]
    assert "JSONDecodeError" in outcome.failed["broken"]
    assert "ended with 3" in outcome.failed["dead"]


@pytest.mark.slow
def test_section_is_terminated_after_its_time_limit() -> None:
    hanging = Section("hanging", "subprocess:run", {"args": ["sleep", "600"]})
    outcome = run_sections([hanging], until=time.monotonic() + PATIENCE_S, longest_s=2)
    assert "no answer within 2 s" in outcome.failed["hanging"]


def test_sections_without_time_left_are_reported_as_failed() -> None:
    late = Section("late", "bench.gpu.device:inspect_device", {"device": "cpu"})
    outcome = run_sections([late], until=time.monotonic() - 1, longest_s=PATIENCE_S)
    assert list(outcome.failed) == ["late"]
