"""Swarm sAmpling Policy Optimization on one node (SAPO, arXiv 2509.08721, Algorithm 1).

One step: draw questions, answer each L times, share what is of the season (all, unless the node
climbs a ladder), mix I of the own rollouts with J of other nodes', and update the policy with GRPO
(no KL and clip-higher, unless set otherwise).

Where this departs from the paper and its public code, and why:

1. Completions keep their end-of-sequence token, also those that came as text (the wire tells how
   each one ended), so that stopping is learned. The public code loses it when it decodes.
2. Training reward is the mean over the node's own rollouts only. External ones are chosen for
   having some right answer, so a mean over the training set would flatter whoever mixes.
3. A node asks for 24 candidates, whatever J is; it drops those that teach nothing (all advantages
   zero) and takes the first J of the rest. The pool offers declared-informative rollouts first. The
   paper draws from all alike (`external_pool = uniform`); seven peers make 56 rollouts in its
   experiment (`external_candidates`).
4. Missing external rollouts are replaced by spare own ones, so a quiet swarm, or none, costs
   nothing against training alone.
5. Gradients are clipped and AdamW is used without weight decay, as trl does. Pretrained models
   learn at trl's default rate, 1e-6. The paper states 0.001; its public code used 1e-6, later 1e-5.
6. Rewards are 1 or 0 by default. Tiny differences of partial credit would count in full once they
   are divided by their standard deviation.
7. A rollout of another node is trained on once.
8. Shared rollouts carry their senders' log-probs for nodes that ask for them. The paper shares text
   alone, so nothing tells how unlike the receiver's policy the sender's is.
9. What is asked (`questions`), whether more is generated than a batch (`dynamic`), and I and J
   (`mix`) may follow what the node has learned. All of that is off by default.
10. Unless `batch` says otherwise, I + J questions are answered in a step, so that all mixes
   generate equally much; the paper's nodes answer I.
11. Every node has a stream of its own over the tasks of one shared season, not a data set.
12. A rollout carries its task's spec, not its answer: whoever receives it makes both again.
13. Rollouts go to a relay's pool and stay there for a while, so those that are drawn are up to some
   rounds old; in the paper nodes send to each other, and draw from the same round.
14. The update is GRPO's. There is no critic, hence no PPO proper, which the paper names too.
15. External tokens count by how likely this node finds them (LUFFY, arXiv 2504.14945). The paper
   takes them as the node's own (`external_shaping = none`), and so learns whatever attackers plant.
16. A season's default is I = 8 and J = 24 of 8 that are generated. The paper's best is 4/4.

docs/lab.md has the experiments behind 3, 15 and 16. The ratio's denominator is the node's own
log-prob before the update, as in the public code: it is exactly 1 in the first of `num_iterations`
passes. `importance = sender` divides by the sender's instead (`learning.importance`).
"""

import hashlib
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from node_client.learning.crew import Begin, Update
from node_client.learning.external.checking import CheckedExternals, DropReason, ExternalChecker
from node_client.learning.external.mix import Places, make_mix
from node_client.learning.external.sampling import draw, make_strategy
from node_client.learning.external.sharing import shareable_rollouts
from node_client.learning.losses import make_policy_loss
from node_client.learning.notices import Notices
from node_client.learning.optimizer import begin_training, make_scaler, resume_optimizer
from node_client.learning.own import RolloutMaker
from node_client.learning.questions.choice import Questions
from node_client.learning.questions.held_out import Evaluation, HeldOutSet
from node_client.learning.report import StepReport, Totals, describe_step
from node_client.learning.rewards import make_reward
from node_client.learning.rollouts import LocalRollout, TrainingSet, assemble_training_set
from node_client.learning.stopwatch import Stopwatch, clock_of
from node_client.learning.team import ALONE, Team
from node_client.learning.update import UpdateReport, update_policy
from node_client.model.policy import Policy
from node_client.settings.objective import check_objective
from node_client.settings.train_config import CANDIDATES, TrainConfig, plan_step
from swarm_protocol.messages import ExternalRollout, Rollout, SeasonInfo
from swarm_tasks.verifier import Verifier


