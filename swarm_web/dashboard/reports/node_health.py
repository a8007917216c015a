"""The answer to "is my node working?": one sentence, its reason, and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

from django.db.models import Count
from django.utils.translation import gettext as _

from judge.models import Round, Score, Season, Standing
from swarm_web.board.leaderboard import LeaderboardRow
from swarm_web.edge.brief_cache import keep_briefly
from swarm_web.nodes.models import Node

HealthState = Literal["good", "waiting", "bad"]


# ---- the current round


@dataclass(frozen=True)
class SeatStatus:
    """A node's seat in round `number`, which is open (`is_open`) or being scored.

    `offered` is whether the node got the questions; it answered `answered` of `questions`.
    `came_late` is whether it is late (see the glossary): it must wait for the next round.
    `half_over` is whether half of the answering time is over.
    """

    number: int
    is_open: bool
    offered: bool
    came_late: bool
    answered: int
    questions: int
    half_over: bool

    @property
    def words(self) -> str:
        """What the node has done in the round so far, as a sentence."""
        number = {"number": self.number}
        if not self.offered:
            return _("It has not requested the questions of round %(number)s yet.") % number
        text = _("It has answered %(answered)s of %(questions)s questions of round %(number)s.")
        return text % {**number, "answered": self.answered, "questions": self.questions}


class _RoundInProgress(NamedTuple):
    """The season's round that is open or being scored."""

    pk: int
    number: int
    phase: str
    opens_at: datetime
    closes_at: datetime
    questions: int


def read_seat_status(node: Node, season: Season, *, now: datetime) -> SeatStatus | None:
    """Return a node's seat in the season's current round; None without a seat."""
    current = keep_briefly(f"in progress:{season.pk}", partial(_read_in_progress, season))
    seat = node.seats.filter(round=current.pk).first() if current else None
    if current is None or seat is None:
        return None
    return SeatStatus(
        number=current.number,
        is_open=current.phase == Round.Phase.OPEN,
        offered=seat.offered_at is not None,
        came_late=seat.came_late,
        answered=node.answers.filter(question__round=current.pk).count(),
        questions=current.questions,
        half_over=now >= current.opens_at + (current.closes_at - current.opens_at) / 2,
    )


def _read_in_progress(season: Season) -> _RoundInProgress | None:
    """Return the latest round that is open or being scored; None if there is none."""
    in_progress = season.rounds.filter(phase__in=[Round.Phase.OPEN, Round.Phase.SCORING])
    counted = in_progress.order_by("-opens_at").annotate(count=Count("questions"))
    found = counted.values_list(*_RoundInProgress._fields[:-1], "count").first()
    return _RoundInProgress(*found) if found else None


# ---- the verdict


@dataclass(frozen=True)
class NodeHealth:
    """Whether a node works, and why.

    `text` continues a sentence that begins with the node's name; `reason` is one or more sentences.
    """

    state: HealthState
    text: str
    reason: str


def judge_health(
    node: Node,
    *,
    connected: bool,
    season_runs: bool,
    scores: Sequence[Score],
    row: LeaderboardRow | None,
    minimum: int,
    seat: SeatStatus | None,
) -> NodeHealth:
    """Return whether a node works. Of several problems, only the first one found is named.

    `season_runs` is whether the season is running. `scores` are the node's results in the season,
    newest first. `row` is the node's row on the season's leaderboard, None if it has no row. `seat`
    is its seat in the current round, None if it has no seat. `minimum` is the number of questions
    that a node needs for a rank.
    """
    if node.blocked:
        return NodeHealth(
            "bad",
            _("is blocked."),
            _("The operator blocked its token. Contact the operator to learn why."),
        )
    if node.quarantined:
        return NodeHealth(
            "bad",
            _("is quarantined."),
            _(
                "The operator removed it from the ranking. It is still judged and keeps its data."
                " The reason is shown below. If you disagree, contact the operator, who can "
                "restore it at once."
            ),
        )
    if not connected:
        return _explain_absence(node)
    if not season_runs:
        return NodeHealth(
            "waiting",
            _("is connected and training alone."),
            _("No season is running. It joins automatically when one starts."),
        )
    if seat is not None and seat.came_late:
        return _await_next_round(seat.number)
    if not scores:
        return _await_first_score(seat)
    return _add_seat_status(_judge_last_round(scores[0], row=row, minimum=minimum), seat)


def _await_next_round(missed: int) -> NodeHealth:
    return NodeHealth(
        "waiting",
        _("is connected and waiting for its next round."),
        _("It joined after round %(number)s opened. You do not need to do anything.")
        % {"number": missed},
    )


