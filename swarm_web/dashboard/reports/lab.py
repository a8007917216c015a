"""What pages show of the lab: whether sharing helps, each question's findings, and each report."""

from dataclasses import dataclass
from typing import Literal

from django.http import Http404
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from swarm_web.core.errors import RequestError
from swarm_web.dashboard.charts.lab import Sketch, Style, draw_sketch, style_arms
from swarm_web.lab.shape import (
    LEVEL,
    LabArm,
    LabComparison,
    LabFinding,
    Outcome,
    PublishedReport,
)
from swarm_web.lab.shelf import (
    LabSummary,
    ReportFolder,
    Unreadable,
    find_published,
    list_published,
    read_summary,
)

LabVerdict = Literal["helps", "hurts", "unclear", "explored", "unmeasured"]

# In the order in which a reader asks them.
QUESTIONS: dict[str, Promise] = {
    "sparse": _("Does sharing help where rewards are rare?"),
    "map": _("Where does it help, where not, and where does it hurt?"),
    "mechanism": _("Why does it help?"),
    "rival": _("Is sharing cheaper than generating more alone?"),
    "oscillation": _("Do nodes that train mostly on others’ rollouts oscillate or forget?"),
    "recipe": _("Is there a better recipe than the paper’s?"),
    "heterogeneous": _("Which nodes gain if nodes differ?"),
    "poisoning": _("How much damage do hostile nodes do?"),
    "srpo": _("Do SRPO’s claims hold on small models?"),
}
OUTCOMES: dict[Outcome, Promise] = {
    "own": _("cumulative own reward"),
    "held_out_area": _("held-out pass@1, area under the curve"),
    "held_out_final": _("held-out pass@1 at the end"),
    "training_set": _("cumulative reward of the training sets (Tⁿ)"),
    "forgetting": _("forgetting"),
    "drawdown": _("drawdown"),
    "poisoned": _("completions with the planted text"),
}


@dataclass(frozen=True)
class Found:
    """A finding, and the folder of the report that it comes from (`source`).

    `source` is None if the report is not in the summary's folder or not readable, or if an earlier
    folder of LAB_REPORTS has a report of the same name.
    """

    finding: LabFinding
    source: ReportFolder | None

    @property
    def comparison(self) -> LabComparison:
        """The comparison with its result."""
        return self.finding.comparison

    @property
    def outcome(self) -> Promise:
        """The outcome that was compared, in words."""
        return OUTCOMES[self.comparison.outcome]


@dataclass(frozen=True)
class Grid:
    """Findings as a table with a row for each experiment and a column for each of `arms`.

    A row is an experiment's name and a list with one entry for each arm: the experiment's finding
    about this arm, or None.
    """

    arms: list[str]
    rows: list[tuple[str, list[Found | None]]]


@dataclass(frozen=True)
class LabQuestion:
    """One question of the lab with its findings; `words` is the question, `key` its short name.

    `pending` is the number of announced comparisons that are not measured yet. `confirmed` is
    whether a better recipe is confirmed: there are findings, all of them are confirmatory and as
    expected, and no comparison is pending. It is False for questions other than `recipe`.
    """

    key: str
    words: Promise
    found: list[Found]
    pending: int
    confirmed: bool

    @property
    def judged(self) -> list[bool]:
        """For each finding that has an expectation, whether it is as expected."""
        return [each.finding.holds for each in self.found if each.finding.holds is not None]

    @property
    def holding(self) -> int:
        """Number of findings that are as expected."""
        return sum(self.judged)

    @property
    def grid(self) -> Grid | None:
        """The findings about cumulative own reward, in a row per experiment and a column per arm.

        Only the question whose `key` is `map` has a grid; others have None. It is also None if the
        findings are about fewer than two experiments, or about fewer than two arms.
        """
        found = [each for each in self.found if each.comparison.outcome == "own"]
        arms = list(dict.fromkeys(each.comparison.arm for each in found))
        experiments = list(dict.fromkeys(each.finding.experiment for each in found))
        if self.key != "map" or len(experiments) < 2 or len(arms) < 2:
            return None
        at = {(each.finding.experiment, each.comparison.arm): each for each in found}
        rows = [(each, [at.get((each, arm)) for arm in arms]) for each in experiments]
        return Grid(arms, rows)


