"""A season's pool, in which nodes publish, draw and report; in memory, without I/O.

The hub (`relay.hub`) opens a pool for each season, and sends the collected changes to the other
processes, to Redis and to Postgres.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import msgspec

from swarm_protocol.logprobs import without_logprobs
from swarm_protocol.messages import ReportTraining, Rollout
from swarm_web.relay.check_queue import Check
from swarm_web.relay.delivered import Delivered, DeliveredList
from swarm_web.relay.intake import ArchiveSample, SampleQuota
from swarm_web.relay.likeness import digest
from swarm_web.relay.tally import POINT_EVERY_S, Lesson, Pair, Point, Tally
from swarm_web.relay.window import Bounds, Entry, Outcome, PoolWindow, Requester, Strategy

# Overhead of a rollout in a reply: the sender's name, the age and the field names.
_OVERHEAD_BYTES = 128
# When the times of this many nodes' last points are held, old times are dropped; then at each
# doubling.
_SWEEP_AT = 1024

_encoder = msgspec.json.Encoder()


@dataclass(slots=True)
class Member:
    """A connected node in a season. `party` is its owner, or the node itself if it has none.

    `delivered` has the rollouts that the node was given. `tenure` names the period in which the
    node uses the pool in this process (`relay.handover`). After `has_left` is set, the node must
    join again to use the pool.
    """

    node_id: int
    name: str
    party: str
    delivered: DeliveredList = field(default_factory=DeliveredList)
    tenure: str = ""
    has_left: bool = False


class RelayedRollout(msgspec.Struct, frozen=True):
    """An ExternalRollout whose `rollout` is JSON, encoded once for all receivers."""

    node: str
    age_s: float
    rollout: msgspec.Raw


class EncodedRollout(NamedTuple):
    """A rollout and its JSON, which is encoded once for all receivers.

    The JSON is encoded again rather than cut out of the node's frame, so that ambiguous JSON, such
    as an object with a duplicate name, is never passed on.
    """

    rollout: Rollout
    body: bytes


class SeasonPool:
    """The pool of one season in one process. Times are Unix seconds.

    `weights` has hand-out weights by node id; the weight of a node that is not in it is 1.
    `doubted` has the ids of the nodes whose declarations do not count. `outgoing` has the entries
    for the other processes, and `samples` the rollouts for the archive. The nodes' counts and
    reports are added to `tally`.
    """

    def __init__(self, season_id: int, *, bounds: Bounds, quota: SampleQuota, tally: Tally) -> None:
        self.season_id = season_id
        self.window = PoolWindow(bounds)
        self.weights: Mapping[int, float] = {}
        self.doubted: frozenset[int] = frozenset()
        # For the other processes, and for the archive.
        self.outgoing: list[Entry] = []
        self.samples: list[ArchiveSample] = []
        self._quota = quota
        self._tally = tally
        self._point_times: dict[int, float] = {}
        self._sweep_at = _SWEEP_AT

    def publish(
        self,
        member: Member,
        offered: Sequence[EncodedRollout],
        *,
        informative: Collection[str],
        rejected: int,
        now: float,
        random: Random,
    ) -> list[str]:
        """Add a node's rollouts to the pool, and count them. Return the ids of the refused ones.

        A rollout is refused in two cases: it is a copy of another rollout in the pool, or it is a
        near-copy of a rollout of the same party for the same question (`relay.likeness`). If the
        pool already holds a rollout of the node with this id, the new one is neither added nor
        refused.

        `informative` has the ids of the rollouts that the node declares informative. `rejected` is
        the number of further rollouts that the caller has rejected; these are only counted.
        """
        ids = [rollout.id for rollout, _ in offered]
        sampled = self._quota.choose(member.node_id, ids, now=now, random=random)
        added, copies = 0, []
        for rollout, body in offered:
            entry = Entry(
                key=f"{member.name}/{rollout.id}",
                node_id=member.node_id,
                party=member.party,
                dataset=rollout.task.dataset,
                informative=rollout.id in informative,
                archived=rollout.id in sampled,
                at=now,
                body=body,
                digests=digest(
                    task=_encoder.encode(rollout.task),
                    completions=[completion.text for completion in rollout.completions],
                ),
            )
            is_duplicate = entry.key in self.window
            if self.window.add(entry, now=now) is Outcome.ADDED:
                added += 1
                self.outgoing.append(entry)
                if entry.archived:
                    # Without log-probs, which the archive does not need.
                    bare = without_logprobs(rollout)
                    self.samples.append(ArchiveSample(self.season_id, member.node_id, now, bare))
            elif not is_duplicate:
                copies.append(rollout.id)
        change = self._tally.change((self.season_id, member.node_id))
        change.published += added
        change.rejected += rejected + len(copies)
        change.refused += rejected
        change.copies += len(copies)
        return copies

    def draw(
        self,
        member: Member,
        count: int,
        *,
        strategy: Strategy,
        with_logprobs: bool,
        max_bytes: int,
        now: float,
        random: Random,
    ) -> list[RelayedRollout]:
        """Draw up to `count` rollouts of other parties by a strategy, and record them as delivered.

        Rollouts that the node was given before, and those of nodes with weight 0, are not drawn.
        The returned rollouts have at most `max_bytes` together. A drawn rollout that does not fit
        is left out, and smaller ones after it are still taken, so that large rollouts of one node
        do not block all others.
        """
        drawn = self.window.draw(
            count,
            Requester(member.node_id, member.party, member.delivered, self.weights, self.doubted),
            strategy=strategy,
            now=now,
            random=random,
        )
        relayed, bytes_left = [], max_bytes
        for entry in drawn:
            body = entry.body if with_logprobs else self.window.body_without_logprobs(entry)
            bytes_left -= len(body) + _OVERHEAD_BYTES
            if bytes_left < 0:
                bytes_left += len(body) + _OVERHEAD_BYTES
                continue
            age_s = round(max(0.0, now - entry.at), 3)
            relayed.append(RelayedRollout(entry.node, age_s, msgspec.Raw(body)))
            member.delivered.add(entry.key, Delivered(entry.node_id, entry.archived))
            self._tally.deliveries[self.season_id, entry.node_id] += 1
        member.delivered.forget(self.window)
        self._tally.change((self.season_id, member.node_id)).delivered += len(relayed)
        return relayed

    def report(self, member: Member, report: ReportTraining, *, now: float) -> None:
        """Record a node's training report, and credit the authors of the rollouts in `report.used`.

        Rollouts that the node was not given, or has reported before, are ignored.
        """
        season_node = (self.season_id, member.node_id)
        # Credits are recorded separately, so the report waits without its list of rollouts.
        report_without_used = msgspec.structs.replace(report, used=[])
        self._tally.change(season_node).add_report(report_without_used)
        minute = int(now) // 60 * 60
        names = (f"{used.node}/{used.id}" for used in report.used)
        for key, delivered in member.delivered.take(names):
            pair = Pair(self.season_id, minute, delivered.giver_id, member.node_id)
            self._tally.pairs[pair] += 1
            if delivered.archived:
                rollout_id = key.rsplit("/", 1)[1]
                lesson = Lesson(
                    self.season_id, delivered.giver_id, rollout_id, member.node_id, int(now)
                )
                self._tally.lessons.append(lesson)
        if now - self._point_times.get(member.node_id, float("-inf")) >= POINT_EVERY_S:
            self._record_point_time(member.node_id, now=now)
            self._tally.points.append(Point(season_node, now, report_without_used))

    def choose_checks(
        self, *, declared: int, arbitrary: int, now: float, random: Random
    ) -> list[Check]:
        """Return rollouts for a worker to check, drawn uniformly from three groups in this order.

        - up to `declared` rollouts declared informative by nodes whose declarations count
        - up to `declared` rollouts declared informative by nodes whose declarations do not count,
          so that these nodes can recover
        - up to `arbitrary` of the rollouts that are left in the pool

        Hand-out weights have no effect.
        """
        drawn = self.window.draw_checks(
            declared=declared, arbitrary=arbitrary, doubted=self.doubted, now=now, random=random
        )
        return [
            Check(
                season_id=self.season_id,
                node_id=entry.node_id,
                key=entry.key,
                body=entry.body,
                declared=entry.informative,
            )
            for entry in drawn
        ]

    def apply_results(self, *, doubted: frozenset[int], weights: Mapping[int, float]) -> None:
        """Replace `doubted` and `weights` with a worker's newest results.

        `doubted` are the nodes whose declarations have lapsed, and `weights` the hand-out weights.

        When a node's declarations count again, all its rollouts are dropped from the pool.
        Otherwise they could be checked, and old false declarations could make its declarations
        lapse again.
        """
        for node_id in self.doubted - doubted:
            self.window.forget_node(node_id)
        self.doubted, self.weights = doubted, weights

    def take_outgoing(self) -> list[Entry]:
        """Return the entries that the other processes do not have yet, and clear `outgoing`."""
        taken, self.outgoing = self.outgoing, []
        return taken

    def take_samples(self) -> list[ArchiveSample]:
        """Return the rollouts to offer to the archive, and clear `samples`."""
        taken, self.samples = self.samples, []
        return taken

    def _record_point_time(self, node_id: int, *, now: float) -> None:
        """Record when a node's latest chart point was made, so that `report` keeps points apart."""
        if len(self._point_times) >= self._sweep_at:
            times = self._point_times.items()
            self._point_times = {node: at for node, at in times if now - at < POINT_EVERY_S}
            self._sweep_at = max(_SWEEP_AT, 2 * len(self._point_times))
        self._point_times[node_id] = now
