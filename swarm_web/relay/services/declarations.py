"""Checks pooled rollouts with the site's verifier, and decides which nodes' declarations count.

The results are also evidence of conduct (`services.conduct`). If a worker crashes, the rollouts
that it has taken off the queue are not checked, which is acceptable.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from swarm_tasks.answers import AnswerRules, find_rules
from swarm_tasks.pool import AnyVerifier
from swarm_web.core.store import sync_redis
from swarm_web.relay.check_queue import set_lapsed, take_checks
from swarm_web.relay.conduct import Checked
from swarm_web.relay.models import Contribution
from swarm_web.relay.services.conduct import record_checks
from swarm_web.relay.services.scoring import check_rollout
from swarm_web.relay.trust import Trust, count_check

logger = logging.getLogger(__name__)

# The fields that a check changes; the node's messages change the rest of the row.
_COUNTED_FIELDS = (
    *("declared_checked", "declared_false", "window_checked", "window_false"),
    "declarations_lapsed_at",
)


def check_declarations(
    *, verifier: AnyVerifier, now: datetime, limit: int, is_late: Callable[[], bool]
) -> int:
    """Check up to `limit` queued rollouts, and publish which nodes' declarations have lapsed.

    Returns how many rollouts were taken off the queue (`take_checks`). Unreadable rollouts and
    those taken before are not counted. Returns 0 and does nothing if no season is running, or if no
    node has contributed to the running season yet. Rollouts of other seasons are dropped unchecked.

    `is_late` is called before each check, because a question that hangs the generator takes
    seconds. Once it returns True, the remaining rollouts are dropped unchecked.
    """
    season = _running_season()
    if season is None:
        return 0
    season_id, rules = season
    # Published each time: Redis may have lost it, a worker may have crashed before publishing it,
    # or the operator may have changed it.
    set_lapsed(sync_redis(), season_id, _lapsed_nodes(season_id))
    drawn = take_checks(
        sync_redis(), limit, now=now.timestamp(), max_age_s=settings.RELAY_MAX_AGE_S
    )
    found: defaultdict[int, list[Checked]] = defaultdict(list)
    for check in takewhile(lambda _: not is_late(), drawn):
        if check.season_id != season_id:
            continue
        checked = check_rollout(check.read_rollout(), rules=rules, verifier=verifier)
        if checked is not None:
            found[check.node_id].append(replace(checked, declared=check.declared))
    record_checks(found, season_id=season_id, now=now)
    lapses = [_count_checks(node, season_id, checks, now=now) for node, checks in found.items()]
    if any(lapses):
        set_lapsed(sync_redis(), season_id, _lapsed_nodes(season_id))
    return len(drawn)


def restore_declarations(contributions: QuerySet[Contribution]) -> int:
    """Let the lapsed declarations in these contributions count again; return how many had lapsed.

    When a worker next publishes which nodes' declarations have lapsed, the web processes drop the
    restored nodes' rollouts from the pool (`SeasonPool.apply_results` says why).
    """
    return contributions.filter(declarations_lapsed_at__isnull=False).update(
        declarations_lapsed_at=None, window_checked=0, window_false=0
    )


def _running_season() -> tuple[int, AnswerRules] | None:
    """Return the running season's id and answer rules.

    None if no season is running, or if no node has contributed to the running season yet.
    """
    contributions = Contribution.objects.filter(season__state="running")
    rows = contributions.values_list("season_id", "season__answer_rules")[:1]
    return next(((pk, find_rules(name)) for pk, name in rows), None)


def _lapsed_nodes(season_id: int) -> list[int]:
    lapsed = Contribution.objects.filter(season=season_id, declarations_lapsed_at__isnull=False)
    return list(lapsed.values_list("node_id", flat=True))


def _count_checks(
    node_id: int, season_id: int, checks: Sequence[Checked], *, now: datetime
) -> bool:
    """Count a node's checks of declared rollouts; return whether they made its declarations lapse.

    Deleted nodes, and nodes without a contribution yet, are skipped.
    """
    are_false = [not checked.informative for checked in checks if checked.declared]
    if not are_false:
        return False
    with transaction.atomic():
        rows = Contribution.objects.select_for_update().filter(node=node_id, season=season_id)
        contribution = rows.first()
        if contribution is None:
            return False
        had_lapsed = contribution.declarations_lapsed_at is not None
        trust = Trust(contribution.window_checked, contribution.window_false, had_lapsed)
        for is_false in are_false:
            trust = count_check(trust, is_false=is_false)
        contribution.declared_checked += len(are_false)
        contribution.declared_false += sum(are_false)
        contribution.window_checked, contribution.window_false = trust.checked, trust.false
        if trust.lapsed != had_lapsed:
            contribution.declarations_lapsed_at = now if trust.lapsed else None
            logger.info("declarations of node %s %s", node_id, "lapse" if trust.lapsed else "count")
        contribution.save(update_fields=_COUNTED_FIELDS)
    return trust.lapsed and not had_lapsed
