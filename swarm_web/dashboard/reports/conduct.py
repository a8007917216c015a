"""What limits a node: how often its rollouts are handed out, and what it was refused."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from swarm_protocol.errors import FIXES
from swarm_web.nodes.models import Node
from swarm_web.refusals import Refusals, read_refusals
from swarm_web.relay.models import Conduct
from swarm_web.relay.selectors import count_held, held_nodes

LISTED = 50
_FIXES = {code.value: fix for code, fix in FIXES.items()}


# ---- hand-outs


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
            "%(bad)d of %(total)d messages and rollouts that it sent were refused."
        ),
        Conduct.Charge.FLOODING: _("%(bad)d messages came faster than this site allows."),
        Conduct.Charge.COPYING: _(
            "%(bad)d of %(total)d rollouts were copies of others in the pool."
        ),
        Conduct.Charge.WORTHLESS: _(
            "%(bad)d of %(total)d checked rollouts teach nobody: their question cannot be made or"
            " belongs to the judge, or the verifier hangs or fails on a completion."
        ),
        Conduct.Charge.TOO_RIGHT: _(
            "All completions were right in %(bad)d of %(total)d checked rollouts; its judge scores"
            " allow at most %(allowed)d %%."
        ),
        Conduct.Charge.OPERATOR: _("The operator decided so."),
    }
    shares = {"bad": row.bad, "total": row.total, "allowed": round(100 * row.allowed)}
    return said[charge] % shares


def _say_remedy(charge: Conduct.Charge) -> str:
    said = {
        Conduct.Charge.REFUSED: _("Update the client; see below what was refused."),
        Conduct.Charge.FLOODING: _("Update the client: newer ones wait when they are told to."),
        Conduct.Charge.COPYING: _("Share only what the node's own model wrote, each rollout once."),
        Conduct.Charge.WORTHLESS: _("Update the client, and train on the tasks of the season."),
        Conduct.Charge.TOO_RIGHT: _(
            "Share what the model itself wrote, and answer the judge with the same model."
        ),
        Conduct.Charge.OPERATOR: _("Ask the operator."),
    }
    return said[charge]


# ---- refusals


@dataclass(frozen=True)
class RefusalLine:
    """A code, how often it came, and what its owner can do."""

    code: str
    times: int
    fix: str


@dataclass(frozen=True)
class RefusalReport:
    """What was refused last, and how often what was, most often first."""

    code: str
    message: str
    fix: str
    at: datetime
    lines: list[RefusalLine]


@dataclass(frozen=True)
class Refused:
    """What a node was refused lately, if anything; not known while the record cannot be read."""

    report: RefusalReport | None
    is_known: bool


def read_refused(node: Node) -> Refused:
    """Read what a node was refused lately."""
    refusals = read_refusals(node.pk)
    return Refused(describe_refusals(refusals), is_known=refusals is not None)


def describe_refusals(refusals: Refusals | None) -> RefusalReport | None:
    """Return what a node was refused, if anything is known."""
    if refusals is None or refusals.last is None:
        return None
    last = refusals.last
    ordered = sorted(refusals.counts.items(), key=lambda item: (-item[1], item[0]))
    return RefusalReport(
        code=last.code,
        message=last.message,
        fix=_tell_fix(last.code),
        at=last.at,
        lines=[RefusalLine(code, times, _tell_fix(code)) for code, times in ordered],
    )


def _tell_fix(code: str) -> str:
    """Say what helps against a code in the reader's language; nothing for codes that are new."""
    fix = _FIXES.get(code)
    return _(fix) if fix else ""
