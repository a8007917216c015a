"""The judge's Celery tasks: thin, safe to run twice or concurrently.

Only `recompute` does its work again in a second run, and adds another ruling and another link to
the chain.

Beat runs all of them but `recompute` every few seconds. So work is still done if a crash or a lost
message interrupted it. The gateway also queues `grade_answers` when answers arrive, so that grading
starts earlier.
"""

from time import monotonic

from celery import shared_task
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from judge.models import Round
from judge.selectors.seasons import running_season, seasons_to_refresh
from judge.services.grading import grade_batch
from judge.services.inspection import inspect_closed_rounds
from judge.services.oversight import recompute_round
from judge.services.rounds import advance_rounds, watch_seasons
from judge.services.scheduling import draw_waiting_rounds, ensure_next_round
from judge.services.scores import rebuild_stale_summary
from judge.services.standings import refresh_standings
from swarm_web.core import drand, heartbeat
from swarm_web.core.verifiers import process_verifier

# A worker with one process must also advance rounds, so a task works for at most this long.
GRADING_BUDGET_S = 2.0
REBUILD_BUDGET_S = 2.0


@shared_task
def tick_rounds() -> None:
    """Extend deadlines after an outage, advance all rounds, and schedule the next round.

    Also update the standings of each season whose rounds advanced, and write the heartbeat.
    """
    now = timezone.now()
    watch_seasons(now=now, silence=heartbeat.web_silence())
    moved = advance_rounds(now=now)
    for season in {judge_round.season for judge_round in moved}:
        refresh_standings(season, now=now)
    # Comes after the existing rounds because drawing questions may fail, which must not stop them.
    # Takes the time again because a round must name a beacon value that is not published yet.
    running = running_season()
    if running is not None:
        ensure_next_round(running, now=timezone.now(), verifier=process_verifier())
    heartbeat.stamp(heartbeat.SitePart.CLOCK, now=now)


@shared_task
def draw_rounds() -> None:
    """Draw the questions of those waiting rounds whose beacon value has been published."""
    draw_waiting_rounds(now=timezone.now(), fetch=drand.fetch_beacon, verifier=process_verifier())


@shared_task
def grade_answers() -> None:
    """Grade waiting answers for about GRADING_BUDGET_S.

    If answers may remain after this time, queue the task again.
    """
    until = monotonic() + GRADING_BUDGET_S
    while grade_batch(verifier=process_verifier()):
        if monotonic() > until:
            grade_answers.delay()
            return


@shared_task(
    autoretry_for=(OperationalError, InterfaceError),
    retry_backoff=True,
    max_retries=None,
    reject_on_worker_lost=True,
)
def recompute(round_id: int, reason: str, actor_id: int | None) -> None:
    """Grade a closed round again, at an operator's request.

    Celery retries the task until the database answers, because beat does not run this task.
    """
    judge_round = Round.objects.select_related("season").get(pk=round_id)
    recompute_round(
        judge_round,
        reason=reason,
        actor=User.objects.filter(pk=actor_id).first() if actor_id else None,
        now=timezone.now(),
        verifier=process_verifier(),
    )


@shared_task
def update_standings() -> None:
    """Refresh standings, inspect newly closed rounds, and rebuild stale summaries.

    Standings are refreshed for each season in which the rounds of a window may have changed. The
    inspection flags copied answers and jumps, and compares the arms. Summaries are rebuilt for
    about REBUILD_BUDGET_S; the next run continues.
    """
    now = timezone.now()
    for season in seasons_to_refresh():
        refresh_standings(season, now=now)
    inspect_closed_rounds(now=now)
    until = monotonic() + REBUILD_BUDGET_S
    while rebuild_stale_summary() and monotonic() < until:
        pass
