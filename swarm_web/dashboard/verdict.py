"""The answer to "is my node working?": one sentence, its reason, and what to do; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from django.utils.translation import gettext as _

from judge.models import Score
from swarm_web.nodes.models import Node

State = Literal["good", "waiting", "bad"]


@dataclass(frozen=True)
class Verdict:
    """`text` follows the node's name in a sentence; `reason` says why, and what helps."""

    state: State
    text: str
    reason: str


def judge_health(
    node: Node, *, connected: bool, season_runs: bool, scores: Sequence[Score], ranked: bool
) -> Verdict:
    """Say whether a node works; `scores` are its results in the season, newest first.

    The first thing that stands in the way is the answer: later ones follow from it.
    """
    if node.blocked:
        return Verdict("bad", _("is blocked."), _("The operator blocked its token. Ask them why."))
    if not connected:
        return _explain_absence(node)
    if not season_runs:
        return Verdict(
            "waiting",
            _("is connected and trains alone."),
            _("No season is running. It joins in by itself when one starts."),
        )
    if not scores:
        return Verdict(
            "waiting",
            _("is connected and waits for its first round."),
            _("It is judged in the next round that opens; nothing is left for you to do."),
        )
    return _judge_last_round(scores[0], ranked=ranked)


def _explain_absence(node: Node) -> Verdict:
    if node.last_seen is None:
        return Verdict(
            "waiting",
            _("has not connected yet."),
            _("Start it with swarm-node join and its token."),
        )
    if node.left_at is not None and node.left_at >= node.last_seen:
        why = _("Its client said goodbye.")
    else:
        why = _("Its heartbeat stopped without a goodbye: network, sleep or a crash.")
    return Verdict("bad", _("is offline."), f"{why} {_('Start the client again: it resumes.')}")


def _judge_last_round(last: Score, *, ranked: bool) -> Verdict:
    number = last.round.number
    if last.reason == Score.Reason.NOT_OFFERED:
        return Verdict(
            "bad",
            _("is connected but missed round %(number)s.") % {"number": number},
            _("It never asked for the questions. Look at its terminal: the last error is there."),
        )
    if last.reason == Score.Reason.UNANSWERED:
        return Verdict(
            "bad",
            _("answers too slowly: round %(number)s closed first.") % {"number": number},
            _("Unanswered questions count as wrong. Use a faster device or a smaller model."),
        )
    if last.reason == Score.Reason.UNSCORED:
        return Verdict(
            "good",
            _("is healthy."),
            _("Some of its last answers could not be verified in time; they do not count."),
        )
    standing = _("is healthy.") if ranked else _("is healthy and not ranked yet.")
    return Verdict("good", standing, _("It is connected and answered all of round %d.") % number)
