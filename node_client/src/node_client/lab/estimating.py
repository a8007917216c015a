"""Estimates time and memory of an experiment on this machine, from a trial of one node.

Two rounds are measured after a warm-up round, which allocates and compiles. A model with random
weights (`write_half_billion`) can be used instead of the real one. It does not learn, but needs the
same memory. Its time is that of the worst case, because every completion reaches the length limit.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import psutil
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from node_client.lab.caching import CachingVerifier
from node_client.lab.config import Experiment, plan_nodes
from node_client.lab.swarm import LabSwarm
from node_client.model.demo.tokenizer import build_tokenizer

TRIAL_ROUNDS = 2
# Qwen2.5-0.5B's shape (its config.json on the Hugging Face Hub), with fewer positions.
HALF_BILLION: dict[str, Any] = {
    "vocab_size": 151_936,
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
}


@dataclass(frozen=True)
class RunCost:
    """The measured cost of one node, and the size of the whole experiment.

    Attackers do not train and are not counted. `seconds` and `tokens` are the mean time and the
    mean number of generated tokens of a training step; an evaluation that is due in a measured
    round counts in `seconds`. `bytes_per_node` is memory. `nodes` is the number of nodes of the
    largest arm. `node_steps` is the number of training steps of all nodes together, over all arms
    and seeds.
    """

    seconds: float
    tokens: float
    bytes_per_node: int
    nodes: int
    node_steps: int

    @property
    def hours(self) -> float:
        """Hours of one core or GPU for all training steps of the experiment."""
        return self.seconds * self.node_steps / 3600


def estimate(experiment: Experiment) -> RunCost:
    """Return the cost of an experiment, measured in a few rounds with one node of the first arm.

    The node has the settings of the arm, not those of a group of the arm.
    """
    arm = experiment.arms[0]
    trial = msgspec.structs.replace(arm, nodes=1, groups=[])
    before = _memory(experiment.device)
    with CachingVerifier() as verifier:
        swarm = LabSwarm(experiment, trial, seed=experiment.seeds[0], verifier=verifier)
        swarm.run_round()
        start = time.perf_counter()
        records = [swarm.run_round() for _ in range(TRIAL_ROUNDS)]
        seconds = (time.perf_counter() - start) / TRIAL_ROUNDS
    sizes = [
        sum(plan.attack == "none" for plan in plan_nodes(experiment, arm))
        for arm in experiment.arms
    ]
    return RunCost(
        seconds=seconds,
        tokens=sum(record.tokens[0] for record in records) / TRIAL_ROUNDS,
        bytes_per_node=_memory(experiment.device) - before,
        nodes=max(sizes),
        node_steps=experiment.rounds * len(experiment.seeds) * sum(sizes),
    )


def write_half_billion(folder: Path) -> Path:
    """Write a model of Qwen2.5-0.5B's shape, with random weights, to `folder`; return `folder`.

    Its tokenizer is that of the demo models.
    """
    tokenizer = build_tokenizer()
    ends = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(**HALF_BILLION, **ends))
    model.bfloat16().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _memory(device: str) -> int:
    if device != "cpu" and torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    return psutil.Process().memory_info().rss
