"""How good a policy is on questions that no node of the season trains on.

The set is frozen: a public key opens a stream in the held-out part of the season's tasks
(`swarm_tasks.keyspace`), which is the same for every node, arm and run. It is asked as the judge
asks: one answer to each question, at the season's temperature and length, scored as the judge's
macro pass@1. What is random in a sampled answer depends on the question set alone, so that two
evaluations differ by the policy and by nothing else.
"""

import math
from dataclasses import dataclass

import torch

from node_client.model.policy import Policy
from swarm_protocol.messages import SeasonInfo
from swarm_tasks.keyspace import Part
from swarm_tasks.marks import Cells, mark
from swarm_tasks.quiz import draw_different, share_questions
from swarm_tasks.verifier import DrawnTask, Verifier

# The normal distribution's quantile of a two-sided interval at 95 %.
_Z = 1.959964


@dataclass(frozen=True)
class HeldOutScore:
    """Macro pass@1 in [0, 1] over `n` questions, with its interval at 95 %."""

    score: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        """Say it in one line."""
        return f"pass@1 {self.score:.3f} [{self.low:.3f}, {self.high:.3f}], n = {self.n}"


class HeldOutSet:
    """A season's frozen questions. They are drawn when the first evaluation asks for them."""

    def __init__(self, *, verifier: Verifier, season: SeasonInfo, size: int) -> None:
        self._verifier = verifier
        self._season = season
        self._size = max(size, len(season.tasks))
        self._tasks: list[DrawnTask] = []

    def evaluate(self, policy: Policy) -> HeldOutScore:
        """Return how many of the questions the policy solves. Raises RefusedError."""
        season = self._season
        tasks = self._draw()
        answers = policy.generate(
            [task.question for task in tasks],
            completions=1,
            max_new_tokens=season.max_new_tokens,
            temperature=season.temperature,
            generator=torch.Generator(policy.device).manual_seed(season.seed),
            system_prompt=season.system_prompt,
        )
        verdicts = self._verifier.score_many(
            [(task.spec, [given[0].text]) for task, given in zip(tasks, answers, strict=True)]
        )
        return score_cells(
            mark(
                (task.spec.dataset, verdict.solved)
                for task, (verdict,) in zip(tasks, verdicts, strict=True)
            ).cells
        )

    def _draw(self) -> list[DrawnTask]:
        """Return the questions: each dataset's share by weight, all different where it can be."""
        if not self._tasks:
            season = self._season
            asked: set[str] = set()
            # Kept when it is whole: half a set, left by a verifier that failed, is another set.
            drawn: list[DrawnTask] = []
            for task, share in zip(
                season.tasks, share_questions(season.tasks, self._size), strict=True
            ):
                drawn += draw_different(
                    task,
                    share,
                    asked,
                    key=b"held-out questions",
                    part=Part.HELD_OUT,
                    seed=season.seed,
                    verifier=self._verifier,
                )
            self._tasks = drawn
        return self._tasks


def score_cells(cells: Cells) -> HeldOutScore:
    """Return the score of at least one question.

    The interval is Wilson's (JASA 22, 1927) at Kish's effective n (Survey Sampling, 1965), which is
    the number of questions where every dataset has equally many. The judge gives Jeffreys', which
    needs a quantile of the beta distribution; the two differ by less than 0.01 from 100 questions.
    """
    shares = [correct / n for correct, n in cells.values()]
    score = math.fsum(shares) / len(shares)
    effective = len(cells) ** 2 / sum(1 / n for _, n in cells.values())
    low, high = wilson_interval(score, effective)
    return HeldOutScore(score=score, low=low, high=high, n=sum(n for _, n in cells.values()))


def wilson_interval(share: float, n: float) -> tuple[float, float]:
    """Return the interval at 95 % of a share in [0, 1] that was seen among n > 0 answers."""
    spread = _Z**2 / n
    centre = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    return max(centre - half, 0.0), min(centre + half, 1.0)
