"""The nodes of the demo data: names, models, arms, and abilities; no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from swarm_web.nodes.names import draw_name

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DemoModel:
    """A model of the demo; `share` is the fraction of the nodes that train it.

    `floor` and `ceiling` are its mean chances to solve a question before and after training.
    """

    name: str
    parameters: int
    floor: float
    ceiling: float
    share: float


KINDS = (
    DemoModel("Qwen/Qwen2.5-0.5B-Instruct", 494_032_768, 0.14, 0.58, 0.42),
    DemoModel("Qwen/Qwen2.5-1.5B-Instruct", 1_543_714_304, 0.30, 0.76, 0.24),
    DemoModel("HuggingFaceTB/SmolLM2-360M-Instruct", 361_821_120, 0.08, 0.41, 0.22),
    DemoModel("meta-llama/Llama-3.2-1B-Instruct", 1_235_814_400, 0.22, 0.64, 0.12),
)
# What external rollouts add to the ceiling, by model. It is zero for one model, so that the judge's
# comparison shows a model with a difference and one without.
_GAIN = (0.09, 0.06, 0.07, 0.0)
_SPREAD = 0.05
_ISOLATED_SHARE = 0.4


@dataclass(frozen=True)
class Population:
    """The nodes by index, in the order in which they join.

    `arrivals` (nodes,) are the times of joining, ascending, from 0 (the first round) to 1 (the end
    of the last one). The first nodes are one untrained node for each model. `groups` (nodes,) has
    the index of each trained node's model in KINDS, and -1 for untrained nodes. `floors` and
    `ceilings` (nodes, datasets) are the chances to solve a question before and after training.
    """

    names: list[str]
    kinds: list[DemoModel]
    arms: list[str]
    groups: npt.NDArray[np.int64]
    arrivals: Floats
    floors: Floats
    ceilings: Floats

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.names)


def draw_population(nodes: int, *, datasets: int, seed: int) -> Population:
    """Return a random population of `nodes` nodes.

    A sixth of them are there from the start; most of the others join in the second half.
    """
    rng = np.random.default_rng(seed)
    shares = np.array([kind.share for kind in KINDS])
    drawn = rng.choice(len(KINDS), nodes - len(KINDS), p=shares / shares.sum())
    kinds = np.concatenate([np.arange(len(KINDS)), drawn])
    isolated = rng.random(nodes) < _ISOLATED_SHARE
    arms = ["isolated" if is_isolated else "swarm" for is_isolated in isolated]
    arms[: len(KINDS)] = ["base"] * len(KINDS)
    arrivals = np.sort(rng.random(nodes)) ** 0.7
    arrivals[: nodes // 6] = 0.0
    floors, ceilings = _draw_abilities(kinds, arms, datasets=datasets, rng=rng)
    return Population(
        names=_draw_names(nodes, random=Random(seed)),
        kinds=[KINDS[kind] for kind in kinds],
        arms=arms,
        groups=np.where(np.arange(nodes) < len(KINDS), -1, kinds),
        arrivals=arrivals,
        floors=floors,
        ceilings=ceilings,
    )


def _draw_abilities(
    kinds: npt.NDArray[np.int64],
    arms: Sequence[str],
    *,
    datasets: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Draw each node's chances to solve a question of each dataset, before and after training.

    Returns both as (nodes, datasets). Some datasets are harder than others.
    """
    hardness = np.linspace(1.25, 0.7, datasets)
    talent = rng.normal(0, _SPREAD, size=(len(kinds), 1))
    gains = np.array(_GAIN)[kinds] * np.array([arm == "swarm" for arm in arms])
    floors = np.array([kind.floor for kind in KINDS])[kinds, None] * hardness
    ceilings = (np.array([kind.ceiling for kind in KINDS])[kinds] + gains)[:, None] * hardness
    untrained = np.array([arm == "base" for arm in arms])[:, None]
    ceilings = np.where(untrained, floors, ceilings + talent)
    return np.clip(floors, 0.01, 0.99), np.clip(ceilings, 0.02, 0.98)


def _draw_names(count: int, *, random: Random) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < count:
        names[draw_name(random)] = None
    return list(names)