@dataclass(frozen=True)
class LabAnswer:
    """The lab's answer to "Does sharing help?": the verdict, and the finding that it follows from.

    The verdict is `helps` or `hurts` if the finding is confirmatory and significant, `unclear` if
    it is confirmatory but not significant, and `explored` if it is exploratory. `found` is the
    first finding about the first of QUESTIONS. Without one, the verdict is `unmeasured` and `found`
    is None. `ours` is whether the lab's summary is shipped with the site.
    """

    verdict: LabVerdict
    found: Found | None
    ours: bool

    @property
    def source(self) -> ReportFolder | None:
        """The folder of the finding's report; None without a finding or a readable report."""
        return self.found.source if self.found else None

    @property
    def report(self) -> PublishedReport | None:
        """The finding's report; None without a finding or a readable report."""
        return self.source.report if self.source else None


@dataclass(frozen=True)
class ArmRow:
    """An arm as tables show it: its style in figures, its gain over the baseline, the paper's gain.

    `found` compares the arm with the baseline in cumulative own reward; it is None for the baseline
    and for any other arm that was not compared. `paper` is None if the paper has no arm of that
    name.
    """

    arm: LabArm
    style: Style
    found: LabComparison | None
    is_baseline: bool
    paper: float | None


def read_answer() -> LabAnswer:
    """Return the lab's answer from its summary; without a summary, the verdict `unmeasured`."""
    summary = read_summary()
    first = next(iter(_list_questions(summary)[0].found), None)
    return LabAnswer(_judge(first), first, ours=summary is not None and summary.ours)


def load_published(name: str) -> ReportFolder:
    """Return the folder of the published report `name`. Raises Http404 if there is none."""
    published = find_published(name)
    if published is None:
        raise Http404
    return published


def read_questions() -> list[LabQuestion]:
    """Return every question, in the order of QUESTIONS, with its findings from the summary.

    The source of a finding is a report in the summary's folder, never a report of the same name in
    another folder. Without a summary there are no findings.
    """
    return _list_questions(read_summary())


def _list_questions(summary: LabSummary | None) -> list[LabQuestion]:
    summary_folder = summary.folder if summary else None
    sources = {
        each.name: each
        for each in list_published()
        if each.folder.parent == summary_folder and each.report
    }
    questions = []
    for key, words in QUESTIONS.items():
        answer = summary.answers.get(key) if summary else None
        findings = answer.figures if answer else []
        questions.append(
            LabQuestion(
                key,
                words,
                [Found(each, sources.get(each.report)) for each in findings],
                pending=answer.pending if answer else 0,
                confirmed=answer is not None and answer.confirmed_on_unseen,
            )
        )
    return questions


def _judge(found: Found | None) -> LabVerdict:
    if found is None:
        return "unmeasured"
    if found.finding.phase == "exploratory":
        return "explored"
    if found.comparison.p_adjusted > LEVEL or not found.comparison.difference:
        return "unclear"
    return "helps" if found.comparison.difference > 0 else "hurts"


def list_arms(report: PublishedReport) -> list[ArmRow]:
    """Return a row for each arm of a report, in the report's order."""
    styles = style_arms(report.arms)
    paper = {arm.name: arm.gain for arm in report.paper}
    gains = report.gains
    return [
        ArmRow(
            arm,
            styles[arm.name],
            gains.get(arm.name),
            is_baseline=arm.name == report.baseline,
            paper=paper.get(arm.name),
        )
        for arm in report.arms
    ]


def sketch_answer(answer: LabAnswer) -> Sketch | None:
    """Draw the cumulative own reward of the two arms that the answer compares.

    Returns None if there is no finding, or no readable report that has both arms.
    """
    report = answer.report
    if answer.found is None or report is None:
        return None
    compared = (answer.found.comparison.arm, answer.found.comparison.against)
    curves = {arm.name: arm.curves.cumulative for arm in report.arms if arm.name in compared}
    if len(curves) < len(compared):
        return None
    return draw_sketch(curves, styles=style_arms(report.arms))


def read_report(published: ReportFolder) -> PublishedReport:
    """Return a published report. Raises RequestError for one that cannot be read."""
    found = published.read()
    if isinstance(found, Unreadable):
        raise RequestError(
            "lab.unreadable",
            f"The report {published.name} is damaged: {found.reason}.",
            fix="The operator can write it again from its runs: swarm-node lab report FOLDER.",
            status=500,
        )
    return found
