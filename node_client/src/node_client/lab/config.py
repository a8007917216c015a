"""An experiment: its swarm, arms and seeds, read from a TOML file.

An experiment compares arms. Every arm is run once with each seed. With one seed, a node has the
same stream of questions in all arms, so arms are compared seed by seed.
"""

import hashlib
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from node_client.errors import SettingsError
from node_client.learning.external.sampling import make_strategy
from node_client.learning.rewards import make_reward
from node_client.learning.update.losses import make_policy_loss
from node_client.settings.fields import settings_of
from node_client.settings.objective import check_objective
from node_client.settings.ranges import Count, Device, Natural, NotNegative
from node_client.settings.sources import convert_value
from node_client.settings.train_config import TrainConfig, plan_step
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import MAX_COMPLETIONS, SeasonInfo, TaskChoice
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_tasks.allowlist import GENERATOR, check_config

Phase = Literal["exploratory", "confirmatory"]
Drawing = Literal["uniform", "informative"]
Source = Literal["others", "self"]
Attack = Literal["none", "poison", "poison and lie"]
# A node with the smallest model takes megabytes; the paper's public demo had thousands of nodes.
Nodes = Annotated[int, Meta(ge=1, le=10_000)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9 .,+/_-]{0,63}$")]
# An experiment's name is also its folder's, and part of its report's address.
FolderName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Base = Annotated[str, Meta(min_length=1)]


class SeasonRules(Struct, frozen=True, forbid_unknown_fields=True):
    """Those rules of a season that an experiment file sets."""

    tasks: Annotated[list[TaskChoice], Meta(min_length=1)]
    completions: Annotated[int, Meta(ge=2, le=MAX_COMPLETIONS)] = 8
    local: Natural = 4
    external: Natural = 4
    batch: Count | None = None
    max_new_tokens: Count = 24
    temperature: Annotated[NotNegative, Meta(le=10)] = 0.0
    seed: int = 20_261_122
    system_prompt: str = SYSTEM_PROMPT


class NodeGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """Identical nodes of an arm. Without a `base` they start from the experiment's base.

    `train` has settings of the client, which override the settings of the arm. Nodes with an
    `attack` other than `none` do not train, and the run's measurements leave these nodes out.
    """

    nodes: Nodes
    base: Base | None = None
    train: dict[str, Any] = {}
    attack: Attack = "none"


class ExperimentArm(Struct, frozen=True, forbid_unknown_fields=True):
    """One arm of an experiment: settings of the client, and how the nodes share rollouts.

    `train` has the settings by name. `drawing` is how the pool draws: `uniform`, or `informative`,
    which first draws the rollouts that their nodes declared to have both right and wrong
    completions. `source` is what a node draws: rollouts of `others` or, as a control, its own
    earlier rollouts (`self`). `pool_rounds` and `nodes` are by default the values of the
    experiment. Without `groups` all nodes are identical.
    """

    name: Name
    train: dict[str, Any] = {}
    drawing: Drawing = "uniform"
    source: Source = "others"
    pool_rounds: Count | None = None
    nodes: Nodes | None = None
    groups: list[NodeGroup] = []


class Experiment(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of an experiment file. The other arms are compared with the arm `baseline`.

    `phase` is `exploratory` if the seeds were used to design the experiment; such seeds are never
    combined with the seeds of a committed design. The pool keeps each node's rollouts of the latest
    `pool_rounds` rounds. `base` is the initial model: a demo model, or any model that `--model`
    accepts. Demo models that are not bundled with the client, such as `thinker`, are created when
    they are first needed. The held-out set has `eval_tasks` questions (0 for no evaluations),
    asked every `eval_every` rounds. `train` has settings of the client for all arms.
    """

    name: FolderName
    question: str
    phase: Phase
    season: SeasonRules
    seeds: Annotated[list[Natural], Meta(min_length=1)]
    rounds: Count
    arms: Annotated[list[ExperimentArm], Meta(min_length=1)]
    baseline: str
    base: Base = "tiny"
    device: Device = "cpu"
    nodes: Nodes = 8
    pool_rounds: Count = 1
    eval_tasks: Natural = 128
    eval_every: Count = 10
    train: dict[str, Any] = {}


# SAPO's values (arXiv 2509.08721) where the client's defaults differ, for settings that an
# experiment omits: a better default must not change the meaning of an older experiment.
PAPER: Mapping[str, Any] = {"external_candidates": 56, "external_shaping": "none"}


@dataclass(frozen=True)
class NodePlan:
    """One node of a run: its base model, device, settings, season, and attack, if any."""

    base: str
    device: str
    config: TrainConfig
    season: SeasonInfo
    attack: Attack


def read_experiment(path: Path) -> Experiment:
    """Read an experiment from a file. Raises SettingsError if it is unreadable or invalid."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise SettingsError(
            f"The experiment {path} cannot be read: {problem}.",
            fix="Check the path and the TOML; docs/lab.md has an example.",
        ) from problem
    return parse_experiment(content, place=str(path))


