"""Reports about restricted nodes (how often their rollouts are handed out), and about refusals."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from swarm_protocol.errors import FIXES
from swarm_web.core.refusals import Refusals, read_refusals
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Conduct
from swarm_web.relay.selectors.conduct import count_held, held_nodes

LISTED = 50
_FIXES = {code.value: fix for code, fix in FIXES.items()}


# ---- hand-outs


@dataclass(frozen=True)
class HandOut:
    """How often a node's rollouts are handed out (`level`, a Conduct.Level), and why.

    `charge` is a Conduct.Charge, empty at full level. `why` is what was found, `remedy` what the
    owner can do, both in words. `until` is when the level rises automatically, None if it does not.
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
    """The restricted nodes of a season.

    `counts` are (label of the charge, label of the level, number of nodes); `nodes` are at most
    LISTED of the nodes.
    """

    counts: list[tuple[str, str, int]]
    nodes: list[HandOut]

    @property
    def total(self) -> int:
        """Number of restricted nodes."""
        return sum(nodes for _, _, nodes in self.counts)


def read_hand_outs(season_id: int) -> HandOuts:
    """Read the nodes of a season whose rollouts are handed out less often, in two queries."""
    counts = [
        (str(Conduct.Charge(charge).label), str(Conduct.Level(level).label), nodes)
        for (charge, level), nodes in count_held(season_id).items()
    ]
    return HandOuts(counts, [describe_hand_out(row) for row in held_nodes(season_id, limit=LISTED)])


def describe_hand_out(row: Conduct) -> HandOut:
    """Return the report of a node's level and its reason."""
    charge = Conduct.Charge(row.charge) if row.charge else None
    return HandOut(
        node=row.node.name,
        level=row.level,
        level_words=str(Conduct.Level(row.level).label),
        charge=row.charge,
        why=_explain_charge(charge, row) if charge else "",
        remedy=_suggest_remedy(charge) if charge else "",
        since=row.since,
        until=row.until,
    )


def _explain_charge(charge: Conduct.Charge, row: Conduct) -> str:
    text = {
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
    return text[charge] % shares


def _suggest_remedy(charge: Conduct.Charge) -> str:
    text = {
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
    return text[charge]


# ---- refusals


@dataclass(frozen=True)
class RefusalLine:
    """An error code with which messages were refused, how often, and what the owner can do."""

    code: str
    times: int
    fix: str


@dataclass(frozen=True)
class RefusalReport:
    """A node's latest refusal, and its refusals by code in `lines`, most frequent first."""

    code: str
    message: str
    fix: str
    at: datetime
    lines: list[RefusalLine]


@dataclass(frozen=True)
class RefusalHistory:
    """A node's recent refusals; `report` is None if there are none or they cannot be read.

    `is_known` is False while they cannot be read, because Redis is unavailable.
    """

    report: RefusalReport | None
    is_known: bool


def read_refusal_history(node: Node) -> RefusalHistory:
    """Read a node's recent refusals."""
    refusals = read_refusals(node.pk)
    return RefusalHistory(describe_refusals(refusals), is_known=refusals is not None)


def describe_refusals(refusals: Refusals | None) -> RefusalReport | None:
    """Return the report of these refusals; None if there are none, or they are unknown."""
    if refusals is None or refusals.last is None:
        return None
    last = refusals.last
    ordered = sorted(refusals.counts.items(), key=lambda item: (-item[1], item[0]))
    return RefusalReport(
        code=last.code,
        message=last.message,
        fix=_translate_fix(last.code),
        at=last.at,
        lines=[RefusalLine(code, times, _translate_fix(code)) for code, times in ordered],
    )


def _translate_fix(code: str) -> str:
    """Return the fix for a code in the reader's language; empty for unknown codes."""
    fix = _FIXES.get(code)
    return _(fix) if fix else ""
