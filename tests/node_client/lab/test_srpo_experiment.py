"""What SRPO's claims need of the lab: stages that end, separate patterns, and an experiment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from node_client.lab.bases import find_base
from node_client.lab.config import Experiment, parse_experiment, read_experiment
from node_client.lab.swarm import LabSwarm
from node_client.learning.questions.subjects import MATHEMATICS
from node_client.model.demo.make_model import THINKER_TASKS
from node_client.model.policy import Policy
from node_client.model.sampling import Generated
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import DrawnTask, StreamPosition, Verifier
from tests.node_client.fakes import SUMS, BorrowingVerifier

SRPO = Path(__file__).parents[3] / "docs" / "lab" / "experiments" / "srpo.toml"


class RecordingVerifier(BorrowingVerifier):
    """Records the datasets of the questions that nodes train on."""

    def __init__(self, lender: Verifier) -> None:
        super().__init__(lender)
        self.requested: set[str] = set()

    def draw_many(
        self, positions: Sequence[StreamPosition], *, key: bytes, part: Part, seed: int
    ) -> list[DrawnTask]:
        self.requested.update(place.dataset for place in positions)
        return super().draw_many(positions, key=key, part=part, seed=seed)


def experiment_with(train: dict[str, Any]) -> Experiment:
    tasks = [
        {"dataset": "chain_sum", "config": SUMS, "weight": 1.0},
        {"dataset": "spell_backward", "config": {}, "weight": 1.0},
    ]
    content = {
        "name": "stages",
        "question": "?",
        "phase": "exploratory",
        "season": {"tasks": tasks, "completions": 2, "max_new_tokens": 2},
        "seeds": [1],
        "rounds": 4,
        "nodes": 2,
        "eval_tasks": 0,
        "train": train,
        "arms": [{"name": "8/0", "train": {"mix": "8/0"}}],
        "baseline": "8/0",
    }
    return parse_experiment(content, place="here")


def swarm_of(experiment: Experiment, verifier: Verifier) -> LabSwarm:
    return LabSwarm(experiment, experiment.arms[0], seed=1, verifier=verifier)


@pytest.mark.slow
def test_stage_switched_by_judge_rounds_ends_with_the_labs_rounds(verifier: Verifier) -> None:
    recording = RecordingVerifier(verifier)
    train = {"curriculum": "staged", "stage_switch": "round", "stage_rounds": 1}
    swarm = swarm_of(experiment_with(train), recording)
    swarm.run_round()
    swarm.run_round()
    assert recording.requested == {"chain_sum"}
    swarm.run_round()
    assert recording.requested == {"chain_sum", "spell_backward"}


@pytest.mark.slow
def test_round_records_each_pattern_of_each_node(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reflect(
        policy: Policy, questions: Sequence[str], *, completions: int, **sampling: Any
    ) -> list[list[Generated]]:
        """Hesitate in one of two completions, and recheck in both."""
        texts = ["check again", "wait, let me verify"]
        return [[_generated(policy, text) for text in texts] for _ in questions]

    monkeypatch.setattr(Policy, "generate", reflect)
    record = swarm_of(experiment_with({}), verifier).run_round()
    assert record.recheck == [1.0, 1.0]
    assert record.hesitation == [0.5, 0.5]
    assert record.exploration == [0.0, 0.0]
    assert record.reflection == [1.0, 1.0]


def _generated(policy: Policy, text: str) -> Generated:
    ids = policy.completion_ids(text, "stop")
    assert ids is not None
    return Generated(text=text, finish_reason="stop", token_ids=ids, logprobs=[-1.0] * len(ids))


def test_experiment_uses_mathematics_code_and_the_thinking_base() -> None:
    experiment = read_experiment(SRPO)
    datasets = {task.dataset for task in experiment.season.tasks}
    assert datasets == {task.dataset for task in THINKER_TASKS}
    assert datasets & MATHEMATICS.keys()
    assert datasets - MATHEMATICS.keys()
    assert find_base(experiment.base) != experiment.base
