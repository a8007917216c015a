"""The rollouts archive: the sample of what was shared, with verdicts and who learned from it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from django.utils.translation import gettext_lazy as _

from swarm_web.dashboard.downloads.batches import Row, read_batches
from swarm_web.dashboard.downloads.formats import Column, Kind
from swarm_web.relay.models import ArchivedRollout, Learned

COLUMNS = (
    Column("season", "season__name", Kind.TEXT, _("The season's name.")),
    Column("rollout", "rollout", Kind.TEXT, _("The id that its author gave it.")),
    Column("node", "author__name", Kind.TEXT, _("The node that made it.")),
    Column("model", "model", Kind.TEXT, _("The model that its author declared.")),
    Column("step", "step", Kind.WHOLE, _("The author's policy step.")),
    Column("dataset", "dataset", Kind.TEXT, _("The dataset of its task.")),
    Column("spec", "spec", Kind.NESTED, _("The task spec: whoever has it can make the question.")),
    Column("question", "question", Kind.TEXT, _("The question, made again from the spec by us.")),
    Column(
        "completions",
        "completions",
        Kind.NESTED,
        _(
            "All its completions: text, finish_reason, and our verifier's score, solved and "
            "verdict."
        ),
    ),
    Column("solved", "solved", Kind.WHOLE, _("How many of its completions are right.")),
    Column("total", "total", Kind.WHOLE, _("How many completions it has.")),
    Column("published_at", "published_at", Kind.TIME, _("When it was shared, ISO 8601 in UTC.")),
    Column(
        "learners",
        "pk",
        Kind.NESTED,
        _("Who trained on it, oldest first: node, and at, when its report named the rollout."),
    ),
)
_FIELDS = tuple(column.field for column in COLUMNS)
# Rollouts are long: each has all its completions.
_BATCH = 200


def read_rollouts() -> Iterator[Sequence[Row]]:
    """Yield rows of COLUMNS of all verified rollouts, oldest first."""
    verified = ArchivedRollout.objects.verified().order_by("published_at", "pk")

    def select(some: Sequence[int]) -> list[Row]:
        learners = _read_learners(some)
        rows = verified.filter(pk__in=some).values_list(*_FIELDS)
        return [(*row[:-1], learners[row[-1]]) for row in rows]

    return read_batches(list(verified.values_list("pk", flat=True)), select, size=_BATCH)


def _read_learners(rollouts: Sequence[int]) -> defaultdict[int, list[dict[str, str | datetime]]]:
    """Return by rollout who learned from it and when."""
    learners: defaultdict[int, list[dict[str, str | datetime]]] = defaultdict(list)
    learned = Learned.objects.filter(rollout__in=rollouts).order_by("at", "pk")
    for rollout, node, at in learned.values_list("rollout_id", "node__name", "at"):
        learners[rollout].append({"node": node, "at": at})
    return learners