def _await_first_score(seat: SeatStatus | None) -> NodeHealth:
    if seat is not None and seat.answered:
        return NodeHealth("good", _("is connected and answering its first round."), seat.words)
    verdict = NodeHealth(
        "waiting",
        _("is connected and waiting for its first round."),
        _("It takes part in the next round that opens. You do not need to do anything."),
    )
    return verdict if seat is None else _add_seat_status(replace(verdict, reason=""), seat)


def _add_seat_status(verdict: NodeHealth, seat: SeatStatus | None) -> NodeHealth:
    """Return `verdict` with the node's progress in the current round added to its reason.

    Without a seat, `verdict` is returned unchanged. A node that has not requested the questions
    gets another verdict instead: `bad` if the round is no longer open; `waiting` if half of the
    answering time is over and `verdict` is not `bad`.
    """
    if seat is None:
        return verdict
    if not seat.offered and not seat.is_open:
        return _explain_miss(seat.number)
    if not seat.offered and seat.half_over and verdict.state != "bad":
        return NodeHealth(
            "waiting",
            _("is connected but has not requested round %(number)s yet.") % {"number": seat.number},
            _(
                "Half of the answering time has passed. The node may still be finishing a "
                "training step. If the round closes first, check its terminal for the last error."
            ),
        )
    return replace(verdict, reason=f"{verdict.reason} {seat.words}".strip())


def _explain_absence(node: Node) -> NodeHealth:
    if node.last_seen is None:
        return NodeHealth(
            "waiting",
            _("has not connected yet."),
            _("Start it with swarm-node join and its token."),
        )
    has_left = node.left_at is not None and node.left_at >= node.last_seen
    if has_left and node.said_goodbye:
        why = _("Its client disconnected normally.")
    elif has_left:
        why = _("Its connection was lost: network failure, sleep or a crash.")
    else:
        why = _("Its heartbeat stopped: network failure, sleep or a crash.")
    remedy = _("Start the client again: it resumes.")
    return NodeHealth("bad", _("is offline."), f"{why} {remedy}")


def _judge_last_round(last: Score, *, row: LeaderboardRow | None, minimum: int) -> NodeHealth:
    number = {"number": last.round.number}
    if last.reason in {Score.Reason.NOT_OFFERED, Score.Reason.DECLINED}:
        return _explain_miss(last.round.number)
    if last.reason == Score.Reason.CAME_LATE:
        return _await_next_round(last.round.number)
    if last.reason == Score.Reason.UNANSWERED:
        return NodeHealth(
            "bad",
            _("answers too slowly: round %(number)s closed before it had finished.") % number,
            _("Unanswered questions count as wrong. Use a faster device or a smaller model."),
        )
    if last.reason == Score.Reason.UNSCORED:
        return NodeHealth(
            "good",
            _("is healthy."),
            _("Some recent questions could not be graded in time: they do not count for any node."),
        )
    return _judge_place(number, row=row, minimum=minimum)


def _explain_miss(missed: int) -> NodeHealth:
    return NodeHealth(
        "bad",
        _("is connected but missed round %(number)s.") % {"number": missed},
        _("It did not request the questions. Check its terminal for the last error."),
    )


def _judge_place(number: dict[str, int], *, row: LeaderboardRow | None, minimum: int) -> NodeHealth:
    """Return the health of a node that answered all questions of its last round.

    `number` is {"number": the round's number}, to be inserted into texts.
    """
    answered = _("It is connected and answered all questions of round %(number)s.") % number
    if row is None:
        return NodeHealth("good", _("is healthy but not ranked yet."), answered)
    if row.remark == Standing.Remark.BASE:
        return NodeHealth(
            "good",
            _("is healthy."),
            _("It is an untrained model, shown for comparison and not ranked. %(answered)s")
            % {"answered": answered},
        )
    if row.remark == Standing.Remark.TOO_FEW:
        return NodeHealth(
            "good",
            _("is healthy but not ranked yet."),
            _("A rank requires %(minimum)s questions; %(n)s count so far. %(answered)s")
            % {"minimum": minimum, "n": row.n, "answered": answered},
        )
    if row.remark == Standing.Remark.OFTEN_ABSENT:
        return NodeHealth(
            "bad",
            _("is healthy again but not ranked."),
            _("It missed %(missed)s rounds it was invited to. %(answered)s")
            % {"missed": row.missed, "answered": answered},
        )
    return NodeHealth("good", _("is healthy."), answered)
