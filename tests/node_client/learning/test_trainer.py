"""One step of the trainer: what it reports, publishes, mixes and learns."""

from typing import ClassVar

import pytest
from msgspec.structs import replace

from node_client.errors import SettingsError
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig, learning_rate_for, plan_step
from swarm_protocol.messages import Rollout, SeasonInfo, TaskChoice
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import (
    PoolInMemory,
    external_sum,
    make_trainer,
    toy_policy,
    toy_season,
    writing_policy,
)
from tests.node_client.learning.scripted import answer_right, sum_of

MIXED = ("<answer>{sum}</answer>", "<answer>99</answer>", "no idea", "{sum}")


class RecordingPolicy(Policy):
    """Records the system prompt of every question."""

    system_prompts: ClassVar[list[str]] = []

    def prompt_ids(self, question: str, *, system_prompt: str = SYSTEM_PROMPT) -> list[int]:
        self.system_prompts.append(system_prompt)
        return super().prompt_ids(question, system_prompt=system_prompt)


def texts_of(rollout: Rollout) -> list[str]:
    return [completion.text for completion in rollout.completions]


def offer_sums(verifier: Verifier, count: int) -> PoolInMemory:
    return PoolInMemory([external_sum(verifier, MIXED, counter=n) for n in range(count)])


def test_isolated_arm_trains_on_as_many_rollouts_of_its_own(verifier: Verifier) -> None:
    trainer = make_trainer(
        verifier, config=TrainConfig(arm="isolated"), exchange=offer_sums(verifier, 8)
    )
    report = trainer.step()
    assert (report.local_used, report.external_used) == (4, 0)


def test_offline_node_trains_on_its_own_rollouts(verifier: Verifier) -> None:
    report = make_trainer(verifier).step()
    assert (report.local_used, report.external_used) == (4, 0)


def test_own_and_external_questions_use_the_seasons_system_prompt(
    verifier: Verifier,
) -> None:
    policy = toy_policy()
    policy.__class__ = RecordingPolicy
    season = replace(toy_season(), system_prompt="Speak in <answer>tags</answer>.")
    exchange = offer_sums(verifier, 8)
    report = make_trainer(verifier, policy=policy, season=season, exchange=exchange).step()
    assert report.external_used == 2
    assert set(RecordingPolicy.system_prompts) == {season.system_prompt}
    # Each of four own questions was requested and trained on; two external ones were trained on.
    assert len(RecordingPolicy.system_prompts) == 10


def test_all_own_rollouts_are_published(verifier: Verifier) -> None:
    pool = PoolInMemory()
    trainer = make_trainer(verifier, policy=writing_policy(), exchange=pool)
    trainer.step()
    trainer.step()
    assert len(pool.published) == 8
    assert [rollout.step for rollout in pool.published] == [0] * 4 + [1] * 4
    assert len({rollout.id for rollout in pool.published}) == 8


