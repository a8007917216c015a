"""Which experiment answers which question, and what it says: from `summary.toml` to `summary.json`.

`summary.toml` names, for each question, comparisons in reports and what is expected of them.
Numbers and sentences are made from the reports, whether or not they are as expected.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from node_client.errors import NodeError
from node_client.lab.config import Phase
from node_client.lab.report.comparing import adjust, compare
from node_client.lab.report.making import read_report
from node_client.lab.report.shape import ArmReport, Comparison, GroupOfNodes, Outcome, Report
from node_client.lab.report.tables import NAMES
from node_client.lab.report.words import (
    say_gain,
    say_gain_interval,
    say_interval,
    say_p_is,
    say_signed,
)
from node_client.lab.statistics import LEVEL

Question = Literal[
    "sparse",
    "recipe",
    "map",
    "rival",
    "mechanism",
    "oscillation",
    "heterogeneous",
    "poisoning",
    "srpo",
]
Expectation = Literal["more", "less", "no less", "nothing"]
# How much less `no less` may be, where a claim does not say.
NO_LESS = 0.9
UNANSWERED = "Not measured yet."


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """One comparison that answers a question.

    `report` is the folder of a `report.json`, from the summary's own. `against` is its baseline if
    left out; `group` names nodes of a heterogeneous arm. Expected is `more` or `less` beyond chance
    (with `at_least`, more by that ratio), or `no less`: the interval of the ratio stays above
    `at_least`, or .9. Where `nothing` is expected the comparison describes, and tests nothing.
    """

    answers: Question
    report: str
    arm: str
    against: str | None = None
    outcome: Outcome = "own"
    group: str | None = None
    expects: Expectation = "more"
    at_least: float | None = None


class Claims(Struct, frozen=True, forbid_unknown_fields=True):
    """A `summary.toml`."""

    claims: list[Claim]


class Finding(Struct, frozen=True):
    """What a claim came to. `p_adjusted` is after Holm over the question's own tests (`find`).

    `holds` is None where nothing was expected.
    """

    experiment: str
    phase: Phase
    expects: Expectation
    at_least: float | None
    holds: bool | None
    comparison: Comparison


class SummaryError(NodeError):
    """A summary cannot be read, or names what is not there."""


def make_summary(folder: Path) -> dict[str, Any]:
    """Return the `summary.json` of a folder's `summary.toml`. Raises SummaryError."""
    path = folder / "summary.toml"
    try:
        claims = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Claims).claims
    except (OSError, ValueError, msgspec.ValidationError) as problem:
        raise SummaryError(
            f"{path} cannot be read: {problem}.", fix="docs/lab.md says what it may hold."
        ) from problem
    reports = {name: _read(folder / name) for name in {claim.report for claim in claims}}
    return {
        question: _answer(
            question, find([each for each in claims if each.answers == question], reports)
        )
        for question in get_args(Question)
    }


def find(claims: Sequence[Claim], reports: dict[str, Report]) -> list[Finding]:
    """Return what came of the claims that answer one question, in their order.

    The claims of a recipe hold together or not at all, so each is tested at the full level (R. L.
    Berger, Technometrics 24, 1982: intersection-union). `no less` is judged by intervals alone, and
    where nothing is expected nothing is tested.
    """
    compared = [_compare(claim, reports[claim.report]) for claim in claims]
    tested = [
        place
        for place, claim in enumerate(claims)
        if claim.answers != "recipe" and claim.expects in ("more", "less")
    ]
    for place, adjusted in zip(tested, adjust([compared[at] for at in tested]), strict=True):
        compared[place] = adjusted
    return [
        Finding(
            experiment=reports[claim.report].name,
            phase=reports[claim.report].phase,
            expects=claim.expects,
            at_least=claim.at_least,
            holds=_holds(claim, comparison),
            comparison=comparison,
        )
        for claim, comparison in zip(claims, compared, strict=True)
    ]


def say(findings: Sequence[Finding]) -> str:
    """Return what the findings say, in one sentence for each outcome."""
    if not findings:
        return UNANSWERED
    outcomes = dict.fromkeys(each.comparison.outcome for each in findings)
    said = [
        _say_outcome([each for each in findings if each.comparison.outcome == outcome])
        for outcome in outcomes
    ]
    if any(each.phase == "exploratory" for each in findings):
        said.append("Exploratory in part: not evidence.")
    return " ".join(said)


