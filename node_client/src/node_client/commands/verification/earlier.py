"""What a season had asked before a round, held against the chain in the round's rules; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from node_client.commands.verification.checks import Check, Differences, Outcome, conclude
from node_client.commands.verification.records import PublishedAsked, PublishedRound
from swarm_tasks.asked import NOTHING_ASKED, decode_digests, entry_of, extend_chain

_NAME = "asked before"


@dataclass(frozen=True)
class Earlier:
    """The earlier rounds of a season: their digests and chain, and which are still sealed."""

    rounds: int
    digests: frozenset[int]
    chain: str
    sealed: Sequence[int]

    def seen(self, digests: Sequence[int]) -> list[int]:
        """Return those of the digests that were asked, as far as that is public."""
        return [digest for digest in digests if digest in self.digests]


def gather_earlier(asked: Iterable[PublishedAsked]) -> Earlier:
    """Go through the earlier rounds once; memory grows with their questions."""
    chain, rounds = NOTHING_ASKED, 0
    digests: set[int] = set()
    sealed: list[int] = []
    for told in asked:
        rounds += 1
        entry = bytes.fromhex(told.entry)
        if told.seal is None or told.questions is None:
            sealed.append(told.round)
        else:
            own = decode_digests(bytes.fromhex(told.questions))
            entry = entry_of(own, seal=bytes.fromhex(told.seal))
            digests.update(own)
        chain = extend_chain(chain, [entry])
    return Earlier(rounds, frozenset(digests), chain, sealed)


def check_earlier(published: PublishedRound, earlier: Earlier) -> Check:
    """Hold what is said to have been asked before against what the round was bound to."""
    rules = published.rules
    if rules.may_repeat:
        return Check(_NAME, Outcome.SKIPPED, "by the rules of this round, questions might repeat")
    differences = Differences()
    if earlier.chain != rules.asked:
        differences.add("chain", published=str(rules.asked), ours=earlier.chain)
    return conclude(
        _NAME,
        compared=f"{len(earlier.digests):,} questions of {earlier.rounds:,} earlier rounds against"
        f" the chain in the rules",
        differences=differences,
    )


def allow_for_sealed(check: Check, earlier: Earlier) -> Check:
    """Return the check of the questions; what a sealed round would explain refutes nothing."""
    if check.outcome is not Outcome.DIFFERS or not earlier.sealed:
        return check
    rounds = ", ".join(map(str, earlier.sealed[:3]))
    return Check(
        check.name,
        Outcome.UNKNOWN,
        f"some may have been passed over because of round {rounds}, drawn before and still sealed:"
        " check again when it has closed",
    )
