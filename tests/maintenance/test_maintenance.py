"""Test maintenance: start, end, command and pages."""

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


def test_maintenance_without_an_end_lasts_until_it_is_ended() -> None:
    begin_maintenance(message="new disks", until=None, now=NOW)
    assert current_maintenance(now=NOW + 1000 * HOUR) is not None
    assert end_maintenance(now=NOW + HOUR) == 1
    assert current_maintenance(now=NOW + HOUR) is None


def test_maintenance_ends_at_its_planned_time() -> None:
    begin_maintenance(message="", until=NOW + HOUR, now=NOW)
    assert current_maintenance(now=NOW + 0.9 * HOUR) is not None
    assert current_maintenance(now=NOW + HOUR) is None


def test_new_maintenance_replaces_the_current_one() -> None:
    begin_maintenance(message="first", until=None, now=NOW)
    begin_maintenance(message="second", until=NOW + 2 * HOUR, now=NOW + HOUR)
    current = current_maintenance(now=NOW + HOUR)
    assert current is not None
    assert current.message == "second"
    assert current_maintenance(now=NOW + 2 * HOUR) is None


def test_planned_maintenance_has_no_effect_before_its_start() -> None:
    Maintenance.objects.create(starts_at=NOW + HOUR)
    assert latest_maintenance(now=NOW) is None


def test_maintenance_counts_as_outage_until_nodes_had_time_to_reconnect() -> None:
    maintenance = begin_maintenance(message="", until=NOW + HOUR, now=NOW)
    assert maintenance.counts_as_outage(now=NOW + HOUR + 0.9 * RETURN_TIME)
    assert not maintenance.counts_as_outage(now=NOW + HOUR + RETURN_TIME)


def test_text_for_nodes_names_the_end_and_the_reason() -> None:
    until = NOW.replace(hour=14, minute=30)
    told = Maintenance(message="new disks", ends_at=until).node_message
    assert told == "the coordinator is under maintenance until 14:30 UTC: new disks"
    assert Maintenance().node_message == "the coordinator is under maintenance"


# ---- the command


def test_command_starts_shows_and_ends_maintenance(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_command_reads_a_time_as_utc() -> None:
    call_command("maintenance", "on", "--until", "2099-01-01T12:30")
    end = Maintenance.objects.get().ends_at
    assert end is not None
    assert end.isoformat() == "2099-01-01T12:30:00+00:00"


@pytest.mark.parametrize("until", ["tomorrow", "2020-01-01T12:30", "2020-13-01T12:30"])
def test_command_rejects_an_invalid_or_past_end(until: str) -> None:
    with pytest.raises(CommandError):
        call_command("maintenance", "on", "--until", until)
    assert not Maintenance.objects.exists()


@pytest.mark.parametrize("minutes", ["nan", "inf", "1e300", "0"])
def test_command_rejects_minutes_that_lead_to_no_later_time(minutes: str) -> None:
    with pytest.raises(CommandError):
        call_command("maintenance", "on", "--minutes", minutes)
    assert not Maintenance.objects.exists()


# ---- pages


@pytest.mark.parametrize("address", ["/", "/leaderboard/", "/status/", "/join/"])
def test_pages_show_the_maintenance_banner_until_it_ends(client: Client, address: str) -> None:
    begin_maintenance(message="<new> disks", until=None, now=NOW)
    page = client.get(address).content.decode()
    assert "Nodes continue to train alone" in page
    assert "&lt;new&gt; disks" in page
    end_maintenance(now=timezone.now())
    assert "Nodes continue to train alone" not in client.get(address).content.decode()


def test_banner_marks_up_the_end_like_other_times(client: Client) -> None:
    end = NOW + HOUR
    begin_maintenance(message="", until=end, now=NOW)
    page = client.get("/").content.decode()
    banner = page.partition('<aside class="maintenance"')[2].partition("</aside>")[0]
    assert f'<time datetime="{end.isoformat()}" data-show="time"' in banner
    assert banner.count("UTC") == 2  # in the title and in the text, which site.js replaces


def test_readiness_check_reports_maintenance_without_failing(client: Client) -> None:
    assert client.get("/readyz").json()["maintenance"] is False
    before = client.get("/readyz").status_code
    begin_maintenance(message="", until=None, now=NOW)
    answer = client.get("/readyz")
    assert (answer.json()["maintenance"], answer.status_code) == (True, before)
