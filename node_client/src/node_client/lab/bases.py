"""The base models of an experiment, including those created on demand."""

import hashlib
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path
from rich.console import Console
from rich.progress import Progress

from node_client.lab.config import Experiment, plan_nodes
from node_client.model.demo.make_model import BASES, RECIPE, describe_recipe, make
from node_client.model.loading.pretrained import DEMO_BASES
from swarm_tasks.verifier import Verifier


def find_base(name: str) -> str:
    """Return the argument with which `Policy.load` loads the base `name`.

    For a base that is created on demand (`make_bases`), this is a folder in the user's cache, which
    need not exist yet. The path has a hash of the settings with which the base is made, so other
    settings give another folder. For any other base, this is `name`.
    """
    if name in DEMO_BASES or name not in BASES:
        return name
    recipe = hashlib.sha256(describe_recipe(name, seed=0).encode()).hexdigest()[:12]
    folder = user_cache_path("swarm-node", appauthor=False) / "bases"
    return str(folder / recipe / name)


def make_bases(experiment: Experiment, *, console: Console) -> None:
    """Create those bases of an experiment that are made on demand and do not exist yet.

    Of several processes that need the same base, one creates it and the others wait.
    """
    named = {plan.base for arm in experiment.arms for plan in plan_nodes(experiment, arm)}
    for name in sorted(named & set(BASES) - set(DEMO_BASES)):
        folder = Path(find_base(name))
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not (folder / RECIPE).is_file():
                _make(name, folder, console)


def _make(name: str, folder: Path, console: Console) -> None:
    with Progress(console=console) as bar, Verifier() as verifier:
        task = bar.add_task(f"Making {name}", total=None)
        make(
            name,
            folder,
            verifier=verifier,
            on_step=lambda done, total: bar.update(task, completed=done, total=total),
        )
