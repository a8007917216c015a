"""Our trainer's side of `make bench-node`."""

import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

from bench.node_pace import Turn, await_go, peak_memory
from bench.node_sizes import Size
from bench.node_work import KEY, LenientVerifier, bench_season
from node_client.learning.trainer import Trainer
from node_client.model.policy import Policy
from node_client.runtime.alone import NoExchange
from node_client.settings.train_config import TrainConfig
from swarm_tasks.verifier import Verifier


def run_ours(connection: Connection, size: Size, model: Path) -> None:
    """Make our trainer's steps, some for each go."""
    with LenientVerifier() as verifier:
        trainer = make_trainer(
            size,
            policy=Policy.load(str(model), device="cpu"),
            verifier=verifier,
            config=TrainConfig(arm="isolated", learning_rate=1e-6, precision=size.precision),
        )
        connection.send("ready")
        while await_go(connection):
            parts: Counter[str] = Counter()
            start = time.perf_counter()
            for _ in range(size.steps_per_turn):
                parts.update(trainer.step().seconds)
            seconds = (time.perf_counter() - start) / size.steps_per_turn
            shares = {part: total / size.steps_per_turn for part, total in parts.items()}
            connection.send(Turn(seconds, shares, peak_memory()))


def make_trainer(size: Size, *, policy: Policy, verifier: Verifier, config: TrainConfig) -> Trainer:
    """Return a trainer that trains alone, on a step of the size's prompts."""
    return Trainer(
        policy=policy,
        verifier=verifier,
        season=bench_season(size),
        config=config,
        exchange=NoExchange(),
        node="bench",
        key=KEY,
    )
