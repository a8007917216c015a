"""Closed rounds are searched for jumps and the arms are compared; nothing else changes."""

from datetime import datetime

import pytest

from judge.models import Comparison, Flag, Round, Season, Seat
from judge.services import inspection
from judge.services.inspection import inspect_closed_rounds, inspect_round
from judge.services.oversight import void_round
from swarm_web.nodes.models import Node
from tests.judge.toys import Site

QUESTIONS = 32


@pytest.fixture
def exam(site: Site) -> Site:
    """A season of long rounds."""
    Season.objects.update(questions_per_round=QUESTIONS)
    site.season.refresh_from_db()
    return site


def inspect(site: Site) -> list[Round]:
    return inspect_closed_rounds(now=site.clock.now)


# ---- jumps


def play_scores(site: Site, **right: int) -> Round:
    return site.hold(**{name: "r" * n + "w" * (QUESTIONS - n) for name, n in right.items()})


@pytest.mark.slow
def test_only_a_node_that_jumps_is_flagged(exam: Site) -> None:
    exam.join("jumper", "steady")
    for _ in range(4):
        play_scores(exam, jumper=3, steady=3)
    judge_round = play_scores(exam, jumper=QUESTIONS, steady=4)
    inspect(exam)
    flag = Flag.objects.get()
    assert (flag.kind, flag.round, flag.other) == (Flag.Kind.JUMPED, judge_round, None)
    assert flag.node == exam.nodes["jumper"]


@pytest.mark.slow
def test_a_jump_is_flagged_once_even_if_its_round_is_inspected_twice(exam: Site) -> None:
    exam.join("jumper")
    for _ in range(4):
        play_scores(exam, jumper=3)
    judge_round = play_scores(exam, jumper=QUESTIONS)
    inspect(exam)
    inspect_round(judge_round, now=exam.clock.now)
    assert Flag.objects.count() == 1


@pytest.mark.slow
def test_void_rounds_are_not_part_of_a_history(exam: Site) -> None:
    exam.join("jumper")
    for _ in range(4):
        judge_round = play_scores(exam, jumper=3)
        void_round(judge_round, reason="?", actor=None, now=exam.clock.now)
    play_scores(exam, jumper=QUESTIONS)
    inspect(exam)
    assert not Flag.objects.exists()


@pytest.mark.slow
def test_a_history_does_not_reach_back_over_a_long_absence(
    exam: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "HISTORY_ROUNDS", 4)
    exam.join("returning", "steady")
    for _ in range(4):
        play_scores(exam, returning=3, steady=3)
    for _ in range(2):
        play_scores(exam, steady=3)
    play_scores(exam, returning=QUESTIONS, steady=3)
    inspect(exam)
    assert not Flag.objects.exists()


# ---- the arms


@pytest.mark.slow
def test_the_comparison_of_each_model_is_stored(site: Site) -> None:
    for model in ("small", "large"):
        site.join(f"{model}-swarm", model=model)
        site.join(f"{model}-alone", model=model, arm="isolated")
    site.join("bare", model="small", arm="base")
    for _ in range(3):
        site.play(**{name: "rrrr" if "swarm" in name else "wwww" for name in site.nodes})
        now = site.clock.advance(1)
        inspect(site)
    stored = {row.model: (row.claim, row.updated_at) for row in Comparison.objects.all()}
    assert set(stored) == {"small", "large"}
    claim, updated_at = stored["small"]
    assert (claim["n_swarm"], claim["n_isolated"], claim["difference"]) == (1, 1, 1.0)
    assert (claim["verdict"], updated_at) == ("too_few", now)


@pytest.mark.slow
def test_the_comparison_of_a_model_without_nodes_is_deleted(site: Site) -> None:
    site.join("amber", model="old")
    site.play(amber="rrrr")
    inspect(site)
    Node.objects.update(model="new")
    site.play(amber="rrrr")
    inspect(site)
    assert [row.model for row in Comparison.objects.all()] == ["new"]


# ---- when rounds are inspected


@pytest.mark.slow
def test_every_closed_round_is_inspected_once_and_stores_the_time(site: Site) -> None:
    site.join("amber")
    rounds = [site.play(amber="rrrr") for _ in range(2)]
    assert inspect(site) == rounds
    assert inspect(site) == []
    assert times_inspected() == 2 * [site.clock.now]


def times_inspected() -> list[datetime | None]:
    return list(Round.objects.order_by("number").values_list("inspected_at", flat=True))


def test_rounds_that_are_not_closed_are_not_inspected(site: Site) -> None:
    site.join("amber")
    void_round(site.play(amber="rrrr"), reason="?", actor=None, now=site.clock.now)
    site.open("amber")
    assert inspect(site) == []


def test_a_round_without_seats_is_inspected(site: Site) -> None:
    judge_round = site.end(site.open())
    assert inspect(site) == [judge_round]
    assert not Seat.objects.exists()
