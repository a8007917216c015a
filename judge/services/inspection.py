"""Inspects closed rounds: searches for copied answers and score jumps, and compares the arms.

Findings are flagged for the operator and change no score.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.db.models import Window as Over
from django.db.models.functions import RowNumber

from judge.engine import Phase
from judge.models import (
    Answer,
    Flag,
    Ledger,
    Question,
    Round,
    Score,
)
from judge.services.comparing import compare_after_round
from judge.statistics.copying import WrongAnswer, find_copies
from judge.statistics.jumps import MAX_ROUNDS, ScoreHistory, find_jumps
from swarm_tasks.answers import AnswerRules, list_answers
from swarm_web.nodes.models import Node

# Rounds searched together for copies: a single round of 16 questions shows too little.
COMPARED_ROUNDS = 4
# How many rounds a history reaches back: a node may have learned much during a longer absence.
HISTORY_ROUNDS = 2 * MAX_ROUNDS


def inspect_closed_rounds(*, now: datetime) -> list[Round]:
    """Call `inspect_round` for each closed round that was not inspected; return these rounds.

    The oldest round comes first.
    """
    closed = Round.objects.filter(phase=Phase.CLOSED, inspected_at=None).select_related("season")
    inspected = list(closed.order_by("number"))
    for judge_round in inspected:
        inspect_round(judge_round, now=now)
    return inspected


def inspect_round(judge_round: Round, *, now: datetime) -> None:
    """Search a round and those before it for suspicious patterns, and store flags for them.

    Also compares the arms of the round's season (`compare_after_round`), and marks the round as
    inspected. A pair of nodes with an open flag for copied answers gets no second one.
    """
    flags = [*_flag_copies(judge_round, now=now), *_flag_jumps(judge_round, now=now)]
    with transaction.atomic():
        Flag.objects.bulk_create(flags, ignore_conflicts=True)
        compare_after_round(judge_round.season, now=now)
        Round.objects.filter(pk=judge_round.pk).update(inspected_at=now)


# ---- copies


def _flag_copies(judge_round: Round, *, now: datetime) -> list[Flag]:
    """Return unsaved flags for the pairs of nodes that `find_copies` finds.

    Pairs that have an open flag for copied answers are left out.
    """
    findings = find_copies(_wrong_answers(judge_round))
    others = Node.objects.in_bulk([finding.second for finding in findings])
    already_open = set(
        Flag.objects.filter(kind=Flag.Kind.COPIED, state=Flag.State.OPEN).values_list(
            "node_id", "other_id"
        )
    )
    return [
        Flag(
            kind=Flag.Kind.COPIED,
            round=judge_round,
            node_id=finding.first,
            other_id=finding.second,
            text=finding.describe(others[finding.second].name),
            p_adjusted=finding.p_adjusted,
            created_at=now,
        )
        for finding in findings
        if (finding.first, finding.second) not in already_open
    ]


def _wrong_answers(judge_round: Round) -> Iterator[WrongAnswer]:
    """Yield the wrong answers in the season's last closed rounds up to and with this round.

    Reads at most COMPARED_ROUNDS rounds.
    """
    closed = judge_round.season.rounds.filter(phase=Phase.CLOSED, number__lte=judge_round.number)
    rounds = list(closed.order_by("-number").values_list("pk", flat=True)[:COMPARED_ROUNDS])
    models = dict(Ledger.objects.filter(season=judge_round.season).values_list("node_id", "model"))
    questions = Question.objects.filter(round__in=rounds).order_by("round", "position")
    for number, question in enumerate(questions.values_list("pk", flat=True)):
        wrong = Answer.objects.filter(question=question, solved=False).order_by("node_id")
        for node_id, text in wrong.values_list("node_id", "text"):
            yield WrongAnswer(number, node_id, models.get(node_id, ""), _normalise(text))


def _normalise(text: str) -> str:
    """Return a completion's answer without wrappings such as `**`, or "" if it has no answer.

    `find_copies` ignores "". The most lenient answer rules are used in every season: otherwise a
    copier could hide by writing its tags in upper case, or the answers in bold.
    """
    answers = list_answers(text, rules=AnswerRules.UNWRAPPED)
    return answers[-1] if answers else ""


# ---- jumps


def _flag_jumps(judge_round: Round, *, now: datetime) -> list[Flag]:
    return [
        Flag(
            kind=Flag.Kind.JUMPED,
            round=judge_round,
            node_id=finding.node,
            text=finding.describe(),
            p_adjusted=finding.p_adjusted,
            created_at=now,
        )
        for finding in find_jumps(_read_histories(judge_round))
    ]


def _read_histories(judge_round: Round) -> list[ScoreHistory]:
    """Return the histories of the nodes scored in the round.

    A history has a node's result in the round, and from the HISTORY_ROUNDS rounds before, up to
    MAX_ROUNDS of the node's results, the newest ones.
    """
    scored = Score.objects.filter(status=Score.Status.SCORED)
    results = scored.filter(round=judge_round).values_list("node_id", "correct", "n")
    latest = {node_id: (correct, n) for node_id, correct, n in results}
    recent = (
        scored.filter(
            node__in=list(latest),
            round__season=judge_round.season_id,
            round__phase=Phase.CLOSED,
            round__number__range=(judge_round.number - HISTORY_ROUNDS, judge_round.number - 1),
        )
        .annotate(
            age=Over(RowNumber(), partition_by=F("node_id"), order_by=F("round__number").desc())
        )
        .filter(age__lte=MAX_ROUNDS)
    )
    earlier: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    results = recent.order_by("round__number").values_list("node_id", "correct", "n")
    for node_id, correct, n in results:
        earlier[node_id].append((correct, n))
    return [ScoreHistory(node_id, earlier[node_id], result) for node_id, result in latest.items()]
