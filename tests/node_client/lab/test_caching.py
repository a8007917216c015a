"""The lab's verifier gives the results of any verifier, and asks its child only once."""

import msgspec
import pytest

from node_client.lab.caching import CachingVerifier
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import MAX_COMPLETION_CHARS, TaskSpec
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import StepResult
from swarm_tasks.generation_errors import NoQuestionError
from swarm_tasks.keyspace import Part
from swarm_tasks.pipe import Draw, GeneratedTask, Job
from swarm_tasks.verifier import DrawnTask, StreamPosition, Verifier
from tests.node_client.fakes import SEED, SUMS, external_sum


class CountingVerifier(CachingVerifier):
    """Borrows the child of a running verifier, and counts the requests to it."""

    def __init__(self, lender: Verifier) -> None:
        super().__init__()
        self._lock, self._keeper = lender._lock, lender._keeper
        self.jobs: list[Job] = []
        self.draws = 0

    def _score_jobs(
        self, jobs: list[Job], rules: AnswerRules, *, until: float, text_s: float
    ) -> list[StepResult]:
        self.jobs += jobs
        return super()._score_jobs(jobs, rules, until=until, text_s=text_s)

    def _make(self, draws: list[Draw]) -> list[GeneratedTask | RefusedError]:
        self.draws += 1
        return super()._make(draws)


def texts_of(verifier: Verifier, counter: int) -> tuple[TaskSpec, list[str]]:
    """Return a task with texts of every kind, the right one first."""
    external = external_sum(verifier, ["<answer>{sum}</answer>"], counter=counter)
    [right] = [completion.text for completion in external.rollout.completions]
    wrong = ["<answer>99</answer>", "", "\ud800", "x" * (MAX_COMPLETION_CHARS + 1)]
    return external.rollout.task, [right, *wrong]


def drawn(verifier: Verifier) -> DrawnTask:
    return verifier.draw(
        key=b"k", part=Part.TRAINING, dataset="chain_sum", config=SUMS, seed=SEED, counter=3
    )


def test_verdicts_and_questions_are_those_of_the_verifier(verifier: Verifier) -> None:
    remembering = CountingVerifier(verifier)
    batch = [texts_of(verifier, counter) for counter in range(3)]
    expected = verifier.score_many(batch)
    assert [verdict.solved for verdict in expected[0]] == [True, False, False, False, False]
    for _ in range(2):
        assert remembering.score_many(batch) == expected
    assert remembering.score(*batch[1]) == expected[1]
    assert remembering.question(batch[0][0]) == verifier.question(batch[0][0])
    assert drawn(remembering) == drawn(verifier)


def test_scored_texts_are_not_scored_again(verifier: Verifier) -> None:
    remembering = CountingVerifier(verifier)
    first, second, third = (texts_of(verifier, counter) for counter in range(3))
    remembering.score_many([first, second])
    remembering.score_many([second, third, first])
    assert [job.index for job in remembering.jobs] == [
        spec.index for spec, _ in (first, second, third)
    ]


def test_text_scored_by_other_rules_is_scored_again(verifier: Verifier) -> None:
    remembering = CountingVerifier(verifier)
    spec, [right, *_] = texts_of(verifier, 0)
    wrapped = [right.replace("</", ".</").replace("<answer>", "<answer>**Answer:** ")]
    assert not remembering.score(spec, wrapped)[0].solved
    assert remembering.score(spec, wrapped, rules=AnswerRules.UNWRAPPED)[0].solved


def test_other_texts_for_the_same_task_are_scored(verifier: Verifier) -> None:
    remembering = CountingVerifier(verifier)
    spec, texts = texts_of(verifier, 0)
    assert remembering.score(spec, texts[:1])[0].solved
    assert not remembering.score(spec, texts[1:2])[0].solved
    assert len(remembering.jobs) == 2


def test_question_of_a_drawn_task_is_not_made_again(verifier: Verifier) -> None:
    remembering = CountingVerifier(verifier)
    task = drawn(remembering)
    made = remembering.draws
    assert remembering.question(task.spec) == task.question
    assert remembering.draws == made


def test_many_tasks_are_drawn_in_one_request_and_remembered(verifier: Verifier) -> None:
    remembering = CountingVerifier(verifier)
    positions = [StreamPosition("chain_sum", SUMS, counter) for counter in range(8)]
    tasks = remembering.draw_many(positions, key=b"k", part=Part.TRAINING, seed=SEED)
    assert [remembering.question(task.spec) for task in tasks] == [t.question for t in tasks]
    assert remembering.draws == 1


def test_only_unknown_questions_are_requested(verifier: Verifier) -> None:
    remembering = CountingVerifier(verifier)
    known, (new, _) = drawn(remembering), texts_of(verifier, 0)
    made = remembering.draws
    assert remembering.questions([known.spec, known.spec]) == [known.question] * 2
    assert remembering.draws == made
    assert remembering.questions([known.spec, new]) == [known.question, verifier.question(new)]
    foreign = msgspec.structs.replace(new, generator="another 1.0")
    with pytest.raises(NoQuestionError) as caught:
        remembering.questions([known.spec, new, foreign])
    assert caught.value.position == 2


def test_task_that_cannot_be_made_is_refused_each_time(verifier: Verifier) -> None:
    remembering = CountingVerifier(verifier)
    known, texts = texts_of(verifier, 0)
    foreign = TaskSpec("no_such_dataset", {}, SEED, 0, GENERATOR)
    for _ in range(2):
        with pytest.raises(RefusedError):
            remembering.score_many([(known, texts), (foreign, ["1"])])
