"""The summary of several experiments by question: from `summary.toml` to `summary.json`.

For each question, `summary.toml` lists claims: comparisons in reports, with the expected result.
Numbers and sentences are computed from the reports, whether or not the results are as expected.
Claims about an experiment can be made before it has a report; they are then pending, and
already count in the correction for multiple tests.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from node_client.errors import NodeError
from node_client.lab.config import Phase
from node_client.lab.report.comparing import BY_NODE, compare
from node_client.lab.report.making import read_report
from node_client.lab.report.numbers import (
    format_gain,
    format_gain_interval,
    format_interval,
    format_p_is,
    format_signed,
    rounded,
)
from node_client.lab.report.shape import ArmComparison, ArmReport, GroupOfNodes, Outcome, Report
from node_client.lab.report.tables import NAMES
from node_client.lab.statistics import LEVEL, holm

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
# Default lower bound of the ratio for `no less`.
NO_LESS = 0.9
UNANSWERED = "Not measured yet."


class ExpectedResult(Struct, frozen=True, forbid_unknown_fields=True):
    """One claim: a comparison of `arm` that answers a question, and its expected result.

    `report` is the folder of a `report.json`, relative to the folder of `summary.toml`. If the
    folder does not exist yet, `experiments/REPORT.toml` must exist beside `summary.toml`; REPORT is
    the value of `report`. `against` is an arm, by default the report's baseline. `group` names
    the nodes that are compared, None for all. `expects` is one of:

    - `more` or `less` than `against`, with an adjusted p-value of at most .05. If `at_least` is
      given, `more` also requires a gain (a ratio) of at least `at_least`;
    - `no less`: the lower end of the gain's interval is at least `at_least`, by default .9;
    - `nothing`: the comparison is descriptive and not tested.
    """

    answers: Question
    report: str
    arm: str
    against: str | None = None
    outcome: Outcome = "own"
    group: str | None = None
    expects: Expectation = "more"
    at_least: float | None = None


class SummaryFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a `summary.toml`: the claims, in order."""

    claims: list[ExpectedResult]


@dataclass(frozen=True)
class TestedClaims:
    """The claims of one question.

    `found` has the results of the claims whose report exists. `pending` is the number of claims
    whose report does not exist yet.
    """

    found: list["TestedClaim"]
    pending: int


class TestedClaim(Struct, frozen=True):
    """The result of a claim. `report` is the folder that the claim names.

    `find` adjusts `comparison.p_adjusted` for the claims of the question. It is not the report's
    value, which is adjusted for the report's comparisons. `holds` says whether the result is as
    expected; it is None if the claim expects `nothing`.
    """

    report: str
    experiment: str
    phase: Phase
    expects: Expectation
    at_least: float | None
    holds: bool | None
    comparison: ArmComparison


class SummaryError(NodeError):
    """A summary cannot be read, or a claim in it cannot be tested with the report that it names."""


def make_summary(folder: Path) -> dict[str, Any]:
    """Return the content of `summary.json` for a folder's `summary.toml`: answers by question.

    Raises SummaryError if `summary.toml` or a report cannot be read, a report lacks runs, or a
    claim cannot be tested with its report.
    """
    path = folder / "summary.toml"
    try:
        claims = msgspec.convert(
            tomllib.loads(path.read_text(encoding="utf-8")), SummaryFile
        ).claims
    except (OSError, ValueError, msgspec.ValidationError) as problem:
        raise SummaryError(
            f"{path} cannot be read: {problem}.", fix="docs/lab.md lists its fields."
        ) from problem
    reports = {name: _read(folder, name) for name in sorted({claim.report for claim in claims})}
    return {
        question: _answer(
            question, find([each for each in claims if each.answers == question], reports)
        )
        for question in get_args(Question)
    }


def find(claims: Sequence[ExpectedResult], reports: Mapping[str, Report | None]) -> TestedClaims:
    """Test the claims of one question and return the results in the order of the claims.

    `reports` maps the folder named in each claim to its report, or to None if there is none yet.

    P-values of claims that expect `more` or `less` are adjusted by Holm's method over all such
    claims with the same outcome, pending ones included. Claims about groups of nodes are adjusted
    separately. Claims of the question `recipe` are not adjusted, because the recipe is confirmed
    only if all of them hold (R. L. Berger, Technometrics 24, 1982: intersection-union). Claims that
    expect `no less` are judged by intervals alone, and claims that expect `nothing` are not judged.

    Raises SummaryError if a claim cannot be tested with its report.
    """
    compared = {
        place: _compare(claim, report)
        for place, claim in enumerate(claims)
        if (report := reports[claim.report])
    }
    for places in _families(claims):
        known = [place for place in places if place in compared]
        p_values = holm([compared[place].p for place in known], of=len(places))
        for place, p in zip(known, p_values, strict=True):
            compared[place] = replace(compared[place], p_adjusted=rounded(p))
    found = [
        TestedClaim(
            report=claim.report,
            experiment=report.name,
            phase=report.phase,
            expects=claim.expects,
            at_least=claim.at_least,
            holds=_holds(claim, compared[place]),
            comparison=compared[place],
        )
        for place, claim in enumerate(claims)
        if (report := reports[claim.report])
    ]
    return TestedClaims(found, pending=len(claims) - len(found))


