"""A site's chain, and what it says of one round; pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from node_client.commands.verification.checks import Check, Differences, Outcome, conclude
from node_client.commands.verification.records import PublishedRound
from node_client.storage.heads import NotedHead
from swarm_record.chain import (
    BrokenChainError,
    HashedLink,
    RecordLink,
    encode_signed_key,
    follow_chain,
)
from swarm_record.keys import is_signed


@dataclass(frozen=True)
class Chain:
    """The links that follow each other from the first one on, and why they end, if too early."""

    links: Sequence[HashedLink]
    broken: str = ""

    @property
    def covered_from(self) -> int:
        """The first round that the chain is about."""
        return self.links[0].link.round + 1 if self.links else 1

    @property
    def scheduled_from(self) -> int:
        """The first round that the chain saw scheduled: it may have begun in one that was open."""
        scheduled = (each.link.round for each in self.links if each.link.kind == "scheduled")
        return next(scheduled, 0)

    def before(self, link: RecordLink) -> Iterator[RecordLink]:
        """Yield the links before this one."""
        return (each.link for each in islice(self.links, link.sequence - 1))

    @property
    def keys(self) -> set[str]:
        """The keys that the site has signed with."""
        return {each.link.key for each in self.links if each.link.kind in ("began", "key")}


@dataclass
class RoundHistory:
    """What the chain fixed of a round, as far as no backup undid it."""

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
        """Whether the site need not have the round: withdrawn, or undone by a backup."""
        return self.scheduled is None and bool(self.withdrawn or self.undone)

    def take(self, link: RecordLink) -> None:
        """Add a link that is about the round."""
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
    """Return what of the lines is a chain."""
    links: list[HashedLink] = []
    try:
        links.extend(follow_chain(lines))
    except BrokenChainError as problem:
        return Chain(links, str(problem))
    return Chain(links)


def read_histories(chain: Chain) -> dict[int, RoundHistory]:
    """Return what the chain says of each of its rounds, by number."""
    told: dict[int, RoundHistory] = {}
    for linked in chain.links:
        link = linked.link
        if link.kind == "restored":
            for number in [number for number in told if number > link.round]:
                told[number] = RoundHistory(undone=told[number].undone + 1)
        elif link.kind not in ("began", "key") and link.round:
            told.setdefault(link.round, RoundHistory()).take(link)
    return told


def check_chain(chain: Chain | None, noted: Sequence[NotedHead]) -> Check:
    """Check that the chain holds together, and that it still has what this machine saw of it."""
    if chain is None or not (chain.links or noted):
        return _without_chain(noted)
    differences, lost = Differences(), 0
    if chain.broken:
        differences.add("chain", published=chain.broken, ours="each names the hash before it")
    _check_keys(chain, differences)
    for head in noted:
        kept = chain.links[head.sequence - 1].head if head.sequence <= len(chain.links) else ""
        if kept == head.head:
            continue
        if _was_undone(chain, head):
            lost += 1
            continue
        differences.add(
            f"link {head.sequence}, seen here on {head.seen_at}",
            published=kept or f"a chain of {len(chain.links)} links",
            ours=head.head,
        )
    compared = f"{len(chain.links):,} links, with {len(noted):,} heads that were seen here"
    for link in (linked.link for linked in chain.links if linked.link.kind == "restored"):
        compared += f" · restored to round {link.round} on {link.at} ({link.reason})"
    undone = f"{lost:,} heads that were seen here are gone since a backup was restored"
    return conclude(
        "chain", compared=compared, differences=differences, doubts=[undone] if lost else []
    )


def _without_chain(noted: Sequence[NotedHead]) -> Check:
    if not noted:
        return Check("chain", Outcome.SKIPPED, "this site publishes no chain")
    differences = Differences()
    differences.add("chain", published="none", ours=f"seen here on {noted[-1].seen_at}")
    return conclude("chain", compared="the chain with what was seen here", differences=differences)


def _was_undone(chain: Chain, head: NotedHead) -> bool:
    """Tell whether a backup was restored that did not have this link yet."""
    return any(
        linked.link.kind == "restored" and linked.link.sequence <= head.sequence
        for linked in chain.links
    )


def _check_keys(chain: Chain, differences: Differences) -> None:
    """Check that each new key of the site is signed by the one before."""
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


def check_fixed(published: PublishedRound, chain: Chain, history: RoundHistory | None) -> Check:
    """Hold what is published of a round against what the chain fixed of it."""
    number = published.rules.round
    if history is None and number < chain.covered_from:
        return Check("fixed", Outcome.SKIPPED, "the round is older than the chain")
    history, differences = history or RoundHistory(), Differences()
    fixed = {
        "answers": (published.answers_root, history.answered and history.answered.root),
        "secret": (published.secret, history.closed and history.closed.secret),
        "results": (published.results_root, history.results),
    }
    if number >= chain.scheduled_from:
        committed = history.scheduled and history.scheduled.commitment
        fixed["commitment"] = (published.commitment, committed)
    for what, (told, ours) in fixed.items():
        if told != (ours or ""):
            differences.add(what, published=told or "nothing", ours=ours or "nothing in the chain")
    for kind in history.twice:
        differences.add(kind, published="fixed more than once", ours="once a round")
    return conclude(
        "fixed",
        compared="commitment, answers, secret and results with the links of the chain",
        differences=differences,
        doubts=[f"the operator read the sealed questions on {at}" for at in history.unsealed],
    )
