"""Answers "is my node working?" in one line, with the reason and a remedy.

The node's page on the site answers in similar words (`swarm_web.dashboard.reports.node_health`).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from node_client.display.figures import describe_duration
from node_client.display.lines import describe_pause
from node_client.display.terminal import fold_line
from node_client.display.view import NodeView

State = Literal["working", "waiting", "needs attention"]

# A lost connection needs the owner's attention after this many seconds; the client reconnects.
OFFLINE_GRACE_S = 300.0
# Codes of problems that only the owner can fix; each is shown for PROBLEM_SHOWN_FOR.
OWNER_CODES = frozenset({"checkpoint"})
PROBLEM_SHOWN_FOR = timedelta(minutes=10)


@dataclass(frozen=True)
class Health:
    """Whether a node works. `text` follows the node's name in a sentence, such as "is healthy.".

    `reason` is the cause and what to do; it may be empty.
    """

    state: State
    text: str
    reason: str


def assess_health(view: NodeView, *, now: datetime, clock: float) -> Health:
    """Return a node's health.

    If several things keep the node from working, only the most important one is named. `now` is the
    time in UTC. `clock` is the monotonic time in seconds, as in `view.offline_since` and
    `view.connection.retry_at`.
    """
    if view.stopping:
        work = "submits its answers" if view.arm == "base" else "finishes the step and saves"
        return Health("waiting", "is stopping.", f"It {work}; Ctrl-C again quits at once.")
    if view.paused is not None:
        end = "`swarm-node resume` ends the pause." if view.paused.reason == "asked" else ""
        return Health("waiting", f"is {describe_pause(view.paused)}.", end)
    if _needs_owner(view, now=now):
        assert view.problem is not None
        why = f"{fold_line(view.problem.message)} {fold_line(view.problem.fix)}"
        return Health("needs attention", "cannot save its work.", why)
    if view.site is None:
        return Health("working", "trains alone.", "`swarm-node join URL` joins a swarm.")
    if view.connection is None:
        return Health("waiting", "is connecting.", "")
    if view.connection.phase != "connected":
        return _explain_absence(view, clock=clock)
    return _assess_rounds(view)


def _needs_owner(view: NodeView, *, now: datetime) -> bool:
    problem = view.problem
    if problem is None or problem.code not in OWNER_CODES:
        return False
    return now - problem.moment < PROBLEM_SHOWN_FOR


def _explain_absence(view: NodeView, *, clock: float) -> Health:
    assert view.connection is not None
    assert view.site is not None
    gone_s = 0.0 if view.offline_since is None else clock - view.offline_since
    going_on = "The judge cannot ask it." if view.arm == "base" else ""
    if view.report is not None:
        going_on = "Training goes on."
    if view.connection.phase == "connecting" and (
        gone_s < OFFLINE_GRACE_S or view.connection.planned
    ):
        return Health("waiting", "is connecting.", going_on)
    again = f"trying again in {max(0, round(view.connection.retry_at - clock))} s"
    if view.connection.phase == "connecting":
        again = "trying again now"
    reason = fold_line(view.connection.reason) or "the connection was lost"
    why = f"{reason[0].upper()}{reason[1:]}; {again}. {going_on}".rstrip()
    if view.connection.planned:
        return Health("waiting", "is offline, as its coordinator asked.", why)
    if gone_s < OFFLINE_GRACE_S:
        return Health("waiting", "is offline.", why)
    remedy = f"Gone for {describe_duration(gone_s)}: run `swarm-node doctor {view.site.base}`."
    return Health("needs attention", "is offline.", f"{why} {remedy}")


def _assess_rounds(view: NodeView) -> Health:
    """Return the health of a connected node, from its standing and its rounds."""
    standing = view.standing
    if standing is not None and standing.remark == "quarantined":
        why = "The operator removed it from the ranking. It is still judged; see its page."
        return Health("needs attention", "is quarantined.", why)
    if view.season is None:
        alone = "is connected." if view.arm == "base" else "is connected and training alone."
        why = "No season is running. It joins automatically when one starts."
        return Health("waiting", alone, why)
    if view.round is not None and view.skipped_round == view.round.number:
        why = f"It joined after round {view.skipped_round} opened. You do not need to do anything."
        return Health("waiting", "is connected and waiting for its next round.", why)
    missed = _assess_last_round(view)
    if missed is not None:
        return missed
    if standing is None or standing.score is None:
        return _await_first_score(view)
    if standing.remark == "too_few":
        why = f"{standing.n:,} questions count so far; a rank requires more."
        return Health("working", "is healthy but not ranked yet.", why)
    if standing.remark == "often_absent":
        why = "It missed too many of the rounds it was invited to. Keep it running."
        return Health("working", "is healthy again but not ranked.", why)
    if standing.remark == "base":
        why = "It is an untrained model, shown for comparison and not ranked."
        return Health("working", "is healthy.", why)
    return Health("working", "is healthy.", _describe_success(view))


def _await_first_score(view: NodeView) -> Health:
    current = view.round
    answer_count = view.answered[current.number] if current is not None else 0
    if current is not None and current.phase in {"open", "scoring"} and answer_count:
        progress = f"{answer_count} of {current.questions} questions of round {current.number}"
        why = f"It has answered {progress}."
        return Health("working", "is connected and answering its first round.", why)
    why = "It takes part in the next round that opens. You do not need to do anything."
    return Health("waiting", "is connected and waiting for its first round.", why)


def _assess_last_round(view: NodeView) -> Health | None:
    """Return what is wrong if this node did not answer all questions of the latest finished round.

    Return None if the node answered all questions or could not take part. Also return None as long
    as that round is the current one and not closed, because it is then being scored or void.
    """
    last, current = view.finished_round, view.round
    if last is None or last.number == view.skipped_round:
        return None
    if current is not None and current.number == last.number and current.phase != "closed":
        return None  # answers may still be acknowledged, or the round was void
    if view.answered[last.number] >= last.questions:
        return None
    if not view.answered[last.number]:
        text = f"is connected but missed round {last.number}."
        return Health("needs attention", text, "The last problem below says why, if one was met.")
    why = "Unanswered questions count as wrong. Use a faster device or a smaller model."
    text = f"answers too slowly: round {last.number} closed before it had finished."
    return Health("needs attention", text, why)


def _describe_success(view: NodeView) -> str:
    last = view.finished_round
    if last is not None and last.number != view.skipped_round:
        return f"It is connected and answered all questions of round {last.number}."
    return "It is connected and takes part."
