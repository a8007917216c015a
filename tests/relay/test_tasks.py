"""The setting for the number of checked declarations."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.models import Season
from swarm_web.core.store import sync_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.keys import season_key
from swarm_web.relay.tasks import check_conduct
from tests.factories import make_rollout
from tests.relay.sharing import offer_checks, publish_rollouts

pytestmark = pytest.mark.usefixtures("tidy_stores")


@pytest.mark.parametrize(("per_minute", "checked"), [(0, 0), (1, 1), (60, 10), (120, 20)])
async def test_task_checks_as_many_rollouts_as_are_queued_between_two_runs(
    season: Season, amber: Node, settings: Any, per_minute: int, checked: int
) -> None:
    settings.RELAY_DECLARED_CHECKS_PER_MINUTE = per_minute
    settings.RELAY_SPOT_CHECKS_PER_MINUTE = 0
    rollouts = [make_rollout(season) for _ in range(64)]
    await publish_rollouts(
        amber,
        season_id=season.pk,
        rollouts=rollouts,
        informative=[rollout.id for rollout in rollouts],
        now=timezone.now(),
    )
    await offer_checks(season.pk, 32, now=timezone.now())
    await sync_to_async(check_conduct)()
    assert sync_redis().zcard(season_key(season.pk, "checked")) == checked
