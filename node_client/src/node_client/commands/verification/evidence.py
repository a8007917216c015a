"""Checks the nodes' signatures, the Merkle root and the site's receipts of a round's answers.

No I/O: the answers and receipts are arguments.
"""

from collections.abc import Iterable, Iterator, Sequence

from node_client.commands.verification.checks import Differences, RoundCheck, conclude, skip
from node_client.commands.verification.records import PublishedAnswer, PublishedRound
from node_client.storage.receipts import StoredReceipt
from swarm_record.answers import AnswerEntry, encode_entry, encode_signed_answer, hash_text
from swarm_record.keys import is_signed
from swarm_record.merkle import hash_leaf, join_leaves

# A node's name, and the position of a question.
Place = tuple[str, int]


class Evidence:
    """Checker of the signatures, the Merkle root and the receipts of a round's published answers.

    Pass the answers through `collecting`, and exhaust the iterator that it returns, before you call
    any of the checks.
    """

    def __init__(self, published: PublishedRound) -> None:
        self._published = published
        self._number, self._commitment = published.rules.round, published.commitment
        self._positions = {question.id: question.position for question in published.questions}
        self._leaves: dict[Place, bytes] = {}
        self._forged = Differences()
        self._signed = self._unsigned = 0

    def collecting(self, answers: Iterable[PublishedAnswer]) -> Iterator[PublishedAnswer]:
        """Yield `answers` unchanged, and collect the hash and signature of each."""
        for answer in answers:
            self._collect(answer)
            yield answer

    def _collect(self, answer: PublishedAnswer) -> None:
        entry = AnswerEntry(
            node=answer.node,
            position=self._positions.get(answer.question, 0),
            question=answer.question,
            text_hash=hash_text(answer.text),
            key=answer.key or "",
            signature=answer.signature,
        )
        self._leaves[entry.node, entry.position] = self._hash(entry)
        if not entry.signature and not entry.key:
            self._unsigned += 1
            return
        self._signed += 1
        stated = encode_signed_answer(entry, number=self._number, commitment=self._commitment)
        if not is_signed(stated, key=entry.key, signature=entry.signature):
            self._forged.add(
                f"answer of {entry.node} to question {entry.position}",
                published="signed by its node",
                ours="the signature is not of this answer",
            )

    def _hash(self, entry: AnswerEntry) -> bytes:
        return hash_leaf(encode_entry(entry, number=self._number, commitment=self._commitment))

    def check_signatures(self) -> RoundCheck:
        """Check that each signed answer has a valid signature; skipped if no answer is signed."""
        if not self._signed:
            return skip("signatures", f"{self._unsigned:,} answers, none signed")
        return conclude(
            "signatures",
            compared=f"{self._signed:,} signatures with their keys; {self._unsigned:,} without",
            differences=self._forged,
        )

    def check_root(self) -> RoundCheck:
        """Compare the Merkle root over the collected answers with the published root.

        The site fixed the published root when answering ended, so the roots differ if an answer was
        added or left out later. The check is skipped if no root is published.
        """
        if not self._published.answers_root:
            return skip("all answers", "the round is older than the chain")
        ordered = sorted(self._leaves, key=lambda place: (place[0].encode(), place[1]))
        ours = join_leaves([self._leaves[place] for place in ordered])
        differences = Differences()
        if ours != self._published.answers_root:
            differences.add(
                "Merkle root of the answers", published=self._published.answers_root, ours=ours
            )
        return conclude(
            "all answers",
            compared=f"{len(self._leaves):,} answers with the root that was fixed before the close",
            differences=differences,
        )

    def check_receipts(self, receipts: Sequence[StoredReceipt], site_keys: set[str]) -> RoundCheck:
        """Check that the answers in the site's receipts for this machine's node are published.

        Each receipt must name the round's commitment and have a valid signature by one of
        `site_keys`. If `site_keys` is empty, a signature by any key will do. A receipt that does
        not meet these conditions is a difference. The check is skipped if there are no receipts.
        """
        if not receipts:
            return skip("receipts", "this machine's node has none of the round")
        differences, count = Differences(), 0
        for receipt in receipts:
            if not receipt.is_genuine or (site_keys and receipt.key not in site_keys):
                differences.add("receipt", published="no key of this site", ours=receipt.key)
            if receipt.commitment != self._commitment:
                differences.add(
                    "commitment", published=self._commitment, ours=f"receipt: {receipt.commitment}"
                )
                continue
            for entry in receipt.answers:
                count += 1
                self._check_receipt_entry(entry, receipt, differences)
        return conclude(
            "receipts",
            compared=f"{count:,} answers for which the site signed receipts to this machine's node",
            differences=differences,
        )

    def _check_receipt_entry(
        self, entry: AnswerEntry, receipt: StoredReceipt, differences: Differences
    ) -> None:
        found = self._leaves.get((entry.node, entry.position))
        if found != self._hash(entry):
            differences.add(
                f"answer of {entry.node} to question {entry.position}",
                published="not there" if found is None else "another answer or signature",
                ours=f"the site signed on {receipt.received_at} that it has it",
            )
