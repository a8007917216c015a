"""The command `swarm-node`.

Torch, transformers and the trainer are imported only by commands that need them, so that help is
fast.
"""

import asyncio
import gc
import os
import signal
import sys
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from node_client.commands import configuration, init, joining, lab, local_nodes, models, service
from node_client.commands.problems import DOUBTFUL, FAILED, UNCHECKED, explained_problems
from node_client.display.terminal import clean
from node_client.errors import CoordinatorRefusedError, NodeError, NotACoordinatorError
from node_client.settings.config import (
    SettingChoices,
    Settings,
    check_offline_arm,
    choose_start,
    find_token,
)
from node_client.settings.flags import takes_settings
from node_client.settings.sources import find_file, resolve_model, unknown_variables
from swarm_protocol.version import CLIENT_VERSION

Url = Annotated[str, typer.Argument(help="The coordinator, such as https://swarm.example.org")]
TestedUrl = Annotated[str | None, typer.Argument(help="The coordinator, to test it too")]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Resume from a checkpoint, or fail without one"),
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Start at step 1; earlier checkpoints are moved and kept"),
]
Anonymous = Annotated[
    bool,
    typer.Option("--anonymous", help="Join without an account, if the coordinator allows it"),
]
RoundNumber = Annotated[int, typer.Argument(min=1, help="The number of the round")]

OTHER_WAYS = (
    "Settings can also be given as SWARM_NAME in the environment and in swarm-node.toml. "
    "`swarm-node config show` shows the source of each value."
)

# The order in help.
COMMANDS = (
    *("join", "init", "login", "logout", "claim"),
    *("status", "pause", "resume", "service"),
    *("doctor", "config", "train", "chat", "export"),
    *("verify-round", "verify-season", "make-model", "lab"),
)


# On systems where a wait cannot be interrupted, a signal is noticed after this many seconds.
POLL_S = 1.0


class ClientCommands(TyperGroup):
    """The command group of `swarm-node`: explains the errors of all its commands.

    --help lists the commands in the order of COMMANDS.
    """

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run the chosen command; `explained_problems` handles its NodeError and Ctrl-C."""
        with explained_problems():
            return super().invoke(ctx)

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the names of all commands, in the order of COMMANDS."""
        return sorted(self.commands, key=COMMANDS.index)


app = typer.Typer(
    name="swarm-node",
    cls=ClientCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(init.app)
app.add_typer(configuration.app)
app.add_typer(models.app)
app.add_typer(lab.app)
app.add_typer(local_nodes.app)
app.add_typer(service.app)


def show_version(value: bool) -> None:
    """If `value` is true (--version was given), print the version and exit."""
    if value:
        typer.echo(f"swarm-node {CLIENT_VERSION}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version"),
    ] = False,
) -> None:
    """Train your own model in a public swarm, on your own hardware."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # The encoding of a log or a pipe may lack ✓.
            stream.reconfigure(errors="replace")
    for warning in unknown_variables(os.environ):
        typer.secho(f"Note: {warning}", fg="yellow", err=True)


@app.command(epilog=OTHER_WAYS)
@takes_settings()
def join(
    url: Url,
    *,
    anonymous: Anonymous = False,
    resume: Resume = False,
    fresh: Fresh = False,
    choices: SettingChoices,
) -> None:
    """Join a swarm: train, share, and answer the judge.

    The first time, approve the displayed code on the coordinator's site.
    """
    start = choose_start(resume=resume, fresh=fresh)
    suggest_init(choices)
    # Before the user is asked for anything, so that a contradiction ends the command.
    settings = choices.resolve(arm=choices.value("arm"), token=find_token(choices), start=start)
    if not settings.token:
        console = Console(stderr=settings.json)
        token = joining.get_token(choices, console=console, anonymous=anonymous)
        settings = replace(settings, token=token)
    _train(settings)


for command in (joining.login, joining.logout, joining.claim):
    app.command()(command)


@app.command(epilog=OTHER_WAYS)
@takes_settings()
def train(
    *,
    offline: Annotated[bool, typer.Option("--offline", help="Without a coordinator")] = False,
    resume: Resume = False,
    fresh: Fresh = False,
    choices: SettingChoices,
) -> None:
    """Train alone on a built-in season, to test whether this machine can train a model."""
    if not offline:
        raise NodeError(
            "`train` works without a coordinator only.",
            fix="Use `train --offline`, or `join URL` to train in a swarm.",
        )
    check_offline_arm(choices.value("arm"))
    _train(choices.resolve(arm="isolated", start=choose_start(resume=resume, fresh=fresh)))


@app.command()
def make_model(
    size: Annotated[
        Literal[
            "tiny",
            "small",
            "tiny-rare",
            "small-rare",
            "tiny-tagged-0.02",
            "tiny-tagged-0.005",
            "thinker",
        ],
        typer.Argument(help="Which demo model"),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write it to")],
) -> None:
    """Create one of the demo's small models on this machine."""
    from rich.progress import Progress

    from node_client.model.demo.make_model import make  # imports torch and transformers
    from swarm_tasks.verifier import Verifier

    with Progress(console=Console()) as bar, Verifier() as verifier:
        warming = bar.add_task(f"Warming up {size}", total=None)
        make(
            size,
            out,
            verifier=verifier,
            on_step=lambda done, total: bar.update(warming, completed=done, total=total),
        )
    typer.echo(f"Created {out}. Use it with --model {out}.")


