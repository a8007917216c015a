import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from node_client.swarm.client import MAX_ITEMS_BYTES, split_into_frames
from node_client.swarm.exchange import MAX_QUEUED_ROLLOUTS, SwarmExchange
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    MAX_COMPLETION_CHARS,
    MAX_ROLLOUTS,
    AnswerText,
    ChainHead,
    Completion,
    ExternalRollout,
    Preference,
    PublishRollouts,
    ReportTraining,
    RequestRollouts,
    Rollout,
    RolloutName,
    SignedReceipt,
    SubmitAnswers,
    TaskSpec,
)
from swarm_tasks.allowlist import GENERATOR
from tests.node_client.coordinator import Coordinator, running
from tests.node_client.fakes import SEED, SUMS, toy_season
from tests.node_client.shell_fakes import Connected, running_connection


def rollout(name: str) -> Rollout:
    return Rollout(
        id=name,
        task=TaskSpec("chain_sum", SUMS, SEED, 2, GENERATOR),
        completions=[Completion("1", "stop"), Completion("2", "length")],
        model="toy",
        step=3,
        tokenizer="abc",
    )


def foreign_task() -> TaskSpec:
    """Return a task of another season, as left by a step that began in that season."""
    return msgspec.structs.replace(rollout("a").task, seed=SEED + 1)


def others(count: int) -> list[ExternalRollout]:
    return [ExternalRollout("other", 1.0, rollout(f"o{place}")) for place in range(count)]


@asynccontextmanager
async def running_exchange(
    coordinator: Coordinator,
    *,
    fetch_timeout_s: float = 0.2,
    prefer: Preference = "any",
    with_logprobs: bool = False,
) -> AsyncIterator[tuple[Connected, SwarmExchange]]:
    """Run a coordinator and a node in its season; yield the node and its exchange."""
    refusals: list[RefusedError] = []
    async with running(coordinator), running_connection(coordinator) as node:
        exchange = SwarmExchange(
            client=node.client,
            loop=asyncio.get_running_loop(),
            on_refused=refusals.append,
            fetch_timeout_s=fetch_timeout_s,
            prefer=prefer,
            with_logprobs=with_logprobs,
        )
        exchange.set_season(toy_season(), arm="swarm")
        sending = asyncio.create_task(exchange.outbox.run())
        try:
            yield node, exchange
        finally:
            sending.cancel()


async def publish(exchange: SwarmExchange, *rollouts: Rollout, informative: str = "") -> None:
    """Publish rollouts from another thread, like the trainer; `informative` are one-letter ids."""
    await asyncio.to_thread(exchange.publish, rollouts, informative=list(informative))


def test_large_answers_are_split_into_frames_that_fit() -> None:
    answers = [AnswerText(f"q{n}", "\u00e9" * MAX_COMPLETION_CHARS, "stop") for n in range(100)]
    frames = list(split_into_frames(answers, max_items=256))
    assert [answer for frame in frames for answer in frame] == answers
    assert len(frames) > 1
    assert all(len(frame) * 2 * MAX_COMPLETION_CHARS <= MAX_ITEMS_BYTES for frame in frames)


def test_many_small_items_are_split_by_number() -> None:
    answers = [AnswerText(f"q{n}", "1", "stop") for n in range(5)]
    assert [len(frame) for frame in split_into_frames(answers, max_items=2)] == [2, 2, 1]


@pytest.mark.parametrize("supported", [True, False])
async def test_log_probs_are_sent_and_requested_only_if_the_coordinator_supports_them(
    supported: bool,
) -> None:
    coordinator = Coordinator()
    coordinator.supports_logprobs = supported
    full = [Completion("1", "stop", logprobs="AAIABA=="), Completion("2", "length", logprob=-1.5)]
    async with running_exchange(coordinator, with_logprobs=True) as (_, exchange):
        await publish(exchange, msgspec.structs.replace(rollout("a"), completions=full))
        [published] = await coordinator.wait_for(PublishRollouts)
        assert published.rollouts[0].completions == (
            full if supported else rollout("a").completions
        )
        await asyncio.to_thread(exchange.fetch, 3)
        [request] = await coordinator.wait_for(RequestRollouts)
        assert request.logprobs == supported


