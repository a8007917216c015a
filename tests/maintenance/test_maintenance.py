"""Maintenance: how it begins and ends, by command and by the clock."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from swarm_web.maintenance.models import RETURN_TIME, Maintenance
from swarm_web.maintenance.selectors import current_maintenance, latest_maintenance
from swarm_web.maintenance.services import begin_maintenance, end_maintenance

pytestmark = pytest.mark.django_db
NOW = timezone.now()
HOUR = timedelta(hours=1)


def test_it_goes_on_until_it_is_ended() -> None:
    begin_maintenance(message="new disks", until=None, now=NOW)
    assert current_maintenance(now=NOW + 1000 * HOUR) is not None
    assert end_maintenance(now=NOW + HOUR) == 1
    assert current_maintenance(now=NOW + HOUR) is None


def test_it_ends_by_itself() -> None:
    begin_maintenance(message="", until=NOW + HOUR, now=NOW)
    assert current_maintenance(now=NOW + 0.9 * HOUR) is not None
    assert current_maintenance(now=NOW + HOUR) is None


def test_another_one_replaces_it() -> None:
    begin_maintenance(message="first", until=None, now=NOW)
    begin_maintenance(message="second", until=NOW + 2 * HOUR, now=NOW + HOUR)
    current = current_maintenance(now=NOW + HOUR)
    assert current is not None
    assert current.message == "second"
    assert current_maintenance(now=NOW + 2 * HOUR) is None


def test_one_that_is_planned_changes_nothing_yet() -> None:
    Maintenance.objects.create(starts_at=NOW + HOUR)
    assert latest_maintenance(now=NOW) is None


def test_for_the_judge_it_lasts_until_nodes_had_the_time_to_come_back() -> None:
    maintenance = begin_maintenance(message="", until=NOW + HOUR, now=NOW)
    assert maintenance.counts_as_outage(now=NOW + HOUR + 0.9 * RETURN_TIME)
    assert not maintenance.counts_as_outage(now=NOW + HOUR + RETURN_TIME)


def test_nodes_are_told_until_when_and_why() -> None:
    until = NOW.replace(hour=14, minute=30)
    told = Maintenance(message="new disks", ends_at=until).node_message
    assert told == "the coordinator is under maintenance until 14:30 UTC: new disks"
    assert Maintenance().node_message == "the coordinator is under maintenance"


# ---- the command


def test_the_command_begins_shows_and_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("maintenance", "on", "--message", "new disks", "--minutes", "30")
    call_command("maintenance", "show")
    call_command("maintenance", "off")
    call_command("maintenance", "off")
    begun, shown, ended, nothing = capsys.readouterr().out.splitlines()
    assert begun == shown
    assert shown.startswith("Maintenance until 20")
    assert shown.endswith("new disks")
    assert ended.startswith("No maintenance.")
    assert nothing == "There was no maintenance."


def test_the_command_reads_a_time_as_utc() -> None:
    call_command("maintenance", "on", "--until", "2099-01-01T12:30")
    end = Maintenance.objects.get().ends_at
    assert end is not None
    assert end.isoformat() == "2099-01-01T12:30:00+00:00"


@pytest.mark.parametrize("until", ["tomorrow", "2020-01-01T12:30", "2020-13-01T12:30"])
def test_the_command_refuses_an_end_that_is_none(until: str) -> None:
    with pytest.raises(CommandError):
        call_command("maintenance", "on", "--until", until)
    assert not Maintenance.objects.exists()


# ---- pages


@pytest.mark.parametrize("address", ["/", "/leaderboard/", "/status/", "/join/"])
def test_each_page_says_so(client: Client, address: str) -> None:
    begin_maintenance(message="<new> disks", until=None, now=NOW)
    page = client.get(address).content.decode()
    assert "Nodes continue to train alone" in page
    assert "&lt;new&gt; disks" in page
    end_maintenance(now=timezone.now())
    assert "Nodes continue to train alone" not in client.get(address).content.decode()


def test_pages_show_its_end_as_they_show_other_times(client: Client) -> None:
    end = NOW + HOUR
    begin_maintenance(message="", until=end, now=NOW)
    page = client.get("/").content.decode()
    banner = page.partition('<aside class="maintenance"')[2].partition("</aside>")[0]
    assert f'<time datetime="{end.isoformat()}" data-show="time"' in banner
    assert banner.count("UTC") == 2  # in the title and in the text, which site.js replaces


def test_the_readiness_check_says_so_and_does_not_fail_for_it(client: Client) -> None:
    assert client.get("/readyz").json()["maintenance"] is False
    before = client.get("/readyz").status_code
    begin_maintenance(message="", until=None, now=NOW)
    answer = client.get("/readyz")
    assert (answer.json()["maintenance"], answer.status_code) == (True, before)
