"""Arms differ only in what their settings state."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from node_client.lab.caching import CachingVerifier
from node_client.lab.config import Experiment
from node_client.lab.pool import PooledRollout
from node_client.lab.records import RoundRecord
from node_client.lab.swarm import LabSwarm
from tests.node_client.lab.experiments import content_of, experiment

pytestmark = pytest.mark.slow

HONEST = {"nodes": 2, "train": {"mix": "2/2"}}


@pytest.fixture(scope="module")
def remembering() -> Iterator[CachingVerifier]:
    with CachingVerifier() as verifier:
        yield verifier


def swarm_of(
    verifier: CachingVerifier, *, arm: str, seed: int = 1, planned: Experiment | None = None
) -> LabSwarm:
    planned = planned or experiment()
    (chosen,) = (each for each in planned.arms if each.name == arm)
    return LabSwarm(planned, chosen, seed=seed, verifier=verifier)


def arms_of(**arms: Any) -> Experiment:
    planned = [{"name": name, **arm} for name, arm in arms.items()]
    return experiment(arms=planned, baseline=planned[0]["name"])


def published(swarm: LabSwarm) -> list[PooledRollout]:
    """Return what the nodes published in the latest round, sorted by node."""
    number, pooled = msgspec.json.decode(swarm._pool.state(), type=tuple[int, list[PooledRollout]])
    return sorted((each for each in pooled if each.round == number), key=lambda each: each.node)


def questions(swarm: LabSwarm, *, rounds: int) -> list[tuple[int, str, list[int]]]:
    """Return the published questions of each node in each of `rounds` rounds."""
    asked = []
    for number in range(rounds):
        swarm.run_round()
        shared = published(swarm)
        for node in sorted({each.node for each in shared}):
            own = sorted(each.rollout.task.index for each in shared if each.node == node)
            asked.append((number, node, own))
    return asked


def test_arms_of_a_seed_share_the_base_and_the_questions_of_each_node(
    remembering: CachingVerifier,
) -> None:
    alone, mixed = (swarm_of(remembering, arm=arm) for arm in ("4/0", "2/2"))
    assert alone.base_scores() == mixed.base_scores()
    alone.run_round(), mixed.run_round()
    # Equal weights also give equal answers.
    assert published(alone) == published(mixed)
    asked = questions(alone, rounds=2)
    assert asked == questions(mixed, rounds=2)
    assert len({tuple(indices) for *_, indices in asked}) == 4  # two nodes, two rounds


def test_different_seeds_ask_different_questions(remembering: CachingVerifier) -> None:
    first, second = (swarm_of(remembering, arm="4/0", seed=seed) for seed in (1, 2))
    assert questions(first, rounds=1) != questions(second, rounds=1)


def test_isolated_nodes_receive_nothing_and_the_others_what_they_request(
    remembering: CachingVerifier,
) -> None:
    rounds = {}
    for arm in ("4/0", "2/2"):
        swarm = swarm_of(remembering, arm=arm)
        rounds[arm] = [swarm.run_round() for _ in range(3)]
    assert all(record.received == [0, 0] == record.external for record in rounds["4/0"])
    assert all(min(record.sent) > 0 for record in rounds["4/0"])
    assert all(max(record.received) > 0 for record in rounds["2/2"][1:])
    assert all(record.generated == [4, 4] for arm in rounds.values() for record in arm)
    # In the first round only the second node receives something, later the first one does as well.
    assert [place for place, got in enumerate(rounds["2/2"][0].received) if got] == [0]


def test_self_replay_delivers_a_nodes_own_earlier_rollouts(
    remembering: CachingVerifier,
) -> None:
    arm = {"train": {"mix": "2/2", "keep_uninformative": True}, "source": "self", "pool_rounds": 2}
    swarm = swarm_of(remembering, arm="replay", planned=arms_of(replay=arm))
    assert [swarm.run_round().external for _ in range(2)] == [[0, 0], [2, 2]]


def test_attackers_are_in_no_figure_and_their_planted_text_is_measured(
    remembering: CachingVerifier,
) -> None:
    planned = arms_of(
        clean={"groups": [HONEST]},
        hostile={"groups": [HONEST, {"nodes": 2, "attack": "poison"}]},
    )
    clean, hostile = (
        swarm_of(remembering, arm=name, planned=planned) for name in ("clean", "hostile")
    )
    assert clean.base_scores() == hostile.base_scores()
    for number in range(1, 4):
        records: list[RoundRecord] = [clean.run_round(), hostile.run_round()]
        assert [len(record.reward) for record in records] == [2, 2]
        assert [len(record.poisoned) for record in records] == [0, 2]
        assert records[1].round == number
    # Two honest nodes alone could not send so many bytes.
    assert sum(records[1].received) > sum(records[0].received)


def test_held_out_questions_are_evaluated_when_they_are_due(remembering: CachingVerifier) -> None:
    swarm = swarm_of(remembering, arm="4/0", planned=experiment(eval_every=2, eval_tasks=4))
    asked = [bool(swarm.run_round().held_out) for _ in range(4)]
    assert asked == [False, True, False, True]
    silent = swarm_of(remembering, arm="4/0", planned=experiment(eval_tasks=0))
    assert silent.base_scores().held_out == []
    assert silent.run_round().held_out == []


def test_swarm_can_consist_of_different_bases(remembering: CachingVerifier) -> None:
    groups = [{"nodes": 1}, {"nodes": 1, "base": "small"}]
    planned = experiment(**content_of(arms=[{"name": "mixed", "groups": groups}], baseline="mixed"))
    swarm = swarm_of(remembering, arm="mixed", planned=planned)
    swarm.run_round()
    assert {each.node: each.rollout.model for each in published(swarm)} == {
        "node-00": "tiny",
        "node-01": "small",
    }
