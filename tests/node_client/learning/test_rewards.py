"""The reward of a completion is the node's own choice."""

from collections.abc import Sequence

import pytest

from node_client.errors import MemoryExhaustedError
from node_client.learning.rewards import NO, YES, Reward, confidences, make_reward
from node_client.learning.rewards import REWARDS as BY_NAME
from node_client.model.policy import Policy
from node_client.settings.ranges import REWARDS
from node_client.settings.train_config import TrainConfig
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import PoolInMemory, external_sum, make_trainer, toy_policy
from tests.node_client.learning.cramped_member import cramp

TEXTS = ["<answer>4</answer>", "So <answer>5</answer>\n", "<answer>5", "4"]
VERDICTS = [Verdict(1.0, "right"), Verdict(0.5, "partial"), Verdict(0.0, "no_answer")]


class Length(Reward):
    """Half of the full reward for each character, up to two."""

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        return [min(len(text), 2) / 2 for text in texts]


def rewards_by(name: str, texts: list[str], verdicts: list[Verdict]) -> list[float]:
    return make_reward(name).rewards("2 + 2 =", texts, verdicts)


def test_setting_names_every_reward() -> None:
    assert set(BY_NAME) == set(REWARDS)


def test_binary_rewards_only_solved_answers() -> None:
    assert rewards_by("binary", TEXTS[:3], VERDICTS) == [1, 0, 0]


def test_partial_rewards_the_credit_of_the_verifier() -> None:
    assert rewards_by("partial", TEXTS[:3], VERDICTS) == [1, 0.5, 0]


def test_format_rewards_an_answer_in_tags_with_a_tenth() -> None:
    wrong = [Verdict(0.0, "wrong")] * 4
    assert rewards_by("format", TEXTS, [VERDICTS[0], *wrong[1:]]) == [1, 0.1, 0, 0]
    twice = "<answer>1</answer> <answer>2</answer>"
    assert rewards_by("format", [twice, "<answer></answer>"], wrong[:2]) == [0, 0]


def test_generative_rewards_the_confidence_of_the_policy() -> None:
    policy, reward = toy_policy(), make_reward("generative")
    reward.begin(policy, system_prompt=SYSTEM_PROMPT)
    right, unwritable = "<answer>4</answer>", "<eos>"
    ids = policy.completion_ids(right, "length")
    assert ids is not None
    [sure] = confidences(policy, policy.prompt_ids("2 + 2 ="), [ids])
    wrong = [Verdict(0.0, "wrong")] * 2
    assert reward.rewards("2 + 2 =", [right, unwritable], wrong) == [pytest.approx(sure), 0]
    assert 0 < sure < 1


def test_confidences_that_do_not_fit_into_memory_together_are_computed_in_parts() -> None:
    policy = toy_policy()
    prompt, completions = policy.prompt_ids("2 + 2 ="), [[5] * length for length in (1, 2, 3)]
    expected = confidences(policy, prompt, completions)
    cramp(policy, tokens=_tokens_of(policy, YES) + _tokens_of(policy, NO))
    assert confidences(policy, prompt, completions) == pytest.approx(expected, abs=1e-5)


def test_lack_of_memory_for_a_single_confidence_is_explained() -> None:
    policy = toy_policy()
    cramp(policy, tokens=0)
    with pytest.raises(MemoryExhaustedError, match="single completion"):
        confidences(policy, policy.prompt_ids("2 + 2 ="), [[5], [6]])


def _tokens_of(policy: Policy, word: str) -> int:
    return len(policy.completion_ids(word, "length") or [])


def test_custom_reward_decides_which_own_and_external_rollouts_are_informative(
    verifier: Verifier,
) -> None:
    name = f"{__name__}:Length"
    offered = [external_sum(verifier, ["1", "12", "123", "1234"], counter=n) for n in range(2)]
    pool = PoolInMemory(offered)
    trainer = make_trainer(verifier, config=TrainConfig(reward=name), exchange=pool)
    report = trainer.step()
    assert report.external_used == 2
    assert report.training_reward > 0.5
    plain = make_trainer(verifier, exchange=PoolInMemory(offered)).step()
    assert plain.external_dropped == {"not_informative": 2}
