"""Evaluation of a policy on questions that no node of the season trains on.

Every node, arm and run with the same `eval_tasks` has the same questions: a public key selects them
from the held-out part of the keyspace (`swarm_tasks.keyspace`). By default a policy is evaluated as
by the judge: one answer to each question, with the season's temperature and maximum number of
tokens, scored as macro pass@1. Alternatively each question is answered several times, and its score
is the share of right answers, as in SRPO's pass@1 over 32 samples (arXiv 2504.14286). The random
numbers depend only on the season's seed, so two evaluations differ only in the policy, if memory
allows both the same batches.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

import torch

from node_client.learning.rollouts import score_answers
from node_client.model.policy import Policy
from swarm_protocol.messages import SeasonInfo
from swarm_tasks.keyspace import Part
from swarm_tasks.quiz import Stream, draw_distinct, share_questions
from swarm_tasks.verifier import DrawnTask, Verifier

# The normal distribution's quantile of a two-sided interval at 95 %.
_Z = 1.959964
# Few enough that a judge round, which may run between two batches, waits about as long as for a
# step; and the same for every node, because sampled answers depend on it.
QUESTIONS_AT_ONCE = 32
ANSWERS_AT_ONCE = 256


@dataclass(frozen=True)
class HeldOutScore:
    """Macro pass@1 in [0, 1] over `n` questions, with its 95 % interval.

    `n` counts questions, not their answers.
    """

    score: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        """Return the score in one line."""
        return f"pass@1 {self.score:.3f} [{self.low:.3f}, {self.high:.3f}], n = {self.n}"


class HeldOutSet:
    """A season's held-out questions; `size` is their number, but each dataset has at least one.

    They are drawn at the first evaluation. Each is answered once at the season's temperature, or
    `samples` times at `temperature` if `samples` is above 1.
    """

    def __init__(
        self,
        *,
        verifier: Verifier,
        season: SeasonInfo,
        size: int,
        samples: int = 1,
        temperature: float = 1.0,
    ) -> None:
        self.samples = samples
        self.temperature = season.temperature if samples == 1 else temperature
        self.verifier = verifier
        self.season = season
        self._size = max(size, len(season.tasks))
        self._tasks: list[DrawnTask] = []

    def draw(self) -> list[DrawnTask]:
        """Return the questions of all datasets; the first call draws them.

        Each dataset has a number of questions in proportion to its weight, but at least one.
        Questions repeat only if a dataset has too few different ones. Raises RefusedError when the
        verifier fails.
        """
        if not self._tasks:
            season = self.season
            asked: set[str] = set()
            # Stored only when complete: a partial set, after the verifier failed, is another set.
            drawn: list[DrawnTask] = []
            for task, share in zip(
                season.tasks, share_questions(season.tasks, self._size), strict=True
            ):
                stream = Stream(
                    task,
                    key=b"held-out questions",
                    part=Part.HELD_OUT,
                    seed=season.seed,
                    verifier=self.verifier,
                )
                drawn += draw_distinct(stream, share, asked)
            self._tasks = drawn
        return self._tasks


class Evaluation:
    """One evaluation, made in batches; the policy must not change between the batches."""

    def __init__(self, questions: HeldOutSet, policy: Policy) -> None:
        self._questions = questions
        self._policy = policy
        self._generator = torch.Generator(policy.device).manual_seed(questions.season.seed)
        self._asked = 0
        self._shares: dict[str, list[float]] = {}

    def ask(self) -> HeldOutScore | None:
        """Ask the next batch of questions; return the score if this was the last batch, else None.

        Raises RefusedError when the verifier fails, and MemoryExhaustedError as `Policy.generate`
        does.
        """
        tasks, samples = self._questions.draw(), self._questions.samples
        at_once = min(QUESTIONS_AT_ONCE, max(ANSWERS_AT_ONCE // samples, 1))
        self._ask(tasks[self._asked : self._asked + at_once])
        if self._asked < len(tasks):
            return None
        return score_shares(self._shares, samples=samples)

    def _ask(self, tasks: Sequence[DrawnTask]) -> None:
        season = self._questions.season
        answers = self._policy.generate(
            [task.question for task in tasks],
            completions=self._questions.samples,
            max_new_tokens=season.max_new_tokens,
            temperature=self._questions.temperature,
            generator=self._generator,
            system_prompt=season.system_prompt,
        )
        verdicts = score_answers(tasks, answers, verifier=self._questions.verifier, season=season)
        for task, judged in zip(tasks, verdicts, strict=True):
            share = fmean(verdict.solved for verdict in judged)
            self._shares.setdefault(task.spec.dataset, []).append(share)
        self._asked += len(tasks)


def score_shares(shares: Mapping[str, Sequence[float]], *, samples: int) -> HeldOutScore:
    """Return the score of an evaluation, with its 95 % interval.

    `shares` has a list for each dataset, with one number for each question: the share of its
    `samples` answers that are right. The score is the mean of the lists' means.

    The interval is Wilson's (JASA 22, 1927) at Kish's effective n (Survey Sampling, 1965). If every
    dataset has equally many questions, this n is the total number of questions. The judge uses
    Clopper and Pearson's interval, which needs a quantile of the beta distribution; from 100
    questions on, the bounds of the two intervals differ by less than 0.01.

    Answers to one question are correlated, so each question is a cluster of `samples` answers, and
    n is divided by a ratio r. r is the variance of the questions' shares divided by the variance of
    single answers, limited to [1 / samples, 1]; r times `samples` is Kish's design effect. If each
    question is always or never solved, r is 1: more samples add no information. If all questions
    are equally hard for the policy, r is about 1 / samples.
    """
    score = fmean(map(fmean, shares.values()))
    effective = len(shares) ** 2 / sum(1 / len(each) for each in shares.values())
    ratio = min(max(_variance_ratio(shares), 1 / samples), 1.0)
    low, high = wilson_interval(score, effective / ratio)
    return HeldOutScore(score=score, low=low, high=high, n=sum(map(len, shares.values())))


def _variance_ratio(shares: Mapping[str, Sequence[float]]) -> float:
    """Return r as defined in `score_shares`, before it is limited to [1 / samples, 1].

    It is 1 if both variances are 0.
    """
    answers = sum(fmean(each) * (1 - fmean(each)) / len(each) for each in shares.values())
    questions = sum(pvariance(each) / len(each) for each in shares.values())
    return questions / answers if answers else 1.0


def wilson_interval(share: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval of a share in [0, 1] that was observed among n > 0 answers."""
    spread = _Z**2 / n
    centre = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    return max(centre - half, 0.0), min(centre + half, 1.0)