async def test_log_probs_are_not_requested_unless_needed() -> None:
    coordinator = Coordinator()
    async with running_exchange(coordinator) as (_, exchange):
        await asyncio.to_thread(exchange.fetch, 3)
        [request] = await coordinator.wait_for(RequestRollouts)
        assert not request.logprobs


@pytest.mark.parametrize("supported", [True, False])
async def test_declarations_are_sent_only_if_the_coordinator_supports_them(
    supported: bool,
) -> None:
    coordinator = Coordinator()
    coordinator.supports_declarations = supported
    async with running_exchange(coordinator) as (_, exchange):
        await publish(exchange, *map(rollout, "abc"), informative="ac")
        [published] = await coordinator.wait_for(PublishRollouts)
        assert {each.id for each in published.rollouts} == {"a", "b", "c"}
        assert published.informative == (["a", "c"] if supported else [])


async def test_each_frame_declares_only_its_own_rollouts() -> None:
    coordinator = Coordinator()
    rollouts = [rollout(f"r{n}") for n in range(MAX_ROLLOUTS + 1)]
    last = rollouts[-1].id
    async with running_exchange(coordinator) as (node, exchange):
        await coordinator.stop()
        await node.notebook.until(lambda: node.notebook.links[-1].phase == "waiting")
        await asyncio.to_thread(exchange.publish, rollouts, informative=["r0", last])
        await coordinator.start()
        messages = await coordinator.wait_for(PublishRollouts, count=2)
        assert [message.informative for message in messages] == [["r0"], [last]]


@pytest.mark.parametrize("supported", [True, False])
async def test_informative_rollouts_are_requested_only_if_the_coordinator_supports_it(
    supported: bool,
) -> None:
    coordinator = Coordinator()
    coordinator.supports_declarations = supported
    async with running_exchange(coordinator, prefer="informative") as (_, exchange):
        await asyncio.to_thread(exchange.fetch, 3)
        [request] = await coordinator.wait_for(RequestRollouts)
        assert request.prefer == ("informative" if supported else "any")


@pytest.mark.parametrize("publishes", [True, False])
async def test_isolated_node_publishes_only_if_the_season_allows_it(publishes: bool) -> None:
    coordinator = Coordinator()
    season = msgspec.structs.replace(toy_season(), isolated_publish=publishes)
    async with running_exchange(coordinator) as (node, exchange):
        exchange.set_season(season, arm="isolated")
        await publish(exchange, rollout("a"))
        await node.client.request_round()
        await exchange.outbox.empty.wait()
        assert exchange.published == int(publishes)


async def test_queued_rollouts_are_dropped_when_a_node_becomes_isolated() -> None:
    coordinator = Coordinator()
    async with running_exchange(coordinator) as (node, exchange):
        await coordinator.stop()
        await node.notebook.until(lambda: node.notebook.links[-1].phase == "waiting")
        await publish(exchange, rollout("a"))
        await asyncio.sleep(0)
        assert len(exchange.outbox) == 1
        exchange.set_season(toy_season(), arm="isolated")
        assert len(exchange.outbox) == 0
        await coordinator.start()


async def test_published_rollouts_are_sent_and_counted() -> None:
    coordinator = Coordinator()
    async with running_exchange(coordinator) as (_, exchange):
        await publish(exchange, rollout("a"), rollout("b"))
        [message] = await coordinator.wait_for(PublishRollouts)
        assert [each.id for each in message.rollouts] == ["a", "b"]
        await exchange.outbox.empty.wait()
        assert (exchange.published, exchange.outbox.dropped) == (2, 0)


async def test_informative_rollouts_are_kept_if_a_step_exceeds_the_queue() -> None:
    coordinator = Coordinator()
    async with running_exchange(coordinator) as (node, exchange):
        await coordinator.stop()
        await node.notebook.until(lambda: node.notebook.links[-1].phase == "waiting")
        rollouts = [rollout(f"r{n}") for n in range(MAX_QUEUED_ROLLOUTS + 3)]
        await asyncio.to_thread(exchange.publish, rollouts, informative=["r0", "r1"])
        await asyncio.sleep(0)
        await coordinator.start()
        await exchange.outbox.empty.wait()
        messages = await coordinator.wait_for(PublishRollouts)
        assert {name for message in messages for name in message.informative} == {"r0", "r1"}


