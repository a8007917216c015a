"""`manage.py create_season` creates a first season in one step."""

from io import StringIO

import msgspec
import pytest
from django.core.management import CommandError, call_command

from judge.models import Season
from judge.services.seasons import end_season, halt_season
from judge.task_mix import season_lasting
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.starter import DEMO_TASKS, YEAR_TASKS
from tests.judge.conftest import Clock

pytestmark = pytest.mark.django_db(transaction=True)


def create_season(**options: object) -> str:
    """Run the command and return its output."""
    output = StringIO()
    call_command("create_season", stdout=output, **options)
    return output.getvalue()


def test_a_season_with_questions_for_a_year_runs(transactional_db: None) -> None:
    assert create_season(name="First") == "season First is running\n"
    season = Season.objects.get()
    assert season.state == Season.State.RUNNING
    assert season.tasks == msgspec.to_builtins(list(YEAR_TASKS))
    assert season.rounds_to_ask == 105_120
    assert all(lasting.about > 105_120 for lasting in season_lasting(season))


def test_demo_rounds_are_short_and_late_joiners_take_part(transactional_db: None) -> None:
    create_season(demo=True)
    season = Season.objects.get()
    assert season.open_seconds < season.cadence_seconds < 60
    assert season.late_joiners == Season.LateJoiners.JOIN
    assert season.tasks == msgspec.to_builtins(list(DEMO_TASKS))


def test_a_demo_has_questions_for_the_rounds_that_it_plans(transactional_db: None) -> None:
    create_season(demo=True)
    season = Season.objects.get()
    assert 20 * 60 < season.rounds_to_ask * season.cadence_seconds < 40 * 60
    assert all(lasting.at_least >= season.rounds_to_ask for lasting in season_lasting(season))


def test_a_demo_without_questions_left_starts_another_season(transactional_db: None) -> None:
    create_season(demo=True)
    refusal = RefusedError(ErrorCode.TASK_EXHAUSTED, "gcd has too few questions left")
    halt_season(Season.objects.get(), refusal)
    assert "already" in create_season()
    assert create_season(demo=True) == "season First light 2 is running\n"
    assert Season.objects.get(name="First light").state == Season.State.ENDED


def test_a_demo_whose_season_was_ended_starts_another(clock: Clock) -> None:
    create_season(demo=True)
    end_season(Season.objects.get(), now=clock.now)
    assert create_season(demo=True) == "season First light 2 is running\n"


def test_a_demo_does_not_replace_a_halted_season_with_a_similar_name(clock: Clock) -> None:
    create_season(name="First light of autumn")
    halt_season(
        Season.objects.get(), RefusedError(ErrorCode.TASK_EXHAUSTED, "gcd has too few questions")
    )
    assert create_season(demo=True) == "season First light of autumn is running already\n"


def test_a_demo_does_not_replace_an_operators_halted_season(season: Season) -> None:
    halt_season(season, RefusedError(ErrorCode.TASK_EXHAUSTED, "gcd has too few questions left"))
    assert create_season(demo=True) == "season Sums is running already\n"
    assert Season.objects.get().state == Season.State.RUNNING


def test_a_running_season_is_not_changed(season: Season) -> None:
    assert create_season(name="Another") == "season Sums is running already\n"
    assert Season.objects.get() == season


def test_a_taken_name_is_refused_with_a_remedy(season: Season, clock: Clock) -> None:
    end_season(season, now=clock.now)
    with pytest.raises(CommandError, match="Choose another name"):
        create_season(name="Sums")
