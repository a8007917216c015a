"""Reports to the coordinator: the training figures, and which external rollouts were used."""

from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from node_client.learning.report import StepReport, TrainingTotals
from node_client.swarm.client import SwarmClient, new_id
from node_client.swarm.outbox import Outbox
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import MAX_USED, ReportTraining, RolloutName

# Tiny models make dozens of steps a second; a coordinator accepts about 20 messages a second from a
# node.
REPORT_INTERVAL_S = 1.0


class Reporter:
    """Sends training reports to the coordinator.

    A report's counters are totals, so a newer report replaces one that is still queued. The names
    of used external rollouts are not totals: the latest MAX_USED names are kept until the
    coordinator accepts a report that includes them. `interval_s` is the minimum time in seconds
    between two reports.
    """

    def __init__(
        self,
        *,
        client: SwarmClient,
        on_refused: Callable[[RefusedError], None],
        interval_s: float = REPORT_INTERVAL_S,
    ) -> None:
        self._client = client
        self._used: deque[RolloutName] = deque(maxlen=MAX_USED)
        self.outbox: Outbox[ReportTraining] = Outbox(
            client=client,
            send=self._send,
            on_refused=on_refused,
            capacity=1,
            batch=1,
            min_interval_s=interval_s,
        )

    def put(self, report: StepReport, totals: TrainingTotals) -> None:
        """Queue a report for the coordinator, made from a step's report and the totals.

        If an earlier report is still queued, the new one replaces it. Must be called on the event
        loop.
        """
        self._used.extend(report.used)
        self.outbox.put([_describe(report, totals)])

    def clear(self) -> None:
        """Drop a queued report and all names of used rollouts. Must be called on the event loop."""
        self._used.clear()
        self.outbox.clear()

    async def _send(self, reports: Sequence[ReportTraining]) -> None:
        sent = tuple(self._used)
        await self._client.report_training(msgspec.structs.replace(reports[-1], used=list(sent)))
        self._used = deque((name for name in self._used if name not in sent), maxlen=MAX_USED)


def _describe(report: StepReport, totals: TrainingTotals) -> ReportTraining:
    return ReportTraining(
        id=new_id(),
        step=report.step,
        training_reward=report.training_reward,
        informative_share=report.informative_share,
        local_used=totals.local_used,
        external_used=totals.external_used,
        external_dropped=dict(totals.external_dropped),
        reflection=report.reflection,
    )
