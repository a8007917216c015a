"""The command `swarm-node`.

Nothing here imports torch, transformers or the trainer before a command needs it, so that help
comes at once.
"""

import asyncio
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Literal, ParamSpec

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from node_client.errors import CoordinatorRefusedError, NodeError, UncheckableError
from node_client.settings import options
from node_client.settings.config import (
    Settings,
    TrainingOptions,
    check_offline_arm,
    check_steps,
    choose_arm,
    choose_model,
    choose_token,
    find_token,
)
from node_client.site import Site, parse_site
from node_client.storage.state import Remembered, StateDir
from swarm_protocol.version import CLIENT_VERSION

FAILED = 1
REFUSED = 2
UNCHECKED = 2

DEMO_MODELS = ("tiny", "small")
Parameters = ParamSpec("Parameters")

app = typer.Typer(
    name="swarm-node",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def explain_problems(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Turn a NodeError into two lines that a person can act on, and an exit code."""

    @wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except NodeError as problem:
            code = problem.code if isinstance(problem, CoordinatorRefusedError) else "error"
            typer.secho(f"{code}: {problem.message}", fg="red", err=True)
            typer.echo(problem.fix, err=True)
            raise typer.Exit(exit_code_of(problem)) from None

    return run


def exit_code_of(problem: NodeError) -> int:
    """Return the exit code that tells a script what kind of problem it is."""
    if isinstance(problem, CoordinatorRefusedError):
        return REFUSED
    return UNCHECKED if isinstance(problem, UncheckableError) else FAILED


def show_version(asked: bool) -> None:
    """Say which version this is, if asked, and end."""
    if asked:
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


@app.command()
@explain_problems
def join(
    context: typer.Context,
    url: options.Url,
    token_file: options.TokenFile = None,
    token: options.Token = None,
    model: options.Model = None,
    arm: options.ArmChoice = None,
    state_dir: options.StateFolder = None,
    steps: options.Steps = None,
    plain: options.Plain = False,
    device: options.Device = "auto",
    save_steps: options.SaveSteps = 50,
    num_generations: options.NumGenerations = None,
    local: options.Local = None,
    external: options.External = None,
    learning_rate: options.LearningRate = None,
    max_completion_length: options.MaxCompletionLength = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    num_iterations: options.NumIterations = None,
    reward: options.Reward = None,
) -> None:
    """Join a swarm: train, share, and answer the judge. Set SWARM_TOKEN the first time."""
    site = parse_site(url)
    state = _state_of(site, state_dir)
    remembered = state.recall(site)
    wish = choose_arm(arm, remembered)
    check_steps(steps, arm=wish)
    _train(
        Settings(
            state=state,
            model=_resolve(choose_model(model, remembered)),
            arm=wish,
            site=site,
            token=choose_token(
                option=token,
                file=token_file,
                environment=os.environ.get("SWARM_TOKEN"),
                remembered=remembered.token,
            ),
            steps=steps,
            plain=plain,
            device=device,
            save_steps=save_steps,
            training=_training_options(context),
        )
    )


@app.command()
@explain_problems
def train(
    context: typer.Context,
    offline: Annotated[bool, typer.Option("--offline", help="Without a coordinator")] = False,
    model: options.Model = None,
    arm: options.OfflineArm = None,
    state_dir: options.StateFolder = None,
    steps: options.Steps = None,
    plain: options.Plain = False,
    device: options.Device = "auto",
    save_steps: options.SaveSteps = 50,
    num_generations: options.NumGenerations = None,
    local: options.Local = None,
    learning_rate: options.LearningRate = None,
    max_completion_length: options.MaxCompletionLength = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    num_iterations: options.NumIterations = None,
    reward: options.Reward = None,
) -> None:
    """Train alone on a built-in season, to see whether this machine can."""
    if not offline:
        raise NodeError(
            "`train` works without a coordinator only.",
            fix="Use `train --offline`, or `join URL` to train in a swarm.",
        )
    check_offline_arm(arm)
    _train(
        Settings(
            state=_state_of(None, state_dir),
            model=_resolve(choose_model(model, Remembered())),
            arm="isolated",
            steps=steps,
            plain=plain,
            device=device,
            save_steps=save_steps,
            training=_training_options(context),
        )
    )


@app.command()
@explain_problems
def make_model(
    size: Annotated[Literal["tiny", "small"], typer.Argument(help="Which demo model")],
    out: Annotated[Path, typer.Option(help="The folder to write it to")],
) -> None:
    """Make one of the demo's small models anew, on this machine."""
    from rich.progress import Progress

    from node_client.model.make_model import make  # imports torch and transformers

    with Progress(console=Console()) as bar:
        warming = bar.add_task(f"Warming up {size}", total=None)
        make(
            size,
            out,
            progress=lambda done: bar.update(warming, completed=done.step, total=done.steps),
        )
    typer.echo(f"Made {out}. Use it with --model {out}.")


@app.command()
@explain_problems
def doctor(
    url: options.OptionalUrl = None,
    token_file: options.TokenFile = None,
    token: options.Token = None,
    model: options.Model = None,
    state_dir: options.StateFolder = None,
    device: options.Device = "auto",
) -> None:
    """Test this machine, and the way to a coordinator, and say what to mend."""
    from node_client.commands import doctor as checks  # imports torch

    site = parse_site(url) if url else None
    state = _state_of(site, state_dir)
    remembered = state.recall(site)
    console = Console()
    failed = False

    def show(check: checks.Check) -> None:
        nonlocal failed
        failed |= check.level == "fail"
        colour = {"ok": "green", "warn": "yellow", "fail": "red"}[check.level]
        line = Text.assemble((f"{check.level:4} ", colour), f"{check.name}: {check.detail}")
        if check.remedy:
            line.append(f"\n     {check.remedy}", "dim")
        console.print(line, soft_wrap=True)

    name = _resolve(choose_model(model, remembered))
    for check in checks.check_machine(model=name, device=device, folder=state.path):
        show(check)
    if site is not None:
        shown = find_token(
            option=token,
            file=token_file,
            environment=os.environ.get("SWARM_TOKEN"),
            remembered=remembered.token,
        )
        for check in asyncio.run(checks.check_site(site, token=shown)):
            show(check)
    if failed:
        raise typer.Exit(FAILED)


@app.command()
@explain_problems
def status(url: options.OptionalUrl = None, state_dir: options.StateFolder = None) -> None:
    """Show how this machine's node stands, here and at its coordinator."""
    from node_client.commands.status import draw_status, fetch_status  # imports httpx

    site = parse_site(url) if url else None
    state = _state_of(site, state_dir)
    remembered = state.recall(site)
    remote = fetch_status(site, remembered.node) if site and remembered.node else None
    Console().print(draw_status(remembered, state.load_progress(), remote))


@app.command()
@explain_problems
def verify_round(
    url: options.Url,
    number: options.RoundNumber,
    state_dir: options.StateFolder = None,
) -> None:
    """Check a closed judge round: its questions, every answer's verdict, every node's score.

    Needs no token. Exits with 0 if all holds, 1 if something differs, 2 if it cannot be told.
    """
    from node_client.commands.verification.checks import Outcome
    from node_client.commands.verification.command import verify_round as verify  # imports httpx

    site = parse_site(url)
    noted = _state_of(site, state_dir).commitments
    outcome = verify(site, number, commitments=noted, console=Console())
    if outcome != Outcome.HOLDS:
        raise typer.Exit(FAILED if outcome == Outcome.DIFFERS else UNCHECKED)


def _train(settings: Settings) -> None:
    if settings.site is not None and not settings.site.encrypted:
        typer.secho(
            f"Note: {settings.site.base} is not encrypted, so others can read the token.",
            fg="yellow",
            err=True,
        )
    console = Console()
    with console.status("Starting"):
        from node_client.runtime.run import run_client  # takes seconds: torch and transformers

    asyncio.run(run_client(settings, console=console))


def _state_of(site: Site | None, folder: Path | None) -> StateDir:
    if folder is not None:
        return StateDir(folder)
    return StateDir.for_site(site) if site else StateDir.for_offline()


def _resolve(model: str) -> str:
    """Return a model's path in full, so that it is found from another folder next time."""
    path = Path(model)
    return str(path.resolve()) if path.is_dir() and model not in DEMO_MODELS else model


def _training_options(context: typer.Context) -> TrainingOptions:
    """Return the trainer's options that were given on the command line."""
    given = {
        name: context.params[name]
        for name in TrainingOptions.__annotations__
        if context.params.get(name) is not None
    }
    return msgspec.convert(given, TrainingOptions)
