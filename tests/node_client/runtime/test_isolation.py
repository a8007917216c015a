"""The owner is warned once about protections that the verifier's child lacks."""

from dataclasses import replace

import pytest

from node_client.runtime.alone import train_offline
from node_client.runtime.isolation import warn_of_missing
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import toy_policy
from tests.node_client.shell_fakes import empty_view


async def notices(verifier: Verifier) -> list[str]:
    view = empty_view()
    async with ModelWorker() as worker:
        await warn_of_missing(verifier, worker=worker, view=view)
    return [notice.message for notice in view.notices]


def simulate_isolation(monkeypatch: pytest.MonkeyPatch, *took_hold: str) -> None:
    isolation = frozenset(took_hold)
    monkeypatch.setattr(Verifier, "isolation", property(lambda verifier: isolation))


async def test_missing_protections_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate_isolation(monkeypatch, "rlimits", "processes")
    [notice] = await notices(Verifier())
    assert "does not offer: filesystem, network." in notice


async def test_training_node_shows_missing_protections_at_its_start(
    monkeypatch: pytest.MonkeyPatch, verifier: Verifier, settings: Settings
) -> None:
    simulate_isolation(monkeypatch, "rlimits")
    view = empty_view()
    async with ModelWorker() as worker:
        equipment = Equipment(policy=toy_policy(), verifier=verifier, worker=worker, view=view)
        await train_offline(replace(settings, steps=1), equipment=equipment).run()
    assert "does not offer" in view.notices[0].message


async def test_no_notice_is_shown_if_all_protections_took_effect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulate_isolation(monkeypatch, "rlimits", "filesystem", "network")
    assert await notices(Verifier()) == []


async def test_child_that_fails_to_start_causes_no_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(verifier: Verifier) -> None:
        raise RefusedError(ErrorCode.VERIFIER_FAILED, "Gone.")

    monkeypatch.setattr(Verifier, "isolation", property(refuse))
    assert await notices(Verifier()) == []
