"""What is compared is given the same work: questions, and rewards that no model decides."""

from collections.abc import Sequence

from bench.node_sizes import COMPLETIONS, Size
from node_client.learning.questions.choice import TaskStream
from node_client.learning.questions.curriculum import SeasonMix
from node_client.learning.rewards import Reward
from swarm_protocol.messages import SeasonInfo
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import Batch
from swarm_tasks.starter import STARTER_SEASON_SEED, STARTER_TASKS
from swarm_tasks.verifier import DrawnTask, Verdict, Verifier

KEY = b"the bench's questions"


class LenientVerifier(Verifier):
    """Does all the work of a verifier, then calls every other answer right.

    An untrained model is never right, and rollouts without a right answer cost no update.
    """

    def score_many(
        self, batch: Batch, *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[list[Verdict]]:
        """Return verdicts that are right for every other answer."""
        super().score_many(batch, rules=rules)
        return [
            [Verdict(score=float(place % 2), reason="right") for place in range(len(texts))]
            for _, texts in batch
        ]


class EveryOtherReward(Reward):
    """Lets every other rollout teach something, of this node or of others, whatever is in it.

    Rollouts that teach nothing cost no update: without this, nodes that mix in others', most of
    which are informative, would have more to compute than nodes alone.
    """

    def __init__(self) -> None:
        self._teaches = False

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        """Pay for every other text of every other rollout."""
        self._teaches = not self._teaches
        return [float(self._teaches and place % 2) for place in range(len(texts))]


def bench_season(size: Size) -> SeasonInfo:
    """Return a season in which a step has the size's prompts, all of them own rollouts."""
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
    """Return the tasks of so many steps: those that our trainer draws."""
    season = bench_season(size)
    stream = TaskStream(verifier=verifier, season=season, curriculum=SeasonMix(season), key=KEY)
    return stream.draw(steps * size.prompts)
