"""The report of a step: figures of the node's own rollouts, of the mix and of the update."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from node_client.learning.external.checking import CheckedExternals
from node_client.learning.questions.held_out import HeldOutScore
from node_client.learning.reflection import reflection_shares
from node_client.learning.rollouts import LocalRollout, TrainingSet
from node_client.learning.timing import StepTimer
from node_client.learning.update.updater import UpdateReport
from swarm_protocol.messages import Reflection, RolloutName
from swarm_tasks.cells import summarize_outcomes
from swarm_tasks.verdicts import Verdict


@dataclass(frozen=True)
class ShownExample:
    """One question with one answer of this node and its verdict, to show to people."""

    question: str
    completion: str
    verdict: Verdict


@dataclass(frozen=True)
class StepReport:
    """The figures of one step.

    Rewards and shares are over the node's own rollouts of the step, unless another set is named.

    - `generated`: the number of own rollouts; `solved`: the share of right completions by dataset.
    - `external_dropped`: the number of dropped candidates by reason (`external.checking`).
    - `loss`, `grad_norm`, `clip_ratio`, `kl`: as in `UpdateReport`.
    - `clipped_ratio`: the share of own completions that reached the length limit, as in trl.
    - `completion_length`, `completion_tokens`: the mean and the sum of own completions' tokens.
    - `texts`: the own completions; `reflection`: for each pattern of `learning.reflection`, the
      share of own completions with it.
    - `training_set_reward`: the mean over the training set with its external rollouts (T^n in SAPO,
      arXiv 2509.08721). It does not show how good this node's policy is, because external rollouts
      are chosen for having right answers.
    - `training_set_informative`: the share of informative rollouts in the training set.
    - `curriculum`: with stages, the number of the present stage; with a ladder, for each dataset
      the node's rung (difficulty level) minus the season's rung.
    - `mix`: I, J and the values from which the automatic mix chooses them; empty for a fixed mix.
    - `seconds`: the time of each part: generate, score, swarm (share and request), judge (check
      external rollouts), forward, backward, optimizer, and evaluate if an evaluation was due.
    - `held_out`: the score of the evaluation after this step; None without a complete evaluation.
    - `held_out_before`: the score before any training; only in the first step.
    - `used`: names of the external rollouts in the training set; empty if the loss or the gradient
      of the update's last optimizer step was not finite.
    - `notice`: what the owner should know about the step.
    """

    step: int
    training_reward: float
    informative_share: float
    generated: int
    solved: dict[str, float]
    local_used: int
    external_used: int
    external_dropped: dict[str, int]
    loss: float
    grad_norm: float
    clip_ratio: float
    completion_length: float
    clipped_ratio: float
    reflection: dict[Reflection, float]
    seconds: dict[str, float]
    example: ShownExample
    training_set_reward: float
    training_set_informative: float
    completion_tokens: int = 0
    curriculum: dict[str, float] = field(default_factory=dict)
    mix: dict[str, float] = field(default_factory=dict)
    held_out: HeldOutScore | None = None
    held_out_before: HeldOutScore | None = None
    notice: str | None = None
    kl: float = 0.0
    used: list[RolloutName] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


@dataclass
class TrainingTotals:
    """A node's totals in a season: the rollouts used, and the dropped candidates by reason."""

    local_used: int = 0
    external_used: int = 0
    external_dropped: Counter[str] = field(default_factory=Counter)


def describe_step(
    step: int,
    local: Sequence[LocalRollout],
    training_set: TrainingSet,
    external: CheckedExternals,
    update: UpdateReport,
    timer: StepTimer,
    *,
    curriculum: dict[str, float],
    mix: dict[str, float],
    notice: str | None,
) -> StepReport:
    """Return the report of a finished step."""
    answers = [answer for rollout in local for answer in rollout.answers]
    texts = [answer.text for answer in answers]
    first = local[0]
    return StepReport(
        step=step,
        training_reward=fmean(reward for rollout in local for reward in rollout.group.rewards),
        informative_share=fmean(rollout.group.informative for rollout in local),
        generated=len(local),
        solved=_solved_by_dataset(local),
        local_used=training_set.local,
        external_used=training_set.external,
        external_dropped={str(reason): count for reason, count in external.dropped.items()},
        loss=update.loss,
        grad_norm=update.grad_norm,
        clip_ratio=update.clip_ratio,
        kl=update.kl,
        completion_length=fmean(len(answer.token_ids) for answer in answers),
        clipped_ratio=fmean(answer.finish_reason == "length" for answer in answers),
        reflection=reflection_shares(texts),
        seconds=dict(timer.seconds),
        completion_tokens=sum(len(answer.token_ids) for answer in answers),
        training_set_reward=fmean(fmean(group.rewards) for group in training_set.groups),
        training_set_informative=fmean(group.informative for group in training_set.groups),
        example=ShownExample(first.task.question, first.answers[0].text, first.verdicts[0]),
        curriculum=curriculum,
        mix=mix,
        notice=notice,
        used=training_set.used if update.is_finite else [],
        texts=texts,
    )


def _solved_by_dataset(local: Sequence[LocalRollout]) -> dict[str, float]:
    cells = summarize_outcomes(
        (rollout.task.spec.dataset, verdict.solved)
        for rollout in local
        for verdict in rollout.verdicts
    ).cells
    return {dataset: correct / n for dataset, (correct, n) in cells.items()}
