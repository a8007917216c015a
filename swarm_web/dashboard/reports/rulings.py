"""What the operator decided about a round or a node, in plain words; never who it was."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from judge.models import Ruling


@dataclass(frozen=True)
class RulingLine:
    """A decision: what was done, the operator's reason as written, and what it changed."""

    action: str
    text: str
    reason: str
    changes: dict[str, int]
    made_at: datetime

    @property
    def counts(self) -> list[tuple[str, int]]:
        """What it changed, for templates: there a key can hide a method of a dictionary."""
        return list(self.changes.items())


def describe_rulings(rulings: Iterable[Ruling]) -> list[RulingLine]:
    """Return rulings in plain words, in the order given."""
    return [
        RulingLine(
            action=ruling.action,
            text=_say(Ruling.Action(ruling.action)),
            reason=ruling.reason,
            changes={k: v for k, v in ruling.changes.items() if isinstance(v, int)},
            made_at=ruling.made_at,
        )
        for ruling in rulings
    ]


def _say(action: Ruling.Action) -> str:
    said = {
        Ruling.Action.VOID: _("The operator excluded this round from all scores."),
        Ruling.Action.RECOMPUTE: _("The operator had this round's answers regraded."),
        Ruling.Action.QUARANTINE: _("The operator removed this node from the ranking."),
        Ruling.Action.RELEASE: _("The operator restored this node to the ranking."),
        Ruling.Action.DISMISS: _("The operator reviewed an anomaly and found it harmless."),
    }
    return said[action]