@app.command()
@takes_settings(*("token_file", "token", "model", "state_dir", "device", "gpu_fraction", "config"))
def doctor(url: TestedUrl = None, *, choices: SettingChoices) -> None:
    """Test this machine, and the connection to a coordinator, and suggest fixes."""
    from node_client.commands import doctor as checks  # imports torch

    console = Console()
    failed = False

    def show(check: checks.DoctorCheck) -> None:
        nonlocal failed
        failed |= check.level == "fail"
        colour = {"ok": "green", "warn": "yellow", "fail": "red"}[check.level]
        line = Text.assemble((f"{check.level:4} ", colour), f"{check.name}: {check.detail}")
        if check.remedy:
            line.append(f"\n     {check.remedy}", "dim")
        console.print(line, soft_wrap=True)

    model = resolve_model(choices.value("model"))
    device, folder = choices.value("device"), choices.state.path
    limit = choices.value("gpu_fraction")
    for check in checks.check_machine(
        model=model, device=device, folder=folder, gpu_fraction=limit
    ):
        show(check)
    if choices.site is not None:
        for check in asyncio.run(checks.check_site(choices.site, token=find_token(choices))):
            show(check)
    if failed:
        raise typer.Exit(FAILED)


@app.command()
@takes_settings("state_dir", "config")
def verify_round(
    url: Url,
    number: RoundNumber,
    *,
    beacon_url: Annotated[
        list[str] | None,
        typer.Option(help="A drand server to use instead of the public ones; may be repeated"),
    ] = None,
    choices: SettingChoices,
) -> None:
    """Check a closed judge round: questions, answers, signatures, verdicts, scores, the chain.

    Needs no token. Exits with 0 if all checks pass, 1 if something differs, 2 if a check was not
    possible, 3 if nothing differs but a check is doubtful.
    """
    from node_client.commands.verification.command import verify_round as verify  # imports httpx
    from swarm_tasks.beacon import BEACON_URLS
    from swarm_tasks.pool import VerifierPool

    with VerifierPool(os.cpu_count() or 1) as verifier:
        outcome = verify(
            choices.coordinator,
            number,
            state=choices.state,
            console=Console(),
            verifier=verifier,
            beacon_urls=beacon_url or BEACON_URLS,
        )
    _exit_with(outcome)


@app.command()
@takes_settings("state_dir", "config")
def verify_season(
    url: Url,
    season: Annotated[str | None, typer.Argument(help="Its name; by default the newest")] = None,
    *,
    choices: SettingChoices,
) -> None:
    """Recompute a season from its published rounds: the chain, scores, intervals and ranks.

    Needs no token. The exit codes mean the same as for verify-round.
    """
    from node_client.commands.verification.season_command import verify_season as verify

    outcome = verify(choices.coordinator, season, state=choices.state, console=Console())
    _exit_with(outcome)


def suggest_init(choices: SettingChoices) -> None:
    """Mention `swarm-node init` on a terminal, at the first join without a settings file."""
    file = find_file(choices.value("config"), here=Path(), state=choices.state.path)
    node = choices.state.load_for(choices.site).node
    if file is None and not node and choices.site is not None and sys.stderr.isatty():
        line = f"Note: `swarm-node init {choices.site.base}` finds settings for this machine."
        typer.secho(line, fg="yellow", err=True)


def wait_until_stopped(refusal: NodeError) -> None:
    """Print why the node cannot join, and return after SIGTERM or Ctrl-C."""
    fix = clean(refusal.fix)  # from the coordinator, like the message
    typer.secho(clean(f"{refusal.code}: {refusal.message}"), fg="red", err=True)
    typer.echo(f"{fix} Then restart this node, which now waits to be stopped.", err=True)
    stopped = Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    while not stopped.wait(POLL_S):
        pass


def _exit_with(outcome: str) -> None:
    """Exit with the code for the outcome of a verification; return only if all checks passed."""
    code = {"differs": FAILED, "unknown": UNCHECKED, "doubtful": DOUBTFUL}.get(outcome)
    if code is not None:
        raise typer.Exit(code)


def _train(settings: Settings) -> None:
    if settings.site is not None and not settings.site.encrypted:
        typer.secho(
            f"Note: {settings.site.base} is not encrypted, so others can read the token.",
            fg="yellow",
            err=True,
        )
    console = Console(stderr=settings.json)
    with console.status("Starting"):
        # Imported objects stay alive; the garbage collector would take half a second for them.
        gc.disable()
        from node_client.runtime.run import run_client  # takes seconds: torch and transformers

        gc.freeze()
        gc.enable()

    try:
        asyncio.run(run_client(settings, console=console))
    except (CoordinatorRefusedError, NotACoordinatorError) as refusal:
        if settings.wait_when_refused:
            wait_until_stopped(refusal)
        raise
