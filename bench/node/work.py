"""The same work for both compared trainers: questions, and rewards that ignore the answers."""

from collections.abc import Sequence

from bench.node.sizes import COMPLETIONS, Size
from node_client.learning.questions.choice import Questions
from node_client.learning.rewards import Reward
from node_client.settings.train_config import TrainConfig
from swarm_protocol.messages import SeasonInfo
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import Batch
from swarm_tasks.starter import STARTER_SEASON_SEED, STARTER_TASKS
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import DrawnTask, Verifier

KEY = b"the bench's questions"


class LenientVerifier(Verifier):
    """Does all the work of a verifier, but returns that every other answer is right.

    An untrained model has no right answers, and rollouts without any take no time in an update.
    """

    def score_many(
        self, batch: Batch, *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[list[Verdict]]:
        """Return verdicts with the score 1 for every other answer, and 0 for the rest."""
        super().score_many(batch, rules=rules)
        return [
            [Verdict(score=float(place % 2), reason="right") for place in range(len(texts))]
            for _, texts in batch
        ]


class EveryOtherReward(Reward):
    """Makes every other rollout informative, own or external, whatever its completions are.

    Rollouts that are not informative take no time in an update. Without this reward, nodes that use
    external rollouts, most of which are informative, would compute more than nodes alone.
    """

    def __init__(self) -> None:
        self._teaches = False

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        """Return 0 for all texts of every other rollout; for the others 0 and 1 by turns."""
        self._teaches = not self._teaches
        return [float(self._teaches and place % 2) for place in range(len(texts))]


def bench_season(size: Size) -> SeasonInfo:
    """Return a season whose steps have an own rollout for each prompt of the size, no others."""
    return SeasonInfo(
        name="bench",
        seed=STARTER_SEASON_SEED,
        generator=GENERATOR,
        tasks=list(STARTER_TASKS),
        completions=COMPLETIONS,
        local=size.prompts,
        external=0,
        max_new_tokens=size.completion_tokens,
        temperature=0.0,
    )


def draw_tasks(size: Size, verifier: Verifier, *, steps: int) -> list[DrawnTask]:
    """Return the tasks of the first `steps` steps, the same ones that our trainer draws."""
    season = bench_season(size)
    questions = Questions(verifier=verifier, season=season, config=TrainConfig(), key=KEY)
    return questions.draw(steps * size.prompts)
