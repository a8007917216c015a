"""Bases that are made on demand: where they are stored, and that they are made once."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from node_client.lab import bases
from node_client.lab.bases import find_base, make_bases
from node_client.lab.config import Experiment, parse_experiment
from node_client.model.demo import make_model
from node_client.model.demo.make_model import ThinkingBase
from node_client.model.demo.teacher import WritingHabits
from node_client.model.demo.warmup import WarmUpConfig
from node_client.model.policy import Policy

QUICK = ThinkingBase(
    hidden_size=16,
    layers=1,
    heads=2,
    warm_up=WarmUpConfig(steps=2, batch_size=4),
    manner=WritingHabits(),
)


@pytest.fixture
def quick_thinker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(make_model.BASES, "thinker", QUICK)
    monkeypatch.setattr(make_model, "EXAMPLES_PER_DATASET", 4)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bases, "user_cache_path", lambda *_, **__: tmp_path)


def experiment_with(**fields: Any) -> Experiment:
    content = {
        "name": "bases",
        "question": "?",
        "phase": "exploratory",
        "season": {"tasks": [{"dataset": "chain_sum", "config": {}, "weight": 1.0}]},
        "seeds": [1],
        "rounds": 1,
        "arms": [{"name": "8/0"}],
        "baseline": "8/0",
    }
    return parse_experiment(content | fields, place="here")


@pytest.mark.parametrize("name", ["tiny", "small", "Qwen/Qwen2.5-0.5B-Instruct", "/a/folder"])
def test_base_that_is_not_made_on_demand_keeps_its_name(name: str) -> None:
    assert find_base(name) == name


@pytest.mark.usefixtures("quick_thinker")
def test_changed_recipe_gives_another_base(monkeypatch: pytest.MonkeyPatch) -> None:
    before = find_base("thinker")
    monkeypatch.setitem(make_model.BASES, "thinker", make_model.BASES["tiny"])
    assert find_base("thinker") != before


@pytest.mark.slow
@pytest.mark.usefixtures("quick_thinker")
def test_base_of_a_group_is_made_before_the_runs_and_only_once() -> None:
    groups = [{"nodes": 1}, {"nodes": 1, "base": "thinker"}]
    experiment = experiment_with(arms=[{"name": "8/0", "groups": groups}])
    console = Console(quiet=True)
    make_bases(experiment, console=console)
    folder = Path(find_base("thinker"))
    made = (folder / "model.safetensors").stat().st_mtime_ns
    make_bases(experiment, console=console)
    assert (folder / "model.safetensors").stat().st_mtime_ns == made
    assert Policy.load(str(folder), device="cpu").name == "thinker"


def test_experiment_with_bundled_bases_makes_none(tmp_path: Path) -> None:
    make_bases(experiment_with(), console=Console(quiet=True))
    assert list(tmp_path.iterdir()) == []
