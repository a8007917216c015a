"""Swarm sAmpling Policy Optimization on one node (SAPO, arXiv 2509.08721, Algorithm 1).

One step: draw questions, answer each L times, share the rollouts whose questions belong to the
season, mix I own rollouts with J of other nodes, and update the policy with GRPO (by default
without KL term and with clip-higher).

Differences from the paper and its public code, and why:

1. Completions keep their end-of-sequence token, so that the model learns to stop. It is added again
   to completions received as text if their `finish_reason` is `stop`. The public code loses the
   token in decoding.
2. Training reward is the mean over the node's own rollouts only. External rollouts are chosen for
   having right answers, so a mean over the whole training set would be too high.
3. A node requests 24 candidates, or J if that is more. It drops those that are not informative, and
   takes the first J of the rest. The pool offers declared rollouts first. The paper draws uniformly
   from all rollouts of a round (in its experiment 56, from seven peers), as a node does with
   `external_pool = uniform` and `external_candidates = 56`.
4. Spare own rollouts replace missing external ones, so a swarm that offers little costs nothing
   compared with training alone.
5. Gradients are clipped and AdamW is used without weight decay, as in trl. Pretrained models learn
   at trl's default rate, 1e-6. The paper states 0.001; its public code used 1e-6, later 1e-5.
6. Rewards are 1 or 0 by default. With partial credit, the division of advantages by the standard
   deviation would give tiny differences of rewards full weight.
7. A rollout of another node is trained on once.
8. Shared rollouts carry their sender's log-probs for nodes that ask for them. The paper shares text
   alone, which does not show how far the sender's policy is from the receiver's.
9. The questions (`curriculum`, `resampling = history`), the number of rollouts generated in a step
   (`resampling = dynamic`), and I and J (`mix`) may depend on what the node has learned. By default
   they do not.
10. Unless the season or the node sets `batch`, a node answers I + J questions in a step, so that
   nodes with the same I + J generate equally many rollouts. The paper's nodes answer I questions.
11. A node draws its own questions from the tasks of the shared season; it has no data set.
12. A rollout has its task's spec, from which the receiver generates the question and the answer.
13. Rollouts stay in the relay's pool for a while, so a drawn rollout may be several steps old. In
   the paper nodes send rollouts to each other, and draw from the rollouts of the same round.
14. The update is GRPO's. There is no critic, hence no PPO, which the paper also names.
15. External tokens are weighted by their probability at this node (LUFFY, arXiv 2504.14945). The
   paper treats them as the node's own (`external_shaping = none`). A node then learns whatever
   attackers share.
16. By default a season has I = 8 and J = 24, and a node generates 8 rollouts in a step. The paper's
   best mix is 4/4.

docs/lab.md has the experiments behind 3, 15 and 16. The denominator of the importance ratio is the
node's own probability before the update, as in the public code, so the ratio is exactly 1 in the
first of `num_iterations` passes. `importance = sender` divides by the sender's probability instead
(`update.rows`).
"""

import hashlib
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from node_client.learning.external.checking import CheckedExternals, DropReason, ExternalChecker
from node_client.learning.external.mix import make_mix
from node_client.learning.external.sampling import draw, make_strategy
from node_client.learning.external.sharing import shareable_rollouts
from node_client.learning.notices import Notices
from node_client.learning.own import RolloutMaker, prefer_informative
from node_client.learning.questions.choice import Questions
from node_client.learning.questions.held_out import Evaluation, HeldOutSet
from node_client.learning.report import StepReport, TrainingTotals, describe_step
from node_client.learning.rewards import make_reward
from node_client.learning.rollouts import LocalRollout, TrainingSet, assemble_training_set
from node_client.learning.team import ALONE, Team
from node_client.learning.team_messages import TeamLeader
from node_client.learning.timing import StepTimer, clock_of
from node_client.model.policy import Policy
from node_client.settings.objective import check_objective
from node_client.settings.train_config import CANDIDATES, TrainConfig, plan_step
from swarm_protocol.messages import ExternalRollout, Rollout, SeasonInfo
from swarm_tasks.verifier import Verifier


