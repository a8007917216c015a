"""Services that add links to the site's public chain, and sign the head of the chain.

A link is added in the transaction whose change it records, near the end of the transaction: a site
has only one chain, so every other transaction that adds a link waits until this one ends.
"""

from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Max

from judge.engine import Phase
from judge.models import ChainLink, Round, SiteKey
from judge.selectors.record import read_entries, read_result_lines
from swarm_protocol.messages import ChainHead, Restored
from swarm_record.answers import answers_root
from swarm_record.chain import (
    NOTHING,
    RecordLink,
    encode_link,
    encode_signed_head,
    encode_signed_key,
    hash_link,
)
from swarm_record.keys import make_key, public_key_of, sign
from swarm_record.merkle import merkle_root
from swarm_web.nodes.models import Node

# ---- the chain


def add_link(kind: str, *, now: datetime, **fields: Any) -> ChainLink:
    """Add a link to the chain; `fields` are further fields of `swarm_record.chain.RecordLink`."""
    with transaction.atomic():
        return _append(_lock_last(now), kind, now, **fields)


def _lock_last(now: datetime) -> ChainLink:
    """Return the newest link and lock the chain; start the chain if it is empty."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('judge.chain'))")
    return ChainLink.objects.last() or _start_chain(now)


def _start_chain(now: datetime) -> ChainLink:
    """Add and return the first link of the chain.

    It contains the site's key, the number of the last closed or void round, and the names of the
    quarantined nodes.
    """
    key = _draw_key(now)
    finished = Round.objects.filter(phase__in=[Phase.CLOSED, Phase.VOID])
    last = finished.aggregate(last=Max("number"))["last"] or 0
    quarantined = Node.objects.filter(quarantined=True).values_list("name", flat=True)
    return _append(None, "began", now, key=key.public, round=last, nodes=sorted(quarantined))


def _append(last: ChainLink | None, kind: str, now: datetime, **fields: Any) -> ChainLink:
    link = RecordLink(
        sequence=last.sequence + 1 if last else 1,
        previous=last.head if last else NOTHING,
        at=now.astimezone(UTC).isoformat(),
        kind=kind,
        **fields,
    )
    line = encode_link(link)
    return ChainLink.objects.create(
        sequence=link.sequence,
        kind=kind,
        round=link.round,
        line=line.decode(),
        head=hash_link(line),
    )


def read_chain_head(*, now: datetime) -> ChainHead:
    """Return the number and hash of the newest link, with the site's signature.

    Starts the chain if it is empty. The result's `restored` describes the last restore of a backup.
    It is None if no backup was restored.
    """
    with transaction.atomic():
        last = ChainLink.objects.last() or _lock_last(now)
    restored = ChainLink.objects.filter(kind="restored").last()
    key = SiteKey.objects.latest("pk")
    signature = sign(bytes(key.private), encode_signed_head(sequence=last.sequence, head=last.head))
    return ChainHead(
        sequence=last.sequence,
        head=last.head,
        key=key.public,
        signature=signature,
        restored=Restored(restored.sequence, restored.round) if restored else None,
    )


# ---- the site's key


def _draw_key(now: datetime) -> SiteKey:
    private = make_key()
    return SiteKey.objects.create(private=private, public=public_key_of(private), made_at=now)


def rotate_site_key(*, now: datetime) -> SiteKey:
    """Replace the site's key and return the new one.

    The old key signs the new one in the chain, so that clients can trust it.
    """
    with transaction.atomic():
        last = _lock_last(now)
        old = SiteKey.objects.latest("pk")
        key = _draw_key(now)
        signature = sign(bytes(old.private), encode_signed_key(key.public))
        _append(last, "key", now, key=key.public, signature=signature)
    return key


# ---- rounds


def record_commitment(judge_round: Round, *, now: datetime) -> None:
    """Add a link with a round's commitment to the chain. Call it before the round opens."""
    add_link(
        "scheduled",
        now=now,
        round=judge_round.number,
        season=judge_round.season.name,
        commitment=judge_round.commitment,
    )


def record_void(judge_round: Round, *, now: datetime) -> None:
    """Add a link to the chain that says that a round became void.

    If the round's rules name a beacon, the link reveals the round's secret, so that anyone can
    compute its questions. If such a secret stayed hidden, an operator could void rounds until the
    beacon's value gives convenient questions, and nobody could see the questions that were avoided.
    """
    has_beacon = "beacon" in judge_round.rules
    add_link(
        "void",
        now=now,
        round=judge_round.number,
        reason=judge_round.void_reason,
        secret=bytes(judge_round.secret).hex() if has_beacon else "",
    )


def record_answers(judge_round: Round, *, now: datetime) -> None:
    """Add the Merkle root over all answers of a round to the chain, and save it in `judge_round`.

    Call it after answering has ended.
    """
    entries = read_entries(judge_round)
    judge_round.answers_root = answers_root(
        entries, number=judge_round.number, commitment=judge_round.commitment
    )
    judge_round.save(update_fields=["answers_root"])
    add_link(
        "answered",
        now=now,
        round=judge_round.number,
        root=judge_round.answers_root,
        count=len(entries),
    )


def record_results(judge_round: Round, kind: str, *, now: datetime, **fields: str) -> None:
    """Add the Merkle root over a round's results to the chain, and save it in `judge_round`.

    `kind` is "closed" or "recomputed". `fields` are further fields of the link: the `secret` of a
    closed round, or the `reason` why a round was recomputed.
    """
    lines = read_result_lines(judge_round)
    judge_round.results_root = merkle_root(lines)
    judge_round.save(update_fields=["results_root"])
    add_link(
        kind,
        now=now,
        round=judge_round.number,
        results=judge_round.results_root,
        count=len(lines) - 1,
        **fields,
    )
