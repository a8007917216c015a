"""The public beacon of a round, held against what its servers say and against the clock; pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from node_client.commands.verification.checks import Check, Differences, Outcome, conclude
from node_client.commands.verification.records import PublishedRound
from node_client.storage.commitments import NotedCommitment
from swarm_record.chain import RecordLink
from swarm_tasks.beacon import LEAD, Beacon, BeaconValue

_NAME = "beacon"
# Times in notes are cut off to the second.
_NOTED_TO = timedelta(seconds=1)
# The clocks of a site's workers may differ by so much.
_LAG = timedelta(seconds=15)


def named_beacon(published: PublishedRound) -> Beacon | None:
    """Return the beacon that a round's rules name, if they do."""
    named = published.rules.beacon
    return named if isinstance(named, Beacon) else None


def check_beacon(
    published: PublishedRound,
    *,
    fetched: BeaconValue | None,
    scheduled: RecordLink | None,
    before: Iterable[RecordLink],
    noted: NotedCommitment | None,
) -> Check:
    """Check that a round was drawn with the beacon's value, and bound to it before it was known.

    `fetched` is what a server of the beacon says, None if none answered; `scheduled` the link of
    the chain that fixed the commitment, `before` those that precede it, and `noted` what this
    machine saw of it.
    """
    beacon = named_beacon(published)
    if beacon is None:
        return Check(_NAME, Outcome.SKIPPED, "not used: the operator may have chosen the secret")
    differences = Differences()
    _compare_value(published.beacon, beacon, fetched, differences)
    doubts = _compare_times(beacon, scheduled, before, differences)
    compared = f"round {beacon.round} of drand with a server of drand"
    if _was_noted_before(published, beacon, noted):
        compared += "; this machine saw the commitment before the beacon's value was known"
    else:
        compared += "; only the site's clock says that the commitment came before it"
    if fetched is None and not differences.count:
        return Check(
            _NAME,
            Outcome.UNKNOWN,
            f"no server of drand gave round {beacon.round}: try again later, or name another"
            " server with --beacon-url",
        )
    return conclude(_NAME, compared=compared, differences=differences, doubts=doubts)


def _compare_value(
    value: BeaconValue | None,
    beacon: Beacon,
    fetched: BeaconValue | None,
    differences: Differences,
) -> None:
    if value is None or value.round != beacon.round:
        told = f"that of round {value.round}" if value else "none"
        differences.add("value", published=told, ours=f"round {beacon.round} in the rules")
        return
    if value.randomness != value.hashed:
        differences.add("randomness", published=value.randomness, ours=value.hashed)
    if fetched is not None and fetched.randomness != value.randomness:
        differences.add("value of drand", published=value.randomness, ours=fetched.randomness)


def _compare_times(
    beacon: Beacon,
    scheduled: RecordLink | None,
    before: Iterable[RecordLink],
    differences: Differences,
) -> list[str]:
    """Compare when the commitment was fixed with when the value came; return what is in doubt.

    A link that was dated back, because the value was known already, stands behind later ones.
    """
    fixed_at = _read_time(scheduled.at) if scheduled else None
    if fixed_at is None:
        return ["the chain does not tell when the round was scheduled"]
    if fixed_at + LEAD > beacon.emitted_at:
        differences.add(
            "time of the commitment",
            published=fixed_at.isoformat(),
            ours=f"{LEAD.seconds} s before the beacon's value, which is public since"
            f" {beacon.emitted_at.isoformat()}",
        )
    latest = max(filter(None, (_read_time(link.at) for link in before)), default=fixed_at)
    if latest > fixed_at + _LAG:
        return [f"the link may be dated back: one before it is of {latest.isoformat()}"]
    return []


def _was_noted_before(
    published: PublishedRound, beacon: Beacon, noted: NotedCommitment | None
) -> bool:
    if noted is None or noted.commitment != published.commitment:
        return False
    seen_at = _read_time(noted.seen_at)
    return seen_at is not None and seen_at + _NOTED_TO < beacon.emitted_at


def _read_time(text: str) -> datetime | None:
    """Return a time in ISO 8601 with its zone; None for what is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
