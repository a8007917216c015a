"""One running node: the connection, the training, the judge rounds and the reports, side by side.

A training step waits for the network only while it fetches external rollouts, for at most
`swarm.exchange.FETCH_TIMEOUT_S` seconds. Messages of the coordinator arrive here, through the
`ConnectionListener` interface, and are passed to the part that they concern.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime

from msgspec.structs import replace

from node_client.errors import CoordinatorRefusedError, NodeError, UpgradeDueError
from node_client.learning.external.sharing import explain_unshared
from node_client.learning.report import StepReport
from node_client.learning.trainer import Trainer
from node_client.runtime.alone import practice_season
from node_client.runtime.answering import RoundAnswerer
from node_client.runtime.hello import check_arm, make_hello
from node_client.runtime.pausing import Pauses
from node_client.runtime.reporting import REPORT_INTERVAL_S, Reporter
from node_client.runtime.signing import AnswerSigner
from node_client.runtime.training import (
    Equipment,
    NoTraining,
    Training,
    TrainingHooks,
    TrainingRules,
)
from node_client.runtime.upgrading import UpgradeRequests
from node_client.settings.config import Settings
from node_client.site import Site
from node_client.storage.answers import AnswerSpool
from node_client.storage.commitments import CommitmentLog
from node_client.storage.heads import HeadLog
from node_client.storage.receipts import ReceiptLog
from node_client.storage.state import NodeRecord
from node_client.swarm.backoff import jittered_backoff
from node_client.swarm.client import SwarmClient
from node_client.swarm.connection import ConnectionState, CoordinatorConnection
from node_client.swarm.exchange import PREFERENCES, SwarmExchange, explain_sampling
from swarm_protocol.messages import (
    ChainHead,
    RoundState,
    SeasonInfo,
    SeasonState,
    ServerMessage,
    Welcome,
)

# How long a starting node waits for its coordinator before it trains alone.
WELCOME_TIMEOUT_S = 10.0
# How long a node waits for a coordinator that it joins for the first time.
FIRST_JOIN_TIMEOUT_S = 60.0
# How long a node that pauses or stops submits queued answers and reports.
FLUSH_TIMEOUT_S = 3.0
# All nodes learn at once that their arms are drawn again: they must not reconnect at once.
ASSIGNMENT_PAUSE_S = 5.0

log = logging.getLogger(__name__)


class SwarmNode(TrainingHooks):
    """A node of a swarm. Make and run it inside an event loop."""

    def __init__(
        self,
        settings: Settings,
        *,
        site: Site,
        equipment: Equipment,
        backoff: Callable[[int, float], float] = jittered_backoff,
        uniform: Callable[[], float] = random.random,
        report_interval_s: float = REPORT_INTERVAL_S,
        pauses: Pauses | None = None,
    ) -> None:
        view, policy = equipment.view, equipment.policy
        self._settings = settings
        self._site = site
        self._view = view
        self._uniform = uniform
        self._pauses = pauses or Pauses(settings, view=view)
        self._refusal: NodeError | None = None
        self._welcomed = asyncio.Event()
        self._upgrades = UpgradeRequests(settings, site=site)
        self._record = settings.state.load_for(site)
        self._connection = CoordinatorConnection(
            url=site.socket,
            token=settings.token,
            hello=make_hello(settings, policy),
            listener=self,
            backoff=backoff,
        )
        client = SwarmClient(self._connection)
        self._heads = HeadLog(settings.state.heads, site=site)
        self._commitments = CommitmentLog(settings.state.commitments, site=site)
        self._exchange = SwarmExchange(
            client=client,
            loop=asyncio.get_running_loop(),
            on_refused=view.show_refusal,
            prefer=PREFERENCES[settings.training.external_pool],
            with_logprobs=settings.training.importance == "sender",
        )
        signer = AnswerSigner(
            settings.state.signing_key(),
            site=site,
            receipts=ReceiptLog(settings.state.receipts),
            node=lambda: view.node,
        )
        self._round_answerer = RoundAnswerer(
            client=client,
            worker=equipment.worker,
            generator=policy,
            view=view,
            spool=AnswerSpool(settings.state.answers, site=site, token=settings.token),
            sign=signer.sign,
            store_receipt=signer.store_receipt,
            record_commitment=self._commitments.record,
        )
        self._reporter = Reporter(
            client=client, on_refused=view.show_refusal, interval_s=report_interval_s
        )
        self._training = self._make_training(equipment)

    async def run(self) -> None:
        """Train and answer rounds until stopped, or until `settings.steps` steps are done.

        Raises CoordinatorRefusedError after a permanent refusal. Raises UpgradeDueError if the node
        ended so that `swarm-node service` can install a newer client. If the run fails for another
        reason, raises another NodeError.
        """
        try:
            async with asyncio.TaskGroup() as group:
                background = [group.create_task(job) for job in self._background_jobs()]
                await self._training.run()
                await self._flush_queues()
                for task in background:
                    task.cancel()
        except ExceptionGroup as problems:
            # One error with a remedy says more than the group around it.
            solvable = problems.subgroup(NodeError)
            raise (solvable.exceptions[0] if solvable else problems) from None
        if self._refusal is not None:
            raise self._refusal

    def stop(self) -> None:
        """Let `run` finish the current step, save, submit queued answers and reports and return."""
        self._view.stopping = True
        self._training.stop()

    def before_step(self, trainer: Trainer) -> None:
        """Start to request external rollouts for the step (`SwarmExchange.prefetch`)."""
        self._exchange.prefetch(trainer.candidates)

    def after_step(self, report: StepReport, trainer: Trainer) -> None:
        """Update the counts of rollouts in the view; also queue the report of a step in the season.

        The report is not queued if the step belongs to the built-in season, or to a season that
        ended during the step: the coordinator would count its totals for the season that is running
        now.
        """
        self._view.published = self._exchange.published
        self._view.unpublished = self._exchange.outbox.dropped
        if self._view.season is None or self._view.season.name != trainer.season.name:
            return
        self._reporter.put(report, trainer.totals)

    async def before_pause(self) -> None:
        """Submit queued answers and reports, and disconnect.

        A connected node waits twice before it disconnects. First it waits until the open round has
        been answered or has ended. Then it waits up to FLUSH_TIMEOUT_S for replies to queued
        reports and answers.
        """
        if self._connection.connected.is_set():
            await self._round_answerer.finish()
        await self._flush_queues()
        self._connection.suspend()

    def after_pause(self) -> None:
        """Connect again after a pause."""
        self._connection.resume()

    def on_connection_change(self, connection: ConnectionState) -> None:
        """Show the state of the connection."""
        self._view.show_connection(connection)

    def on_welcome(self, welcome: Welcome) -> None:
        """Apply the coordinator's rules, and save them.

        If the coordinator does not answer at a later start, the node uses the saved rules. Raises
        CoordinatorRefusedError if this run cannot change to the arm that the welcome names.
        """
        check_arm(welcome.arm, own=self._settings.arm)
        self._welcomed.set()
        self._view.show_welcome(welcome.node, welcome.arm, welcome.season)
        self._update_clock(welcome.now)
        self._save_record(welcome)
        log.info("connected as %s, %s", welcome.node, self._site.page(welcome.node))
        if welcome.arm != self._settings.arm:
            log.info("the coordinator put this node in the %s arm", welcome.arm)
        self._show_upgrade(welcome.upgrade)
        self._set_season(welcome.season)
        self._record_chain(welcome.chain)
        self._round_answerer.handle_announcement(welcome.round)

    def on_announcement(self, message: ServerMessage) -> None:
        """Carry out an announcement about a season or a round; ignore any other message."""
        if isinstance(message, SeasonState):
            self._change_season(message.season)
        elif isinstance(message, RoundState):
            self._update_clock(message.now)
            self._record_chain(message.chain)
            self._round_answerer.handle_announcement(message.round)

    def _record_chain(self, chain: ChainHead | None) -> None:
        self._heads.record(chain)
        self._commitments.update_restored(chain)

    def _make_training(self, equipment: Equipment) -> Training | NoTraining:
        if self._settings.arm == "base":
            checkpoints = self._settings.state.checkpoints
            return NoTraining(checkpoints=checkpoints, pauses=self._pauses, hooks=self)
        return Training(
            settings=self._settings,
            equipment=equipment,
            exchange=self._exchange,
            pauses=self._pauses,
            hooks=self,
        )

    def _background_jobs(self) -> list[Coroutine[object, object, None]]:
        jobs = [
            self._run_connection(),
            self._round_answerer.run(),
            self._round_answerer.outbox.run(),
            self._end_for_upgrade(),
        ]
        if not self._record.node:
            jobs.append(self._await_first_welcome())
        elif isinstance(self._training, Training):
            jobs.append(self._train_alone_on_timeout(self._training.has_rules))
        if isinstance(self._training, Training):
            jobs += [self._exchange.outbox.run(), self._reporter.outbox.run()]
        return jobs

    async def _run_connection(self) -> None:
        """Keep the node connected; after a permanent refusal, stop the node and save its work."""
        try:
            await self._connection.run()
        except CoordinatorRefusedError as refusal:
            self._refusal = self._upgrades.error_for(refusal)
            self.stop()

    async def _end_for_upgrade(self) -> None:
        """Stop the node once a newer client has been requested from `swarm-node service`.

        If a round is open, first wait until it has been answered or has ended.
        """
        await self._upgrades.requested.wait()
        await self._round_answerer.finish()
        self._refusal = UpgradeDueError("The coordinator requires a newer client.")
        self.stop()

    async def _await_first_welcome(self) -> None:
        """Raise NodeError if no welcome comes within FIRST_JOIN_TIMEOUT_S when joining a new site.

        Nothing is raised if the node is paused when this time ends, because a paused node does not
        connect.
        """
        try:
            async with asyncio.timeout(FIRST_JOIN_TIMEOUT_S):
                await self._welcomed.wait()
        except TimeoutError:
            if self._view.paused is not None:
                return  # It does not connect until the pause ends.
            reason = self._view.connection.reason if self._view.connection is not None else ""
            raise NodeError(
                f"{self._site.base} has not welcomed this node within {FIRST_JOIN_TIMEOUT_S:g} s: "
                f"{reason or 'no reason was given'}.",
                fix=f"Check the address with `swarm-node doctor {self._site.base}`, or try again "
                "later.",
            ) from None

    async def _train_alone_on_timeout(self, has_rules: asyncio.Event) -> None:
        """Train in the last known season if `has_rules` is not set within WELCOME_TIMEOUT_S.

        `has_rules` is set when the coordinator has welcomed the node, or when training stops.
        """
        try:
            async with asyncio.timeout(WELCOME_TIMEOUT_S):
                await has_rules.wait()
        except TimeoutError:
            log.warning("the coordinator does not answer; training alone until it does")
            self._view.node = self._record.node
            self._set_season(self._record.season)

    def _save_record(self, welcome: Welcome) -> None:
        self._record = NodeRecord(
            url=self._site.base,
            token=self._settings.token,
            model=self._settings.model,
            arm=self._settings.arm,
            node=welcome.node,
            season=welcome.season,
        )
        state = self._settings.state
        try:
            stored = state.load_for(self._site)  # read again: it may have been claimed since
            anonymous = stored.anonymous and stored.node == welcome.node
            state.save(replace(self._record, anonymous=anonymous))
        except (OSError, NodeError) as problem:
            log.warning("could not save the token for the next join: %s", problem)

    def _change_season(self, season: SeasonInfo | None) -> None:
        """Use `season` from now on: a new season, the present one with changed rules, or none.

        In a new season, the node's arm is updated too, unless it is `base`. The display shows that
        a season has ended or begun.
        """
        previous = self._view.season.name if self._view.season is not None else None
        new = season.name if season is not None else None
        if previous is not None and previous != new:
            self._view.show_notice(f"The season {previous} has ended; its scores stay on the site.")
        if season is not None and previous != new:
            self._view.show_notice(f"The season {new} has begun.")
            if self._settings.arm != "base":
                self._change_arm(season)
        self._set_season(season)

    def _change_arm(self, season: SeasonInfo) -> None:
        """Use the arm from the settings or, if the season assigns arms, reconnect to get one.

        Until the coordinator has assigned an arm, the node's arm is `isolated`.
        """
        if season.assignment == "choice":
            self._view.arm = self._settings.arm
            return
        # Until the arm is known: external rollouts would spoil an isolated node, while a swarm node
        # only misses a few.
        self._view.arm = "isolated"
        self._connection.reconnect(after_s=self._uniform() * ASSIGNMENT_PAUSE_S)

    def _show_upgrade(self, oldest: str | None) -> None:
        before, self._view.upgrade = self._view.upgrade, self._upgrades.describe(oldest)
        if self._view.upgrade not in (None, before):
            log.warning(self._view.upgrade)
        self._upgrades.request_if_required(oldest)

    def _set_season(self, season: SeasonInfo | None) -> None:
        """Switch to `season`, or to the built-in practice season if it is None."""
        if season is not None and season != self._view.season and self._settings.arm != "base":
            self._warn_of_settings(season)
        previous = self._view.season
        if previous is not None and (season is None or season.name != previous.name):
            self._reporter.clear()  # as in `after_step`
        self._view.show_season(season)
        self._exchange.set_season(season, arm=self._view.arm)
        self._training.set_rules(
            TrainingRules(
                season=season or practice_season(),
                node=self._view.node or "alone",
                arm=self._view.arm,
            )
        )

    def _warn_of_settings(self, season: SeasonInfo) -> None:
        """Warn of settings that prevent sharing, or that the season does not allow."""
        training = self._settings.training
        reasons = [*explain_unshared(training, season)]
        if self._view.arm == "swarm":
            reasons += explain_sampling(training.external_pool, season)
        for reason in reasons:
            self._view.show_notice(reason)
            log.warning(reason)

    async def _flush_queues(self) -> None:
        """Wait up to FLUSH_TIMEOUT_S for replies to queued reports and answers, if connected."""
        if not self._connection.connected.is_set():
            return
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT_S):
                await self._reporter.outbox.empty.wait()
                await self._round_answerer.outbox.empty.wait()
        except TimeoutError:
            log.warning("stopped before everything was submitted")

    def _update_clock(self, server_now: str) -> None:
        ahead = datetime.fromisoformat(server_now) - datetime.now(UTC)
        self._view.clock_ahead_s = ahead.total_seconds()
