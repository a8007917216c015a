"""Commands that use a trained model: chat and export."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from node_client.errors import SettingsError
from node_client.settings.config import SettingChoices
from node_client.settings.flags import takes_settings
from node_client.settings.sources import Source, resolve_model
from swarm_protocol.prompts import SYSTEM_PROMPT

Swarm = Annotated[
    str | None, typer.Argument(help="The coordinator; without it, the model of `train`")
]
Checkpoint = Annotated[
    str | None, typer.Option(metavar="STEP|PATH", help="A checkpoint other than the newest")
]

app = typer.Typer()


@app.command()
@takes_settings("model", "state_dir", "device", "config")
def chat(
    url: Swarm = None,
    *,
    checkpoint: Checkpoint = None,
    system: Annotated[
        str | None, typer.Option(help="System prompt; default: the season's; '' for none")
    ] = None,
    temperature: Annotated[
        float, typer.Option(min=0, metavar="FLOAT", help="0 always takes the most likely token")
    ] = 0.7,
    max_new_tokens: Annotated[
        int, typer.Option(min=1, metavar="INT", help="Maximum tokens of an answer")
    ] = 512,
    choices: SettingChoices,
) -> None:
    """Chat with your newest checkpoint or with --model, or answer one question from a pipe."""
    from node_client.commands.talk import answer_once, piped_question, talk

    with Console(stderr=True).status("Loading"):
        from node_client.model.conversation import ChatSettings, Conversation  # takes seconds

        model = Conversation.load(
            find_model(choices, checkpoint=checkpoint),
            device=choices.value("device"),
            settings=ChatSettings(
                system_prompt=season_prompt(choices) if system is None else system,
                temperature=temperature,
                max_new_tokens=max_new_tokens,
            ),
        )
    question = piped_question()
    if question is None:
        talk(model, console=Console())
    else:
        answer_once(model, question=question, console=Console())


@app.command()
@takes_settings("state_dir", "config")
def export(
    url: Swarm = None,
    *,
    out: Annotated[Path, typer.Option(help="A folder that does not exist yet")],
    checkpoint: Checkpoint = None,
    choices: SettingChoices,
) -> None:
    """Export your model as an ordinary transformers folder, with a model card."""
    from node_client.commands.origin import trace  # imports httpx
    from node_client.storage.export import ADAPTER_CONFIG, choose_checkpoint, export_model
    from node_client.storage.model_card import write_card

    chosen = choose_checkpoint(choices.state.checkpoints, checkpoint)
    origin = trace(chosen.manifest, choices.state, warn=warn)
    card = write_card(origin, title=out.resolve().name)
    if (chosen.model / ADAPTER_CONFIG).is_file():
        from node_client.model.loading.pretrained import merge_adapters  # imports torch

        export_model(chosen, out, card=card, write=merge_adapters)
    else:
        export_model(chosen, out, card=card)
    typer.echo(f"Wrote {out}: step {chosen.manifest.step} of {chosen.manifest.model}.")
    typer.echo(f"Use it with --model {out}, or as any other transformers model.")


def warn(text: str) -> None:
    """Print a note on standard error."""
    typer.secho(f"Note: {text}", fg="yellow", err=True)


def find_model(choices: SettingChoices, *, checkpoint: str | None) -> str:
    """Return the name or folder of the model to chat with.

    This is the model given by --model on the command line, otherwise that of a checkpoint.
    `checkpoint` is the checkpoint's step or path, None for the newest intact one. Raises
    CheckpointError when there is no such checkpoint or it is not intact, SettingsError when both
    --model and `checkpoint` are given.
    """
    from node_client.storage.export import choose_checkpoint  # imports torch

    named = choices.given.get("model")
    if named is None or named.source is not Source.FLAG:
        return str(choose_checkpoint(choices.state.checkpoints, checkpoint).model)
    if checkpoint is not None:
        raise SettingsError(
            "--model and --checkpoint give two models.", fix="Leave out one of them."
        )
    return resolve_model(named.value)


def season_prompt(choices: SettingChoices) -> str:
    """Return the system prompt of the last season of the state folder's node, at any coordinator.

    If the node has not been in a season yet, return SYSTEM_PROMPT.
    """
    season = choices.state.load().season
    return SYSTEM_PROMPT if season is None else season.system_prompt
