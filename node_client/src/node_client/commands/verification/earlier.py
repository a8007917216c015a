"""Checks which questions a season had asked before a round; no I/O.

The published digests of all earlier questions are hashed into a chain (`swarm_tasks.asked`). The
chain's last hash must be the one in the round's rules.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from node_client.commands.verification.checks import (
    CheckOutcome,
    Differences,
    RoundCheck,
    conclude,
    skip,
)
from node_client.commands.verification.records import PublishedAsked, PublishedRound
from swarm_tasks.asked import NOTHING_ASKED, decode_digests, entry_of, extend_chain

_NAME = "asked before"


@dataclass(frozen=True)
class EarlierRounds:
    """What a season asked before a round.

    `rounds` is the number of earlier rounds, and `digests` has the digests of their public
    questions. `chain` is the last hash of the chain over all earlier rounds, in hex. `sealed` has
    the numbers of the rounds whose questions are not public yet.
    """

    rounds: int
    digests: frozenset[int]
    chain: str
    sealed: Sequence[int]

    def seen(self, digests: Sequence[int]) -> list[int]:
        """Return those of `digests` that are among the public earlier questions."""
        return [digest for digest in digests if digest in self.digests]


def gather_earlier(asked: Iterable[PublishedAsked]) -> EarlierRounds:
    """Read the earlier rounds, which must be in order, and hash them into a chain.

    Each round adds one entry to the chain. The entry is computed from the round's questions; for a
    sealed round, the published entry is used. `asked` is iterated over once, and memory grows with
    the number of questions.
    """
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
    """Compare the chain hash of the published earlier questions with that in the round's rules.

    The check is skipped if the rules allow repeated questions.
    """
    rules = published.rules
    if rules.may_repeat:
        return skip(_NAME, "by the rules of this round, questions might repeat")
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
    """Return `check`, or an UNKNOWN result if sealed rounds may explain why the questions differ.

    `check` is the check of a round's questions. When the site drew the round, it skipped the
    questions of earlier rounds. This machine cannot skip the questions of rounds that are still
    sealed (`earlier.sealed`), so it may draw other questions than the site.
    """
    if check.outcome is not CheckOutcome.DIFFERS or not earlier.sealed:
        return check
    rounds = ", ".join(map(str, earlier.sealed[:3]))
    return RoundCheck(
        check.name,
        CheckOutcome.UNKNOWN,
        f"some may have been passed over because of round {rounds}, drawn before and still sealed:"
        " check again when it has closed",
    )
