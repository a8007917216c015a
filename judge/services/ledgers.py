"""Reading and writing the ledgers of a season, and the scores that are booked in them."""

from collections.abc import Iterable

import msgspec
import numpy as np
from django.db.models import Q, TextField
from django.db.models.functions import Cast

from judge.models import Ledger, Round, Score, Season, Window
from swarm_record.accounts import MISSED, Account, Books, Entry, Tally
from swarm_record.stream import QUESTIONS, pack, stack_scores, unpack
from swarm_tasks.marks import Cells
from swarm_web.bulk import copy_rows

# Decoded by msgspec from text: some ten times as fast as Django's own decoding of JSON columns.
_decode_tallies = msgspec.json.Decoder(dict[str, Tally]).decode
_decode_cells = msgspec.json.Decoder(Cells).decode
_COLUMNS = (
    *("season_id", "node_id", "model", "arm", "tallies", "deviations", "deviation_rounds"),
    *("answered", "solved", "scores"),
)


def load_books(season: Season, *, end: int) -> Books:
    """Read all ledgers of a season, whose stream has `end` columns."""
    rows = (
        Ledger.objects.filter(season=season)
        .annotate(text=Cast("tallies", TextField()))
        .values_list("node_id", "model", "arm", "text", "deviations", "deviation_rounds")
    )
    accounts = [
        Account(node_id, i, model, arm, _decode_tallies(text), deviations, rounds)
        for i, (node_id, model, arm, text, deviations, rounds) in enumerate(rows.order_by("pk"))
    ]
    stored = list(
        Ledger.objects.filter(season=season)
        .order_by("pk")
        .values_list("answered", "solved", "scores")
    )
    return Books(
        accounts,
        answered=unpack([bytes(row[0]) for row in stored], QUESTIONS),
        solved=unpack([bytes(row[1]) for row in stored], QUESTIONS),
        scores=stack_scores([bytes(row[2]) for row in stored], max(0, end - QUESTIONS)),
    )


def save_books(season: Season, books: Books) -> None:
    """Write the ledgers that were touched; nodes of which nothing is left lose theirs."""
    Ledger.objects.filter(season=season, node__in=books.touched).delete()
    copy_rows(Ledger, _COLUMNS, _touched_rows(season, books))


def _touched_rows(season: Season, books: Books) -> Iterable[tuple[object, ...]]:
    for node_id in sorted(books.touched):
        account = books.accounts[node_id]
        if not account.tallies:
            continue
        yield (
            *(season.pk, node_id, account.model, account.arm),
            msgspec.json.encode(account.tallies).decode(),
            *(account.deviations, account.deviation_rounds),
            *(pack(books.answered[account.row]), pack(books.solved[account.row])),
            books.scores[account.row].astype("<f4").tobytes(),
        )


def read_entries(judge_round: Round) -> list[Entry]:
    """Return what a round's scores are worth, node by node, and who missed it though invited."""
    count = judge_round.questions.count()
    scored = Q(status=Score.Status.SCORED) & ~Q(cells={})
    rows = list(
        Score.objects.filter(scored | Q(reason__in=MISSED), round=judge_round)
        .annotate(text=Cast("cells", TextField()))
        .values_list(
            *("node_id", "model", "arm", "text", "deviation", "reason", "answered", "solved")
        )
    )
    nothing = pack(np.zeros(count, dtype=bool))
    answered = unpack([bytes(row[-2]) or nothing for row in rows], count)
    solved = unpack([bytes(row[-1]) or nothing for row in rows], count)
    return [
        Entry(node_id, model, arm, _decode_cells(text), answered[i], solved[i], deviation, reason)
        for i, (node_id, model, arm, text, deviation, reason, _, _) in enumerate(rows)
    ]


def read_newest_labels(rounds: Iterable[Round]) -> Iterable[tuple[int, str, str]]:
    """Return (node, model, arm) of the nodes in some rounds, as the newest of their rounds has it.

    Only rounds that count are looked at.
    """
    rounds = list(rounds)
    scored = Score.objects.filter(status=Score.Status.SCORED)
    return (
        scored.filter(
            node__in=scored.filter(round__in=rounds).values("node"),
            round__season=rounds[0].season_id,
            round__counted__window=Window.SEASON,
        )
        .exclude(cells={})
        .order_by("node_id", "-round__number")
        .distinct("node_id")
        .values_list("node_id", "model", "arm")
    )
