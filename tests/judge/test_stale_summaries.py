"""Summaries of rounds are rebuilt after the operator's quarantines and releases."""

import threading

import pytest

from judge.models import Round, RoundSummary, Score
from judge.services import rounds as machine
from judge.services.oversight import quarantine_node, release_node
from judge.services.scores import renew_stale_summary, write_scores
from tests.judge.crew import PATIENCE_S, Crew, seated_round, wait_for_blocked_lock
from tests.judge.toys import Site


@pytest.fixture
def rounds(site: Site) -> list[Round]:
    """Two closed rounds: amber solves all, birch half of it, an isolated coral a quarter."""
    site.join("amber", "birch")
    site.join("coral", arm="isolated")
    return [site.hold(amber="rrrr", birch="rrww", coral="rwww") for _ in range(2)]


def quarantine(site: Site, name: str = "amber") -> None:
    quarantine_node(site.nodes[name], reason="a tool", actor=None, now=site.clock.now)


def score_of(round_id: int, name: str) -> float | None:
    return Score.objects.get(round=round_id, node__name=name).score


def renew_all() -> int:
    """Rebuild all stale summaries, and return how many there were."""
    renewed = 0
    while renew_stale_summary():
        renewed += 1
    return renewed


def test_a_quarantined_node_affects_no_statistic_of_its_rounds(
    site: Site, rounds: list[Round]
) -> None:
    quarantine(site)
    assert renew_all() == len(rounds)
    for summary in RoundSummary.objects.all():
        birch, coral = (score_of(summary.pk, name) for name in ("birch", "coral"))
        assert (summary.best, summary.trained) == (birch, 2)
        means = {group["arm"]: group["mean"] for group in summary.groups}
        assert means == {"isolated": coral, "swarm": birch}
        solved, asked = zip(*summary.datasets["swarm"].values(), strict=True)
        assert (sum(solved), sum(asked)) == (2, 4)


def test_a_quarantined_node_still_counts_as_a_participant(site: Site, rounds: list[Round]) -> None:
    quarantine(site)
    renew_all()
    for summary in RoundSummary.objects.all():
        assert (summary.seats, summary.scored) == (3, 3)
        assert summary.tallies == [[3, 3], [2, 3], [1, 3], [1, 3]]


def test_a_release_restores_the_statistics(site: Site, rounds: list[Round]) -> None:
    before = list(RoundSummary.objects.order_by("pk").values())
    quarantine(site)
    renew_all()
    assert list(RoundSummary.objects.order_by("pk").values()) != before
    release_node(site.nodes["amber"], reason="was wrong", actor=None, now=site.clock.now)
    renew_all()
    assert list(RoundSummary.objects.order_by("pk").values()) == before


@pytest.mark.slow
def test_only_the_nodes_rounds_are_rebuilt_newest_first(site: Site, rounds: list[Round]) -> None:
    site.hold(birch="rrrr")
    quarantine(site)
    renew_stale_summary()
    stale = RoundSummary.objects.order_by("round__number").values_list("stale", flat=True)
    assert list(stale) == [True, False, False]


@pytest.mark.slow
def test_a_round_closing_after_a_quarantine_excludes_the_node(
    site: Site, rounds: list[Round]
) -> None:
    quarantine(site)
    renew_all()
    later = site.hold(amber="rrrr", birch="rrww")
    assert RoundSummary.objects.get(round=later).best == score_of(later.pk, "birch")
    assert renew_all() == 0


def test_a_round_closing_during_a_quarantine_is_rebuilt(
    site: Site, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_round = seated_round(site, "amber", "birch")
    site.submit(judge_round, "amber", "rrrr")
    site.submit(judge_round, "birch", "rrww")
    written, may_commit = threading.Event(), threading.Event()

    def write_and_wait(judge_round: Round) -> None:
        write_scores(judge_round)
        written.set()
        assert may_commit.wait(PATIENCE_S)

    monkeypatch.setattr(machine, "write_scores", write_and_wait)
    closing = crew.start(lambda: site.end(judge_round))
    assert written.wait(PATIENCE_S)
    deciding = crew.start(lambda: quarantine(site))
    wait_for_blocked_lock()
    may_commit.set()
    closing.result(PATIENCE_S)
    deciding.result(PATIENCE_S)
    assert renew_all() == 1
    best = RoundSummary.objects.get(round=judge_round).best
    assert best == score_of(judge_round.pk, "birch")
