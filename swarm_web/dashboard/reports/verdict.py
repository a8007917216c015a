"""The answer to "is my node working?": one sentence, its reason, and what to do; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from django.utils.translation import gettext as _

from judge.models import Score, Standing
from swarm_web.dashboard.reports.turn import Turn
from swarm_web.nodes.models import Node

State = Literal["good", "waiting", "bad"]


@dataclass(frozen=True)
class Verdict:
    """`text` follows the node's name in a sentence; `reason` says why, and what helps."""

    state: State
    text: str
    reason: str


@dataclass(frozen=True)
class Place:
    """A node's place on the season's leaderboard.

    `remark` is one of Standing.Remark; `n` questions count so far, and a rank needs `minimum`. It
    missed `missed` rounds to which it was invited.
    """

    remark: str
    n: int
    minimum: int
    missed: int = 0


def judge_health(
    node: Node,
    *,
    connected: bool,
    season_runs: bool,
    scores: Sequence[Score],
    place: Place | None,
    turn: Turn | None = None,
) -> Verdict:
    """Say whether a node works; `scores` are its results in the season, newest first.

    `turn` is its part in the round that goes on, None where it has none. The first thing that
    stands in the way is the answer: later ones follow from it.
    """
    if node.blocked:
        return Verdict(
            "bad",
            _("is blocked."),
            _("The operator blocked its token. Contact the operator to learn why."),
        )
    if node.quarantined:
        return Verdict(
            "bad",
            _("is quarantined."),
            _(
                "The operator removed it from the ranking. It is still judged and keeps its "
                "data. The reason is shown below. If you disagree, contact the operator, who "
                "can restore it at once."
            ),
        )
    if not connected:
        return _explain_absence(node)
    if not season_runs:
        return Verdict(
            "waiting",
            _("is connected and training alone."),
            _("No season is running. It joins automatically when one starts."),
        )
    if turn is not None and turn.came_late:
        return _await_next_round(turn.number)
    if not scores:
        return _await_first_score(turn)
    return _add_turn(_judge_last_round(scores[0], place=place), turn)


def _await_next_round(missed: int) -> Verdict:
    return Verdict(
        "waiting",
        _("is connected and waiting for its next round."),
        _("It joined after round %(number)s opened. You do not need to do anything.")
        % {"number": missed},
    )


def _await_first_score(turn: Turn | None) -> Verdict:
    if turn is not None and turn.answered:
        return Verdict("good", _("is connected and answering its first round."), turn.words)
    waits = Verdict(
        "waiting",
        _("is connected and waiting for its first round."),
        _("It takes part in the next round that opens. You do not need to do anything."),
    )
    return waits if turn is None else _add_turn(replace(waits, reason=""), turn)


def _add_turn(verdict: Verdict, turn: Turn | None) -> Verdict:
    """Tell beside a verdict what the node does in the round that goes on.

    A node that does nothing there is not called healthy, whatever it did before.
    """
    if turn is None:
        return verdict
    if not turn.offered and not turn.is_open:
        return _explain_miss(turn.number)
    if not turn.offered and turn.half_over and verdict.state != "bad":
        return Verdict(
            "waiting",
            _("is connected but has not requested round %(number)s yet.") % {"number": turn.number},
            _(
                "Half of the answering time has passed. The node may still be finishing a "
                "training step. If the round closes first, check its terminal for the last "
                "error."
            ),
        )
    return replace(verdict, reason=f"{verdict.reason} {turn.words}".strip())


def _explain_absence(node: Node) -> Verdict:
    if node.last_seen is None:
        return Verdict(
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
    return Verdict("bad", _("is offline."), f"{why} {_('Start the client again: it resumes.')}")


def _judge_last_round(last: Score, *, place: Place | None) -> Verdict:
    number = {"number": last.round.number}
    if last.reason in {Score.Reason.NOT_OFFERED, Score.Reason.DECLINED}:
        return _explain_miss(last.round.number)
    if last.reason == Score.Reason.CAME_LATE:
        return _await_next_round(last.round.number)
    if last.reason == Score.Reason.UNANSWERED:
        return Verdict(
            "bad",
            _("answers too slowly: round %(number)s closed before it had finished.") % number,
            _("Unanswered questions count as wrong. Use a faster device or a smaller model."),
        )
    if last.reason == Score.Reason.UNSCORED:
        return Verdict(
            "good",
            _("is healthy."),
            _("Some recent questions could not be graded in time: they do not count for any node."),
        )
    return _judge_place(number, place=place)


def _explain_miss(missed: int) -> Verdict:
    return Verdict(
        "bad",
        _("is connected but missed round %(number)s.") % {"number": missed},
        _("It did not request the questions. Check its terminal for the last error."),
    )


def _judge_place(number: dict[str, int], *, place: Place | None) -> Verdict:
    """Say what a node that answered all of its last round still waits for."""
    answered = _("It is connected and answered all questions of round %(number)s.") % number
    if place is None:
        return Verdict("good", _("is healthy but not ranked yet."), answered)
    if place.remark == Standing.Remark.BASE:
        return Verdict(
            "good",
            _("is healthy."),
            _("It is an untrained model, shown for comparison and not ranked. %(answered)s")
            % {"answered": answered},
        )
    if place.remark == Standing.Remark.TOO_FEW:
        return Verdict(
            "good",
            _("is healthy but not ranked yet."),
            _("A rank requires %(minimum)s questions; %(n)s count so far. %(answered)s")
            % {"minimum": place.minimum, "n": place.n, "answered": answered},
        )
    if place.remark == Standing.Remark.OFTEN_ABSENT:
        return Verdict(
            "bad",
            _("is healthy again but not ranked."),
            _("It missed %(missed)s rounds it was invited to. %(answered)s")
            % {"missed": place.missed, "answered": answered},
        )
    return Verdict("good", _("is healthy."), answered)
