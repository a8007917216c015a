"""Our trainer as run by `make bench-node`, which compares it with trl's."""

from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

from bench.node.pace import Turn, await_start, peak_memory
from bench.node.sizes import Size
from bench.node.work import KEY, LenientVerifier, bench_season
from node_client.learning.timing import clock_of
from node_client.learning.trainer import Trainer
from node_client.model.policy import Policy
from node_client.runtime.alone import NoExchange
from node_client.settings.train_config import TrainConfig
from swarm_tasks.verifier import Verifier


def run_ours(connection: Connection, size: Size, model: Path, device: str) -> None:
    """In the trainer's process: load our trainer, and make a turn for each start message."""
    with LenientVerifier() as verifier:
        trainer = make_trainer(
            size,
            policy=Policy.load(str(model), device=device),
            verifier=verifier,
            config=bench_config(size),
        )
        connection.send("ready")
        while await_start(connection):
            connection.send(make_turn(trainer, size))


def make_turn(trainer: Trainer, size: Size) -> Turn:
    """Make the steps of one turn, and return their mean times, tokens and the peak memory."""
    device = trainer.policy.device
    clock, parts, tokens = clock_of(device), Counter[str](), 0
    start = clock()
    for _ in range(size.steps_per_turn):
        report = trainer.step()
        parts.update(report.seconds)
        tokens += report.completion_tokens
    seconds = (clock() - start) / size.steps_per_turn
    shares = {part: total / size.steps_per_turn for part, total in parts.items()}
    return Turn(seconds, shares, peak_memory(device), tokens / size.steps_per_turn)


def bench_config(size: Size) -> TrainConfig:
    """Return a node's default settings for training alone, with trl's learning rate.

    The precision is `size.precision`.
    """
    return TrainConfig(arm="isolated", learning_rate=1e-6, precision=size.precision)


def make_trainer(size: Size, *, policy: Policy, verifier: Verifier, config: TrainConfig) -> Trainer:
    """Return a trainer that shares no rollouts and trains on `size.prompts` questions per step."""
    return Trainer(
        policy=policy,
        verifier=verifier,
        season=bench_season(size),
        config=config,
        exchange=NoExchange(),
        node="bench",
        key=KEY,
    )