async def test_rollouts_published_offline_are_bounded_counted_and_sent_later() -> None:
    coordinator = Coordinator()
    async with running_exchange(coordinator) as (node, exchange):
        await coordinator.stop()
        await node.notebook.until(lambda: node.notebook.links[-1].phase == "waiting")
        rollouts = [rollout(f"r{n}") for n in range(MAX_QUEUED_ROLLOUTS + 3)]
        await publish(exchange, *rollouts)
        await asyncio.sleep(0)
        assert (len(exchange.outbox), exchange.outbox.dropped) == (MAX_QUEUED_ROLLOUTS, 3)
        await coordinator.start()
        await exchange.outbox.empty.wait()
        sent = [
            each.id
            for message in await coordinator.wait_for(PublishRollouts)
            for each in message.rollouts
        ]
        assert sent == [each.id for each in rollouts[3:]]


async def test_refused_rollouts_are_dropped_and_busy_ones_sent_again() -> None:
    coordinator = Coordinator()
    async with running_exchange(coordinator) as (_, exchange):
        coordinator.refusals[PublishRollouts] = ErrorCode.SERVER_BUSY
        exchange.outbox.put([rollout("a")])
        await coordinator.wait_for(PublishRollouts, count=3)
        assert len(exchange.outbox) == 1
        coordinator.refusals[PublishRollouts] = ErrorCode.TASK_FOREIGN
        await exchange.outbox.empty.wait()
        assert exchange.published == 0


async def test_sample_returns_the_rollouts_of_the_pool() -> None:
    coordinator = Coordinator()
    coordinator.pool = others(3)
    async with running_exchange(coordinator) as (_, exchange):
        assert await asyncio.to_thread(exchange.fetch, 8) == others(3)


async def test_next_sample_is_fetched_in_advance() -> None:
    coordinator = Coordinator()
    async with running_exchange(coordinator) as (_, exchange):
        coordinator.pool = others(2)
        exchange.prefetch(2)
        await coordinator.wait_for(RequestRollouts)
        assert await asyncio.to_thread(exchange.fetch, 2) == others(2)
        assert len(await coordinator.wait_for(RequestRollouts)) == 1


async def test_fetched_sample_is_discarded_if_the_step_needs_none() -> None:
    coordinator = Coordinator()
    async with running_exchange(coordinator) as (_, exchange):
        coordinator.pool = others(1)
        exchange.prefetch(2)
        await coordinator.wait_for(RequestRollouts)
        exchange.prefetch(0)
        coordinator.pool = others(2)
        assert await asyncio.to_thread(exchange.fetch, 2) == others(2)


async def test_request_is_repeated_within_the_step_if_the_coordinator_is_busy() -> None:
    coordinator = Coordinator()
    coordinator.pool = others(1)
    coordinator.refusals[RequestRollouts] = ErrorCode.RATE_LIMITED
    async with running_exchange(coordinator, fetch_timeout_s=20) as (_, exchange):
        sampling = asyncio.create_task(asyncio.to_thread(exchange.fetch, 1))
        await coordinator.wait_for(RequestRollouts, count=2)
        coordinator.refusals.clear()
        assert await sampling == others(1)


async def test_sample_is_empty_if_the_coordinator_does_not_reply() -> None:
    coordinator = Coordinator()
    coordinator.silent.add(RequestRollouts)
    async with running_exchange(coordinator) as (_, exchange):
        assert await asyncio.to_thread(exchange.fetch, 2) == []


async def test_node_stops_requesting_once_it_is_refused_as_isolated() -> None:
    coordinator = Coordinator()
    coordinator.refusals[RequestRollouts] = ErrorCode.RELAY_ISOLATED
    async with running_exchange(coordinator) as (_, exchange):
        for _ in range(3):
            assert await asyncio.to_thread(exchange.fetch, 2) == []
            exchange.prefetch(2)
        assert len(await coordinator.wait_for(RequestRollouts)) == 1


