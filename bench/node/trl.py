"""trl's side of `make bench-node`: its GRPOTrainer, with our trainer's questions and rewards."""

from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedTokenizerBase,
    TrainerCallback,
)
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from bench.node.pace import Turn, await_start, peak_memory
from bench.node.sizes import COMPLETIONS, Size
from bench.node.work import LenientVerifier, draw_tasks
from node_client.learning.timing import clock_of
from node_client.model.prompts import write_prompt
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import DrawnTask


def run_trl(connection: Connection, size: Size, model: Path, device: str) -> None:
    """In the trainer's process: load trl's trainer, and take a turn at each start message."""
    config = _configure(size, model, device)
    tokenizer = AutoTokenizer.from_pretrained(model)
    with LenientVerifier() as verifier:
        tasks = draw_tasks(size, verifier, steps=config.max_steps)
        trainer = GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
            processing_class=tokenizer,
            reward_funcs=_rewarder(verifier, tasks),
            args=config,
            train_dataset=_ask(tasks, tokenizer),
            callbacks=[Paced(connection, size, device)],
        )
        connection.send("ready")
        trainer.train()


class Paced(TrainerCallback):
    """Callback with which trl's trainer takes turns with ours.

    A turn is `steps_per_turn` steps. The callback waits for a start message before each turn, and
    sends a Turn after it.
    """

    def __init__(self, connection: Connection, size: Size, device: str) -> None:
        self._connection = connection
        self._size = size
        self._device = torch.device(device)
        self._clock = clock_of(self._device)
        self._done = 0
        self._start = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Before a turn's first step, wait for the start message; exit if no turn follows."""
        if self._done % self._size.steps_per_turn == 0:
            if not await_start(self._connection):
                raise SystemExit  # the comparison is over
            self._start = self._clock()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """After a turn's last step, send the mean seconds per step and the peak memory."""
        self._done += 1
        if self._done % self._size.steps_per_turn == 0:
            seconds = (self._clock() - self._start) / self._size.steps_per_turn
            self._connection.send(Turn(seconds, {}, peak_memory(self._device)))


def _configure(size: Size, model: Path, device: str) -> GRPOConfig:
    """Return trl's default settings, except for those that make the work equal or write files."""
    return GRPOConfig(
        output_dir=str(model / "trl"),
        per_device_train_batch_size=size.prompts * COMPLETIONS,
        num_generations=COMPLETIONS,
        max_completion_length=size.completion_tokens,
        learning_rate=1e-6,
        optim="adamw_torch_fused",
        gradient_checkpointing=False,
        bf16=size.precision == "bf16",
        max_steps=size.max_turns * size.steps_per_turn,
        shuffle_dataset=False,
        use_cpu=device == "cpu",
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )


def _ask(tasks: list[DrawnTask], tokenizer: PreTrainedTokenizerBase) -> Dataset:
    """Return a dataset of the prompts that our trainer uses, each with its index in `tasks`."""
    prompts = [
        write_prompt(tokenizer, task.question, system_prompt=SYSTEM_PROMPT) for task in tasks
    ]
    return Dataset.from_dict({"prompt": prompts, "task": list(range(len(prompts)))})


def _rewarder(
    verifier: LenientVerifier, tasks: list[DrawnTask]
) -> Callable[..., list[float | None]]:
    def reward(completions: list[str], task: list[int], **_: Any) -> list[float | None]:
        verdicts: list[Verdict] = []
        for first in range(0, len(completions), COMPLETIONS):
            answers = completions[first : first + COMPLETIONS]
            verdicts += verifier.score(tasks[task[first]].spec, answers)
        return [verdict.score for verdict in verdicts]

    return reward
