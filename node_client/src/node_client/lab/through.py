"""One run through a real coordinator, with one client process for each node.

Node keys, base models and settings are the same as for a run in one process, so that the results
can be compared. Three things differ: every node has its own pace, the pool is that of the
coordinator, and settings that count judge rounds count the coordinator's. The run ends when its
slowest node has finished. Each run needs its own open season on the coordinator, with the
experiment's tasks and rules and without other nodes.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from node_client.errors import NodeError, SettingsError
from node_client.lab.bases import find_base
from node_client.lab.config import Experiment, NodePlan, node_key, plan_nodes
from node_client.lab.records import RoundRecord, encode_line
from node_client.lab.runs import Run, header_of, is_done
from node_client.settings.train_config import TrainConfig
from node_client.site import Site
from node_client.storage.state import StateDir, write_private
from swarm_protocol.messages import SeasonInfo

_POLL_S = 0.5
# Rules that must be the same in season and experiment.
_RULES = ("seed", "generator", "tasks", "completions", "max_new_tokens", "system_prompt")


class MetricsLine(msgspec.Struct):
    """Those fields of a line in a client's metrics file that a `RoundRecord` needs."""

    step: int
    reward: float
    informative_share: float
    training_set_reward: float
    training_set_informative: float
    generated: int
    external_used: int
    completion_tokens: int
    length: float = msgspec.field(name="completions/mean_length")
    clip: float = msgspec.field(name="clip_ratio/region_mean")
    held_out: float | None = msgspec.field(name="held_out/score", default=None)
    base: float | None = msgspec.field(name="held_out_before/score", default=None)


@dataclass(frozen=True)
class Client:
    """One node's process, its state folder, and the file with its output."""

    process: "subprocess.Popen[bytes]"
    state: StateDir
    log: Path


def run_on_site(
    experiment: Experiment, run: Run, *, site: Site, tokens: Sequence[Path], console: Console
) -> None:
    """Make one run with real clients and write its file, unless the run is finished.

    Each file in `tokens` has the token of one node. Raises SettingsError if there are too few
    tokens, or if the arm has attackers. Both are checked even for a finished run. Also raises
    SettingsError if the season's rules are not those of the experiment, and NodeError if a
    client fails. Raises UnreadableRunError if the file of the finished run is damaged or has other
    settings than the experiment.
    """
    plans = plan_nodes(experiment, run.arm)
    if len(tokens) < len(plans) or any(plan.attack != "none" for plan in plans):
        raise SettingsError(
            f"The arm {run.arm.name} has {len(plans)} nodes, and {len(tokens)} tokens were given.",
            fix="Give a folder with a token file for each node; attackers run in one process only.",
        )
    if is_done(experiment, run):
        return
    clients: list[Client] = []
    try:
        for place, (plan, token) in enumerate(zip(plans, tokens, strict=False)):
            name = f"node-{place:02d}"
            clients.append(_start(experiment, run, plan, name=name, token=token, site=site))
        with console.status(f"{len(clients)} nodes make {experiment.rounds} steps") as status:
            while any(client.process.poll() is None for client in clients):
                _check(clients, plans, site=site)
                rounds_done = min(len(_read_lines(client)) for client in clients)
                status.update(f"{run.name}: {rounds_done} of {experiment.rounds} steps")
                time.sleep(_POLL_S)
        _check(clients, plans, site=site)
    finally:
        for client in clients:
            client.process.terminate()
        for client in clients:
            client.process.wait()
    _write(experiment, run, [_read_steps(client) for client in clients])


def settings_as_environment(config: TrainConfig) -> dict[str, str]:
    """Return the settings that are not defaults, as environment variables of a client."""
    defaults = asdict(TrainConfig())
    return {
        f"SWARM_{name.upper()}": _as_text(value)
        for name, value in asdict(config).items()
        if value != defaults[name]
    }


def _as_text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _start(
    experiment: Experiment, run: Run, plan: NodePlan, *, name: str, token: Path, site: Site
) -> Client:
    state = StateDir(run.folder / "through" / run.name / name)
    state.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(state.path / "task.key", node_key(run.seed, name))
    log = state.path / "client.log"
    command = (
        *(sys.executable, "-m", "node_client", "join", site.base, "--plain", "--fresh"),
        *("--token-file", str(token), "--state-dir", str(state.path)),
        *("--model", find_base(plan.base), "--arm", plan.config.arm),
        *("--steps", str(experiment.rounds), "--device", plan.device),
    )
    environment = {key: value for key, value in os.environ.items() if key[:6] != "SWARM_"}
    environment |= {"OMP_NUM_THREADS": "1"} | settings_as_environment(plan.config)
    # In one process the arm's pool decides how to draw; here each client asks for it.
    environment["SWARM_EXTERNAL_POOL"] = run.arm.drawing
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
    return Client(process, state, log)


def _check(clients: Sequence[Client], plans: Sequence[NodePlan], *, site: Site) -> None:
    """Check that each client is running or has ended normally, in a season with the planned rules.

    Raises NodeError for a client that failed, SettingsError for a season with other rules.
    """
    for client, plan in zip(clients, plans, strict=True):
        if client.process.poll():
            output = client.log.read_text(encoding="utf-8", errors="replace")[-500:]
            raise NodeError(
                f"A client exited with code {client.process.returncode}: {output}",
                fix=f"Its complete log is {client.log}.",
            )
        season = client.state.load_for(site).season
        if season is not None:
            check_season(season, planned=plan.season)


def check_season(season: SeasonInfo, *, planned: SeasonInfo) -> None:
    """Raise SettingsError if a season differs from the planned one in one of _RULES."""
    if _rules(season) != _rules(planned):
        raise SettingsError(
            f"The season {season.name} has other tasks or rules than the experiment.",
            fix=f"Open a season with these: {_rules(planned)}",
        )


def _rules(season: SeasonInfo) -> Mapping[str, Any]:
    fields = msgspec.to_builtins(season)
    return {name: fields[name] for name in _RULES}


def _read_lines(client: Client) -> list[bytes]:
    metrics = client.state.metrics
    return metrics.read_bytes().splitlines() if metrics.exists() else []


def _read_steps(client: Client) -> list[MetricsLine]:
    return [msgspec.json.decode(line, type=MetricsLine) for line in _read_lines(client)]


def _write(experiment: Experiment, run: Run, nodes: Sequence[Sequence[MetricsLine]]) -> None:
    base = [steps[0].base for steps in nodes if steps[0].base is not None]
    records = [RoundRecord(round=0, held_out=base)]
    records += [
        _record(number, [steps[number - 1] for steps in nodes])
        for number in range(1, experiment.rounds + 1)
    ]
    run.complete_file.parent.mkdir(parents=True, exist_ok=True)
    lines = [encode_line(header_of(experiment, run)), *map(encode_line, records)]
    run.partial_file.write_bytes(b"".join(lines))
    run.partial_file.rename(run.complete_file)


def _record(number: int, steps: Sequence[MetricsLine]) -> RoundRecord:
    return RoundRecord(
        round=number,
        reward=[step.reward for step in steps],
        informative=[step.informative_share for step in steps],
        set_reward=[step.training_set_reward for step in steps],
        set_informative=[step.training_set_informative for step in steps],
        generated=[step.generated for step in steps],
        external=[step.external_used for step in steps],
        tokens=[step.completion_tokens for step in steps],
        length=[step.length for step in steps],
        clip=[step.clip for step in steps],
        held_out=[step.held_out for step in steps if step.held_out is not None],
    )