class Exchange(Protocol):
    """The way to the swarm. Both calls come from the training thread and never block for long."""

    def publish(self, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        """Hand over this node's rollouts for sharing; `informative` are the ids of such."""

    def sample(self, count: int) -> Sequence[ExternalRollout]:
        """Return up to `count` rollouts of other nodes, in random order; none when offline."""


class Trainer:
    """Trains one policy, step by step. Not thread-safe: run it in one thread.

    All chance depends on the node's `key` and the step's number alone, so a run that is resumed
    from a checkpoint draws and samples as if it had not stopped. `judge_round` is the number of the
    judge's latest round, for a curriculum that goes by it; whoever knows it sets it.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        verifier: Verifier,
        season: SeasonInfo,
        config: TrainConfig,
        exchange: Exchange,
        node: str,
        key: bytes,
        team: Team = ALONE,
    ) -> None:
        self.policy = policy
        self.season = season
        self.config = config
        self.steps_done = 0
        self.totals = Totals()
        self.judge_round: int | None = None
        self._verifier = verifier
        self._exchange = exchange
        self._node = node
        self._key = key
        self._team = team
        self._team_began = False
        self._optimizer = begin_training(policy, config)
        self._notices = Notices(policy, config)
        self._scaler = make_scaler(policy, config)
        check_objective(config)
        make_policy_loss(config.policy_loss)
        self._plan = plan_step(config, season)
        self._mix = make_mix(self._plan, config)
        self._strategy = make_strategy(config.external_sampling)
        self._sharing = make_strategy(config.sharing, setting="sharing")
        for strategy in (self._strategy, self._sharing):
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
            team=team,
        )
        self._held_out = HeldOutSet.of(config, verifier=verifier, season=season)
        self._checker = ExternalChecker(
            policy=policy,
            verifier=verifier,
            season=season,
            node=node,
            max_completion_length=self._plan.max_completion_length,
            reward=reward,
            keep_uninformative=config.keep_uninformative,
        )

    @property
    def candidates(self) -> int:
        """How many rollouts of others each step asks for."""
        places = self._mix.places.external
        return (self.config.external_candidates or max(CANDIDATES, places)) if places else 0

    @property
    def evaluation_due(self) -> bool:
        """Whether to ask the held-out questions now: before the first step, or after `eval_every`.

        True also after a resume from such a step, at which they were asked before.
        """
        return self.config.eval_tasks > 0 and self.steps_done % self.config.eval_every == 0

    def begin_evaluation(self) -> Evaluation:
        """Return an evaluation of the policy as it is; no step may be made before it is done."""
        return self._held_out.begin(self.policy)

    def step(self) -> StepReport:
        """Make one step of SAPO's Algorithm 1. Raises RefusedError when the verifier fails."""
        watch = Stopwatch(clock_of(self.policy.device))
        self._notices.begin_step()
        self._begin_together()
        places = self._mix.places
        local = self._maker.make(wanted=places.local, seed=self._seed("sample"), watch=watch)
        with watch.measure("swarm"):
            shared = [rollout for rollout in local if self._questions.is_shared(rollout)]
            self._publish(shared)
        external = self._take_external(places, watch)
        training_set = assemble_training_set(
            own=self._maker.groups_to_train_on(
                local,
                places=self._plan.size - len(external.groups),
                chance=random.Random(self._seed("prefer")),
            ),
            external=external.groups,
            local_count=places.local,
            external_count=places.external,
            chance=random.Random(self._seed("mix")),
        )
        update = self._update(training_set, watch)
        self._questions.note(local, judge_round=self.judge_round)
        self._mix.note(
            own=[rollout.group for rollout in local],
            comparable=[rollout.group for rollout in shared],
            external=external.groups,
        )
        for strategy in (self._strategy, self._sharing):
            strategy.note([rollout.group for rollout in local], external.groups)
        self._count(training_set, external)
        return describe_step(
            self.steps_done,
            local,
            training_set,
            external,
            update,
            watch,
            curriculum=self._questions.figures(),
            mix=self._mix.figures(),
            notice=self._notices.end_step(update),
        )

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the weights that a resumed run needs."""
        mix = self._mix.state()
        return {
            "step": self.steps_done,
            "season": self.season.name,
            "questions": self._questions.state(),
            # A node alone has a fixed mix, whatever the settings name, and nothing to keep of it.
            "mix": {self.config.mix: mix} if mix else {},
            "external_sampling": {self.config.external_sampling: self._strategy.state()},
            "sharing": {self.config.sharing: self._sharing.state()},
            "seen": self._checker.seen,
            "local_used": self.totals.local_used,
            "external_used": self.totals.external_used,
            "external_dropped": dict(self.totals.external_dropped),
            "optimizer": self._optimizer.state_dict(),
            "optimizer_kind": self.config.optimizer,
            "loss_scale": self._scaler.state_dict(),
            "rooms": {
                "micro_batch_tokens": self.config.micro_batch_tokens,
                "update": self.policy.room.state(),
                "sampling": self.policy.sampling_room.state(),
            },
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken; the policy's weights are loaded separately."""
        self.steps_done = state["step"]
        self._team_began = False
        same_season = state["season"] == self.season.name
        if same_season:
            self.totals = Totals(
                local_used=state["local_used"],
                external_used=state["external_used"],
                external_dropped=Counter(state["external_dropped"]),
            )
        self._notices.add(resume_optimizer(self._optimizer, state, kind=self.config.optimizer))
        if state.get("loss_scale"):
            self._scaler.load_state_dict(state["loss_scale"])
        self._questions.load(state["questions"], same_season=same_season)
        mix = state["mix"].get(self.config.mix)
        if same_season and mix:
            self._mix.load(mix)
        if same_season:
            # Older checkpoints lack these keys.
            sampling = state.get("external_sampling", {}).get(self.config.external_sampling, {})
            self._strategy.load(sampling)
            self._sharing.load(state.get("sharing", {}).get(self.config.sharing, {}))
        self._checker.remember(state["seen"])
        self._begin_no_roomier(state.get("rooms"))

    def _begin_no_roomier(self, saved: dict[str, Any] | None) -> None:
        """Go on with no larger batches than the run that was saved: their sizes decide roundings.

        Older checkpoints do not tell. With another `micro_batch_tokens` memory is estimated anew.
        """
        if saved is None or saved["micro_batch_tokens"] != self.config.micro_batch_tokens:
            return
        self.policy.room.resume(saved["update"])
        self.policy.sampling_room.resume(saved["sampling"])

    def _publish(self, rollouts: Sequence[LocalRollout]) -> None:
        if self.config.shared_rollouts is not None:
            rollouts = self._select_shared(rollouts, wanted=self.config.shared_rollouts)
        informative = self._shareable([each for each in rollouts if each.teaches_all])
        others = self._shareable([each for each in rollouts if not each.teaches_all])
        self._exchange.publish(
            [*informative, *others], informative=[rollout.id for rollout in informative]
        )

    def _select_shared(
        self, rollouts: Sequence[LocalRollout], *, wanted: int
    ) -> list[LocalRollout]:
        """Return the subset that is shared (SelectSubset in Algorithm 1)."""
        drawn = draw(
            [rollout.group for rollout in rollouts],
            strategy=self._sharing,
            wanted=wanted,
            chance=random.Random(self._seed("share")),
        )
        return [rollout for rollout in rollouts if any(rollout.group is group for group in drawn)]

    def _shareable(self, rollouts: Sequence[LocalRollout]) -> list[Rollout]:
        return shareable_rollouts(
            rollouts,
            policy=self.policy,
            season=self.season,
            node=self._node,
            step=self.steps_done,
            with_logprobs=self.config.share_logprobs,
        )

    def _take_external(self, places: Places, watch: Stopwatch) -> CheckedExternals:
        """Ask for candidates for the external places and keep those that can be trained on."""
        offered: Sequence[ExternalRollout] = []
        if self.candidates:
            with watch.measure("swarm"):
                offered = self._exchange.sample(self.candidates)
        with watch.measure("judge"):
            if self.config.external_sampling == "uniform":
                # Offered in random order, declared ones first: the first usable are a uniform draw.
                return self._checker.check(offered, wanted=places.external)
            checked = self._checker.check(offered, wanted=len(offered))
            chance = random.Random(self._seed("external"))
            groups = draw(
                checked.groups, strategy=self._strategy, wanted=places.external, chance=chance
            )
            not_drawn: Counter[DropReason] = Counter(
                {"not_drawn": len(checked.groups) - len(groups)}
            )
            return CheckedExternals(groups, checked.dropped + not_drawn)

    def _begin_together(self) -> None:
        """Give all processes of this node the same weights before the first step."""
        if not self._team_began:
            with self._team.carrying_out(Begin(self.config)):
                self._team.align(self.policy, self._optimizer, self._scaler)
            self._team_began = True

    def _update(self, training_set: TrainingSet, watch: Stopwatch) -> UpdateReport:
        order = Update(training_set.groups, self._plan.max_completion_length)
        with self._team.carrying_out(order):
            return update_policy(
                order.groups,
                policy=self.policy,
                optimizer=self._optimizer,
                scaler=self._scaler,
                config=self.config,
                max_completion_length=order.max_completion_length,
                watch=watch,
                team=self._team,
            )

    def _count(self, training_set: TrainingSet, external: CheckedExternals) -> None:
        self.steps_done += 1
        self.totals.local_used += training_set.local
        self.totals.external_used += training_set.external
        self.totals.external_dropped.update(external.dropped)

    def _seed(self, purpose: str) -> int:
        """Return a seed that only this node has, and only in this step, for one purpose."""
        content = self._key + f":{purpose}:{self.steps_done}".encode()
        return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1
