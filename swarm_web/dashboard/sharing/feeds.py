"""The Atom feed (RFC 4287) of closed rounds."""

from datetime import datetime

from django.conf import settings
from django.contrib.syndication.views import Feed
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed

from judge.models import Round, RoundSummary
from judge.selectors.rounds import listed_rounds
from swarm_web.dashboard.templatetags.figures import write_share

ENTRIES = 30


class ClosedRounds(Feed[Round, None]):
    """The latest closed rounds, newest first."""

    feed_type = Atom1Feed
    language = "en"
    subtitle = "Each round is one quiz: the same sealed questions for all nodes."

    def title(self) -> str:
        """Return the feed's title."""
        return f"{settings.SITE_NAME}: closed rounds"

    def link(self) -> str:
        """Return the address of the page with all rounds."""
        return reverse("rounds")

    def items(self) -> QuerySet[Round]:
        """Return the ENTRIES latest closed rounds with their summaries, in one query."""
        closed = listed_rounds(None).filter(phase=Round.Phase.CLOSED, closed_at__isnull=False)
        return closed[:ENTRIES]

    def item_title(self, item: Round) -> str:
        """Return a round's number with the name of its season."""
        return f"Round {item.number} of {item.season.name}"

    def item_description(self, item: Round) -> str:
        """Return how many nodes were scored, and the best and median score of trained ones.

        If no trained node was scored, the text says only that.
        """
        summary: RoundSummary | None = getattr(item, "summary", None)
        if summary is None or summary.median is None or summary.best is None:
            return "No trained node was scored."
        scored = "1 node was" if summary.scored == 1 else f"{summary.scored} nodes were"
        median, best = write_share(summary.median), write_share(summary.best)
        return f"{scored} scored: best {best}, median {median}."

    def item_pubdate(self, item: Round) -> datetime | None:
        """Return when the round closed."""
        return item.closed_at

    def item_updateddate(self, item: Round) -> datetime | None:
        """Return when the round closed."""
        return item.closed_at
