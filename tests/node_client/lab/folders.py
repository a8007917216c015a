"""Folders of experiments with runs whose numbers are chosen by a test."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from node_client.lab.config import Experiment, ExperimentArm, evaluated_rounds, read_experiment
from node_client.lab.records import RoundRecord, encode_line, read_run
from node_client.lab.runs import Run, header_of

HEAD = """name = "sparse"
question = "Does sharing help?"
phase = "{phase}"
rounds = {rounds}
seeds = {seeds}
baseline = "8/0"
nodes = 2
eval_tasks = {eval_tasks}
eval_every = 5
[season]
[[season.tasks]]
dataset = "chain_sum"
config = {{min_terms = 2, max_terms = 2, min_digits = 2, max_digits = 2}}
weight = 1.0
"""
ALONE = '[[arms]]\nname = "8/0"\ntrain = {mix = "8/0", arm = "isolated"}\n'
MIXED = '[[arms]]\nname = "4/4"\ntrain = {mix = "4/4"}\n'
Level = Callable[[int, int], Sequence[float]]


@dataclass
class LabFolder:
    """An experiment's folder. `arms` is TOML; runs are added one by one."""

    path: Path
    arms: str = ALONE + MIXED
    seeds: Sequence[int] = (1, 2, 3)
    rounds: int = 20
    phase: str = "confirmatory"
    eval_tasks: int = 128
    experiment: Experiment = field(init=False)

    def __post_init__(self) -> None:
        (self.path / "runs").mkdir(parents=True, exist_ok=True)
        head = HEAD.format(
            phase=self.phase,
            rounds=self.rounds,
            seeds=list(self.seeds),
            eval_tasks=self.eval_tasks,
        )
        (self.path / "experiment.toml").write_text(head + self.arms, encoding="utf-8")
        self.experiment = read_experiment(self.path / "experiment.toml")

    def run(self, arm: str, seed: int) -> Run:
        """Return one of the folder's runs."""
        return Run(self.path, self._arm(arm), seed)

    def add(self, arm: str, seed: int, own: Sequence[float], **others: Sequence[float]) -> None:
        """Add a finished run in which all rounds are equal: `own` is each node's reward."""
        self.add_rounds(arm, seed, [own] * self.rounds, **others)

    def add_rounds(
        self, arm: str, seed: int, own: Sequence[Sequence[float]], **others: Sequence[float]
    ) -> None:
        """Add a finished run with each round's own rewards by node."""
        run = self.run(arm, seed)
        lines = [encode_line(header_of(self.experiment, run))]
        evaluated = evaluated_rounds(self.experiment)
        base = [0.0] * len(own[0]) if evaluated else []
        lines.append(encode_line(RoundRecord(round=0, held_out=base)))
        for number, rewards in enumerate(own, start=1):
            tested = list(rewards) if number in evaluated else []
            lines.append(encode_line(_round(number, rewards, tested, others)))
        run.complete_file.write_bytes(b"".join(lines))

    def add_all(self, own: Mapping[str, Sequence[float]]) -> None:
        """Add a run of each arm with each seed; in later seeds all rewards are a little higher."""
        for place, seed in enumerate(self.seeds):
            for arm, rewards in own.items():
                self.add(arm, seed, [reward * (1 + place / 10) for reward in rewards])

    def change(self, arm: str, seed: int, number: int, **changes: object) -> None:
        """Change one line of a run's raw data."""
        path = self.run(arm, seed).complete_file
        header, records = read_run(path)
        records = [
            msgspec.structs.replace(record, **changes) if record.round == number else record
            for record in records
        ]
        path.write_bytes(encode_line(header) + b"".join(map(_encode, records)))

    def write_settings(self, old: str, new: str) -> None:
        """Change experiment.toml, but not the runs."""
        settings = self.path / "experiment.toml"
        text = settings.read_text(encoding="utf-8")
        assert re.search(old, text)
        settings.write_text(re.sub(old, new, text), encoding="utf-8")

    def _arm(self, name: str) -> ExperimentArm:
        return next(arm for arm in self.experiment.arms if arm.name == name)


def _encode(record: RoundRecord) -> bytes:
    return encode_line(record)


def _round(
    number: int,
    rewards: Sequence[float],
    tested: Sequence[float],
    others: Mapping[str, Sequence[float]],
) -> RoundRecord:
    nodes = len(rewards)
    plain = RoundRecord(
        round=number,
        reward=list(rewards),
        informative=[0.25] * nodes,
        set_reward=[min(1.0, 2 * reward) for reward in rewards],
        set_informative=[0.5] * nodes,
        generated=[8] * nodes,
        external=[4] * nodes,
        tokens=[100] * nodes,
        sent=[1000] * nodes,
        received=[3000] * nodes,
        length=[3.5] * nodes,
        clip=[0.0] * nodes,
        held_out=list(tested),
        reflection=[0.0] * nodes,
    )
    return msgspec.structs.replace(plain, **others)
