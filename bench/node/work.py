"""Equal work for the compared nodes or trainers: questions, and rewards that ignore the answers."""

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
    """Does all the work of a verifier, but gives every second completion of a question the score 1.

    An untrained model has no right completions. If all completions of a question are wrong, our
    trainer skips them in the update, which would then take no time.
    """

    def score_many(
        self, batch: Batch, *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[list[Verdict]]:
        """Return verdicts whose scores alternate for each question: 0, 1, 0, 1."""
        super().score_many(batch, rules=rules)
        return [
            [Verdict(score=float(place % 2), reason="right") for place in range(len(texts))]
            for _, texts in batch
        ]


class EveryOtherReward(Reward):
    """Makes every second rollout informative, own or external, whatever its completions are.

    Rollouts that are not informative take no time in an update. Without this reward, nodes that use
    external rollouts, most of which are informative, would compute more than nodes that train
    alone.
    """

    def __init__(self) -> None:
        self._teaches = False

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        """Return only zeros at every second call, and alternating 0 and 1 at the others."""
        self._teaches = not self._teaches
        return [float(self._teaches and place % 2) for place in range(len(texts))]


def bench_season(size: Size) -> SeasonInfo:
    """Return a season whose steps use `size.prompts` own rollouts and no external ones."""
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
