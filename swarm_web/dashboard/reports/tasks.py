"""The datasets of a season: an example, levels, pass rates, and the share of informative rollouts.

Here a rollout is informative if it has both right and wrong completions. Pass rates come from the
summaries of closed rounds, and only questions of closed rounds are shown. Only the season's last
rounds and its newest archived rollouts are read.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from django.db.models import Count, F, Q
from django.http import Http404
from django.utils.translation import gettext as _

from judge.models import Question, Round, RoundSummary, Season
from judge.selectors.seasons import shown_season, task_choices
from swarm_protocol.messages import ConfigValue, TaskChoice
from swarm_record.stats import macro_interval
from swarm_tasks.allowlist import is_allowed
from swarm_tasks.levels import Rungs, rungs_around
from swarm_web.dashboard.charts.parts import PooledShare, TabledChart
from swarm_web.dashboard.charts.tasks import RoundTally, draw_pass_rates, pool_tallies
from swarm_web.nodes.models import Node
from swarm_web.relay.models import ArchivedRollout

SHOWN_ROUNDS = 100
# Number of rounds in the list of datasets: enough for a current rate, few enough to read each time.
LATEST_ROUNDS = 20
LATEST_ROLLOUTS = 1000
NAMED_QUESTIONS = 5


@dataclass(frozen=True)
class Rate:
    """A share of `n` answers or of `n` rollouts, in [0, 1], with its 95 % interval."""

    share: float
    interval: tuple[float, float]
    n: int


@dataclass(frozen=True)
class AskedQuestion:
    """A question of a closed round.

    It counts in the scores of `counted` nodes (at least one), of which `solved` solved it.
    """

    prompt: str
    round: int
    solved: int
    counted: int

    @property
    def share(self) -> float:
        """The share `solved` / `counted` of nodes that solved the question, in [0, 1]."""
        return self.solved / self.counted


@dataclass(frozen=True)
class TaskLine:
    """One dataset of the season.

    `weight` is its share of the season's questions, in [0, 1]. `rungs` are the difficulty levels on
    which nodes may train, None if the dataset or its configuration is not allowed; `rungs.home` is
    the index of the level that the season uses. `example` is the dataset's newest question in the
    last LATEST_ROUNDS closed rounds, empty if there is none. `rates` are the shares of right
    answers in these rounds, by arm; arms without answers are left out. `informative` is the share
    of the dataset's rollouts that are informative. It covers only the LATEST_ROLLOUTS newest
    verified rollouts in the season's archive, of all datasets together; None if the dataset has
    none among these.
    """

    dataset: str
    choice: TaskChoice
    weight: float
    rungs: Rungs | None
    example: str
    rates: Mapping[str, Rate]
    informative: Rate | None

    @property
    def config(self) -> dict[str, ConfigValue]:
        """The dataset's settings in the season; any other setting has the generator's default."""
        return self.choice.config

    @property
    def levels(self) -> int:
        """Number of difficulty levels; at least 1."""
        return len(self.rungs.configs) if self.rungs else 1

    @property
    def level(self) -> int:
        """The difficulty level that the season uses, counted from 1, the easiest."""
        return self.rungs.home + 1 if self.rungs else 1

    @property
    def level_settings(self) -> list[list[tuple[str, ConfigValue]]]:
        """Each level's settings as (name, value) pairs, easiest level first.

        Empty if the dataset or its configuration is not allowed.
        """
        return [list(config.items()) for config in self.rungs.configs] if self.rungs else []

    @property
    def arm_rates(self) -> list[tuple[str, Rate]]:
        """The arms with their rates."""
        return list(self.rates.items())


@dataclass(frozen=True)
class SeasonTasks:
    """The datasets of a season, largest weight first; there are none before the first season."""

    season: Season | None
    lines: list[TaskLine]

    @property
    def season_name(self) -> str | None:
        """The season's name; None before the first season."""
        return self.season.name if self.season else None


@dataclass(frozen=True)
class TaskReport:
    """One dataset with its pass rates over rounds and its hardest and easiest questions.

    `pass_rates` are sorted by round, newest first, then by arm; `drawing` shows the same numbers.
    `hardest` and `easiest` have at most NAMED_QUESTIONS questions each, and none in common.
    """

    line: TaskLine
    pass_rates: list[PooledShare]
    drawing: TabledChart
    hardest: Sequence[AskedQuestion]
    easiest: Sequence[AskedQuestion]


def read_tasks() -> SeasonTasks:
    """Read the datasets of the shown season (`shown_season`), in five queries at most."""
    season = shown_season()
    if season is None:
        return SeasonTasks(None, [])
    choices = task_choices(season.tasks)
    total_weight = sum(choice.weight for choice in choices)
    summaries = _read_summaries(season, rounds=LATEST_ROUNDS)
    examples = _read_examples(summaries)
    informative = _read_informative(season)
    lines = [
        TaskLine(
            dataset=choice.dataset,
            choice=choice,
            weight=choice.weight / total_weight,
            rungs=rungs_around(choice) if is_allowed(choice.dataset, choice.config) else None,
            example=examples.get(choice.dataset, ""),
            rates=_pool(summaries, choice.dataset),
            informative=informative.get(choice.dataset),
        )
        for choice in choices
    ]
    return SeasonTasks(season, sorted(lines, key=lambda line: (-line.weight, line.dataset)))


