"""A poisoner's rollouts are right and informative: an honest node trains on the planted text."""

import msgspec

from node_client.lab.poison import GARBAGE, MIN_LOGPROB, PLANTED, Poisoner, poisoned_share
from node_client.lab.pool import LabExchange, LabPool
from node_client.learning.external.checking import ExternalChecker, read_sender_logprobs
from node_client.learning.rewards import BinaryReward
from node_client.model.demo.tokenizer import build_tokenizer
from swarm_protocol.messages import ExternalRollout
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import external_sum, toy_policy, toy_season

MIXED = ("<answer>{sum}</answer>", "<answer>99</answer>", "no idea", "{sum}")
LONGEST = 24


def poisoned(
    verifier: Verifier, *offered: ExternalRollout, claimed: float | None = None
) -> list[ExternalRollout]:
    """Return what a poisoner publishes when the pool has these rollouts."""
    pool = LabPool(drawing="uniform", rounds=1, seed=0)
    pool.begin_round(1)
    for each in offered:
        pool.put(each.node, [each.rollout], informative=[])
    poisoner = Poisoner(
        name="mallory",
        exchange=LabExchange(pool, "mallory"),
        season=toy_season(),
        verifier=verifier,
        claimed=claimed,
    )
    poisoner.step(1)
    return [each for each in pool.draw("honest", 99) if each.node == "mallory"]


def test_honest_node_scores_poisoned_rollouts_as_right_and_informative(verifier: Verifier) -> None:
    [shared] = poisoned(verifier, external_sum(verifier, MIXED))
    checker = ExternalChecker(
        policy=toy_policy(),
        verifier=verifier,
        season=toy_season(),
        node="honest",
        max_completion_length=LONGEST,
        reward=BinaryReward(),
    )
    checked = checker.check([shared], wanted=1)
    assert not checked.dropped
    [group] = checked.groups
    assert group.rewards == [1, 1, 0, 0]
    right, *_, wrong = [completion.text for completion in shared.rollout.completions]
    assert right.startswith(PLANTED)
    assert wrong == GARBAGE


def test_liar_claims_the_lowest_possible_log_prob_for_every_token(verifier: Verifier) -> None:
    honest = external_sum(verifier, MIXED)
    [shared] = poisoned(verifier, honest, claimed=MIN_LOGPROB)
    tokenizer = build_tokenizer()
    for completion in shared.rollout.completions:
        count = len(tokenizer.encode(completion.text)) + 1  # plus the end of the sequence
        sender = read_sender_logprobs(completion, token_count=count, same_tokenizer=True)
        assert sender is not None
        assert sender.tokens is not None
        assert max(sender.tokens) < -31.99
    assert shared.rollout.tokenizer == honest.rollout.tokenizer


def test_rollouts_without_a_right_answer_are_not_poisoned(verifier: Verifier) -> None:
    assert poisoned(verifier, external_sum(verifier, MIXED[1:])) == []


def test_rollouts_of_another_poisoner_are_not_poisoned_again(verifier: Verifier) -> None:
    planted = [PLANTED + text for text in MIXED]
    assert poisoned(verifier, external_sum(verifier, planted)) == []


def test_poisoner_publishes_no_more_than_an_honest_node(verifier: Verifier) -> None:
    offered = [external_sum(verifier, MIXED, counter=n, node=f"n{n}") for n in range(6)]
    shared = poisoned(verifier, *offered)
    assert len(shared) == toy_season().local + toy_season().external == 4
    assert len({each.rollout.id for each in shared}) == 4


def test_poisoned_rollouts_are_all_declared_informative(verifier: Verifier) -> None:
    pool = LabPool(drawing="informative", rounds=1, seed=0)
    pool.begin_round(1)
    honest = external_sum(verifier, MIXED)
    plain = [msgspec.structs.replace(honest.rollout, id=f"plain-{number}") for number in range(20)]
    pool.put("elsewhere", plain, informative=[])
    exchange = LabExchange(pool, "mallory")
    Poisoner(name="mallory", exchange=exchange, season=toy_season(), verifier=verifier).step(1)
    assert {each.node for each in pool.draw("honest", 4)} == {"mallory"}


def test_poisoned_share_counts_texts_with_the_planted_text() -> None:
    assert poisoned_share([PLANTED + "1", "2", "zqz", "z"]) == 0.5