async def test_sample_is_empty_while_the_node_is_offline() -> None:
    coordinator = Coordinator()
    coordinator.pool = others(1)
    async with running_exchange(coordinator) as (node, exchange):
        await coordinator.stop()
        await node.notebook.until(lambda: node.notebook.links[-1].phase == "waiting")
        exchange.prefetch(2)
        assert await asyncio.to_thread(exchange.fetch, 2) == []
        await coordinator.start()


async def test_nothing_is_published_or_requested_in_practice() -> None:
    coordinator = Coordinator()
    async with running_exchange(coordinator) as (node, exchange):
        exchange.set_season(None, arm="swarm")
        exchange.prefetch(2)
        assert await asyncio.to_thread(exchange.fetch, 2) == []
        await publish(exchange, rollout("a"))
        await node.client.request_round()
        assert not any(
            isinstance(sent, PublishRollouts | RequestRollouts) for sent in coordinator.received
        )


async def test_sample_fetched_before_practice_is_discarded() -> None:
    coordinator = Coordinator()
    coordinator.pool = others(1)
    async with running_exchange(coordinator) as (_, exchange):
        exchange.prefetch(2)
        await coordinator.wait_for(RequestRollouts)
        exchange.set_season(None, arm="swarm")
        assert await asyncio.to_thread(exchange.fetch, 2) == []
        coordinator.pool = others(2)
        exchange.set_season(toy_season(), arm="swarm")
        assert await asyncio.to_thread(exchange.fetch, 2) == others(2)


async def test_rollouts_queued_for_another_season_are_dropped() -> None:
    coordinator = Coordinator()
    async with running_exchange(coordinator) as (node, exchange):
        await coordinator.stop()
        await node.notebook.until(lambda: node.notebook.links[-1].phase == "waiting")
        exchange.outbox.put([rollout("old")])
        await asyncio.sleep(0)  # now the outbox waits for the connection
        exchange.set_season(msgspec.structs.replace(toy_season(), seed=SEED + 1), arm="swarm")
        exchange.set_season(toy_season(), arm="swarm")
        await coordinator.start()
        await node.client.wait_until_connected()
        await node.client.request_round()
        late = msgspec.structs.replace(rollout("late"), task=foreign_task())
        await publish(exchange, late, rollout("new"))
        [message] = await coordinator.wait_for(PublishRollouts)
        assert [each.id for each in message.rollouts] == ["new"]


async def test_repeated_season_does_not_drop_queued_rollouts() -> None:
    coordinator = Coordinator()
    async with running_exchange(coordinator) as (_, exchange):
        exchange.outbox.put([rollout("a")])
        exchange.set_season(toy_season(), arm="swarm")
        await coordinator.wait_for(PublishRollouts)


@pytest.mark.parametrize("supported", [True, False])
async def test_used_rollouts_are_reported_only_if_the_coordinator_supports_it(
    supported: bool,
) -> None:
    coordinator = Coordinator()
    coordinator.supports_provenance = supported
    report = ReportTraining(
        id="t",
        step=1,
        training_reward=0.5,
        informative_share=0.5,
        local_used=4,
        external_used=1,
        used=[RolloutName("bold", "r")],
        reflection={"recheck": 0.5},
    )
    async with running(coordinator), running_connection(coordinator) as node:
        await node.client.report_training(report)
        [received] = await coordinator.wait_for(ReportTraining)
    assert (received.used, received.reflection) == (
        (report.used, report.reflection) if supported else ([], {})
    )


@pytest.mark.parametrize("supported", [True, False])
async def test_signatures_are_sent_only_if_supported_and_the_receipt_is_kept(
    supported: bool,
) -> None:
    coordinator, kept = Coordinator(), list[SignedReceipt]()
    if supported:
        coordinator.chain = ChainHead(1, "9f" * 32, "d7" * 32, "e5" * 64)
        coordinator.receipt = SignedReceipt("c0ffee", "now", [], "d7" * 32, "e5" * 64)
    async with running(coordinator), running_connection(coordinator) as node:
        await node.client.submit_answers(
            1, [AnswerText("q1", "1", "stop", "ab" * 64)], on_receipt=kept.append
        )
    [submitted] = await coordinator.wait_for(SubmitAnswers)
    assert submitted.answers[0].signature == ("ab" * 64 if supported else None)
    assert kept == ([coordinator.receipt] if supported else [])
