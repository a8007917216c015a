"""A small experiment, whose runs take a second or two."""

from typing import Any

from node_client.lab.config import Experiment, parse_experiment
from tests.node_client.fakes import SUMS

PLACE = "experiment.toml"


def content_of(**changes: Any) -> dict[str, Any]:
    """Return the parsed file of an experiment with two nodes, with these keys replaced."""
    content = {
        "name": "small",
        "question": "Does it run?",
        "phase": "exploratory",
        "nodes": 2,
        "rounds": 5,
        "seeds": [1],
        "baseline": "4/0",
        "eval_tasks": 4,
        "eval_every": 2,
        "season": {
            "tasks": [{"dataset": "chain_sum", "config": SUMS, "weight": 1.0}],
            "completions": 4,
            "max_new_tokens": 12,
        },
        "arms": [
            {"name": "4/0", "train": {"mix": "4/0", "arm": "isolated"}},
            {
                "name": "2/2",
                "train": {"mix": "2/2", "importance": "sender", "external_sampling": "novel"},
            },
        ],
    }
    return content | changes


def experiment(**changes: Any) -> Experiment:
    return parse_experiment(content_of(**changes), place=PLACE)
