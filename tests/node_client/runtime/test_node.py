import asyncio
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest
import torch

from node_client.errors import CoordinatorRefusedError, NodeError
from node_client.runtime import node as node_module
from node_client.runtime.hello import make_hello
from node_client.settings.config import Settings
from node_client.settings.train_config import TrainConfig
from node_client.storage.checkpoint import newest_first
from node_client.storage.commitments import read_commitments
from node_client.storage.installation import find_installation, upgrade_command
from node_client.storage.manifest import read_manifest
from node_client.storage.state import NodeRecord, StateDir
from swarm_protocol.errors import ErrorCode
from swarm_protocol.logprobs import decode_logprobs
from swarm_protocol.messages import (
    Arm,
    Hardware,
    Hello,
    PublishRollouts,
    Refused,
    ReportTraining,
    RequestRollouts,
    RolloutName,
    RoundState,
    SeasonState,
    SubmitAnswers,
)
from swarm_tasks.verifier import Verifier
from tests.node_client.coordinator import Coordinator, now, open_round, running
from tests.node_client.fakes import external_sum, make_trainer, toy_policy, toy_season
from tests.node_client.panel_views import report
from tests.node_client.runtime.nodes import count_received, made_node, running_node
from tests.node_client.shell_fakes import empty_view


async def test_node_trains_publishes_samples_and_reports(
    settings: Settings, verifier: Verifier
) -> None:
    async with (
        running(Coordinator(season=toy_season())) as coordinator,
        running_node(settings, coordinator, verifier),
    ):
        [hello] = await coordinator.wait_for(Hello)
        assert (hello.model, hello.arm) == ("toy", "swarm")
        [published, *_] = await coordinator.wait_for(PublishRollouts)
        assert {rollout.task.dataset for rollout in published.rollouts} == {"chain_sum"}
        await coordinator.wait_for(RequestRollouts)
        reports = await coordinator.wait_for(ReportTraining, count=3)
    assert [report.step for report in reports] == sorted({report.step for report in reports})
    assert reports[-1].local_used == 4 * reports[-1].step
    assert settings.state.load_lifetime().rollouts_shared > 0


@pytest.mark.parametrize("shared", [False, True])
async def test_hardware_is_sent_only_if_the_owner_chose_so(
    settings: Settings, verifier: Verifier, shared: bool
) -> None:
    chosen = replace(settings, share_hardware=shared)
    async with (
        running(Coordinator(season=toy_season())) as coordinator,
        running_node(chosen, coordinator, verifier),
    ):
        [hello] = await coordinator.wait_for(Hello)
    assert (hello.hardware is not None) == shared
    if hello.hardware is not None:
        assert hello.hardware.device.startswith("CPU")
        assert hello.hardware.memory > 0


def test_intel_gpu_is_described_by_its_own_name_and_memory(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SimpleNamespace(name="Intel Arc A770", total_memory=16 << 30)
    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda device: found)
    policy = toy_policy()
    policy.device = torch.device("xpu")
    hello = make_hello(replace(settings, share_hardware=True), policy)
    assert hello.hardware == Hardware(device="Intel Arc A770", memory=16 << 30)


