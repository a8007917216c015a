"""Checks that a round used its beacon's value, and that its commitment is older than the value."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from node_client.commands.verification.checks import (
    CheckOutcome,
    Differences,
    RoundCheck,
    conclude,
    skip,
)
from node_client.commands.verification.download import fetch
from node_client.commands.verification.records import PublishedRound, read_time
from node_client.errors import UncheckableError
from node_client.storage.commitments import RecordedCommitment
from swarm_record.chain import RecordLink
from swarm_tasks.beacon import LEAD, MAX_VALUE_BYTES, Beacon, BeaconError, BeaconValue, read_value

_NAME = "beacon"
# Recorded times are truncated to seconds: the real one may be this much later.
_RECORDED_TO = timedelta(seconds=1)
# Tolerance for differences between the clocks of a site's workers.
_LAG = timedelta(seconds=15)
HTTP_TIMEOUT_S = 10.0


def named_beacon(published: PublishedRound) -> Beacon | None:
    """Return the beacon that a round's rules name, or None."""
    named = published.rules.beacon
    return named if isinstance(named, Beacon) else None


def check_beacon(
    published: PublishedRound,
    *,
    fetched: BeaconValue | None,
    scheduled: RecordLink | None,
    before: Iterable[RecordLink],
    recorded: RecordedCommitment | None,
) -> RoundCheck:
    """Check that a round used its beacon's value, and that its commitment is older than the value.

    `scheduled` is the chain's link that says when the round was scheduled, and with which
    commitment. It is None if the chain has no such link. `before` has the links before it.
    `recorded` is the commitment that this machine recorded, or None.

    `fetched` is the value from a server of the beacon, or None if no server gave one; the outcome
    is then UNKNOWN unless a difference is found. The check is skipped if the round's rules name no
    beacon.
    """
    beacon = named_beacon(published)
    if beacon is None:
        return skip(_NAME, "not used: the operator may have chosen the secret")
    differences = Differences()
    _compare_value(published.beacon, beacon, fetched, differences)
    doubts = _compare_times(beacon, scheduled, before, differences)
    compared = f"drand's value of its round {beacon.round} against one of its servers"
    if _was_recorded_before(published, beacon, recorded):
        compared += "; this machine saw the commitment before the beacon's value was known"
    else:
        compared += "; only the site's clock says that the commitment came before it"
    if fetched is None and not differences.count:
        return RoundCheck(
            _NAME,
            CheckOutcome.UNKNOWN,
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
        shown = f"that of round {value.round}" if value else "none"
        differences.add("value", published=shown, ours=f"round {beacon.round} in the rules")
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
    """Return doubts, in words, about whether the commitment came before the beacon's value.

    The commitment's time is that of the link `scheduled`; a missing time is a doubt. A time less
    than LEAD before the value is a difference. If an earlier link of the chain (`before`) has a
    time later by more than _LAG, the site may have backdated `scheduled`, which is a doubt too.
    """
    fixed_at = read_time(scheduled.at) if scheduled else None
    if fixed_at is None:
        return ["the chain does not have the time when the round was scheduled"]
    # Sums could be later than the year 9999, differences cannot.
    if beacon.emitted_at - fixed_at < LEAD:
        differences.add(
            "time of the commitment",
            published=fixed_at.isoformat(),
            ours=f"{LEAD.seconds} s before the beacon's value, which is public since"
            f" {beacon.emitted_at.isoformat()}",
        )
    latest = max(filter(None, (read_time(link.at) for link in before)), default=fixed_at)
    if latest - fixed_at > _LAG:
        return [f"the link may be dated back: one before it is of {latest.isoformat()}"]
    return []


def _was_recorded_before(
    published: PublishedRound, beacon: Beacon, recorded: RecordedCommitment | None
) -> bool:
    if recorded is None or recorded.commitment != published.commitment:
        return False
    seen_at = read_time(recorded.seen_at)
    return seen_at is not None and beacon.emitted_at - seen_at > _RECORDED_TO


def fetch_value(beacon: Beacon, *, urls: Sequence[str]) -> BeaconValue | None:
    """Ask the servers in order, and return the first valid value; None if no server gives one."""
    for url in urls:
        address = f"{url.rstrip('/')}/{beacon.path}"
        try:
            raw = fetch(address, max_bytes=MAX_VALUE_BYTES, timeout_s=HTTP_TIMEOUT_S)
            return read_value(raw, beacon=beacon)
        except (UncheckableError, BeaconError):
            continue
    return None
