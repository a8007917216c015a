"""A season and nodes for the relay benchmark; needs the site's settings in the environment."""

import secrets
from pathlib import Path

import msgspec
from django.utils import timezone

from judge.models import Season
from judge.selectors.seasons import describe_season
from judge.services.seasons import end_season, start_season
from swarm_protocol.codec import encode
from swarm_protocol.messages import Welcome
from swarm_protocol.version import PROTOCOL_VERSION
from swarm_tasks.starter import STARTER_TASKS
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import hash_token


def end_running_season() -> None:
    """End the running season, such as the one that a new site starts."""
    for running in Season.objects.filter(state=Season.State.RUNNING):
        end_season(running, now=timezone.now())


def prepare_season(folder: Path) -> Path:
    """End the running season, and start one with a round a day, whose first round is due at once.

    Returns the path of a file in `folder` with the welcome message that the bare relay sends.
    """
    end_running_season()
    season = Season.objects.create(
        name="load", tasks=msgspec.to_builtins(list(STARTER_TASKS)), cadence_seconds=86_400
    )
    start_season(season, now=timezone.now())
    welcome = folder / "welcome"
    message = Welcome(
        reply_to="hello",
        protocol=PROTOCOL_VERSION,
        server="bare",
        node="bare",
        arm="swarm",
        now=timezone.now().isoformat(),
        season=describe_season(season),
        round=None,
    )
    welcome.write_text(encode(message))
    return welcome


def register(name: str, *, nodes: int) -> list[str]:
    """Create `nodes` nodes whose names begin with `name`, and return their tokens."""
    tokens = [secrets.token_urlsafe(32) for _ in range(nodes)]
    Node.objects.bulk_create(
        Node(name=f"{name}-{i}", token_hash=hash_token(token)) for i, token in enumerate(tokens)
    )
    return tokens


def register_in(file: Path, *, nodes: int) -> Path:
    """Create `nodes` nodes, write their tokens to `file`, one per line, and return `file`."""
    file.write_text("\n".join(register(file.name, nodes=nodes)))
    return file