def load_task(dataset: str) -> TaskReport:
    """Read the report of one dataset. Raises Http404 if the shown season lacks it."""
    tasks = read_tasks()
    line = next((line for line in tasks.lines if line.dataset == dataset), None)
    if tasks.season is None or line is None:
        raise Http404
    summaries = _read_summaries(tasks.season, rounds=SHOWN_ROUNDS)
    asked = _read_questions(summaries, dataset)
    by_share = sorted(asked, key=lambda question: question.share)
    hardest = by_share[:NAMED_QUESTIONS]
    easiest = [question for question in by_share[::-1] if question not in hardest]
    lines = _pool_rounds(summaries, dataset)
    rates = sorted(chain.from_iterable(lines), key=lambda rate: (-rate.round, rate.arm))
    return TaskReport(line, rates, _draw(lines, rates), hardest, easiest[:NAMED_QUESTIONS])


def _read_summaries(season: Season, *, rounds: int) -> list[RoundSummary]:
    """Return the summaries of the season's last `rounds` closed rounds, newest first."""
    closed = RoundSummary.objects.filter(round__season=season, round__phase=Round.Phase.CLOSED)
    return list(closed.select_related("round").order_by("-round__number")[:rounds])


def _read_examples(summaries: Sequence[RoundSummary]) -> dict[str, str]:
    """Return each dataset's newest question in the rounds of `summaries`."""
    asked = Question.objects.filter(round__in=[summary.pk for summary in summaries])
    newest = asked.order_by("dataset", "-round__number", "position").distinct("dataset")
    return dict(newest.values_list("dataset", "prompt"))


def _read_questions(summaries: Sequence[RoundSummary], dataset: str) -> list[AskedQuestion]:
    """Return a dataset's questions in the rounds of `summaries`, newest first.

    Questions that count for no node are left out.
    """
    tallies = {summary.pk: summary.tallies for summary in summaries}
    asked = Question.objects.filter(round__in=tallies, dataset=dataset)
    found = []
    for pk, number, position, prompt in asked.order_by("-round__number", "position").values_list(
        "round_id", "round__number", "position", "prompt"
    ):
        solved, counted = tallies[pk][position - 1]
        if counted:
            found.append(AskedQuestion(prompt, number, solved, counted))
    return found


def _read_informative(season: Season) -> dict[str, Rate]:
    """Return for each dataset the share of rollouts with both right and wrong completions.

    Only the season's LATEST_ROLLOUTS newest archived rollouts that the site's verifier has scored
    are counted.
    """
    newest = ArchivedRollout.objects.verified().filter(season=season).newest_first()
    counted = (
        ArchivedRollout.objects.filter(pk__in=newest.values("pk")[:LATEST_ROLLOUTS])
        .order_by()
        .values_list("dataset")
        .annotate(n=Count("pk"), mixed=Count("pk", filter=Q(solved__gt=0, solved__lt=F("total"))))
    )
    return {dataset: make_rate(mixed, n) for dataset, n, mixed in counted}


def _pool(summaries: Sequence[RoundSummary], dataset: str) -> dict[str, Rate]:
    """Return the share of right answers in a dataset, over all rounds of `summaries`, by arm.

    Arms without answers are left out.
    """
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for summary in summaries:
        for arm, cells in summary.datasets.items():
            correct, n = cells.get(dataset, (0, 0))
            sums[arm][0] += correct
            sums[arm][1] += n
    return {arm: make_rate(*sums[arm]) for arm in Node.Arm.values if sums[arm][1]}


def make_rate(part: int, n: int) -> Rate:
    """Return `part` / `n` with its interval; `n` is at least 1."""
    return Rate(part / n, macro_interval(part / n, n), n)


def _pool_rounds(summaries: Sequence[RoundSummary], dataset: str) -> list[list[PooledShare]]:
    """Return a list for each arm with its pass rates in a dataset, oldest round first.

    `summaries` are newest first. Each rate is pooled over several rounds (`pool_tallies`).
    """
    lines = []
    for arm in Node.Arm.values:
        cells = [
            (summary.round.number, summary.datasets.get(arm, {}).get(dataset, (0, 0)))
            for summary in reversed(summaries)
        ]
        tallies = [RoundTally(number, correct, n) for number, (correct, n) in cells if n]
        lines.append(pool_tallies(tallies, arm=arm))
    return lines


def _draw(lines: Sequence[Sequence[PooledShare]], rates: Sequence[PooledShare]) -> TabledChart:
    """Return a chart with one of `lines` for each arm; `rates` are the rows of its table."""
    return TabledChart(
        draw=partial(draw_pass_rates, lines),
        columns=[
            _("up to and including round"),
            _("arm"),
            _("share solved"),
            _("95 % interval"),
            "n",
        ],
        rows=[(rate.round, rate.arm, rate.share, rate.interval, rate.n) for rate in rates],
    )
