"""Test the report of a node's refusals."""

from django.utils import timezone, translation

from swarm_protocol.errors import FIXES, ErrorCode
from swarm_web.core.refusals import LastRefusal, Refusals
from swarm_web.dashboard.reports.conduct import describe_refusals

LATE = Refusals({"answer.late": 2}, LastRefusal("answer.late", "too late", timezone.now()))


def test_remedy_is_translated() -> None:
    english = FIXES[ErrorCode.ANSWER_LATE]
    report = describe_refusals(LATE)
    assert report is not None
    assert (report.fix, report.lines[0].fix) == (english, english)
    with translation.override("fa"):
        translated = describe_refusals(LATE)
    assert translated is not None
    assert translated.fix
    assert translated.fix != english


def test_unknown_code_has_no_remedy() -> None:
    new = LATE.last
    assert new is not None
    report = describe_refusals(Refusals({"new.code": 1}, LastRefusal("new.code", "?", new.at)))
    assert report is not None
    assert report.fix == ""
