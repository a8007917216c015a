"""Operator actions and the form of a season in the admin, and rounds with results for them."""

import html
import json
from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from judge.models import Answer, Round, Ruling, Season, Standing
from judge.services.answers import take_seat
from judge.services.grading import grade_batch
from judge.services.rounds import advance_rounds
from judge.services.scheduling import schedule_round
from judge.services.standings import refresh_standings
from swarm_protocol.errors import RefusedError
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_tasks.allowlist import check_config
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.models import Node
from swarm_web.nodes.presence import touch
from tests.judge.conftest import SUMS, Clock, answers_to, connect_node
from tests.judge.toys import submit_answers


def act(operator: Client, model: str, action: str, *keys: int) -> str:
    """Run an action on selected rows, and return the next page."""
    response = operator.post(
        f"/admin/{model}/", {"action": action, "_selected_action": keys}, follow=True
    )
    return html.unescape(response.content.decode())


def decide(operator: Client, model: str, action: str, *keys: int, reason: str) -> str:
    """Confirm an action with a reason, and return the next page."""
    response = operator.post(
        f"/admin/{model}/",
        {"action": action, "_selected_action": keys, "decided": "yes", "reason": reason},
        follow=True,
    )
    return html.unescape(response.content.decode())


def use_unknown_dataset(season: Season) -> str:
    """Give a season an unknown dataset; return the text of the resulting error."""
    season.tasks = [{"dataset": "unknown_dataset", "config": {}, "weight": 1.0}]
    season.save(update_fields=["tasks"])
    with pytest.raises(RefusedError) as refusal:
        check_config("unknown_dataset", {})
    return f"{refusal.value.message}. {refusal.value.fix}"


def play_round(season: Season, clock: Clock, verifier: Verifier, **right: int) -> Round:
    """Play and close a round; `right` has each node's number of correct answers."""
    judge_round = answer_round(season, clock, verifier, **right)
    close_round(judge_round, clock)
    return judge_round


def answer_round(season: Season, clock: Clock, verifier: Verifier, **right: int) -> Round:
    """Play a round until all answers are graded."""
    nodes = {_seen(name, clock): correct for name, correct in right.items()}
    judge_round = schedule_round(season, opens_at=clock.now, now=clock.now, verifier=verifier)
    advance_rounds(now=clock.now)
    for node, correct in nodes.items():
        take_seat(node, number=judge_round.number, now=clock.now)
        answers = answers_to(judge_round, right=correct)
        submit_answers(node, number=judge_round.number, answers=answers, now=clock.now)
    grade_batch(verifier=verifier)
    return judge_round


def close_round(judge_round: Round, clock: Clock) -> None:
    """Close a round whose answers are graded, and update the leaderboard."""
    advance_rounds(now=clock.advance(1))
    judge_round.refresh_from_db()
    assert judge_round.phase == Round.Phase.CLOSED
    refresh_standings(judge_round.season, now=clock.now)


def _seen(name: str, clock: Clock) -> Node:
    known = Node.objects.filter(name=name).first()
    if known is None:
        return connect_node(name, clock)
    touch([known], now=clock.now)
    return known


def misgrade(judge_round: Round, name: str) -> None:
    """Set the verdict of all of a node's answers to "wrong"."""
    answers = Answer.objects.filter(question__round=judge_round, node__name=name)
    answers.update(score=0.0, solved=False, verdict="wrong")


def standing_of(name: str, window: str = "round") -> Standing:
    """Return a node's standing."""
    return Standing.objects.get(node__name=name, window=window)


def only_ruling() -> tuple[str, str, str]:
    """Return the only ruling's action, actor and reason."""
    ruling = Ruling.objects.select_related("actor").get()
    assert ruling.actor is not None
    assert isinstance(ruling.made_at, datetime)
    return ruling.action, ruling.actor.get_username(), ruling.reason


# ---- the form of a season

RULES = {
    "name": "Autumn",
    "questions_per_round": 4,
    "max_new_tokens": 64,
    "temperature": 0,
    "system_prompt": SYSTEM_PROMPT,
    "completions": 8,
    "local": 4,
    "external": 4,
    "assignment": "choice",
    "isolated_share": 0.5,
    "trial_rounds": 200,
    "cadence_seconds": 120,
    "planned_rounds": 3,
    "open_seconds": 60,
    "scoring_seconds": 30,
    "early_advance": "on",
    "late_joiners": "wait",
    "recent_rounds": 20,
    "minimum_questions": 16,
    "minimum_attendance": 90,
    "minimum_client": "",
    "next_minimum_client": "",
}


def post_season(operator: Client, tasks: Any, **changes: Any) -> str:
    return _post(operator, "/admin/judge/season/add/", {"tasks": json.dumps(tasks), **changes})


def change_season(operator: Client, season: Season, **changes: Any) -> str:
    typed = {"name": season.name, "tasks": json.dumps(SUMS), **changes}
    return _post(operator, f"/admin/judge/season/{season.pk}/change/", typed)


def _post(operator: Client, path: str, changes: dict[str, Any]) -> str:
    response = operator.post(path, {**RULES, **changes}, follow=True)
    return html.unescape(response.content.decode())
