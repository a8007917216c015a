"""Reports about restricted nodes, whose hand-out weight is below 1, and about refusals."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from swarm_protocol.errors import FIXES
from swarm_web.core.refusals import LastRefusal, Refusals, read_refusals
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Conduct
from swarm_web.relay.selectors.conduct import count_held, held_nodes

LISTED = 50
_FIXES = {code.value: fix for code, fix in FIXES.items()}
# What was found, and what the owner can do.
_CHARGES: dict[Conduct.Charge, tuple[Promise, Promise]] = {
    Conduct.Charge.REFUSED: (
        _("%(bad)d of %(total)d messages and rollouts from this node were refused."),
        _("Update the client. The refusals are listed below."),
    ),
    Conduct.Charge.FLOODING: (
        _("%(bad)d messages exceeded this site's rate limit."),
        _("Update the client: newer versions wait when the site asks them to."),
    ),
    Conduct.Charge.UNHEEDING: (
        _(
            "This site disconnected the node %(bad)d times within an hour because it kept sending"
            " without reading replies or without waiting when asked to."
        ),
        _("Update the client: newer versions wait for each reply, and when the site asks them to."),
    ),
    Conduct.Charge.COPYING: (
        _("%(bad)d of %(total)d rollouts were copies of other rollouts in the pool."),
        _("Share only what the node's own model generated, each rollout once."),
    ),
    Conduct.Charge.WORTHLESS: (
        _(
            "%(bad)d of %(total)d checked rollouts are unusable: the question cannot be "
            "regenerated or is not for training, or the verifier hangs or fails on a "
            "completion."
        ),
        _("Update the client, and train on the season's tasks."),
    ),
    Conduct.Charge.MISDECLARED: (
        _(
            "No completion was right in %(bad)d of %(total)d checked rollouts that it declared"
            " informative."
        ),
        _("Update the client, and declare only rollouts with right and wrong completions."),
    ),
    Conduct.Charge.TOO_RIGHT: (
        _(
            "All completions were right in %(bad)d of %(total)d checked rollouts; its judge scores"
            " allow at most %(allowed)d %%."
        ),
        _("Share what the model itself generated, and answer the judge with the same model."),
    ),
    Conduct.Charge.OPERATOR: (_("The operator decided this."), _("Contact the operator.")),
}


# ---- hand-outs


@dataclass(frozen=True)
class HandOut:
    """Why a node's hand-out weight is below 1, so that its rollouts are drawn less often or never.

    `row` has the level of the weight, the time when it was set, and the finding.
    """

    row: Conduct

    @property
    def why(self) -> str:
        """Why the weight is below 1, in words."""
        row = self.row
        shares = {"bad": row.bad, "total": row.total, "allowed": round(100 * row.allowed)}
        return str(_CHARGES[Conduct.Charge(row.charge)][0]) % shares

    @property
    def remedy(self) -> str:
        """What the owner can do to restore the weight, in words."""
        return str(_CHARGES[Conduct.Charge(self.row.charge)][1])


@dataclass(frozen=True)
class HandOuts:
    """The restricted nodes of a season: those whose hand-out weight is below 1.

    `counts` has (label of the finding, label of the weight's level, number of nodes) and covers all
    restricted nodes. `nodes` has at most LISTED of them; the node whose level was set last comes
    first.
    """

    counts: list[tuple[str, str, int]]
    nodes: list[HandOut]

    @property
    def total(self) -> int:
        """Number of restricted nodes."""
        return sum(nodes for *_rest, nodes in self.counts)


def read_hand_outs(season_id: int) -> HandOuts:
    """Return the restricted nodes of a season, in two queries."""
    counts = [
        (str(Conduct.Charge(charge).label), str(Conduct.Level(level).label), nodes)
        for (charge, level), nodes in count_held(season_id).items()
    ]
    return HandOuts(counts, [HandOut(row) for row in held_nodes(season_id, limit=LISTED)])


# ---- refusals


@dataclass(frozen=True)
class RefusalReport:
    """The refusals that the site recently sent to a node, each with an error code.

    `refusals` is None while Redis is unavailable.
    """

    refusals: Refusals | None

    @property
    def last(self) -> LastRefusal | None:
        """The latest refusal; None if there is none, or while Redis is unavailable."""
        return self.refusals.last if self.refusals else None

    @property
    def fix(self) -> str:
        """What the owner can do about `last`; empty if that is unknown, or if `last` is None."""
        return _translate_fix(self.last.code) if self.last else ""

    @property
    def lines(self) -> list[tuple[str, int, str]]:
        """(code, number of refusals, what the owner can do) for each code, most frequent first."""
        counts = self.refusals.counts if self.refusals else {}
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return [(code, times, _translate_fix(code)) for code, times in ordered]


def read_refusal_report(node: Node) -> RefusalReport:
    """Return the refusals that the site recently sent to a node."""
    return RefusalReport(read_refusals(node.pk))


def _translate_fix(code: str) -> str:
    """Return the fix for an error code, in the reader's language; empty for unknown codes."""
    fix = _FIXES.get(code)
    return gettext(fix) if fix else ""
