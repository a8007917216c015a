"""Decisions that only the operator may make: void, recompute, quarantine, release, dismiss.

Each decision is one transaction: it makes the change, records a Ruling and updates the leaderboards
that the change affects. When a node is quarantined or released, the summaries of its rounds are not
rewritten in the transaction: they are marked as stale, and rebuilt soon after.
"""

from datetime import datetime

import msgspec
from django.contrib.auth.models import User
from django.db import transaction

from judge.engine import Phase
from judge.models import Answer, Flag, Question, Round, Ruling, Score, Season
from judge.services.announcing import announce_round
from judge.services.comparing import compare_season
from judge.services.grading import Graded, replace_verdicts
from judge.services.record import add_link, record_results, record_void
from judge.services.scores import mark_stale, write_scores
from judge.services.standings import lock_standings, rebuild_standings, refresh_standings
from swarm_protocol.messages import TaskSpec
from swarm_tasks.pool import AnyVerifier
from swarm_web.nodes.models import Node

Actor = User | None


# ---- rounds


def void_round(judge_round: Round, *, reason: str, actor: Actor, now: datetime) -> bool:
    """Exclude a round from totals and ranks, but keep its data.

    Returns False, and changes nothing, if the round is void already.
    """
    with transaction.atomic():
        lock_standings(judge_round.season)
        locked = Round.objects.select_for_update().get(pk=judge_round.pk)
        before = locked.phase
        if before == Phase.VOID:
            return False
        locked.change_phase(Phase.VOID, void_reason=reason)
        judge_round.refresh_from_db()
        _record_ruling(
            Ruling.Action.VOID,
            reason,
            actor,
            now,
            round=judge_round,
            changes={"phase_before": before},
        )
        refresh_standings(judge_round.season, now=now)
        compare_season(judge_round.season, now=now)
        record_void(judge_round, now=now)
        announce_round(judge_round, now=now)
    return True


def recompute_round(
    judge_round: Round,
    *,
    reason: str,
    actor: Actor,
    now: datetime,
    verifier: AnyVerifier,
) -> Ruling | None:
    """Grade a closed round's answers again and replace its scores.

    Returns the ruling, or None if the round is not closed. All answers are graded first, then all
    changes are made in one transaction. Raises RefusedError, and changes nothing, if a question
    cannot be generated again or the verifier fails.
    """
    if judge_round.phase != Phase.CLOSED:
        return None
    graded = _grade_again(judge_round, verifier=verifier)
    with transaction.atomic():
        # Also keeps the round from being voided meanwhile.
        lock_standings(judge_round.season)
        if not Round.objects.filter(pk=judge_round.pk, phase=Phase.CLOSED).exists():
            return None
        before = _score_table(judge_round)
        refresh_standings(judge_round.season, now=now, excluding={judge_round.pk})
        regraded = replace_verdicts(graded)
        write_scores(judge_round)
        refresh_standings(judge_round.season, now=now)
        compare_season(judge_round.season, now=now)
        after = _score_table(judge_round)
        changed = sum(before.get(node) != score for node, score in after.items())
        record_results(judge_round, "recomputed", now=now, reason=reason)
        return _record_ruling(
            Ruling.Action.RECOMPUTE,
            reason,
            actor,
            now,
            round=judge_round,
            changes={"answers_changed": regraded, "scores_changed": changed},
        )


def _grade_again(judge_round: Round, *, verifier: AnyVerifier) -> list[Graded]:
    """Return a new verdict for every answer of the round."""
    graded: list[Graded] = []
    for question in Question.objects.filter(round=judge_round):
        answers = list(Answer.objects.filter(question=question).values_list("pk", "text"))
        spec = msgspec.convert(question.spec, TaskSpec)
        (verdicts,) = verifier.score_many(
            [(spec, [text for _, text in answers])], rules=judge_round.answer_rules
        )
        graded += zip((pk for pk, _ in answers), verdicts, strict=True)
    return graded


def _score_table(judge_round: Round) -> dict[int, float | None]:
    return dict(Score.objects.filter(round=judge_round).values_list("node_id", "score"))


# ---- nodes and flags


def quarantine_node(
    node: Node, *, reason: str, actor: Actor, now: datetime, flag: Flag | None = None
) -> bool:
    """Exclude a node from the ranks, and uphold `flag` if it is open.

    Returns False if the node was already quarantined and no flag was upheld. A quarantined node is
    still judged, and its data stays.
    """
    with transaction.atomic():
        changed = _set_quarantined(node, to=True, now=now)
        if changed:
            add_link("quarantined", now=now, node=node.name, reason=reason)
        if flag is not None:
            opened = Flag.objects.filter(pk=flag.pk, state=Flag.State.OPEN)
            changed = bool(opened.update(state=Flag.State.UPHELD)) or changed
        if changed:
            _record_ruling(Ruling.Action.QUARANTINE, reason, actor, now, node=node, flag=flag)
    return changed


def release_node(node: Node, *, reason: str, actor: Actor, now: datetime) -> bool:
    """Return a quarantined node to the ranks; record this in the chain and as a ruling.

    Returns False, and changes nothing, if the node is not quarantined.
    """
    with transaction.atomic():
        if not _set_quarantined(node, to=False, now=now):
            return False
        add_link("released", now=now, node=node.name, reason=reason)
        _record_ruling(Ruling.Action.RELEASE, reason, actor, now, node=node)
    return True


def _set_quarantined(node: Node, *, to: bool, now: datetime) -> bool:
    """Quarantine a node, or release it if `to` is False; return whether this changed anything.

    After a change, the standings and comparisons of all seasons of the node are computed again, and
    the summaries of the node's rounds are marked as stale.
    """
    if not Node.objects.filter(pk=node.pk, quarantined=not to).update(quarantined=to):
        return False
    node.refresh_from_db()
    for season in Season.objects.filter(ledgers__node=node):
        rebuild_standings(season)
        compare_season(season, now=now)
    mark_stale(node)
    return True


def dismiss_flag(flag: Flag, *, reason: str, actor: Actor, now: datetime) -> bool:
    """Record that an open flag was found harmless; return False if the flag is not open."""
    with transaction.atomic():
        opened = Flag.objects.filter(pk=flag.pk, state=Flag.State.OPEN)
        if not opened.update(state=Flag.State.DISMISSED):
            return False
        _record_ruling(Ruling.Action.DISMISS, reason, actor, now, node=flag.node, flag=flag)
    return True


def _record_ruling(
    action: Ruling.Action, reason: str, actor: Actor, now: datetime, **about: object
) -> Ruling:
    return Ruling.objects.create(action=action, reason=reason, actor=actor, made_at=now, **about)
