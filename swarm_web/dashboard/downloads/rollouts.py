"""The download of archived rollouts, with verdicts and the nodes that trained on them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from django.utils.translation import gettext_lazy as _

from swarm_web.dashboard.downloads.batches import read_batches
from swarm_web.dashboard.downloads.formats import Column, ColumnKind, Row
from swarm_web.relay.models import ArchivedRollout, Learned

COLUMNS = (
    Column("season", ColumnKind.TEXT, _("The season's name."), "season__name"),
    Column("rollout", ColumnKind.TEXT, _("The id that its author assigned.")),
    Column("node", ColumnKind.TEXT, _("The node that generated it."), "author__name"),
    Column("model", ColumnKind.TEXT, _("The model that its author declared.")),
    Column("step", ColumnKind.WHOLE, _("The author's policy step.")),
    Column("dataset", ColumnKind.TEXT, _("The dataset of its task.")),
    Column(
        "spec", ColumnKind.NESTED, _("The task spec, from which the question can be regenerated.")
    ),
    Column(
        "question", ColumnKind.TEXT, _("The question, regenerated from the task spec by this site.")
    ),
    Column(
        "completions",
        ColumnKind.NESTED,
        _(
            "All its completions: text, finish_reason, and score, solved and verdict of "
            "this site's verifier."
        ),
    ),
    Column("solved", ColumnKind.WHOLE, _("Number of right completions.")),
    Column("total", ColumnKind.WHOLE, _("Number of completions.")),
    Column("published_at", ColumnKind.TIME, _("When it was shared, ISO 8601 in UTC.")),
    Column(
        "learners",
        ColumnKind.NESTED,
        _(
            "The nodes that trained on it, oldest first: node, and at, when its report named "
            "the rollout."
        ),
        "pk",
    ),
)
_FIELDS = tuple(column.field for column in COLUMNS)
# Rollouts are large: each has all of its completions.
_BATCH = 200


def read_rollouts() -> Iterator[Sequence[Row]]:
    """Yield archived rollouts with verdicts, oldest first, in batches of rows of COLUMNS."""
    verified = ArchivedRollout.objects.verified().order_by("published_at", "pk")

    def select(keys: Sequence[int]) -> list[Row]:
        learners = _read_learners(keys)
        rows = verified.filter(pk__in=keys).values_list(*_FIELDS)
        return [(*row[:-1], learners[row[-1]]) for row in rows]

    return read_batches(list(verified.values_list("pk", flat=True)), select, size=_BATCH)


def _read_learners(rollouts: Sequence[int]) -> defaultdict[int, list[dict[str, str | datetime]]]:
    """Return the nodes that trained on each rollout, by the rollout's primary key.

    Each node is a dict with its name, `node`, and the time when it reported the training, `at`. The
    oldest report is first.
    """
    learners: defaultdict[int, list[dict[str, str | datetime]]] = defaultdict(list)
    learned = Learned.objects.filter(rollout__in=rollouts).order_by("at", "pk")
    for rollout, node, at in learned.values_list("rollout_id", "node__name", "at"):
        learners[rollout].append({"node": node, "at": at})
    return learners
