"""How often the rollouts of a node are handed out, and why, in plain words."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from swarm_web.relay.models import Conduct
from swarm_web.relay.selectors import count_held, held_nodes

LISTED = 50


@dataclass(frozen=True)
class HandOut:
    """A node's level (Conduct.Level) and charge (Conduct.Charge), with their words.

    `why` is what was found, `remedy` what the owner can do. `until` is when the level rises by
    itself; None where it does not.
    """

    node: str
    level: str
    level_words: str
    charge: str
    why: str
    remedy: str
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True)
class HandOuts:
    """How many nodes are handed out less, by the words of charge and level, and the latest."""

    counts: list[tuple[str, str, int]]
    nodes: list[HandOut]

    @property
    def total(self) -> int:
        """How many nodes there are."""
        return sum(nodes for _, _, nodes in self.counts)


def read_hand_outs(season_id: int) -> HandOuts:
    """Return the nodes of a season whose rollouts are handed out less, in two queries."""
    counts = [
        (str(Conduct.Charge(charge).label), str(Conduct.Level(level).label), nodes)
        for (charge, level), nodes in count_held(season_id).items()
    ]
    return HandOuts(counts, [tell(row) for row in held_nodes(season_id, limit=LISTED)])


def tell(row: Conduct) -> HandOut:
    """Return a node's level with its reason."""
    charge = Conduct.Charge(row.charge) if row.charge else None
    return HandOut(
        node=row.node.name,
        level=row.level,
        level_words=str(Conduct.Level(row.level).label),
        charge=row.charge,
        why=_say_why(charge, row) if charge else "",
        remedy=_say_remedy(charge) if charge else "",
        since=row.since,
        until=row.until,
    )


def _say_why(charge: Conduct.Charge, row: Conduct) -> str:
    said = {
        Conduct.Charge.REFUSED: _(
            "%(bad)d of %(total)d messages and rollouts from this node were refused."
        ),
        Conduct.Charge.FLOODING: _("%(bad)d messages exceeded this site's rate limit."),
        Conduct.Charge.UNHEEDING: _(
            "This site disconnected the node %(bad)d times within an hour because it kept sending"
            " without reading replies or without waiting when asked to."
        ),
        Conduct.Charge.COPYING: _(
            "%(bad)d of %(total)d rollouts were copies of other rollouts in the pool."
        ),
        Conduct.Charge.WORTHLESS: _(
            "%(bad)d of %(total)d checked rollouts are unusable: the question cannot be "
            "regenerated or belongs to the judge, or the verifier hangs or fails on a "
            "completion."
        ),
        Conduct.Charge.MISDECLARED: _(
            "No completion was right in %(bad)d of %(total)d checked rollouts that it declared"
            " informative."
        ),
        Conduct.Charge.TOO_RIGHT: _(
            "All completions were right in %(bad)d of %(total)d checked rollouts; its judge scores"
            " allow at most %(allowed)d %%."
        ),
        Conduct.Charge.OPERATOR: _("The operator decided this."),
    }
    shares = {"bad": row.bad, "total": row.total, "allowed": round(100 * row.allowed)}
    return said[charge] % shares


def _say_remedy(charge: Conduct.Charge) -> str:
    said = {
        Conduct.Charge.REFUSED: _("Update the client. The refusals are listed below."),
        Conduct.Charge.FLOODING: _(
            "Update the client: newer versions wait when the site asks them to."
        ),
        Conduct.Charge.UNHEEDING: _(
            "Update the client: newer versions wait for each reply, and when the site asks them to."
        ),
        Conduct.Charge.COPYING: _(
            "Share only what the node's own model generated, each rollout once."
        ),
        Conduct.Charge.WORTHLESS: _("Update the client, and train on the season's tasks."),
        Conduct.Charge.MISDECLARED: _(
            "Update the client, and declare only rollouts with right and wrong completions."
        ),
        Conduct.Charge.TOO_RIGHT: _(
            "Share what the model itself generated, and answer the judge with the same model."
        ),
        Conduct.Charge.OPERATOR: _("Contact the operator."),
    }
    return said[charge]
