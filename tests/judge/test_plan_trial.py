"""`manage.py plan_trial` prints how many nodes a trial needs."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from judge.models import Comparison, Season

CLAIM = {
    **{"model": "tiny", "n_swarm": 6, "n_isolated": 6, "family": ["tiny"], "verdict": "not_shown"},
    **dict.fromkeys(("difference", "interval", "p_value", "p_adjusted", "missing")),
}


def note_spread(season: Season, *, nodes: float) -> None:
    claim = CLAIM | {"spread": {"nodes": nodes, "rounds": 0.072}}
    Comparison.objects.create(season=season, model="tiny", claim=claim, updated_at=timezone.now())


def plan(**options: Any) -> list[list[str]]:
    """Run the command and return the words of its lines."""
    output = StringIO()
    call_command("plan_trial", stdout=output, **options)
    return [line.split() for line in output.getvalue().splitlines()]


def test_plan_trial_prints_the_nodes_that_each_arm_needs() -> None:
    table = plan(effect=5.0, spread=5.0, noise=10.0, rounds=200)[2:]
    assert [row[0] for row in table] == ["25", "50", "100", "200"]
    needed = [int(row[1]) for row in table]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] == 18


def test_more_models_need_more_nodes() -> None:
    assert int(plan(models=4)[-1][1]) > int(plan(models=1)[-1][1])


def test_the_spread_is_taken_from_a_tested_model(season: Season) -> None:
    note_spread(season, nodes=0.031)
    output = " ".join(plan(like="tiny")[0])
    assert "nodes differ by 3.1 points, single rounds by 7.2." in output


def test_the_spread_is_taken_from_the_models_newest_season(season: Season) -> None:
    note_spread(season, nodes=0.031)
    note_spread(Season.objects.create(name="Newer", tasks=[]), nodes=0.044)
    assert "nodes differ by 4.4 points" in " ".join(plan(like="tiny")[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"like": "unheard"}, "never tested"), ({"effect": 0.0}, "above 0"), ({"rounds": 0}, "round")],
)
def test_invalid_options_are_reported(db: None, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        plan(**options)