class RolloutExchange(Protocol):
    """The connection to the swarm. The training thread calls it; no call blocks for long."""

    def publish(self, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        """Publish own rollouts.

        `informative` has the ids of the rollouts that the node declares to have both right and
        wrong completions.
        """

    def fetch(self, count: int) -> Sequence[ExternalRollout]:
        """Return up to `count` rollouts of other nodes, in the relay's order; none when offline."""


class Trainer:
    """Trains one policy, step by step. Not thread-safe: run it in one thread.

    All random numbers depend only on the node's `key`, on the season's seed, and on counters that
    checkpoints contain, so a resumed run draws and samples as if it had not stopped. Callers set
    `judge_round` to the number of the judge's latest round, for a curriculum that depends on it.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        verifier: Verifier,
        season: SeasonInfo,
        config: TrainConfig,
        exchange: RolloutExchange,
        node: str,
        key: bytes,
        team: Team = ALONE,
    ) -> None:
        self.policy = policy
        self.season = season
        self.config = config
        self.steps_done = 0
        self.totals = TrainingTotals()
        self.judge_round: int | None = None
        self._exchange = exchange
        self._node = node
        self._key = key
        check_objective(config)
        self._plan = plan_step(config, season)
        longest = self._plan.max_completion_length
        self._leader = TeamLeader(policy, replace(config, max_completion_length=longest), team=team)
        self._notices = Notices(policy, config)
        self._mix = make_mix(self._plan, config)
        self._notices.add(self._mix.notice())
        self._external_strategy = make_strategy(config.external_sampling)
        self._sharing_strategy = make_strategy(config.sharing, setting="sharing")
        for strategy in (self._external_strategy, self._sharing_strategy):
            strategy.begin(policy)
        reward = make_reward(config.reward)
        reward.begin(policy, system_prompt=season.system_prompt)
        self._questions = Questions(verifier=verifier, season=season, config=config, key=key)
        self._maker = RolloutMaker(
            policy=policy,
            verifier=verifier,
            season=season,
            config=config,
            plan=self._plan,
            questions=self._questions,
            reward=reward,
            leader=self._leader,
        )
        self._held_out = HeldOutSet(
            verifier=verifier,
            season=season,
            size=config.eval_tasks,
            samples=config.eval_samples,
            temperature=config.eval_temperature,
        )
        self._checker = ExternalChecker(
            policy=policy,
            verifier=verifier,
            season=season,
            node=node,
            max_completion_length=longest,
            reward=reward,
            keep_uninformative=config.keep_uninformative,
        )

    @property
    def candidates(self) -> int:
        """The number of candidates that a step requests; 0 if the training mix has J = 0."""
        wanted = self._mix.external
        return (self.config.external_candidates or max(CANDIDATES, wanted)) if wanted else 0

    @property
    def evaluation_due(self) -> bool:
        """Whether to evaluate the policy on the held-out questions before the next step.

        It is true before the first step and after each `eval_every` steps, but never if
        `eval_tasks` is 0. It is true again if a run is resumed at such a step, although the
        evaluation may have been made before the run stopped.
        """
        return self.config.eval_tasks > 0 and self.steps_done % self.config.eval_every == 0

    def begin_evaluation(self) -> Evaluation:
        """Start an evaluation of the present policy.

        The caller must not make a step before the evaluation has ended.
        """
        return Evaluation(self._held_out, self.policy)

    def step(self) -> StepReport:
        """Make one step of SAPO's Algorithm 1, and return its report.

        Raises RefusedError when the verifier fails, MemoryExhaustedError when memory runs out and
        smaller batches cannot help, and NodeError when another process of the node has ended.
        """
        timer = StepTimer(clock_of(self.policy.device))
        external_places = self._mix.external
        own_places = self._plan.size - external_places
        # Draw questions, answer each L times, score the answers.
        local = self._maker.make(wanted=own_places, seed=self._seed("sample"), timer=timer)
        # Share them, or a subset.
        with timer.measure("swarm"):
            shared = [rollout for rollout in local if self._questions.is_shared(rollout)]
            self._publish(shared)
        # Take rollouts of other nodes, score them too, and mix I own ones with J of them.
        external = self._fetch_external(external_places, timer)
        own = [rollout.group for rollout in local]
        if self.config.resampling == "dynamic":
            places = self._plan.size - len(external.groups)
            own = prefer_informative(own, count=places, rng=self._rng("prefer"))
        training_set = assemble_training_set(
            own=own, external=external.groups, size=self._plan.size, rng=self._rng("mix")
        )
        # Advantages, loss, gradient, optimizer step: `update.updater`.
        update = self._leader.update(training_set.groups, timer=timer)
        self._finish_step(local, shared, training_set, external)
        return describe_step(
            self.steps_done,
            local,
            training_set,
            external,
            update,
            timer,
            curriculum=self._questions.figures(),
            mix=self._mix.figures(),
            notice=self._notices.end_step(update),
        )

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs, except the weights."""
        mix = self._mix.state()
        return {
            "step": self.steps_done,
            "season": self.season.name,
            "questions": self._questions.state(),
            # A node alone has a fixed mix, whatever the settings say, and that has no state.
            "mix": {self.config.mix: mix} if mix else {},
            "external_sampling": {self.config.external_sampling: self._external_strategy.state()},
            "sharing": {self.config.sharing: self._sharing_strategy.state()},
            "seen": list(self._checker.seen),
            "local_used": self.totals.local_used,
            "external_used": self.totals.external_used,
            "external_dropped": dict(self.totals.external_dropped),
            **self._leader.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved `state_dict`; the policy's weights are loaded separately.

        If `state` is of another season, totals, mix and sampling strategies are not restored.
        """
        self.steps_done = state["step"]
        same_season = state["season"] == self.season.name
        self._questions.load(state["questions"], same_season=same_season)
        self._checker.remember(state["seen"])
        self._notices.add(self._leader.load_state(state))
        if not same_season:
            return
        self.totals = TrainingTotals(
            local_used=state["local_used"],
            external_used=state["external_used"],
            external_dropped=Counter(state["external_dropped"]),
        )
        mix = state["mix"].get(self.config.mix)
        if mix:
            self._mix.load(mix)
        # Older checkpoints lack these keys.
        sampling = state.get("external_sampling", {}).get(self.config.external_sampling, {})
        self._external_strategy.load(sampling)
        self._sharing_strategy.load(state.get("sharing", {}).get(self.config.sharing, {}))

    def _publish(self, rollouts: Sequence[LocalRollout]) -> None:
        """Share the rollouts, or a subset of them (SelectSubset in Algorithm 1)."""
        if self.config.shared_rollouts is not None:
            drawn = draw(
                [rollout.group for rollout in rollouts],
                strategy=self._sharing_strategy,
                wanted=self.config.shared_rollouts,
                rng=self._rng("share"),
            )
            rollouts = [each for each in rollouts if any(each.group is group for group in drawn)]
        informative, others = (
            shareable_rollouts(
                [each for each in rollouts if each.is_informative_for_all is declared],
                policy=self.policy,
                season=self.season,
                node=self._node,
                step=self.steps_done,
                with_logprobs=self.config.share_logprobs,
            )
            for declared in (True, False)
        )
        self._exchange.publish(
            [*informative, *others], informative=[rollout.id for rollout in informative]
        )

    def _fetch_external(self, wanted: int, timer: StepTimer) -> CheckedExternals:
        """Request candidates; return up to `wanted` usable ones, and counts of the dropped ones."""
        offered: Sequence[ExternalRollout] = []
        if self.candidates:
            with timer.measure("swarm"):
                offered = self._exchange.fetch(self.candidates)
        with timer.measure("judge"):
            if self.config.external_sampling == "uniform":
                # Offered in random order, declared ones first: the first usable are a uniform draw.
                return self._checker.check(offered, wanted=wanted)
            usable = self._checker.check(offered, wanted=len(offered))
            rng = self._rng("external")
            groups = draw(usable.groups, strategy=self._external_strategy, wanted=wanted, rng=rng)
            not_drawn: Counter[DropReason] = Counter(
                {"not_drawn": len(usable.groups) - len(groups)}
            )
            return CheckedExternals(groups, usable.dropped + not_drawn)

    def _finish_step(
        self,
        local: Sequence[LocalRollout],
        shared: Sequence[LocalRollout],
        training_set: TrainingSet,
        external: CheckedExternals,
    ) -> None:
        """Adapt the next questions, the mix and the sampling strategies; add to the totals.

        `shared` are the own rollouts whose tasks belong to the season. The mix compares
        external rollouts only with `shared`.
        """
        own = [rollout.group for rollout in local]
        self._questions.update(local, judge_round=self.judge_round)
        self._mix.update(
            own=own,
            comparable=[rollout.group for rollout in shared],
            external=external.groups,
        )
        for strategy in (self._external_strategy, self._sharing_strategy):
            strategy.update(own, external.groups)
        self.steps_done += 1
        self.totals.local_used += training_set.local
        self.totals.external_used += training_set.external
        self.totals.external_dropped.update(external.dropped)

    def _rng(self, purpose: str) -> random.Random:
        """Return a random number generator for one purpose in this step of this node."""
        return random.Random(self._seed(purpose))

    def _seed(self, purpose: str) -> int:
        """Return a seed for one purpose in this step of this node."""
        content = self._key + f":{purpose}:{self.steps_done}".encode()
        return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1
