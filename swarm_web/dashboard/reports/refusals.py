"""What a node was refused lately, each code with what helps; pure."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from swarm_protocol.errors import FIXES
from swarm_web.refusals import Refusals

_FIXES = {code.value: fix for code, fix in FIXES.items()}


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
