"""A child that hangs, dies or loses its parent."""

import errno
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time

import pytest

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.generation_errors import GenerationError, NoQuestionError
from swarm_tasks.verifier import Verifier
from tests.tasks.faulty import REPOSITORY, child_pid, faulty_children, faulty_verifier
from tests.tasks.specs import DIES, HANGS, ONE_DIGIT, WAIT_S, answered, make_spec, solve_sum

pytestmark = pytest.mark.slow

END_WITHIN_S = 20.0

PARENT = """
import sys
from tests.tasks.faulty import child_pid, faulty_verifier
from tests.tasks.specs import answered, make_spec
with faulty_verifier(deadline_s=0.5) as verifier:
    print(child_pid(verifier), flush=True)
    if sys.argv[1] == "busy":
        verifier._deadline_s = 3600  # this parent never gives up
        verifier.score(make_spec(), [answered("please hang")])
    sys.stdin.read()
"""


def ended(pid: int) -> bool:
    """Wait until the process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], END_WITHIN_S)[0])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("fault", "reason"), [("please hang", "timeout"), ("please die", "verifier_error")]
)
def test_text_that_loses_the_child_affects_only_its_own_verdict(fault: str, reason: str) -> None:
    spec = make_spec(config=ONE_DIGIT)
    with faulty_verifier(deadline_s=0.5) as verifier:
        right = answered(solve_sum(verifier.question(spec)))
        verdicts = verifier.score(spec, [right, answered(fault), right, answered("no"), right])
        assert [verdict.reason for verdict in verdicts] == [
            *("right", reason, "right", "wrong", "right")
        ]


def test_faults_in_a_batch_affect_only_their_own_texts() -> None:
    specs = [make_spec(config=ONE_DIGIT, index=index) for index in range(5)]
    with faulty_verifier(deadline_s=0.5) as verifier:
        rights = [answered(solve_sum(verifier.question(spec))) for spec in specs]
        batch = [(spec, [right, "", right]) for spec, right in zip(specs, rights, strict=True)]
        batch[1][1][2] = answered("please hang")
        batch[3][1][0] = answered("please die")
        verdicts = verifier.score_many(batch)
    assert [[verdict.reason for verdict in group] for group in verdicts] == [
        ["right", "no_answer", "right"],
        ["right", "no_answer", "timeout"],
        ["right", "no_answer", "right"],
        ["verifier_error", "no_answer", "right"],
        ["right", "no_answer", "right"],
    ]


def test_deadline_applies_to_each_text_separately() -> None:
    spec = make_spec(config=ONE_DIGIT)
    slow = answered("please wait")
    with faulty_verifier(deadline_s=2 * WAIT_S) as verifier:
        verdicts = verifier.score(spec, [slow] * 6)
    assert [verdict.reason for verdict in verdicts] == ["wrong"] * 6


# ---- with a time limit


def test_text_over_the_time_limit_is_postponed_with_its_duration() -> None:
    spec = make_spec(config=ONE_DIGIT)
    with faulty_verifier() as verifier:
        right = answered(solve_sum(verifier.question(spec)))
        texts = [right, answered("please hang"), right]
        ((first, hung, last),) = verifier.score_until([(spec, texts)], until=math.inf, text_s=0.5)
    assert first.verdict is not None
    assert last.verdict is not None
    assert first.verdict.solved
    assert last.verdict.solved
    assert hung.verdict is None
    assert hung.seconds >= 0.5
    assert first.seconds < 0.1


def test_text_that_takes_the_whole_deadline_is_not_postponed_again() -> None:
    with faulty_verifier(deadline_s=0.5) as verifier:
        texts = [answered("please hang")]
        ((hung,),) = verifier.score_until([(make_spec(), texts)], until=math.inf)
    assert hung.verdict is not None
    assert hung.verdict.reason == "timeout"


def test_no_text_is_started_after_the_end_time() -> None:
    with faulty_verifier() as verifier:
        verifier.question(make_spec())
        before = child_pid(verifier)
        texts = [answered("please wait")] * 6
        until = time.monotonic() + 1.5 * WAIT_S
        (attempts,) = verifier.score_until([(make_spec(), texts)], until=until)
        reached = [attempt for attempt in attempts if attempt.verdict is not None]
        assert 0 < len(reached) < len(texts)
        assert all(attempt.seconds >= WAIT_S for attempt in reached)
        assert child_pid(verifier) == before


def test_lost_child_has_ended_and_is_replaced() -> None:
    with faulty_verifier(deadline_s=0.5) as verifier:
        before = child_pid(verifier)
        verifier.score(make_spec(), [answered("please hang")])
        assert ended(before)
        assert child_pid(verifier) != before


def test_child_killed_between_requests_is_replaced_without_loss() -> None:
    spec = make_spec(config=ONE_DIGIT)
    with faulty_verifier() as verifier:
        right = answered(solve_sum(verifier.question(spec)))
        os.kill(child_pid(verifier), signal.SIGKILL)
        assert ended(child_pid(verifier))
        assert [verdict.reason for verdict in verifier.score(spec, [right])] == ["right"]


def test_task_that_is_not_made_within_the_deadline_is_refused() -> None:
    with faulty_verifier(deadline_s=0.5) as verifier:
        os.kill(child_pid(verifier), signal.SIGSTOP)
        with pytest.raises(RefusedError, match=r"within 0\.5 s") as caught:
            verifier.question(make_spec())
        assert caught.value.code is ErrorCode.VERIFIER_FAILED
        assert verifier.question(make_spec())


@pytest.mark.parametrize("fault", [HANGS, DIES])
def test_questions_reports_the_place_of_the_task_that_loses_the_child(
    fault: int,
) -> None:
    specs = [make_spec(index=index) for index in (7, 8, fault, 9)]
    with faulty_verifier(deadline_s=0.5) as verifier:
        before = child_pid(verifier)
        with pytest.raises(NoQuestionError) as caught:
            verifier.questions(specs)
        assert caught.value.position == 2
        assert isinstance(caught.value.refusal, GenerationError)
        assert ended(before)
        assert len(verifier.questions([*specs[:2], specs[3]])) == 3


def test_child_that_stops_reading_is_replaced() -> None:
    spec = make_spec(config=ONE_DIGIT)
    with faulty_verifier(deadline_s=0.5) as verifier:
        right = answered(solve_sum(verifier.question(spec)))
        before = child_pid(verifier)
        os.kill(before, signal.SIGSTOP)
        more_than_a_pipe_holds = [right.rjust(16_000)] * 10
        verdicts = verifier.score(spec, more_than_a_pipe_holds)
        assert [verdict.reason for verdict in verdicts] == ["right"] * 10
        assert ended(before)


def test_child_that_announces_an_oversized_reply_is_refused() -> None:
    with (
        faulty_children("tests.tasks.flooding_child"),
        Verifier() as verifier,
        pytest.raises(RefusedError, match="did not start") as caught,
    ):
        verifier.question(make_spec())
    assert caught.value.code is ErrorCode.VERIFIER_FAILED


def test_failed_start_of_a_child_is_refused_and_retried_by_the_next_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*command: object, **options: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with faulty_verifier() as verifier:
        with monkeypatch.context() as crowded:
            crowded.setattr(subprocess, "Popen", fail)
            with pytest.raises(RefusedError, match="could not be started") as caught:
                verifier.question(make_spec())
        assert caught.value.code is ErrorCode.VERIFIER_FAILED
        assert verifier.question(make_spec())


def test_close_ends_the_child() -> None:
    with faulty_verifier() as verifier:
        pid = child_pid(verifier)
        verifier.close()
        assert ended(pid)


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_child_ends_when_its_parent_is_killed(state: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, state],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    assert ended(child)


def test_forked_process_starts_a_child_of_its_own() -> None:
    with faulty_verifier() as verifier:
        mine = child_pid(verifier)
        forked = os.fork()
        if forked == 0:
            status = 1
            try:
                theirs = child_pid(verifier)
                verifier.close()
                status = 0 if theirs != mine else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(forked, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert child_pid(verifier) == mine
        assert verifier.question(make_spec())


def test_threads_share_one_verifier(verifier: Verifier) -> None:
    specs = [make_spec(config=ONE_DIGIT, index=index) for index in range(8)]
    reasons: dict[int, list[str]] = {}
    texts = [answered(solve_sum(verifier.question(spec))) for spec in specs]

    def score(place: int) -> None:
        verdicts = verifier.score(specs[place], [texts[place]] * 50)
        reasons[place] = [verdict.reason for verdict in verdicts]

    threads = [threading.Thread(target=score, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reasons == {place: ["right"] * 50 for place in range(8)}
