"""A verifier with a cache, shared by the nodes of a swarm, which score each other's rollouts."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import msgspec

from swarm_protocol.messages import Config, TaskSpec
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import Batch
from swarm_tasks.generation_errors import NoQuestionError
from swarm_tasks.keyspace import Part
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import DrawnTask, StreamPosition, Verifier

# A few rounds of a large swarm. An evicted task is computed again.
REMEMBERED = 1 << 16

Answered = tuple[AnswerRules, bytes, tuple[str, ...]]


class CachingVerifier(Verifier):
    """A verifier that caches the questions of drawn tasks, and the verdicts of `score_many`.

    `question`, `questions` and `score_many` ask the verifier child only for what is not cached.
    """

    def __init__(self) -> None:
        super().__init__()
        self._questions: OrderedDict[bytes, str] = OrderedDict()
        self._verdicts: OrderedDict[Answered, list[Verdict]] = OrderedDict()

    def draw(
        self, *, key: bytes, part: Part, dataset: str, config: Config, seed: int, counter: int
    ) -> DrawnTask:
        """Return the same task as `Verifier.draw`, and cache its question."""
        task = super().draw(
            key=key, part=part, dataset=dataset, config=config, seed=seed, counter=counter
        )
        self._cache(task)
        return task

    def draw_many(
        self, positions: Sequence[StreamPosition], *, key: bytes, part: Part, seed: int
    ) -> list[DrawnTask]:
        """Return the same tasks as `Verifier.draw_many`, and cache their questions."""
        tasks = super().draw_many(positions, key=key, part=part, seed=seed)
        for task in tasks:
            self._cache(task)
        return tasks

    def _cache(self, task: DrawnTask) -> None:
        self._questions[_name(task.spec)] = task.question
        _forget_oldest(self._questions)

    def question(self, spec: TaskSpec) -> str:
        """Return the spec's question, from the cache if it is there."""
        return self._questions.get(_name(spec)) or super().question(spec)

    def questions(self, specs: Sequence[TaskSpec]) -> list[str]:
        """Return the specs' questions; only those that are not cached are computed."""
        cached = [self._questions.get(_name(spec)) for spec in specs]
        missing = [position for position, question in enumerate(cached) if question is None]
        if not missing:
            return [question for question in cached if question is not None]
        try:
            generated = super().questions([specs[position] for position in missing])
        except NoQuestionError as problem:
            raise NoQuestionError(missing[problem.position], problem.refusal) from None
        new_questions = iter(generated)
        return [next(new_questions) if question is None else question for question in cached]

    def score_many(
        self, batch: Batch, *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[list[Verdict]]:
        """Return one verdict for each completion text of each task, in order.

        Verdicts are cached by rules, task and the whole list of its texts, not by single text.
        """
        keys = [(rules, _name(spec), tuple(texts)) for spec, texts in batch]
        missing = [position for position, key in enumerate(keys) if key not in self._verdicts]
        if missing:
            scored = super().score_many([batch[position] for position in missing], rules=rules)
            for position, verdicts in zip(missing, scored, strict=True):
                self._verdicts[keys[position]] = verdicts
        found = [self._verdicts[key] for key in keys]
        _forget_oldest(self._verdicts)
        return found


def _name(spec: TaskSpec) -> bytes:
    return msgspec.json.encode(spec, order="sorted")


def _forget_oldest(kept: OrderedDict[Any, Any]) -> None:
    while len(kept) > REMEMBERED:
        kept.popitem(last=False)
