"""Several verifiers that work at once, each with a child process of its own."""

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Self, TypeVar

from swarm_protocol.messages import Config, TaskSpec
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import Batch, Chunk, split_batch
from swarm_tasks.keyspace import Part
from swarm_tasks.verdicts import Attempt, Verdict
from swarm_tasks.verifier import DEADLINE_S, DrawnTask, Verifier

Result = TypeVar("Result")

# A batch is split into several chunks for each child, so that a text that hangs delays few others.
# A chunk has at least 16 texts, because a smaller one does not repay its overhead.
_CHUNKS_PER_VERIFIER = 4
_CHUNK_TEXTS = range(16, 1024)


class VerifierPool:
    """`size` verifiers that work at once and are used like one `Verifier`. Thread-safe.

    As a context manager, it ends all children on exit. A child starts when first needed.
    `deadline_s` is the time limit for making one task, and for scoring one answer.
    """

    def __init__(self, size: int, *, deadline_s: float = DEADLINE_S) -> None:
        if size < 1:
            raise ValueError(f"a pool of {size} verifiers can do nothing")
        self._verifiers = [Verifier(deadline_s=deadline_s) for _ in range(size)]
        # The last one that was put back is taken first: its child runs and has tasks in its cache.
        self._idle: queue.LifoQueue[Verifier] = queue.LifoQueue()
        for verifier in self._verifiers:
            self._idle.put(verifier)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every child. A later request starts new ones."""
        for verifier in self._verifiers:
            verifier.close()

    def draw(
        self, *, key: bytes, part: Part, dataset: str, config: Config, seed: int, counter: int
    ) -> DrawnTask:
        """Return the `counter`-th task of a keyed stream (`Verifier.draw`)."""
        with self._borrow() as verifier:
            return verifier.draw(
                key=key, part=part, dataset=dataset, config=config, seed=seed, counter=counter
            )

    def question(self, spec: TaskSpec) -> str:
        """Return the spec's question (`Verifier.question`)."""
        with self._borrow() as verifier:
            return verifier.question(spec)

    def sample_digests(
        self, *, dataset: str, config: Config, seed: int, indices: Sequence[int]
    ) -> list[int]:
        """Return the digests of the questions at these indices (`Verifier.sample_digests`)."""
        with self._borrow() as verifier:
            return verifier.sample_digests(
                dataset=dataset, config=config, seed=seed, indices=indices
            )

    def score(
        self, spec: TaskSpec, texts: Sequence[str], *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[Verdict]:
        """Return one verdict for each completion text, in order (`score_many`)."""
        (verdicts,) = self.score_many([(spec, texts)], rules=rules)
        return verdicts

    def score_many(
        self, batch: Batch, *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[list[Verdict]]:
        """Return one verdict for each text, as one list for each task of the batch, in order.

        The batch is divided among the children; a text that hangs delays only the child that scores
        it. Raises RefusedError as `Verifier.score_many` does.
        """
        return self._distribute(
            batch,
            max_texts=self._chunk_size(batch),
            score=lambda verifier, part: verifier.score_many(part, rules=rules),
        )

    def score_until(
        self,
        batch: Batch,
        *,
        until: float,
        text_s: float = DEADLINE_S,
        rules: AnswerRules = AnswerRules.EXACT,
    ) -> list[list[Attempt]]:
        """Score as many texts as there is time for, and return an attempt for each text.

        The result has one list for each task of the batch, in order. `Verifier.score_until`
        explains the arguments. If `text_s` is at least DEADLINE_S, each text is sent on its own, so
        that no text waits behind a slow one. Otherwise texts are sent in chunks.
        """
        return self._distribute(
            batch,
            max_texts=self._chunk_size(batch) if text_s < DEADLINE_S else 1,
            score=lambda verifier, part: verifier.score_until(
                part, until=until, text_s=text_s, rules=rules
            ),
        )

    def _distribute(
        self,
        batch: Batch,
        *,
        max_texts: int,
        score: Callable[[Verifier, Batch], list[list[Result]]],
    ) -> list[list[Result]]:
        """Score chunks of up to `max_texts` texts in parallel, and return all results in order."""

        def score_chunk(chunk: Chunk) -> list[list[Result]]:
            with self._borrow() as verifier:
                return score(verifier, [group for _, group in chunk])

        chunks = split_batch(batch, max_texts=max_texts)
        results: list[list[Result]] = [[] for _ in batch]
        for chunk, scored in zip(chunks, self._map(score_chunk, chunks), strict=True):
            for (position, _), group in zip(chunk, scored, strict=True):
                results[position] += group
        return results

    def _chunk_size(self, batch: Batch) -> int:
        fair = sum(len(texts) for _, texts in batch) // (
            len(self._verifiers) * _CHUNKS_PER_VERIFIER
        )
        return min(max(fair, _CHUNK_TEXTS.start), _CHUNK_TEXTS.stop)

    def _map(
        self, score_chunk: Callable[[Chunk], list[list[Result]]], chunks: Sequence[Chunk]
    ) -> list[list[list[Result]]]:
        if len(chunks) <= 1:
            return [score_chunk(chunk) for chunk in chunks]
        # The threads are of this call only: those of a lasting pool would not survive a fork.
        with ThreadPoolExecutor(min(len(chunks), len(self._verifiers))) as threads:
            return list(threads.map(score_chunk, chunks))

    @contextmanager
    def _borrow(self) -> Iterator[Verifier]:
        """Wait for an idle verifier, and provide it inside the block."""
        verifier = self._idle.get()
        try:
            yield verifier
        finally:
            self._idle.put(verifier)


AnyVerifier = Verifier | VerifierPool
