"""One run of an experiment: a whole swarm in this process, round by round.

Every node is the client's `Trainer`, with its own policy, optimizer and stream of questions; only
the pool (`lab.pool`) and the verifier's cache (`lab.caching`) are the lab's. All randomness
comes from the seed, so a resumed run continues as if it had not stopped.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from node_client.errors import CheckpointError
from node_client.lab.bases import find_base
from node_client.lab.config import Experiment, ExperimentArm, NodePlan, node_key, plan_nodes
from node_client.lab.poison import MIN_LOGPROB, Poisoner, poisoned_share
from node_client.lab.pool import LabExchange, LabPool
from node_client.lab.records import RoundRecord
from node_client.learning.questions.held_out import HeldOutScore
from node_client.learning.report import StepReport
from node_client.learning.trainer import Trainer
from node_client.model.policy import Policy
from node_client.storage import checkpoint
from node_client.storage.durable import flush
from swarm_tasks.verifier import Verifier

DIGITS = 6


@dataclass(frozen=True)
class LabMember:
    """A node that trains, with its access to the pool."""

    trainer: Trainer
    exchange: LabExchange


class LabSwarm:
    """The nodes of one arm, with one seed.

    There is no judge: settings that count judge rounds count the lab's rounds instead.
    """

    def __init__(
        self, experiment: Experiment, arm: ExperimentArm, *, seed: int, verifier: Verifier
    ) -> None:
        self.rounds_done = 0
        self._pool = LabPool(
            drawing=arm.drawing,
            source=arm.source,
            rounds=arm.pool_rounds or experiment.pool_rounds,
            seed=seed,
        )
        self._members: list[LabMember] = []
        self._attackers: list[Poisoner] = []
        for place, plan in enumerate(plan_nodes(experiment, arm)):
            name = f"node-{place:02d}"
            exchange = LabExchange(self._pool, name)
            if plan.attack == "none":
                trainer = _make_trainer(
                    plan, name=name, exchange=exchange, seed=seed, verifier=verifier
                )
                self._members.append(LabMember(trainer, exchange))
            else:
                claimed = MIN_LOGPROB if plan.attack == "poison and lie" else None
                self._attackers.append(Poisoner(name, exchange, plan.season, verifier, claimed))

    def base_scores(self) -> RoundRecord:
        """Return the held-out scores as the record of round 0; call this before the first round."""
        return RoundRecord(round=0, held_out=_rounded(self._evaluate()))

    def run_round(self) -> RoundRecord:
        """Let every node make one step and return the round's record.

        Attackers act first. The order of the nodes that train changes from round to round.
        """
        self.rounds_done += 1
        self._pool.begin_round(self.rounds_done)
        for attacker in self._attackers:
            attacker.step(self.rounds_done)
        for member in self._members:
            member.trainer.judge_round = self.rounds_done
            member.exchange.sent = member.exchange.received = 0
        # The first node draws rollouts of the previous round, so the first one changes every round.
        first = self.rounds_done % len(self._members)
        places = range(len(self._members))
        reports = {
            place: self._members[place].trainer.step()
            for place in (*places[first:], *places[:first])
        }
        return self._describe([reports[place] for place in places])

    def save(self, folder: Path) -> None:
        """Write the swarm's state to a new folder, completely or not at all; `load` restores it."""
        draft = folder.with_name(f".{folder.name}.partial")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        for member in self._members:
            checkpoint.save(draft / member.exchange.node, member.trainer)
        (draft / "pool.json").write_bytes(self._pool.state())
        flush(draft / "pool.json")
        flush(draft)
        draft.rename(folder)
        flush(folder.parent)

    def load(self, folder: Path) -> None:
        """Restore what `save` wrote.

        Raises CheckpointError for a damaged snapshot; some nodes may have been loaded by then.
        """
        try:
            self._pool.load((folder / "pool.json").read_bytes())
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise _damaged(folder) from problem
        self.rounds_done = self._pool.round
        for member in self._members:
            resumed = checkpoint.resume(folder / member.exchange.node, member.trainer)
            if resumed is None or resumed.step != self.rounds_done:
                raise _damaged(folder)

    def _describe(self, reports: Sequence[StepReport]) -> RoundRecord:
        due = self._members[0].trainer.evaluation_due
        poisoned = [poisoned_share(report.texts) for report in reports] if self._attackers else []
        return RoundRecord(
            round=self.rounds_done,
            reward=_rounded(report.training_reward for report in reports),
            informative=_rounded(report.informative_share for report in reports),
            set_reward=_rounded(report.training_set_reward for report in reports),
            set_informative=_rounded(report.training_set_informative for report in reports),
            generated=[report.generated for report in reports],
            external=[report.external_used for report in reports],
            tokens=[report.completion_tokens for report in reports],
            sent=[member.exchange.sent for member in self._members],
            received=[member.exchange.received for member in self._members],
            length=_rounded(report.completion_length for report in reports),
            clip=_rounded(report.clip_ratio for report in reports),
            held_out=_rounded(self._evaluate()) if due else [],
            poisoned=_rounded(poisoned),
            reflection=_rounded(max(report.reflection.values()) for report in reports),
            recheck=_rounded(report.reflection["recheck"] for report in reports),
            hesitation=_rounded(report.reflection["hesitation"] for report in reports),
            exploration=_rounded(report.reflection["exploration"] for report in reports),
        )

    def _evaluate(self) -> Iterator[float]:
        for member in self._members:
            if member.trainer.config.eval_tasks:
                yield _score(member.trainer).score


def _make_trainer(
    plan: NodePlan, *, name: str, exchange: LabExchange, seed: int, verifier: Verifier
) -> Trainer:
    return Trainer(
        policy=Policy.load(find_base(plan.base), device=plan.device),
        verifier=verifier,
        season=plan.season,
        config=plan.config,
        exchange=exchange,
        node=name,
        key=node_key(seed, name),
    )


def _score(trainer: Trainer) -> HeldOutScore:
    evaluation = trainer.begin_evaluation()
    while (score := evaluation.ask()) is None:
        pass
    return score


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(value, DIGITS) for value in values]


def _damaged(snapshot: Path) -> CheckpointError:
    return CheckpointError(
        f"The snapshot {snapshot} is damaged.",
        fix="Remove it: the run resumes at an earlier round.",
    )
