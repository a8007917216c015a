"""What a node reports of its training is stored, as far as it is believed."""

from datetime import datetime

from django.db.models import Value
from django.db.models.functions import Greatest, Least

from swarm_protocol.messages import ReportTraining
from swarm_web.nodes.models import Node
from swarm_web.relay.deliveries import Deliveries
from swarm_web.relay.models import TrainingPoint
from swarm_web.relay.services.contributions import change_contribution
from swarm_web.store import async_redis

# A chart shows no more, and thousands of nodes report each second.
POINT_EVERY_S = 180


async def record_training(
    node: Node, *, season_id: int, report: ReportTraining, now: datetime
) -> None:
    """Store what a node reports of its training, and credit whose rollouts it used.

    Totals never fall, so that a report that arrives twice or late counts once; and no node has
    used more external rollouts than it was given.
    """
    await change_contribution(
        node,
        season_id,
        step=Greatest("step", Value(report.step)),
        local_used=Greatest("local_used", Value(report.local_used)),
        external_used=Least(Greatest("external_used", Value(report.external_used)), "delivered"),
        training_reward=report.training_reward,
        informative_share=report.informative_share,
        external_dropped=report.external_dropped,
    )
    if report.used:
        deliveries = Deliveries(async_redis(), season_id=season_id, taker_id=node.pk)
        await deliveries.credit(report.used, now=now.timestamp())
    await _keep_point(node, season_id, report, now=now)


async def _keep_point(node: Node, season_id: int, report: ReportTraining, *, now: datetime) -> None:
    """Keep a point of training, if the node's last one is POINT_EVERY_S old."""
    key = f"relay:{season_id}:point:{node.pk}"
    if await async_redis().set(key, 1, nx=True, ex=POINT_EVERY_S):
        await TrainingPoint.objects.acreate(
            node=node,
            season_id=season_id,
            at=now,
            step=report.step,
            training_reward=report.training_reward,
            informative_share=report.informative_share,
            reflection=dict(report.reflection),
        )
