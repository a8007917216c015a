"""The commands `login`, `logout` and `claim`, and how `join` gets a token for a new node.

A person approves a code on the site, with any device, so this machine needs no browser. The token
is never printed. It is saved in the state folder, in a file that only the node's user can read.
"""

from typing import Annotated

import typer
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from node_client.errors import NodeError, SettingsError
from node_client.settings.config import SettingChoices, find_token
from node_client.settings.flags import takes_settings
from node_client.storage.state import NODE, check_replaceable
from swarm_protocol.joining import DeviceCode

Force = Annotated[
    bool, typer.Option("--force", help="Also for a node without an account, which is then lost")
]

_HALVES = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}


def get_token(choices: SettingChoices, *, console: Console, anonymous: bool = False) -> str:
    """Get a token from the coordinator, save it in the state folder and return it.

    Prints a code, and waits until a person has approved the code on the site. The person approves
    it for a new node, or for a node that the person owns. If `anonymous`, no approval is needed, no
    code is printed, and the token is for a new node without an owner.

    Raises NodeError when the site gives no token. Also raises it when the state folder has the
    token of an anonymous node, at this site or another, because such a node is lost without it.
    """
    from node_client.swarm.device_flow import DeviceFlow  # imports httpx

    site = choices.coordinator
    with choices.state.lock():
        check_replaceable(choices.state.load())
        flow = DeviceFlow(site)
        code = flow.request_code(model=choices.value("model"), anonymous=anonymous)
        if not anonymous:
            console.print(render_code(code, console=console), soft_wrap=True)
        reply = flow.await_token(code)
        if not reply.access_token:
            raise NodeError(f"{site.base} gave no token.", fix="Ask its operator for one.")
        save_token(choices, reply.access_token, node=reply.node, anonymous=anonymous)
    folder = choices.state.path / NODE
    console.print(
        Text(f"✓ This node is {reply.node}. Its token is in {folder}, for you only.", "green"),
        soft_wrap=True,
    )
    return reply.access_token


def save_token(
    choices: SettingChoices, token: str, *, node: str = "", anonymous: bool = False
) -> None:
    """Save a token for the coordinator in the state folder.

    An empty `node` keeps the node's saved name. `anonymous` says that no account owns the node.

    Raises SettingsError if that fails, or if the folder has the token of another anonymous node.
    """
    site, state = choices.coordinator, choices.state
    stored = state.load_for(site)
    try:
        state.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        state.save(
            replace(
                stored,
                url=site.base,
                token=token,
                node=node or stored.node,
                anonymous=anonymous,
            )
        )
    except OSError as problem:
        raise SettingsError(
            f"The token could not be saved in {state.path}: {problem.strerror or problem}.",
            fix="Free some space, or choose another folder with --state-dir, and run this again.",
        ) from problem


def render_code(code: DeviceCode, *, console: Console) -> Text:
    """Return the instructions to approve a code, with a QR code if the terminal can show one."""
    text = Text()
    terminal = console.is_terminal
    qr = render_qr(code.verification_uri_complete)
    rendered = terminal and console.encoding.startswith("utf") and fits(qr, console=console)
    if rendered:
        text.append_text(qr).append("\n")
    text.append("Scan this, or open  " if rendered else "Open  ")
    text.append(code.verification_uri, "bold cyan")
    text.append("\non any device, sign in or sign up, and enter the code  ")
    text.append(code.user_code, "bold")
    text.append(f"\n\nWaiting for approval; the code is valid for {code.expires_in // 60} minutes.")
    text.append(" Ctrl-C ends this." if terminal else "")
    return text


def fits(picture: Text, *, console: Console) -> bool:
    """Return whether a picture made of characters is at most as wide as the console."""
    return max(map(len, picture.plain.splitlines())) <= console.width


def render_qr(content: str) -> Text:
    """Return a QR code made of half-block characters, dark on light in every terminal."""
    import segno

    rows = [list(row) for row in segno.make_qr(content, error="l").matrix_iter(border=2)]
    if len(rows) % 2:
        rows.append([0] * len(rows[0]))
    text = Text()
    for upper, lower in zip(rows[::2], rows[1::2], strict=True):
        line = "".join(_HALVES[pair] for pair in zip(upper, lower, strict=True))
        text.append(line, "black on white").append("\n")
    return text


@takes_settings("state_dir", "config", "model")
def login(url: str, *, choices: SettingChoices) -> None:
    """Get a token for a new node or for one of your nodes, and save it here for `join`."""
    get_token(choices, console=Console())


@takes_settings("state_dir", "config")
def logout(url: str, *, force: Force = False, choices: SettingChoices) -> None:
    """Delete the token from this machine; the node and its checkpoints stay."""
    site = choices.coordinator
    with choices.state.lock():
        remembered = choices.state.load_for(site)
        if not remembered.token:
            raise SettingsError(
                f"There is no token for {site.base} in {choices.state.path}.",
                fix="`swarm-node status` lists the nodes of this machine.",
            )
        if not force:
            check_replaceable(remembered)
        choices.state.save(replace(remembered, token=""))
    typer.echo(
        f"The token of {remembered.node or 'this node'} is deleted here. "
        f"Copies of it still work: revoke it at {site.account}."
    )


@takes_settings("token_file", "token", "state_dir", "config")
def claim(url: str, *, choices: SettingChoices) -> None:
    """Give an anonymous node to your account: its name, token, scores and history stay."""
    from node_client.swarm.device_flow import DeviceFlow

    token = find_token(choices)
    if not token:
        raise SettingsError(
            "No node has joined this coordinator from here, so there is none to claim.",
            fix="Run this where the node runs, or give its token with --token-file FILE.",
        )
    console = Console()
    flow = DeviceFlow(choices.coordinator)
    code = flow.request_code(token=token)
    console.print(render_code(code, console=console), soft_wrap=True)
    reply = flow.await_token(code)
    if token == choices.state.load_for(choices.site).token:
        save_token(choices, token)
    console.print(Text(f"✓ The node {reply.node} belongs to your account now.", "green"))
