"""A published experiment keeps its meaning: the defaults of its file, and the weights it names."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from node_client.lab.config import parse_experiment, plan_nodes
from node_client.model.loading.pretrained import BASE_MODELS, DEMO_BASES
from tests.node_client.fakes import SUMS

PUBLISHED = Path(__file__).with_name("published.json")
# These are specific to an experiment, and in every file.
NAMED = {"name", "question", "phase", "season", "seeds", "rounds", "arms", "baseline"}


def meaning() -> dict[str, Any]:
    """Return what an experiment with only the required fields gets, and the hashes of its bases."""
    written = parse_experiment(
        {
            "name": "least",
            "question": "What is left out?",
            "phase": "exploratory",
            "rounds": 1,
            "seeds": [1],
            "baseline": "4/4",
            "season": {"tasks": [{"dataset": "chain_sum", "config": SUMS, "weight": 1.0}]},
            "arms": [{"name": "4/4"}],
        },
        place="here",
    )
    (plan, *_) = plan_nodes(written, written.arms[0])
    experiment = {
        name: value for name, value in msgspec.to_builtins(written).items() if name not in NAMED
    }
    weights = {
        name: hashlib.sha256((BASE_MODELS / name / "model.safetensors").read_bytes()).hexdigest()
        for name in DEMO_BASES
    }
    found = {
        "experiment": experiment,
        "season": msgspec.to_builtins(plan.season),
        "settings": asdict(plan.config),
        "weights": weights,
    }
    content: dict[str, Any] = json.loads(json.dumps(found))
    return content


def test_published_experiments_keep_their_meaning() -> None:
    """If a default changes, add its old value to `lab.config.PAPER`.

    A new setting may be added to `published.json` if its default changes nothing.
    """
    assert meaning() == json.loads(PUBLISHED.read_text(encoding="utf-8"))