async def test_used_rollouts_and_reflection_are_reported(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator = Coordinator(season=toy_season())
    texts = ("<answer>{sum}</answer>", "<answer>99</answer>", "no idea", "{sum}")
    coordinator.pool = [external_sum(verifier, texts, counter=n) for n in range(2)]
    names = {RolloutName(each.node, each.rollout.id) for each in coordinator.pool}
    async with running(coordinator), running_node(settings, coordinator, verifier):
        await coordinator.wait_for(ReportTraining, where=lambda report: bool(report.used))
        [report, *_] = await coordinator.wait_for(
            ReportTraining, where=lambda report: report.external_used == 2
        )
    reports = [message for message in coordinator.received if isinstance(message, ReportTraining)]
    used = [name for each in reports for name in each.used]
    assert (len(used), set(used)) == (2, names)
    assert set(report.reflection) == {"recheck", "hesitation", "exploration"}


async def test_node_answers_a_round_while_it_trains(settings: Settings, verifier: Verifier) -> None:
    coordinator = Coordinator(season=toy_season())
    async with running(coordinator), running_node(settings, coordinator, verifier):
        await coordinator.wait_for(ReportTraining)
        coordinator.round = open_round(questions=20)
        await coordinator.ring(RoundState(None, coordinator.round, now()))
        await coordinator.wait_for(SubmitAnswers)
        done = len(await coordinator.wait_for(ReportTraining))
        await coordinator.wait_for(ReportTraining, count=done + 1)
    assert len(coordinator.answers) == 20


async def test_training_continues_while_the_coordinator_is_away(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator, view = Coordinator(season=toy_season()), empty_view()
    async with (
        running(coordinator),
        made_node(settings, coordinator.site, verifier, view=view) as node,
    ):
        task = asyncio.create_task(node.run())
        [before, *_] = await coordinator.wait_for(ReportTraining)
        await coordinator.stop()
        while view.steps_this_run < before.step + 5:
            await asyncio.wait([task], timeout=0.01)
        count = len(await coordinator.wait_for(ReportTraining))
        await coordinator.start()
        reports = await coordinator.wait_for(ReportTraining, count=count + 1)
        node.stop()
        await task
    # Of the reports that became due meanwhile, only the newest is sent.
    assert reports[count].step >= before.step + 5


@pytest.mark.slow
async def test_loss_of_the_coordinator_does_not_change_what_an_isolated_node_learns(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator = Coordinator(season=toy_season())
    hashes: list[dict[str, str]] = []
    for folder, is_lost in (("kept", False), ("lost", True)):
        state = StateDir(settings.state.path / folder)
        state.path.mkdir()
        (state.path / "task.key").write_bytes(b"the same key".ljust(32))
        alone = replace(settings, state=state, arm="isolated", steps=40)
        view = empty_view()
        async with (
            running(coordinator),
            made_node(alone, coordinator.site, verifier, view=view) as node,
        ):
            task = asyncio.create_task(node.run())
            await coordinator.wait_for(ReportTraining)
            if is_lost:
                await coordinator.stop()
                assert view.steps_this_run < 40
            await task
            assert view.connection is not None
            assert (view.connection.phase == "connected") is not is_lost
        files = read_manifest(newest_first(state.checkpoints)[0]).files
        hashes.append({name: hash for name, hash in files.items() if name != "run.json"})
        coordinator.received.clear()
    assert hashes[0] == hashes[1]


async def test_node_follows_new_rules_and_practises_without_a_season(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator, view = Coordinator(season=toy_season()), empty_view()
    async with (
        running(coordinator),
        running_node(settings, coordinator, verifier, view=view) as task,
    ):
        [*_, before] = await coordinator.wait_for(ReportTraining, count=3)
        rules = msgspec.structs.replace(toy_season(local=3, external=3), name="next")
        await coordinator.ring(SeasonState(None, rules))
        # Totals restart with a season, steps do not.
        [after, *_] = await coordinator.wait_for(
            ReportTraining, where=lambda report: report.local_used < 4 * report.step
        )
        assert after.step > before.step
        assert after.local_used % 6 == 0
        await coordinator.ring(SeasonState(None, None))
        while view.report is None or set(view.report.solved) == {"chain_sum"}:
            await asyncio.wait([task], timeout=0.01)
        practised = view.report.step
        assert [notice.message for notice in view.notices] == [
            "The season sums has ended; its scores stay on the site.",
            "The season next has begun.",
            "The season next has ended; its scores stay on the site.",
        ]
        await coordinator.ring(SeasonState(None, toy_season()))
        await coordinator.wait_for(
            PublishRollouts, where=lambda message: message.rollouts[0].step >= practised
        )
        shared = [
            message for message in coordinator.received if isinstance(message, PublishRollouts)
        ]
        datasets = {each.task.dataset for message in shared for each in message.rollouts}
        assert datasets == {"chain_sum"}


@pytest.mark.parametrize("report_is_queued", [False, True])
async def test_step_of_an_ended_season_is_not_reported_in_the_next(
    settings: Settings, verifier: Verifier, report_is_queued: bool
) -> None:
    coordinator, trainer = Coordinator(season=toy_season()), make_trainer(verifier)
    trainer.totals.local_used = 999
    resting = replace(settings, step_seconds=1000)
    async with running(coordinator), made_node(resting, coordinator.site, verifier) as node:
        task = asyncio.create_task(node.run())
        await coordinator.wait_for(ReportTraining)
        if report_is_queued:
            node.after_step(report(), trainer)
        node.on_announcement(SeasonState(None, msgspec.structs.replace(toy_season(), name="next")))
        if not report_is_queued:
            node.after_step(report(), trainer)
        node.stop()
        await task
    sent = [message for message in coordinator.received if isinstance(message, ReportTraining)]
    assert [report.local_used for report in sent] == [4]


@pytest.mark.parametrize("arm", ["swarm", "base"])
async def test_node_that_never_reached_its_coordinator_ends_with_a_reason(
    settings: Settings, verifier: Verifier, monkeypatch: pytest.MonkeyPatch, arm: Arm
) -> None:
    monkeypatch.setattr(node_module, "FIRST_JOIN_TIMEOUT_S", 0.01)
    coordinator, view = Coordinator(), empty_view()
    coordinator.silent.add(Hello)
    async with (
        running(coordinator),
        made_node(replace(settings, arm=arm), coordinator.site, verifier, view=view) as node,
    ):
        with pytest.raises(NodeError, match="has not welcomed this node"):
            await node.run()
    assert view.steps_this_run == 0


async def test_node_welcomed_earlier_trains_alone_while_its_coordinator_is_away(
    settings: Settings, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_module, "WELCOME_TIMEOUT_S", 0.01)
    async with running(Coordinator()) as coordinator:
        site = coordinator.site
    settings.state.path.mkdir(exist_ok=True)
    settings.state.save(NodeRecord(url=site.base, node="amber-quiet-heron"))
    async with made_node(replace(settings, steps=1), site, verifier) as node:
        await node.run()
    progress = settings.state.load_progress()
    assert progress is not None
    assert (progress.step, progress.season) == (1, "practice")


async def test_restarted_node_remembers_its_season_and_resumes(
    settings: Settings, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, view = replace(settings, steps=2), empty_view()
    async with running(Coordinator(season=toy_season())) as coordinator:
        site = coordinator.site
        async with made_node(settings, site, verifier) as node:
            await node.run()
    monkeypatch.setattr(node_module, "WELCOME_TIMEOUT_S", 0.01)
    async with made_node(settings, site, verifier, view=view) as node:
        await node.run()
    assert view.resumed_step == 2
    progress = settings.state.load_progress()
    assert progress is not None
    assert (progress.step, progress.season) == (4, "sums")


async def test_settings_that_prevent_publishing_are_reported_once_per_season(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator, view = Coordinator(season=toy_season(completions=4)), empty_view()
    larger = replace(settings, training=TrainConfig(num_generations=5))
    async with running(coordinator), running_node(larger, coordinator, verifier, view=view):
        await coordinator.wait_for(ReportTraining)
        await coordinator.ring(SeasonState(None, coordinator.season))
        await coordinator.wait_for(ReportTraining, count=2)
    assert count_received(coordinator, PublishRollouts) == 0
    [notice] = view.notices
    assert "Leave num_generations out" in notice.message


async def test_fatal_refusal_ends_the_node_after_it_saved_its_work(
    settings: Settings, verifier: Verifier
) -> None:
    async with (
        running(Coordinator(season=toy_season())) as coordinator,
        made_node(settings, coordinator.site, verifier) as node,
    ):
        task = asyncio.create_task(node.run())
        await coordinator.wait_for(ReportTraining, count=2)
        code = ErrorCode.AUTH_INVALID
        await coordinator.ring(Refused(None, code, "Revoked.", "Ask.", fatal=True))
        with pytest.raises(CoordinatorRefusedError, match="Revoked"):
            await task
    progress = settings.state.load_progress()
    assert progress is not None
    assert progress.step >= 2


async def test_season_of_another_generator_is_refused_with_a_remedy(
    settings: Settings, verifier: Verifier
) -> None:
    season = msgspec.structs.replace(toy_season(), generator="reasoning-gym 9.9.9")
    async with (
        running(Coordinator(season=season)) as coordinator,
        made_node(settings, coordinator.site, verifier) as node,
    ):
        with pytest.raises(NodeError, match=r"9\.9\.9") as problem:
            await node.run()
    assert "join page" in problem.value.fix


async def test_importance_by_the_sender_requests_log_probs(
    settings: Settings, verifier: Verifier
) -> None:
    configured = replace(settings, training=TrainConfig(importance="sender"))
    async with (
        running(Coordinator(season=toy_season())) as coordinator,
        running_node(configured, coordinator, verifier),
    ):
        [request, *_] = await coordinator.wait_for(RequestRollouts)
        assert request.logprobs
        [published, *_] = await coordinator.wait_for(PublishRollouts)
        completions = published.rollouts[0].completions
        assert all(decode_logprobs(each.logprobs or "") for each in completions)


async def test_node_that_is_refused_the_pool_continues_with_its_own_rollouts(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator = Coordinator(season=toy_season())
    coordinator.refusals[RequestRollouts] = ErrorCode.RELAY_ISOLATED
    async with running(coordinator), running_node(settings, coordinator, verifier):
        reports = await coordinator.wait_for(ReportTraining, count=2)
    assert reports[-1].local_used == 4 * reports[-1].step
    assert count_received(coordinator, RequestRollouts) == 1


async def test_commitments_of_welcomes_and_doorbells_are_recorded(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator = Coordinator(season=toy_season())
    coordinator.round = open_round(1, commitment="one")
    async with running(coordinator), running_node(settings, coordinator, verifier):
        await coordinator.wait_for(SubmitAnswers)
        coordinator.round = open_round(2, commitment="two")
        await coordinator.ring(RoundState(None, coordinator.round, now()))
        await coordinator.wait_for(SubmitAnswers, where=lambda message: message.round == 2)
    noted = read_commitments(settings.state.commitments)
    assert [(line.round, line.commitment) for line in noted] == [(1, "one"), (2, "two")]
    assert {line.site for line in noted} == {coordinator.site.base}


async def test_soon_outdated_client_reports_the_upgrade(
    settings: Settings, verifier: Verifier, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator, view = Coordinator(season=toy_season()), empty_view()
    coordinator.upgrade = "9.9.9"
    async with running(coordinator), running_node(settings, coordinator, verifier, view=view):
        await coordinator.wait_for(ReportTraining)
    assert view.upgrade is not None
    assert "older than 9.9.9" in view.upgrade
    assert f"swarm-node --index-url {coordinator.site.base}/simple/" in view.upgrade
    assert caplog.text.count(view.upgrade) == 1


async def test_outdated_client_names_the_upgrade_command(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator = Coordinator(season=toy_season())
    coordinator.refusals[Hello] = ErrorCode.CLIENT_TOO_OLD
    with pytest.raises(CoordinatorRefusedError) as refusal:
        async with running(coordinator), running_node(settings, coordinator, verifier) as node:
            await node
    assert refusal.value.fix.endswith(upgrade_command(coordinator.site, find_installation()))