def parse_experiment(content: Mapping[str, Any], *, place: str) -> Experiment:
    """Check the content of a file and return its experiment.

    Raises SettingsError if it is invalid or an arm cannot be run; `place` names the file in errors.
    """
    try:
        experiment = msgspec.convert(content, Experiment)
    except msgspec.ValidationError as problem:
        raise SettingsError(
            f"{place}: {problem}", fix="docs/lab.md lists the fields of an experiment."
        ) from None
    names = [arm.name for arm in experiment.arms]
    files = {file_name(name).casefold() for name in names}
    if len(files) < len(names) or experiment.baseline not in names:
        raise SettingsError(
            f"{place}: arms need unique names, also as file names, and the baseline must be one of"
            " them.",
            fix=f"The arms are {', '.join(names)}; the baseline is {experiment.baseline}.",
        )
    if len(set(experiment.seeds)) < len(experiment.seeds):
        raise SettingsError(
            f"{place}: a seed is listed twice, so one run would count as two.",
            fix="Give each seed once.",
        )
    for arm in experiment.arms:
        try:
            plan_nodes(experiment, arm)
        except SettingsError as problem:
            message = f"{place}, arm {arm.name}: {problem.message}"
            raise SettingsError(message, fix=problem.fix) from None
    return experiment


def file_name(arm: str) -> str:
    """Return an arm's name for use in file names.

    Each sequence of characters other than ASCII letters, digits and dots becomes one hyphen.
    """
    return re.sub(r"[^A-Za-z0-9.]+", "-", arm)


def plan_nodes(experiment: Experiment, arm: ExperimentArm) -> list[NodePlan]:
    """Return the nodes of an arm, in order. Raises SettingsError for an arm that cannot be run."""
    if arm.groups and arm.nodes is not None:
        raise SettingsError(
            "Both the arm and its groups set the number of nodes.", fix="Leave `nodes` out."
        )
    groups = arm.groups or [NodeGroup(nodes=arm.nodes or experiment.nodes)]
    if all(group.attack != "none" for group in groups):
        raise SettingsError("No node trains.", fix="Add a group without an attack.")
    if arm.source == "self" and (arm.pool_rounds or experiment.pool_rounds) < 2:
        raise SettingsError(
            "A node's own earlier rollouts are removed from the pool before it can draw them.",
            fix="Set pool_rounds to 2 or more, for rollouts of the previous round.",
        )
    plans = [[_plan_node(experiment, arm, group)] * group.nodes for group in groups]
    return list(chain.from_iterable(plans))


def evaluated_rounds(experiment: Experiment) -> list[int]:
    """Return the rounds after which held-out questions are asked; 0 stands for the base model."""
    if experiment.eval_tasks == 0:
        return []
    return list(range(0, experiment.rounds + 1, experiment.eval_every))


def node_key(seed: int, name: str) -> bytes:
    """Return the key of a node's stream of questions, which does not depend on the arm."""
    return hashlib.sha256(f"lab:{seed}:{name}".encode()).digest()


def _plan_node(experiment: Experiment, arm: ExperimentArm, group: NodeGroup) -> NodePlan:
    evaluation = {"eval_tasks": experiment.eval_tasks, "eval_every": experiment.eval_every}
    config = _make_config({**PAPER, **experiment.train, **arm.train, **group.train}, evaluation)
    rules = experiment.season
    _check_tasks(rules.tasks, asked=config.datasets)
    season = SeasonInfo(name=experiment.name, generator=GENERATOR, **msgspec.structs.asdict(rules))
    plan_step(config, season)
    check_objective(config)
    make_policy_loss(config.policy_loss)
    make_strategy(config.external_sampling)
    make_strategy(config.sharing, setting="sharing")
    make_reward(config.reward)
    return NodePlan(
        base=group.base or experiment.base,
        device=experiment.device,
        config=config,
        season=season,
        attack=group.attack,
    )


def _make_config(train: Mapping[str, Any], evaluation: Mapping[str, Any]) -> TrainConfig:
    settings = {setting.name: setting for setting in settings_of(TrainConfig)}
    unknown = sorted(set(train) - set(settings))
    if unknown:
        raise SettingsError(
            f"{', '.join(unknown)} is not a setting of the client.",
            fix="`swarm-node config show` lists the settings.",
        )
    if not evaluation.keys().isdisjoint(train):
        raise SettingsError(
            "The held-out questions are the same for all nodes.",
            fix=f"Set {' and '.join(evaluation)} for the whole experiment, outside of `train`.",
        )
    checked = {
        name: convert_value(settings[name], value, place=name) for name, value in train.items()
    }
    return TrainConfig(**checked, **evaluation)


def _check_tasks(tasks: Sequence[TaskChoice], *, asked: Sequence[str]) -> None:
    datasets = {task.dataset for task in tasks}
    if not datasets.issuperset(asked):
        raise SettingsError(
            f"The season has no {', '.join(sorted(set(asked) - datasets))}.",
            fix=f"Choose from {', '.join(sorted(datasets))}.",
        )
    for task in tasks:
        if not 0 < task.weight < math.inf:
            raise SettingsError(
                f"{task.dataset}: the weight {task.weight} is invalid.",
                fix="Give a number above 0.",
            )
        try:
            check_config(task.dataset, task.config)
        except RefusedError as refusal:
            raise SettingsError(
                f"{task.dataset}: {refusal.message}.", fix="docs/tasks.md lists the allowed values."
            ) from None
