"""Checks a site's chain, and a published round against its records in the chain; no I/O."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from node_client.commands.verification.checks import Differences, RoundCheck, conclude, skip
from node_client.commands.verification.records import PublishedRound, read_time
from node_client.storage.heads import RecordedHead
from swarm_record.chain import (
    BrokenChainError,
    HashedLink,
    RecordLink,
    encode_signed_key,
    follow_chain,
)
from swarm_record.keys import is_signed

# A `restored` link of the chain, and the time until which it explains the loss of heads.
Restore = tuple[RecordLink, datetime | None]

# The clock of this machine may differ from the site's by this much.
_CLOCK_ERROR = timedelta(hours=1)


@dataclass(frozen=True)
class Chain:
    """The valid links of a site's chain, from the first one on.

    `broken` is the error at the first invalid link, empty if all are valid.
    """

    links: Sequence[HashedLink]
    broken: str = ""

    @property
    def covered_from(self) -> int:
        """One more than the number of the last round that was over when the chain began.

        A round is over when it has closed or become void. The number is 1 if no round was over, or
        if the chain has no links.
        """
        return self.links[0].link.round + 1 if self.links else 1

    @property
    def scheduled_from(self) -> int:
        """The number of the first round with a `scheduled` link in the chain; 0 if there is none.

        A round that was scheduled before the chain began has no such link. The chain has only its
        later links, such as `closed`.
        """
        scheduled = (each.link.round for each in self.links if each.link.kind == "scheduled")
        return next(scheduled, 0)

    @property
    def restores(self) -> list[Restore]:
        """The `restored` links, oldest first, each with the time until which it explains a loss.

        This is the earliest time of the link and those after it, None if none of them is valid: a
        link that is dated into the future must not explain the loss of every head.
        """
        found: list[Restore] = []
        earliest: datetime | None = None
        for each in reversed(self.links):
            times = filter(None, (earliest, read_time(each.link.at)))
            earliest = min(times, default=None)
            if each.link.kind == "restored":
                found.append((each.link, earliest))
        return found[::-1]

    def before(self, link: RecordLink) -> Iterator[RecordLink]:
        """Yield the links that precede `link` in the chain."""
        return (each.link for each in islice(self.links, link.sequence - 1))

    @property
    def keys(self) -> set[str]:
        """The public keys that the site has had, according to the chain."""
        return {each.link.key for each in self.links if each.link.kind in ("began", "key")}


@dataclass
class RoundHistory:
    """The chain's records of a round, except those that were lost when a backup was restored.

    - `scheduled`, `answered`, `closed`: the newest link of each of these kinds, None without one. A
      withdrawal sets `scheduled` to None.
    - `results`: the newest root over the round's results.
    - `withdrawn`: how often the round was withdrawn.
    - `unsealed`: the times at which the operator read the round's sealed questions.
    - `undone`: how often records of the round were lost to a restored backup.
    - `twice`: the kind of each link that replaced an earlier link of the same kind.
    """

    scheduled: RecordLink | None = None
    answered: RecordLink | None = None
    closed: RecordLink | None = None
    results: str = ""
    void: bool = False
    withdrawn: int = 0
    unsealed: list[str] = field(default_factory=list)
    undone: int = 0
    twice: list[str] = field(default_factory=list)

    @property
    def is_gone(self) -> bool:
        """Whether the site may leave the round out of its list.

        It may if the round was withdrawn, or if its records were lost when a backup was restored.
        If the round was then scheduled again, the site must list it.
        """
        return self.scheduled is None and bool(self.withdrawn or self.undone)

    def add(self, link: RecordLink) -> None:
        """Add a link of the chain that is about this round."""
        match link.kind:
            case "scheduled" | "answered" | "closed":
                if getattr(self, link.kind) is not None:
                    self.twice.append(link.kind)
                setattr(self, link.kind, link)
                self.results = link.results or self.results
            case "recomputed":
                self.results = link.results
            case "void":
                self.void = True
            case "withdrawn":
                self.scheduled, self.withdrawn = None, self.withdrawn + 1
            case "unsealed":
                self.unsealed.append(link.at)


def read_chain(lines: Iterable[bytes]) -> Chain:
    """Parse a chain, one link in JSON per line, up to the first invalid link.

    An invalid link raises nothing: its error is in the result's `broken`.
    """
    links: list[HashedLink] = []
    try:
        links.extend(follow_chain(lines))
    except BrokenChainError as problem:
        return Chain(links, str(problem))
    return Chain(links)


def read_histories(chain: Chain) -> dict[int, RoundHistory]:
    """Return the chain's records of each round, by the round's number."""
    histories: dict[int, RoundHistory] = {}
    for linked in chain.links:
        link = linked.link
        if link.kind == "restored":
            for number in [number for number in histories if number > link.round]:
                histories[number] = RoundHistory(undone=histories[number].undone + 1)
        elif link.kind not in ("began", "key") and link.round:
            histories.setdefault(link.round, RoundHistory()).add(link)
    return histories


def check_chain(chain: Chain | None, recorded: Sequence[RecordedHead]) -> RoundCheck:
    """Check that the chain is valid, and still has the heads that this machine recorded.

    `chain` is None if the site publishes none. A recorded head that is no longer in the chain is a
    difference. It is only a doubt if a backup was restored after the head was recorded. The check
    is skipped if there is neither a chain nor a recorded head.
    """
    if chain is None or not (chain.links or chain.broken or recorded):
        return _without_chain(recorded)
    differences, restores, lost = Differences(), chain.restores, 0
    if chain.broken:
        differences.add("chain", published=chain.broken, ours="each names the hash before it")
    _check_keys(chain, differences)
    for head in recorded:
        exists = 1 <= head.sequence <= len(chain.links)
        kept = chain.links[head.sequence - 1].head if exists else ""
        if kept == head.head:
            continue
        if any(_explains_loss(each, head) for each in restores):
            lost += 1
            continue
        differences.add(
            f"link {head.sequence}, seen here on {head.seen_at}",
            published=kept or f"a chain of {len(chain.links)} links",
            ours=head.head,
        )
    compared = f"{len(chain.links):,} links, with {len(recorded):,} heads that were seen here"
    for link, _ in restores:
        compared += f" · restored to round {link.round} on {link.at} ({link.reason})"
    undone = f"{lost:,} heads that were seen here are gone since a backup was restored"
    return conclude(
        "chain", compared=compared, differences=differences, doubts=[undone] if lost else []
    )


def _explains_loss(restore: Restore, head: RecordedHead) -> bool:
    """Return whether the chain may lack `head` because a backup was restored after its receipt."""
    link, at = restore
    seen_at = read_time(head.seen_at)
    if link.sequence > head.sequence or at is None or seen_at is None:
        return False
    return seen_at - at < _CLOCK_ERROR


def _without_chain(recorded: Sequence[RecordedHead]) -> RoundCheck:
    if not recorded:
        return skip("chain", "this site publishes no chain")
    differences = Differences()
    differences.add("chain", published="none", ours=f"seen here on {recorded[-1].seen_at}")
    return conclude("chain", compared="the chain with what was seen here", differences=differences)


def _check_keys(chain: Chain, differences: Differences) -> None:
    """Add a difference for each key in the chain that the previous key did not sign."""
    key = ""
    for linked in chain.links:
        link = linked.link
        if link.kind not in ("began", "key"):
            continue
        if key and not is_signed(encode_signed_key(link.key), key=key, signature=link.signature):
            differences.add(
                f"link {link.sequence}", published="a new key of the site", ours="not signed by it"
            )
        key = link.key


def check_fixed(
    published: PublishedRound, chain: Chain, history: RoundHistory | None
) -> RoundCheck:
    """Compare a published round's commitment, roots and secret with the chain's records of it.

    `history` has these records. It is None if the chain has none. The check is then skipped if the
    round was over before the chain began. If such a round was recomputed later, only what the chain
    has of it is compared. If the round was scheduled before the chain began, its commitment is not
    compared, unless the chain has no `scheduled` link of a later round yet.
    """
    number = published.rules.round
    is_older = number < chain.covered_from
    if history is None and is_older:
        return skip("fixed", "the round is older than the chain")
    history, differences = history or RoundHistory(), Differences()
    fixed = {
        "answers": (published.answers_root, history.answered and history.answered.root),
        "secret": (published.secret, history.closed and history.closed.secret),
        "results": (published.results_root, history.results),
    }
    if number >= chain.scheduled_from:
        committed = history.scheduled and history.scheduled.commitment
        fixed["commitment"] = (published.commitment, committed)
    for what, (shown, ours) in fixed.items():
        if is_older and not ours:
            continue  # fixed before the chain began
        if shown != (ours or ""):
            differences.add(what, published=shown or "nothing", ours=ours or "nothing in the chain")
    for kind in history.twice:
        differences.add(kind, published="fixed more than once", ours="once a round")
    return conclude(
        "fixed",
        compared="commitment, answers, secret and results against the links of the chain",
        differences=differences,
        doubts=[f"the operator read the sealed questions on {at}" for at in history.unsealed],
    )