def test_informative_published_rollouts_are_declared(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, pool = toy_policy(), PoolInMemory()
    # All, half or none of the completions are right.
    answer_right(policy, monkeypatch, right=lambda question: 2 * (sum_of(question) % 3))
    trainer = make_trainer(verifier, policy=policy, exchange=pool)
    for _ in range(3):
        trainer.step()
    half_right = {
        rollout.id
        for rollout in pool.published
        if len({verdict.solved for verdict in verifier.score(rollout.task, texts_of(rollout))}) > 1
    }
    assert 0 < len(half_right) < len(pool.published) == 12
    assert set(pool.declared) == half_right


def test_only_the_chosen_number_of_rollouts_preferred_by_the_strategy_is_published(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, pool = toy_policy(), PoolInMemory()
    answer_right(policy, monkeypatch, right=lambda question: sum_of(question) % 2)
    config = TrainConfig(shared_rollouts=1, sharing="reward")
    trainer = make_trainer(verifier, policy=policy, config=config, exchange=pool)
    reports = [trainer.step() for _ in range(4)]
    assert len(pool.published) == 4
    # One with a right completion, if the step had any.
    assert len(pool.declared) == sum(report.informative_share > 0 for report in reports) > 0


def test_node_restricted_to_some_datasets_learns_from_external_rollouts_of_all(
    verifier: Verifier,
) -> None:
    season = replace(
        toy_season(),
        tasks=[*toy_season().tasks, TaskChoice("spell_backward", {}, 1.0)],
    )
    pool = offer_sums(verifier, 8)
    config = TrainConfig(datasets=("spell_backward",))
    trainer = make_trainer(
        verifier, policy=writing_policy(), season=season, config=config, exchange=pool
    )
    report = trainer.step()
    assert set(report.solved) == {"spell_backward"}
    assert {rollout.task.dataset for rollout in pool.published} == {"spell_backward"}
    assert report.external_used == 2


def test_node_asks_all_datasets_of_a_season_that_has_none_of_its_own(verifier: Verifier) -> None:
    config = TrainConfig(datasets=("spell_backward",))
    assert set(make_trainer(verifier, config=config).step().solved) == {"chain_sum"}


def test_external_rollouts_count_in_the_reward_of_the_training_set_only(
    verifier: Verifier,
) -> None:
    # The untrained toy never answers in tags; one in four external completions is right.
    report = make_trainer(verifier, exchange=offer_sums(verifier, 8)).step()
    assert (report.local_used, report.external_used) == (2, 2)
    assert (report.training_reward, report.informative_share) == (0, 0)
    assert report.training_set_reward == pytest.approx(0.25 / 2)
    assert report.training_set_informative == 0.5


def test_dropped_rollouts_are_counted_in_report_and_totals(verifier: Verifier) -> None:
    pool = PoolInMemory([external_sum(verifier, ["4"] * 4, counter=n) for n in range(3)])
    trainer = make_trainer(verifier, exchange=pool)
    assert trainer.step().external_dropped == {"not_informative": 3}
    assert trainer.step().external_dropped == {"duplicate": 3}
    assert trainer.totals.external_dropped == {"not_informative": 3, "duplicate": 3}
    assert trainer.totals.local_used == 8


def test_report_contains_the_shares_of_reflection(verifier: Verifier) -> None:
    report = make_trainer(verifier).step()
    assert set(report.reflection) == {"recheck", "hesitation", "exploration"}


def test_report_contains_the_time_of_every_part_of_the_step(verifier: Verifier) -> None:
    report = make_trainer(verifier, exchange=offer_sums(verifier, 8)).step()
    parts = {"generate", "score", "swarm", "judge", "forward", "backward", "optimizer"}
    assert set(report.seconds) == parts


def test_lack_of_memory_between_steps_is_reported_with_the_next_step(
    verifier: Verifier,
) -> None:
    policy = toy_policy()
    trainer = make_trainer(verifier, policy=policy)
    assert trainer.step().notice is None
    policy.sampling_budget.lower(policy.sampling_budget.share / 2)  # as a judge round does
    notice = trainer.step().notice or ""
    assert "Memory ran out" in notice
    # That setting affects only updates.
    assert "micro_batch_tokens" not in notice
    assert trainer.step().notice is None


def test_truncated_completions_can_be_excluded_from_the_loss(verifier: Verifier) -> None:
    config = TrainConfig(mask_truncated_completions=True, max_completion_length=1)
    report = make_trainer(verifier, config=config).step()
    assert report.clipped_ratio > 0
    assert report.loss == 0


def test_policy_learns_from_others_what_it_could_not_find(verifier: Verifier) -> None:
    pool = PoolInMemory()
    trainer = make_trainer(
        verifier,
        season=toy_season(local=0, external=4),
        config=TrainConfig(learning_rate=1e-2, external_candidates=4),
        exchange=pool,
    )
    right = ["<answer>{sum}</answer>", "5", "x", ""]
    likelihoods = []
    for step in range(8):
        pool.offered = [external_sum(verifier, right, counter=4 * step + n) for n in range(4)]
        trainer.step()
        prompt = trainer.policy.prompt_ids("2 + 2 =")
        tag = trainer.policy.completion_ids("<answer>", "length")
        assert tag is not None
        likelihoods.append(trainer.policy.logprobs([prompt], [tag])[0].exp().item())
    assert likelihoods[-1] > 4 * likelihoods[0]


# A season's batch is the number of rollouts that a node generates, in both arms.
ROOMY = replace(toy_season(local=8, external=24), batch=8)


@pytest.mark.parametrize(
    ("season", "config", "local", "external", "batch"),
    [
        (toy_season(), TrainConfig(), 2, 2, 4),
        (toy_season(), TrainConfig(mix="3/5"), 3, 5, 8),
        (toy_season(), TrainConfig(mix="8/0"), 8, 0, 8),
        (toy_season(), TrainConfig(mix="3/5", arm="isolated"), 8, 0, 8),
        (toy_season(), TrainConfig(local=6), 6, 2, 8),
        (ROOMY, TrainConfig(), 8, 24, 8),
        (ROOMY, TrainConfig(arm="isolated"), 8, 0, 8),
        (ROOMY, TrainConfig(batch=16), 8, 24, 16),
        (ROOMY, TrainConfig(mix="12/4"), 12, 4, 12),
    ],
)
def test_sizes_of_a_step_are_those_of_the_season_unless_they_are_set(
    season: SeasonInfo, config: TrainConfig, local: int, external: int, batch: int
) -> None:
    plan = plan_step(config, season)
    assert (plan.local, plan.external, plan.batch) == (local, external, batch)
    assert (plan.completions, plan.max_completion_length) == (4, 8)


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        (TrainConfig(local=0, external=0), "is empty"),
        (TrainConfig(local=-1), "is empty"),
        (TrainConfig(local=4, batch=2), "fewer than"),
        (TrainConfig(mix="0/0"), "is empty"),
        (TrainConfig(mix="4/4", local=2), "Leave one|so do --local"),
        (TrainConfig(num_generations=1), "cannot be compared"),
    ],
)
def test_invalid_settings_are_explained(config: TrainConfig, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        plan_step(config, toy_season())


def test_pretrained_models_have_a_small_default_learning_rate() -> None:
    assert learning_rate_for(TrainConfig(), parameters=500_000_000) == 1e-6
    assert learning_rate_for(TrainConfig(), parameters=200_000) == 1e-4
    assert learning_rate_for(TrainConfig(learning_rate=0.5), parameters=1) == 0.5
