"""Test the report of a node's refusals."""

from django.utils import timezone, translation

from swarm_protocol.errors import FIXES, ErrorCode
from swarm_web.core.refusals import LastRefusal, Refusals
from swarm_web.dashboard.reports.conduct import RefusalReport

LATE = Refusals({"answer.late": 2}, LastRefusal("answer.late", "too late", timezone.now()))


def test_remedy_is_translated() -> None:
    english = FIXES[ErrorCode.ANSWER_LATE]
    report = RefusalReport(LATE)
    assert report.fix == english
    assert report.lines == [("answer.late", 2, english)]
    with translation.override("fa"):
        assert report.fix not in ("", english)


def test_unknown_code_has_no_remedy() -> None:
    new = LATE.last
    assert new is not None
    report = RefusalReport(Refusals({"new.code": 1}, LastRefusal("new.code", "?", new.at)))
    assert report.fix == ""
