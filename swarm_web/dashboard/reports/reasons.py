"""What a node's owner can do about a result that is lower than it might be; pure."""

from django.utils.translation import gettext as _

from judge.models import Score


def advise(reason: str) -> str:
    """Return what helps against one of Score.Reason; nothing for a complete result."""
    advice = {
        Score.Reason.UNANSWERED: _("A faster device or a smaller model answers in time."),
        Score.Reason.UNSCORED: _(
            "Nothing to do: it costs the node nothing. If it happens often, tell the operator."
        ),
        Score.Reason.NOT_OFFERED: _(
            "Look at what its terminal said while the round was open: it was busy, stuck or "
            "offline. Absence lowers no score."
        ),
        Score.Reason.DECLINED: _(
            "Let all your nodes answer the rounds that they are invited to, or stop them before a "
            "round opens."
        ),
        Score.Reason.CAME_LATE: _("Nothing to do: leave it running for the next round."),
    }
    return advice.get(Score.Reason(reason), "")