def _answer(question: Question, findings: Sequence[Finding]) -> dict[str, Any]:
    answer: dict[str, Any] = {"sentence": say(findings), "figures": list(findings)}
    first = findings[0].comparison if findings else None
    if question == "sparse":
        answer |= {
            "gain": first and first.gain,
            "interval": first and [first.gain_low, first.gain_high],
            "p": first and first.p_adjusted,
            "seeds": first and first.seeds,
        }
    if question == "recipe":
        answer |= {
            "name": first and first.arm,
            "gain_over_uniform": first and first.gain,
            "p": first and first.p_adjusted,
            "confirmed_on_unseen": bool(findings)
            and all(each.holds and each.phase == "confirmatory" for each in findings),
        }
    return answer


def _say_outcome(findings: Sequence[Finding]) -> str:
    """Return the sentence about the findings of one outcome."""
    what = NAMES[findings[0].comparison.outcome]
    each = "; ".join(_say_finding(finding) for finding in findings)
    return f"{what[0].upper()}{what[1:]}: {each}{_say_verdict(findings)}."


def _say_verdict(findings: Sequence[Finding]) -> str:
    judged = [finding.holds for finding in findings if finding.holds is not None]
    if not judged:
        return ""
    if len(judged) == 1:
        return " (as expected)" if judged[0] else " (not as expected)"
    return f" ({sum(judged)} of {len(judged)} as expected)"


def _say_finding(finding: Finding) -> str:
    found = finding.comparison
    who = f"{found.arm}{f', {found.group},' if found.group else ''} against {found.against}"
    if found.gain is None:
        size = say_signed(found.difference)
        interval = say_interval(found.difference_low, found.difference_high)
    else:
        size = say_gain(found.gain)
        interval = say_gain_interval(found.gain_low, found.gain_high)
    sure = f"{interval}, " if found.difference_low is not None else ""
    return (
        f"{who} in {finding.experiment} {size}"
        f" [{sure}{found.seeds} seeds, {say_p_is(found.p_adjusted)}]"
    )


def _holds(claim: Claim, found: Comparison) -> bool | None:
    if claim.expects == "nothing":
        return None
    if claim.expects == "no less":
        low = found.gain_low
        return low is not None and low >= (claim.at_least or NO_LESS)
    if found.p_adjusted > LEVEL:
        return False
    if claim.expects == "less":
        return found.difference < 0
    if claim.at_least is not None:
        return found.gain is not None and found.gain >= claim.at_least
    return found.difference > 0


def _compare(claim: Claim, report: Report) -> Comparison:
    arm = _arm(report, claim.arm)
    found = compare(
        arm,
        _arm(report, claim.against or report.baseline),
        claim.outcome,
        seeds=report.seeds,
        group=_group(arm, claim.group),
    )
    if found is None:
        raise SummaryError(
            f"{report.name} did not measure {NAMES[claim.outcome]} in both arms.",
            fix="Ask held-out questions (eval_tasks), or name another outcome.",
        )
    return found


def _arm(report: Report, name: str) -> ArmReport:
    for arm in report.arms:
        if arm.name == name:
            return arm
    raise SummaryError(
        f"The report of {report.name} has no arm {name}.",
        fix=f"Its arms are {', '.join(arm.name for arm in report.arms)}.",
    )


def _group(arm: ArmReport, name: str | None) -> GroupOfNodes | None:
    if name is None:
        return None
    for group in arm.groups:
        if group.name == name:
            return group
    raise SummaryError(
        f"The arm {arm.name} has no {name}.",
        fix=f"Its groups are {', '.join(group.name for group in arm.groups) or 'none'}.",
    )


def _read(folder: Path) -> Report:
    try:
        return read_report(folder / "report.json")
    except (OSError, msgspec.MsgspecError) as problem:
        raise SummaryError(
            f"The report in {folder} cannot be read: {problem}.",
            fix=f"`swarm-node lab report {folder}` writes it.",
        ) from problem
