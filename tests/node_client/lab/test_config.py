"""An experiment's file is checked completely before hours are spent on its runs."""

from pathlib import Path
from typing import Any

import pytest

from node_client.errors import SettingsError
from node_client.lab.config import parse_experiment, plan_nodes, read_experiment
from node_client.settings.train_config import TrainConfig
from tests.node_client.lab.experiments import PLACE, content_of, experiment

SUM_TASK = {"dataset": "chain_sum", "config": {}, "weight": 1.0}


def with_arm(**arm: Any) -> dict[str, Any]:
    """Return an experiment with one arm, `mine`."""
    return content_of(arms=[{"name": "mine", **arm}], baseline="mine")


def with_task(**task: Any) -> dict[str, Any]:
    return content_of(season={"tasks": [SUM_TASK, SUM_TASK | task]})


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (content_of(round=5), r"unknown field `round`"),
        (content_of(rounds=0), r"\$\.rounds"),
        (content_of(nodes=10**9), r"\$\.nodes"),
        (with_arm(groups=[{"nodes": 10**9}]), r"\$\.arms\[0\]\.groups\[0\]\.nodes"),
        (content_of(season={"tasks": []}), r"\$\.season\.tasks"),
        (content_of(season={"tasks": [SUM_TASK], "completions": 1}), r"\$\.season\.completions"),
        (content_of(season={"tasks": [SUM_TASK], "completions": 999}), r"\$\.season\.completions"),
        (content_of(baseline="8/0"), "the baseline must be one"),
        (content_of(seeds=[3, 1, 3]), "a seed is listed twice"),
        (content_of(arms=[{"name": "4/0"}, {"name": "4/0"}]), "need unique names"),
        (content_of(arms=[{"name": "4/0"}, {"name": "4-0"}]), "also as file names"),
        (content_of(train={"learning": 1}), "arm 4/0: learning is not a setting"),
        (with_arm(train={"learning": 1}), "arm mine: learning is not a setting"),
        (with_arm(groups=[{"nodes": 2, "train": {"lr": 1}}]), "arm mine: lr is not a setting"),
        (with_arm(train={"temperature": -1}), "arm mine: temperature is -1, but must be"),
        (
            with_arm(train={"external_sampling": "nearest"}),
            "arm mine: external_sampling is 'nearest', but must be",
        ),
        (
            with_arm(train={"sharing": "nearest"}),
            "arm mine: sharing is 'nearest', but must be uniform",
        ),
        (with_arm(train={"reward": "kind"}), "arm mine: reward is 'kind', but must be binary"),
        (with_arm(train={"policy_loss": "kind"}), "arm mine: policy_loss is 'kind', but must be"),
        (with_arm(train={"reward": "my.own:Reward"}), r"arm mine: reward: my\.own:Reward cannot"),
        (with_arm(train={"sharing": "my:Own"}), "arm mine: sharing: my:Own cannot be imported"),
        (with_arm(train={"external_sampling": "my:Own"}), "arm mine: external_sampling: my:Own"),
        (with_arm(train={"policy_loss": "my:Own"}), "arm mine: policy_loss: my:Own cannot"),
        (with_arm(train={"mix": "0/0"}), "arm mine: .* is empty"),
        (with_arm(train={"eval_tasks": 9}), "arm mine: The held-out questions are the same"),
        (with_arm(train={"datasets": ["gcd"]}), "arm mine: The season has no gcd"),
        (with_arm(groups=[{"nodes": 2, "attack": "poison"}]), "arm mine: No node trains"),
        (
            with_arm(source="self"),
            "arm mine: A node's own earlier rollouts are removed from the pool",
        ),
        (with_arm(nodes=2, groups=[{"nodes": 2}]), "arm mine: Both the arm and its groups"),
        (with_task(weight=0.0), "arm 4/0: chain_sum: the weight 0.0"),
        (with_task(weight=float("nan")), "arm 4/0: chain_sum: the weight nan"),
        (with_task(dataset="chain_some"), "arm 4/0: chain_some: "),
        (with_task(config={"min_terms": -1}), "arm 4/0: chain_sum: "),
    ],
)
def test_invalid_experiment_is_refused_with_its_place(
    content: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(SettingsError, match=complaint) as problem:
        parse_experiment(content, place=PLACE)
    assert problem.value.message.startswith(PLACE)
    assert problem.value.fix


@pytest.mark.parametrize("written", [None, "rounds = ", b"\xff"])
def test_unreadable_file_is_refused_by_its_name(
    tmp_path: Path, written: str | bytes | None
) -> None:
    path = tmp_path / "mine.toml"
    if written is not None:
        path.write_bytes(written if isinstance(written, bytes) else written.encode())
    with pytest.raises(SettingsError, match=r"mine\.toml cannot be read"):
        read_experiment(path)


def test_settings_precedence_is_group_arm_experiment() -> None:
    arm = {
        "name": "mine",
        "train": {"epsilon": 0.2, "beta": 0.2},
        "groups": [{"nodes": 1, "train": {"epsilon": 0.3}, "base": "small"}, {"nodes": 2}],
    }
    train = {"epsilon": 0.1, "beta": 0.1, "max_grad_norm": 0.1}
    planned = experiment(arms=[arm], baseline="mine", train=train)
    first, *others = plan_nodes(planned, planned.arms[0])
    assert [(node.config.epsilon, node.base) for node in (first, *others)] == [
        (0.3, "small"),
        (0.2, "tiny"),
        (0.2, "tiny"),
    ]
    assert (first.config.beta, first.config.max_grad_norm) == (0.2, 0.1)
    assert (first.config.eval_tasks, first.config.eval_every) == (4, 2)


def test_own_earlier_rollouts_may_be_drawn_if_the_pool_keeps_them_long_enough() -> None:
    arms = [{"name": "mine", "source": "self", "pool_rounds": 2}]
    assert experiment(arms=arms, baseline="mine").arms[0].source == "self"


def test_omitted_settings_have_the_defaults_of_the_paper_not_of_the_client() -> None:
    planned = parse_experiment(with_arm(), place=PLACE)
    first, *_ = plan_nodes(planned, planned.arms[0])
    assert (first.config.external_candidates, first.config.external_shaping) == (56, "none")
    assert TrainConfig().external_shaping == "luffy"
