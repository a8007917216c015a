"""A season's earlier questions, compared with the chain in a round's rules; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from node_client.commands.verification.checks import CheckOutcome, Differences, RoundCheck, conclude
from node_client.commands.verification.records import PublishedAsked, PublishedRound
from swarm_tasks.asked import NOTHING_ASKED, decode_digests, entry_of, extend_chain

_NAME = "asked before"


@dataclass(frozen=True)
class EarlierRounds:
    """The earlier rounds of a season: digests of questions, their chain, and sealed rounds."""

    rounds: int
    digests: frozenset[int]
    chain: str
    sealed: Sequence[int]

    def seen(self, digests: Sequence[int]) -> list[int]:
        """Return the digests of questions that were asked before, as far as that is public."""
        return [digest for digest in digests if digest in self.digests]


def gather_earlier(asked: Iterable[PublishedAsked]) -> EarlierRounds:
    """Read the earlier rounds once; memory grows with their questions."""
    chain, rounds = NOTHING_ASKED, 0
    digests: set[int] = set()
    sealed: list[int] = []
    for listed in asked:
        rounds += 1
        entry = bytes.fromhex(listed.entry)
        if listed.seal is None or listed.questions is None:
            sealed.append(listed.round)
        else:
            own = decode_digests(bytes.fromhex(listed.questions))
            entry = entry_of(own, seal=bytes.fromhex(listed.seal))
            digests.update(own)
        chain = extend_chain(chain, [entry])
    return EarlierRounds(rounds, frozenset(digests), chain, sealed)


def check_earlier(published: PublishedRound, earlier: EarlierRounds) -> RoundCheck:
    """Compare the published earlier questions with the chain that the round was bound to."""
    rules = published.rules
    if rules.may_repeat:
        return RoundCheck(
            _NAME, CheckOutcome.SKIPPED, "by the rules of this round, questions might repeat"
        )
    differences = Differences()
    if earlier.chain != rules.asked:
        differences.add("chain", published=str(rules.asked), ours=earlier.chain)
    return conclude(
        _NAME,
        compared=f"{len(earlier.digests):,} questions of {earlier.rounds:,} earlier rounds against"
        f" the chain in the rules",
        differences=differences,
    )


def allow_for_sealed(check: RoundCheck, earlier: EarlierRounds) -> RoundCheck:
    """Return the check of the questions; unknown if sealed rounds may explain a difference."""
    if check.outcome is not CheckOutcome.DIFFERS or not earlier.sealed:
        return check
    rounds = ", ".join(map(str, earlier.sealed[:3]))
    return RoundCheck(
        check.name,
        CheckOutcome.UNKNOWN,
        f"some may have been passed over because of round {rounds}, drawn before and still sealed:"
        " check again when it has closed",
    )
