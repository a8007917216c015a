"""Changes while the next round's questions are drawn, which takes seconds."""

from collections.abc import Callable

import pytest

from judge.models import Round, Season
from judge.services.scheduling import ensure_next_round, schedule_round
from judge.services.seasons import end_season
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import Config
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import DrawnTask
from tests.judge.toys import Clock, Site, ToyVerifier

pytestmark = pytest.mark.django_db


class InterruptedVerifier(ToyVerifier):
    """A toy verifier that runs a callback before it draws its first question."""

    def __init__(self, callback: Callable[[], object]) -> None:
        super().__init__()
        self._callbacks = [callback]

    def draw(
        self, *, key: bytes, part: Part, dataset: str, config: Config, seed: int, counter: int
    ) -> DrawnTask:
        while self._callbacks:
            self._callbacks.pop()()
        return super().draw(
            key=key, part=part, dataset=dataset, config=config, seed=seed, counter=counter
        )


def test_two_workers_schedule_one_round(site: Site, clock: Clock) -> None:
    season = Season.objects.get(pk=site.season.pk)
    other = InterruptedVerifier(
        lambda: ensure_next_round(site.season, now=clock.now, verifier=ToyVerifier())
    )
    assert ensure_next_round(season, now=clock.now, verifier=other) is None
    assert Round.objects.filter(phase=Round.Phase.SCHEDULED).count() == 1


def test_a_season_that_ended_during_drawing_gets_no_round(site: Site, clock: Clock) -> None:
    season = Season.objects.get(pk=site.season.pk)
    ending = InterruptedVerifier(lambda: end_season(site.season, now=clock.now))
    assert ensure_next_round(season, now=clock.now, verifier=ending) is None
    assert not Round.objects.exists()


def test_a_season_that_ended_during_drawing_gets_no_round_by_hand(site: Site, clock: Clock) -> None:
    ending = InterruptedVerifier(lambda: end_season(site.season, now=clock.now))
    with pytest.raises(RefusedError, match="Toys has ended"):
        schedule_round(site.season, opens_at=clock.now, now=clock.now, verifier=ending)
    assert not Round.objects.exists()
