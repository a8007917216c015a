"""Reads which questions a season has asked, so that none is asked twice.

Void rounds count, because nodes may have seen their questions. A season's rounds are ordered by
number, the order in which their questions were drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from judge.engine import Phase
from judge.models import Round, Season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.asked import NOTHING_ASKED, Seen, entry_of, extend_chain, seal_of

# The fields that a chain entry is computed from. Many rounds load quickly without `rules`.
_ENTRY_FIELDS = ("number", "phase", "secret", "digests")
_CHUNK = 2_000
_DIGESTS_PER_QUERY = 8


@dataclass(frozen=True)
class AskedQuestions:
    """What a season has asked in its rounds up to number `last` (0 without rounds).

    `chain` is the hash chain over the questions of these rounds (`swarm_tasks.asked`).
    """

    season: Season
    last: int
    chain: str

    def seen(self, digests: Sequence[int]) -> set[int]:
        """Return those of `digests` that the season asked in rounds up to number `last`."""
        return _find_asked(self.season.pk, digests, before=self.last + 1)


def read_asked(season: Season) -> AskedQuestions:
    """Return what the season has asked so far.

    If the last round's rules contain the hash chain over the questions of all earlier rounds, only
    the last round is read. Otherwise all rounds are read.

    Raises RefusedError ROUND_UNDRAWN if the last round is scheduled and has no questions yet.
    Earlier rounds never wait for questions, because no round is added after one that waits.
    """
    last = season.rounds.order_by("-number").first()
    if last is None:
        return AskedQuestions(season, last=0, chain=NOTHING_ASKED)
    if last.phase == Phase.SCHEDULED and not last.is_drawn:
        raise RefusedError(ErrorCode.ROUND_UNDRAWN, f"{last} has no questions yet")
    if "asked" in last.rules:
        return AskedQuestions(
            season, last.number, extend_chain(last.rules["asked"], [_entry(last)])
        )
    rounds = season.rounds.order_by("number").only(*_ENTRY_FIELDS).iterator(chunk_size=_CHUNK)
    return AskedQuestions(season, last.number, extend_chain(NOTHING_ASKED, map(_entry, rounds)))


def seen_before(judge_round: Round) -> Seen:
    """Return a function that takes question digests and returns those asked before a round.

    A question was asked before if a round of the same season with a lower number has it.
    """
    return partial(_find_asked, judge_round.season_id, before=judge_round.number)


def count_seen_before(judge_round: Round) -> int:
    """Return how many of a round's questions were asked before in its season.

    A question was asked before if it is in a round with a lower number, or earlier in this round.
    """
    digests = judge_round.digests
    asked = set(seen_before(judge_round)(digests))
    return sum(digest in asked or digest in digests[:i] for i, digest in enumerate(digests))


@dataclass(frozen=True)
class AskedRound:
    """The public part of a round's entry in the chain of asked questions (`swarm_tasks.asked`).

    `entry` is a hash of `seal` and `digests`: `seal` is derived from the round's secret, and
    `digests` are the digests of the round's questions. Until the round is closed or void, only
    `entry` is public: `seal` is None and `digests` is empty.
    """

    number: int
    entry: bytes
    seal: bytes | None
    digests: Sequence[int]


def numbers_before(judge_round: Round) -> list[int]:
    """Return the numbers of the season's rounds before `judge_round`, in order."""
    earlier = judge_round.season.rounds.filter(number__lt=judge_round.number)
    return list(earlier.order_by("number").values_list("number", flat=True))


def read_asked_rounds(numbers: Sequence[int]) -> list[AskedRound]:
    """Return an `AskedRound` for each existing round with one of these numbers.

    They are sorted by number.
    """
    rounds = Round.objects.filter(number__in=numbers).order_by("number").only(*_ENTRY_FIELDS)
    return [
        AskedRound(
            judge_round.number,
            entry=_entry(judge_round),
            seal=seal_of(bytes(judge_round.secret)) if is_public else None,
            digests=judge_round.digests if is_public else (),
        )
        for judge_round in rounds
        for is_public in [judge_round.phase in (Phase.CLOSED, Phase.VOID)]
    ]


def _find_asked(season_id: int, digests: Sequence[int], *, before: int) -> set[int]:
    """Return which of the digests a season asked in rounds with a number below `before`.

    Each query has only a few digests and no condition on the season: otherwise Postgres
    overestimates the number of rows and scans all rounds instead of using the index of digests.
    """
    found: set[int] = set()
    for first in range(0, len(digests), _DIGESTS_PER_QUERY):
        some = list(digests[first : first + _DIGESTS_PER_QUERY])
        rounds = Round.objects.filter(digests__overlap=some).order_by()
        for season, number, asked in rounds.values_list("season", "number", "digests"):
            if season == season_id and number < before:
                found.update(asked)
    return found.intersection(digests)


def _entry(judge_round: Round) -> bytes:
    return entry_of(judge_round.digests, seal=seal_of(bytes(judge_round.secret)))
