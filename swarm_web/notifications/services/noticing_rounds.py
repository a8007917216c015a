"""Messages to owners about scored rounds, in batches of channels."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef

from judge.models import Round, Score
from swarm_web.notifications.models import Channel, Delivery, RoundNews
from swarm_web.notifications.services.noticing import BATCH, describe_node, queue_all

# A round that closed longer ago is not reported.
_NEWS_FOR = timedelta(hours=1)
# The minimum time between two reported rounds of a channel. Rounds may be a minute apart: people
# get at most one message per hour, programs one per round.
ROUND_PAUSES = {
    Channel.Kind.WEBHOOK: timedelta(0),
    Channel.Kind.EMAIL: timedelta(hours=1),
    Channel.Kind.NTFY: timedelta(hours=1),
}


def notice_rounds(*, now: datetime) -> int:
    """Queue messages about one closed round, for a batch of channels that subscribed to scores.

    Of the rounds that closed in the last hour and have unprocessed channels, the earliest is
    chosen. Its channels are those that existed when it closed and whose owner has nodes that were
    scored in it. A channel gets one message with the scores of all these nodes. It gets none if
    this round closed less than ROUND_PAUSES[kind] after, or before, the last round about which it
    got one.

    Returns how many channels were processed, with or without a message. 0 means that none is left.
    """
    finished = RoundNews.objects.filter(round=OuterRef("pk"), is_done=True)
    unreported = Round.objects.filter(
        ~Exists(finished), phase=Round.Phase.CLOSED, closed_at__gt=now - _NEWS_FOR
    )
    for judge_round in unreported.select_related("season").order_by("closed_at"):
        if processed := _notice_round(judge_round, now=now):
            return processed
    return 0


def _notice_round(judge_round: Round, *, now: datetime) -> int:
    with transaction.atomic():
        RoundNews.objects.bulk_create([RoundNews(round=judge_round)], ignore_conflicts=True)
        news = (
            RoundNews.objects.select_for_update(skip_locked=True)
            .filter(pk=judge_round.pk, is_done=False)
            .first()
        )
        if news is None:
            return 0
        channels = _next_channels(judge_round, after=news.last_channel)
        due = [channel for channel in channels if _is_due(channel, judge_round)]
        _queue(judge_round, due, now=now)
        news.is_done = len(channels) < BATCH
        news.last_channel = channels[-1].pk if channels else news.last_channel
        news.save()
    return len(channels)


def _next_channels(judge_round: Round, *, after: int) -> list[Channel]:
    scored = Score.objects.filter(
        round=judge_round, status=Score.Status.SCORED, node__owner=OuterRef("owner")
    )
    channels = Channel.objects.subscribed_to(Channel.Event.ROUND_SCORED).filter(
        Exists(scored), pk__gt=after, created_at__lte=judge_round.closed_at
    )
    locked = channels.select_for_update(no_key=True, of=("self",))
    return list(locked.order_by("pk")[:BATCH])


def _is_due(channel: Channel, judge_round: Round) -> bool:
    pause = ROUND_PAUSES[Channel.Kind(channel.kind)]
    if channel.round_told_at is None or judge_round.closed_at is None:
        return True
    # In either direction, because another worker may have reported a later round already.
    return abs(judge_round.closed_at - channel.round_told_at) >= pause


def _queue(judge_round: Round, channels: Sequence[Channel], *, now: datetime) -> None:
    scores = _scores_by_owner(judge_round, channels)
    queue_all(
        Delivery(
            channel=channel,
            type=Delivery.Type.ROUND_SCORED,
            key=f"round:{judge_round.pk}",
            data={
                "round": judge_round.number,
                "season": judge_round.season.name,
                "url": settings.SITE_URL + judge_round.get_absolute_url(),
                "nodes": scores[channel.owner_id],
            },
            created_at=now,
        )
        for channel in channels
    )
    Channel.objects.filter(pk__in=[channel.pk for channel in channels]).update(
        round_told_at=judge_round.closed_at
    )


def _scores_by_owner(
    judge_round: Round, channels: Sequence[Channel]
) -> dict[int, list[dict[str, Any]]]:
    scores = Score.objects.filter(
        round=judge_round,
        status=Score.Status.SCORED,
        node__owner__in={channel.owner_id for channel in channels},
    )
    found: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for score in scores.select_related("node").order_by("node__name"):
        found[score.node.owner_id or 0].append(
            {
                **describe_node(score.node),
                "score": score.score,
                "interval": [score.interval_low, score.interval_high],
                "n": score.n,
            }
        )
    return found
