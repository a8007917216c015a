"""The public record grows: links of the chain, and what the site signs.

A link is added in the transaction of what it fixes, and last in it, because whoever adds the next
one waits for that transaction: a site has one chain.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Max

from judge.engine import Phase
from judge.models import ChainLink, Round, SiteKey
from judge.selectors.record import read_entries, read_result_lines
from swarm_protocol.messages import ChainHead, Restored
from swarm_record.answers import answers_root
from swarm_record.chain import NOTHING, Link, encode_link, hash_link, state_head, state_key
from swarm_record.keys import sign
from swarm_record.results import results_root
from swarm_web.nodes.models import Node

# ---- the chain


def add_link(kind: str, *, now: datetime, **fields: Any) -> ChainLink:
    """Add a link to the chain; `fields` are those of `swarm_record.chain.Link`."""
    with transaction.atomic():
        return _append(_lock_last(now), kind, now, **fields)


def _lock_last(now: datetime) -> ChainLink:
    """Return the newest link, and keep others from adding one; the chain begins if it has none."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('judge.chain'))")
    return ChainLink.objects.last() or _begin(now)


def _begin(now: datetime) -> ChainLink:
    """Fix the site's key, the last round that the chain does not cover, and who is not ranked."""
    key = _draw_key(now)
    over = Round.objects.filter(phase__in=[Phase.CLOSED, Phase.VOID])
    last = over.aggregate(last=Max("number"))["last"] or 0
    quarantined = Node.objects.filter(quarantined=True).values_list("name", flat=True)
    return _append(None, "began", now, key=key.public, round=last, nodes=sorted(quarantined))


def _append(last: ChainLink | None, kind: str, now: datetime, **fields: Any) -> ChainLink:
    link = Link(
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
    """Return the newest link, signed, and where a backup was restored last."""
    with transaction.atomic():
        last = ChainLink.objects.last() or _lock_last(now)
    restored = ChainLink.objects.filter(kind="restored").last()
    key = SiteKey.objects.latest("pk")
    signature = sign(bytes(key.private), state_head(sequence=last.sequence, head=last.head))
    return ChainHead(
        sequence=last.sequence,
        head=last.head,
        key=key.public,
        signature=signature,
        restored=Restored(restored.sequence, restored.round) if restored else None,
    )


# ---- the site's key


def _draw_key(now: datetime) -> SiteKey:
    key = SiteKey.draw()
    key.made_at = now
    key.save()
    return key


def rotate_site_key(*, now: datetime) -> SiteKey:
    """Sign with a new key from now on; the old one signs it, for whoever knows the old one."""
    with transaction.atomic():
        last = _lock_last(now)
        old = SiteKey.objects.latest("pk")
        key = _draw_key(now)
        signature = sign(bytes(old.private), state_key(key.public))
        _append(last, "key", now, key=key.public, signature=signature)
    return key


# ---- rounds


def fix_commitment(judge_round: Round, *, now: datetime) -> None:
    """Fix a round's commitment before anybody can answer."""
    add_link(
        "scheduled",
        now=now,
        round=judge_round.number,
        season=judge_round.season.name,
        commitment=judge_round.commitment,
    )


def fix_withdrawn(numbers: Iterable[int], *, now: datetime) -> None:
    """Fix that rounds were taken back before they opened."""
    for number in numbers:
        add_link("withdrawn", now=now, round=number)


def fix_void(judge_round: Round, *, now: datetime) -> None:
    """Fix that a round became void.

    One with a public beacon tells its secret: whoever voids rounds until a value suits cannot hide
    the questions that they avoid.
    """
    has_beacon = "beacon" in judge_round.rules
    add_link(
        "void",
        now=now,
        round=judge_round.number,
        reason=judge_round.void_reason,
        secret=bytes(judge_round.secret).hex() if has_beacon else "",
    )


def fix_answers(judge_round: Round, *, now: datetime) -> None:
    """Fix all answers of a round when nobody can answer it any more."""
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


def fix_results(judge_round: Round, kind: str, *, now: datetime, **fields: str) -> None:
    """Fix a round's scores as they are published; `kind` says what they come from."""
    lines = read_result_lines(judge_round)
    judge_round.results_root = results_root(lines)
    judge_round.save(update_fields=["results_root"])
    add_link(
        kind,
        now=now,
        round=judge_round.number,
        results=judge_round.results_root,
        count=len(lines) - 1,
        **fields,
    )
