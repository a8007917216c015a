"""Several verifiers behind the interface of one."""

import os
import threading
from collections.abc import Iterator

import pytest

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import TaskSpec
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import Batch
from swarm_tasks.keyspace import INDEX_END, Part
from swarm_tasks.pool import VerifierPool
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import Verifier
from tests.tasks.faulty import child_pid, faulty_children
from tests.tasks.specs import ONE_DIGIT, SEED, answered, make_spec, solve_sum

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    with faulty_children(), VerifierPool(2) as shared:
        yield shared


def solved(pool: VerifierPool, spec: TaskSpec) -> str:
    return answered(solve_sum(pool.question(spec)))


def reasons(groups: list[list[Verdict]]) -> list[list[str]]:
    return [[verdict.reason for verdict in group] for group in groups]


def test_verdicts_are_in_the_order_of_tasks_and_texts(pool: VerifierPool) -> None:
    specs = [make_spec(config=ONE_DIGIT, index=index) for index in range(40)]
    batch = [(spec, [solved(pool, spec), "", answered("no")] * 20) for spec in specs]
    assert reasons(pool.score_many(batch)) == [["right", "no_answer", "wrong"] * 20] * 40


def test_large_group_is_split_and_reassembled(pool: VerifierPool) -> None:
    spec = make_spec(config=ONE_DIGIT)
    right = solved(pool, spec)
    verdicts = pool.score(spec, [right] * 700 + [""] * 700)
    assert reasons([verdicts]) == [["right"] * 700 + ["no_answer"] * 700]


def test_no_tasks_give_no_verdicts(pool: VerifierPool) -> None:
    assert pool.score_many([]) == []


def test_loads_are_scored_in_parallel(pool: VerifierPool, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=30)

    def score_many(_: Verifier, batch: Batch, *, rules: AnswerRules) -> list[list[Verdict]]:
        both.wait()
        return [[Verdict(0.0, "wrong")] * len(texts) for _, texts in batch]

    monkeypatch.setattr(Verifier, "score_many", score_many)
    batch = [(make_spec(index=index), [""] * 16) for index in range(2)]
    assert reasons(pool.score_many(batch)) == [["wrong"] * 16] * 2


def test_texts_that_lose_a_child_affect_only_their_own_verdicts() -> None:
    specs = [make_spec(config=ONE_DIGIT, index=index) for index in range(8)]
    with faulty_children(), VerifierPool(2, deadline_s=0.5) as pool:
        batch = [(spec, [solved(pool, spec)] * 16) for spec in specs]
        batch[0][1][3] = answered("please hang")
        batch[5][1][0] = answered("please die")
        verdicts = reasons(pool.score_many(batch))
    expected = [["right"] * 16 for _ in specs]
    expected[0][3] = "timeout"
    expected[5][0] = "verifier_error"
    assert verdicts == expected


def test_busy_verifier_does_not_block_the_others(pool: VerifierPool) -> None:
    with pool._borrow() as busy, busy._lock:
        assert pool.question(make_spec())


def test_pool_draws_the_same_task_as_a_single_verifier(
    pool: VerifierPool, verifier: Verifier
) -> None:
    drawn = [
        either.draw(key=b"key", part=Part.JUDGE, dataset="gcd", config={}, seed=SEED, counter=3)
        for either in (pool, verifier)
    ]
    assert drawn[0] == drawn[1]


def test_task_that_cannot_be_made_is_refused(pool: VerifierPool) -> None:
    batch = [(make_spec(index=index), [""] * 16) for index in (1, INDEX_END, 2)]
    with pytest.raises(RefusedError) as caught:
        pool.score_many(batch)
    assert caught.value.code is ErrorCode.TASK_INDEX
    assert len(pool.score_many(batch[:1])) == 1


def test_spec_without_texts_is_still_checked(pool: VerifierPool) -> None:
    with pytest.raises(RefusedError):
        pool.score_many([(make_spec("puzzle24"), [])])


def test_forked_process_starts_children_of_its_own() -> None:
    batch = [(make_spec(index=index), [""] * 16) for index in range(4)]
    with faulty_children(), VerifierPool(2) as pool:
        before = pool.score_many(batch)
        children = [child_pid(verifier) for verifier in pool._verifiers]
        forked = os.fork()
        if forked == 0:
            status = 1
            try:
                theirs = [child_pid(verifier) for verifier in pool._verifiers]
                same = pool.score_many(batch) == before
                pool.close()
                status = 0 if same and not {*theirs} & {*children} else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(forked, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert pool.score_many(batch) == before
        assert [child_pid(verifier) for verifier in pool._verifiers] == children


def test_pool_without_verifiers_is_refused() -> None:
    with pytest.raises(ValueError, match="pool of 0"):
        VerifierPool(0)
