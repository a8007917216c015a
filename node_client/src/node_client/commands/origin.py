"""Collects the facts for a model card: how its checkpoint was trained, and its judge score."""

from collections.abc import Callable

import msgspec

from node_client.commands.status import fetch_status
from node_client.errors import NodeError
from node_client.site import Site
from node_client.storage.manifest import Manifest
from node_client.storage.model_card import JudgeScore, ModelOrigin
from node_client.storage.state import StateDir
from swarm_protocol.prompts import SYSTEM_PROMPT


def trace(manifest: Manifest, state: StateDir, *, warn: Callable[[str], None]) -> ModelOrigin:
    """Return how the checkpoint with this manifest was trained, with its node's judge score.

    `state` is the node's state folder. The score is requested from the node's coordinator, if it
    has one. If that fails, `warn` receives the error, and the result has no score.
    """
    remembered = state.load()
    rules = remembered.season
    site = Site(remembered.url) if remembered.url else None
    return ModelOrigin(
        base_model=manifest.model,
        step=manifest.step,
        arm=remembered.arm or "isolated",
        season=_season_of(manifest, state, latest=rules.name if rules is not None else ""),
        system_prompt=rules.system_prompt if rules is not None else SYSTEM_PROMPT,
        site=site,
        node=remembered.node,
        judged=_fetch_judge_score(site, remembered.node, warn=warn) if site is not None else None,
    )


def _season_of(manifest: Manifest, state: StateDir, *, latest: str) -> str:
    """Return the name of the season in which the checkpoint with this manifest was saved.

    The name is empty for any but the latest checkpoint, because the season of earlier ones is not
    recorded. If no progress is recorded, the name is that of the node's latest season.
    """
    progress = state.load_progress()
    if progress is None:
        return latest
    return progress.season if progress.step == manifest.step else ""


def _fetch_judge_score(site: Site, node: str, *, warn: Callable[[str], None]) -> JudgeScore | None:
    try:
        status = fetch_status(site, node)
    except NodeError as problem:
        warn(f"the card has no judge score: {problem.message}")
        return None
    if status.score is None:
        return None
    return msgspec.convert(status, JudgeScore, from_attributes=True)
