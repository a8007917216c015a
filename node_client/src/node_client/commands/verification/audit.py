"""The checks of a round's commitment, questions, verdicts and scores, in order; no I/O."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from node_client.commands.verification.beacon import named_beacon
from node_client.commands.verification.checks import (
    CheckOutcome,
    RoundCheck,
    check_commitment,
    check_questions,
    check_recorded,
)
from node_client.commands.verification.earlier import (
    EarlierRounds,
    allow_for_sealed,
    check_earlier,
    gather_earlier,
)
from node_client.commands.verification.records import (
    PublishedAnswer,
    PublishedAsked,
    PublishedQuestion,
    PublishedRound,
)
from node_client.commands.verification.recount import Recount
from node_client.storage.commitments import RecordedCommitment
from swarm_protocol.errors import RefusedError
from swarm_tasks.answers import NEWEST_RULES, AnswerRules
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.quiz import draw_quiz

# Answers scored at once: enough for every core, few enough to show progress.
BATCH = 2048

Graded = tuple[PublishedAnswer, PublishedQuestion]


def audit_round(
    published: PublishedRound,
    *,
    number: int,
    recorded: RecordedCommitment | None,
    asked: Iterable[PublishedAsked],
    answers: Iterable[PublishedAnswer],
    verifier: AnyVerifier,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[RoundCheck]:
    """Draw a round's questions again, score its answers again, and yield the result of each check.

    Results are yielded as soon as they are known. `recorded` is the commitment of round `number`
    that this machine recorded, or None. `asked` has an entry for each earlier round of the season,
    in the order of the rounds, with digests of the round's questions. After each batch of answers,
    `progress` is called with the number of answers in the batch. An UncheckableError from `asked`
    or `answers` is passed on.
    """
    yield check_commitment(published, number=number)
    yield check_recorded(published, recorded)
    earlier = gather_earlier(asked)
    yield check_earlier(published, earlier)
    yield _draw_again(published, earlier, verifier=verifier)
    yield from _score_again(
        Recount(published),
        answers,
        rules=published.rules.answer_rules or NEWEST_RULES,
        verifier=verifier,
        progress=progress,
    )


def _draw_again(
    published: PublishedRound, earlier: EarlierRounds, *, verifier: AnyVerifier
) -> RoundCheck:
    secret, value = bytes.fromhex(published.secret), published.beacon
    beacon = named_beacon(published)
    if (value and value.round) != (beacon and beacon.round):
        reason = "not drawn again: the beacon's value that the rules name is not published"
        return RoundCheck("questions", CheckOutcome.UNKNOWN, reason)
    try:
        drawn = draw_quiz(
            published.rules, secret=secret, seen=earlier.seen, verifier=verifier, beacon=value
        )
    except RefusedError as refusal:
        return RoundCheck("questions", CheckOutcome.UNKNOWN, f"not drawn again: {refusal.message}")
    return allow_for_sealed(check_questions(published, drawn), earlier)


def _score_again(
    recount: Recount,
    answers: Iterable[PublishedAnswer],
    *,
    rules: AnswerRules,
    verifier: AnyVerifier,
    progress: Callable[[int], None],
) -> Iterator[RoundCheck]:
    """Score all answers again, and yield two checks: of the verdicts, and of the nodes' scores.

    The nodes' scores are recomputed from the published verdicts, so they are checked even if the
    verifier fails.
    """
    failure = ""
    for batch in _batches(answers):
        graded = [(answer, question) for answer in batch if (question := recount.add(answer))]
        if not failure:
            try:
                _compare_verdicts(recount, graded, rules=rules, verifier=verifier)
            except RefusedError as refusal:
                failure = f"not all scored again: {refusal.message}"
        progress(len(batch))
    yield recount.skip_answers(failure) if failure else recount.check_answers()
    yield recount.check_scores()


def _compare_verdicts(
    recount: Recount, graded: Iterable[Graded], *, rules: AnswerRules, verifier: AnyVerifier
) -> None:
    """Score the answers again, grouped by question, and record differences in `recount`.

    Raises RefusedError if the verifier fails.
    """
    piles: dict[str, list[Graded]] = defaultdict(list)
    for answer, question in graded:
        piles[question.id].append((answer, question))
    batch = [(pile[0][1].spec, [answer.text for answer, _ in pile]) for pile in piles.values()]
    scored = verifier.score_many(batch, rules=rules)
    for pile, verdicts in zip(piles.values(), scored, strict=True):
        for (answer, question), verdict in zip(pile, verdicts, strict=True):
            recount.compare(answer, question, verdict)


def _batches(answers: Iterable[PublishedAnswer]) -> Iterator[list[PublishedAnswer]]:
    rest = iter(answers)
    while batch := list(islice(rest, BATCH)):
        yield batch