def summarize(findings: TestedClaims) -> str:
    """Return a sentence for each outcome, and notes on exploratory findings and pending claims.

    If no claim has a result yet, return UNANSWERED instead.
    """
    if not findings.found:
        return UNANSWERED
    outcomes = dict.fromkeys(each.comparison.outcome for each in findings.found)
    sentences = [
        _describe_outcome([each for each in findings.found if each.comparison.outcome == outcome])
        for outcome in outcomes
    ]
    if any(each.phase == "exploratory" for each in findings.found):
        sentences.append("Exploratory in part: not evidence.")
    if findings.pending:
        sentences.append(f"{findings.pending} more to be measured.")
    return " ".join(sentences)


def _families(claims: Sequence[ExpectedResult]) -> list[list[int]]:
    """Return indices of claims with adjusted p-values, one list for each joint adjustment."""
    families: dict[tuple[Outcome, bool], list[int]] = {}
    for place, claim in enumerate(claims):
        if claim.answers != "recipe" and claim.expects in ("more", "less"):
            families.setdefault((claim.outcome, claim.group is not None), []).append(place)
    return list(families.values())


def _answer(question: Question, findings: TestedClaims) -> dict[str, Any]:
    found = findings.found
    answer: dict[str, Any] = {
        "sentence": summarize(findings),
        "figures": found,
        "pending": findings.pending,
    }
    first = found[0].comparison if found else None
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
            "confirmed_on_unseen": bool(found)
            and not findings.pending
            and all(each.holds and each.phase == "confirmatory" for each in found),
        }
    return answer


def _describe_outcome(findings: Sequence[TestedClaim]) -> str:
    """Return a sentence that states the findings on one outcome, and how many are as expected."""
    what = NAMES[findings[0].comparison.outcome]
    each = "; ".join(_describe_finding(finding) for finding in findings)
    return f"{what[0].upper()}{what[1:]}: {each}{_describe_verdict(findings)}."


def _describe_verdict(findings: Sequence[TestedClaim]) -> str:
    judged = [finding.holds for finding in findings if finding.holds is not None]
    if not judged:
        return ""
    if len(judged) == 1:
        return " (as expected)" if judged[0] else " (not as expected)"
    return f" ({sum(judged)} of {len(judged)} as expected)"


def _describe_finding(finding: TestedClaim) -> str:
    found = finding.comparison
    who = f"{found.arm}{f', {found.group},' if found.group else ''} against {found.against}"
    if found.gain is None:
        size = format_signed(found.difference)
        interval = format_interval(found.difference_low, found.difference_high)
    else:
        size = format_gain(found.gain)
        interval = format_gain_interval(found.gain_low, found.gain_high)
    sure = f"{interval}, " if found.difference_low is not None else ""
    return (
        f"{who} in {finding.experiment} {size}"
        f" [{sure}{found.seeds} seeds, {format_p_is(found.p_adjusted)}]"
    )


def _holds(claim: ExpectedResult, found: ArmComparison) -> bool | None:
    if claim.expects == "nothing":
        return None
    if claim.expects == "no less":
        low = found.gain_low
        at_least = NO_LESS if claim.at_least is None else claim.at_least
        return low is not None and low >= at_least
    if found.p_adjusted > LEVEL:
        return False
    if claim.expects == "less":
        return found.difference < 0
    enough = claim.at_least is None or (found.gain is not None and found.gain >= claim.at_least)
    return enough and found.difference > 0


def _compare(claim: ExpectedResult, report: Report) -> ArmComparison:
    arm, against = _arm(report, claim.arm), _arm(report, claim.against or report.baseline)
    group = _group(arm, claim.group)
    if group != _group(against, claim.group):
        raise SummaryError(
            f"{report.name}: {claim.group} are other nodes in {arm.name} than in {against.name}.",
            fix="Compare arms whose groups are alike.",
        )
    if group is not None and claim.outcome not in BY_NODE:
        raise SummaryError(
            f"{report.name}: {NAMES[claim.outcome]} is measured for whole runs, not for"
            f" {group.name}.",
            fix=f"Leave out group, or name one of these outcomes: {', '.join(BY_NODE)}.",
        )
    found = compare(arm, against, claim.outcome, seeds=report.seeds, group=group)
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


def _read(summary: Path, name: str) -> Report | None:
    """Return the report in the folder `name` of the folder `summary`.

    Returns None if that folder does not exist yet and `experiments/NAME.toml` does. Raises
    SummaryError if the report cannot be read, or if it lacks runs.
    """
    folder = summary / name
    if not folder.exists() and (summary / "experiments" / f"{name}.toml").is_file():
        return None
    try:
        report = read_report(folder / "report.json")
    except (OSError, ValueError, msgspec.MsgspecError) as problem:  # ValueError: not UTF-8
        raise SummaryError(
            f"The report in {folder} cannot be read: {problem}.",
            fix=f"`swarm-node lab report {folder}` writes it.",
        ) from problem
    if report.missing:
        raise SummaryError(
            f"The report in {folder} lacks runs: {', '.join(report.missing)}.",
            fix="Finish the experiment first: an early look lets its reader choose when to stop.",
        )
    return report
