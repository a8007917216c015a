"""Operators set which sampling preferences nodes may use."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from judge.models import Season
from judge.selectors.seasons import describe_season
from tests.judge.conftest import SUMS
from tests.judge.operators import change_season, post_season

pytestmark = pytest.mark.django_db


def test_every_preference_is_allowed_by_default(operator: Client) -> None:
    page = operator.get("/admin/judge/season/add/").content.decode()
    for name in ("informative", "by_node", "by_task", "fresh"):
        [box] = [tag for tag in page.split("<") if f'value="{name}"' in tag]
        assert " checked" in box
    assert 'name="sampling" value="any"' not in page


@pytest.mark.parametrize("ticked", [[], ["fresh", "by_task"]])
def test_any_is_allowed_besides_the_selected_preferences(
    operator: Client, ticked: list[str]
) -> None:
    post_season(operator, SUMS, sampling=ticked)
    assert describe_season(Season.objects.get()).sampling == ["any", *ticked]


@pytest.mark.parametrize("names", ["any", ["fresh"], ["any", "any"], ["any", "by_weight"], [1]])
def test_a_list_without_any_or_with_invalid_names_is_refused(names: object) -> None:
    with pytest.raises(ValidationError, match="that includes any"):
        Season._meta.get_field("sampling").clean(names, None)


def test_an_unknown_preference_is_refused(operator: Client) -> None:
    page = post_season(operator, SUMS, sampling=["by_weight"])
    assert "Select a valid choice. by_weight is not one" in page
    assert not Season.objects.exists()


def test_preferences_can_be_changed_at_any_time(operator: Client, season: Season) -> None:
    change_season(operator, season, sampling=["fresh"])
    season.refresh_from_db()
    assert season.sampling == ["any", "fresh"]
