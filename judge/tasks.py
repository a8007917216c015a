"""Celery's entry to the judge: thin, idempotent, safe to run twice or at once."""

from celery import shared_task
from django.utils import timezone

from judge.selectors import running_season
from judge.services.answers import find_unscored, score_answers
from judge.services.rounds import end_answering, ensure_next_round, open_due_rounds
from judge.services.scores import close_scored_rounds
from judge.verifiers import process_verifier
from swarm_web import heartbeat

# Small enough that a tick never waits long behind a batch.
BATCH = 256


@shared_task
def tick_rounds() -> None:
    """Move every round on as far as the clock allows."""
    now = timezone.now()
    end_answering(now=now)
    close_scored_rounds(now=now)
    open_due_rounds(now=now)
    # Last, because drawing questions may fail, and what was drawn before must go on.
    season = running_season()
    if season is not None:
        ensure_next_round(season, now=now, verifier=process_verifier())
    heartbeat.stamp(heartbeat.Part.CLOCK, now=now)


@shared_task
def grade_answers(answer_ids: list[int]) -> None:
    """Grade freshly stored answers."""
    score_answers(answer_ids, verifier=process_verifier())


@shared_task
def sweep_unscored() -> None:
    """Grade the answers that a crash or a lost message left behind."""
    while batch := find_unscored(now=timezone.now(), limit=BATCH):
        if not score_answers(batch, verifier=process_verifier()):
            return
