"""How many declarations are checked is the operator's to say."""

from random import Random
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.models import Season
from swarm_web.nodes.models import Node
from swarm_web.relay.services import publish_rollouts
from swarm_web.relay.tasks import keep_declarations
from swarm_web.store import sync_redis
from tests.factories import make_rollout

pytestmark = pytest.mark.usefixtures("tidy_stores")


# Some of what is drawn after the first eight may have been drawn before.
@pytest.mark.parametrize(
    ("a_minute", "least", "most"), [(0, 0, 0), (1, 1, 1), (60, 5, 5), (240, 9, 20)]
)
async def test_a_run_checks_a_twelfth_of_a_minutes_share(
    season: Season, amber: Node, settings: Any, a_minute: int, least: int, most: int
) -> None:
    settings.RELAY_DECLARED_CHECKS_PER_MINUTE = a_minute
    rollouts = [make_rollout(season) for _ in range(64)]
    await publish_rollouts(
        amber,
        season_id=season.pk,
        rollouts=rollouts,
        informative=[rollout.id for rollout in rollouts],
        rejected=0,
        now=timezone.now(),
        random=Random(0),
    )
    await sync_to_async(keep_declarations)()
    checked = sync_redis().zcard(f"relay:{season.pk}:checked")
    assert least <= checked <= most
