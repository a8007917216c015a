"""What a node's owner can do about a result that is lower than it might be; pure."""

from django.utils.translation import gettext as _

from judge.models import Score


def advise(reason: str) -> str:
    """Return what helps against one of Score.Reason; nothing for a complete result."""
    advice = {
        Score.Reason.UNANSWERED: _("Use a faster device or a smaller model to answer in time."),
        Score.Reason.UNSCORED: _(
            "No action needed: this does not lower the score. If it happens often, tell "
            "the operator."
        ),
        Score.Reason.NOT_OFFERED: _(
            "Check what its terminal showed while the round was open: the node was busy, "
            "stuck or offline. Missing a round does not lower the score."
        ),
        Score.Reason.DECLINED: _(
            "Let all your nodes answer the rounds they are invited to, or stop them "
            "before a round opens."
        ),
        Score.Reason.CAME_LATE: _("No action needed: leave it running for the next round."),
    }
    return advice.get(Score.Reason(reason), "")
