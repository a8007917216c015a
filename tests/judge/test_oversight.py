"""The operator's decisions: atomic, recorded, and visible immediately."""

import copy
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection
from django.db.models import Model

from judge.models import (
    Answer,
    Comparison,
    Counted,
    Flag,
    Ledger,
    Round,
    RoundSummary,
    Ruling,
    Score,
    Standing,
)
from judge.services.oversight import (
    dismiss_flag,
    quarantine_node,
    recompute_round,
    release_node,
    void_round,
)
from judge.services.seasons import start_season
from swarm_protocol.errors import RefusedError
from swarm_web.nodes.models import Node
from tests.judge.naive import naive_boards, stored_boards
from tests.judge.toys import OPEN_S, Clock, Site, make_toy_season

Action = Ruling.Action


@pytest.fixture
def olive(db: None) -> User:
    return User.objects.create_user("olive")


@pytest.fixture(scope="module")
def played(module_rows: None) -> tuple[Site, list[Round]]:
    """A site with three closed rounds.

    Amber solves all, birch nothing, an isolated coral half of it.
    """
    site = Site.start(Clock())
    site.join("amber", "birch")
    site.join("coral", arm="isolated")
    return site, [site.play(amber="rrrr", birch="wwww", coral="rrww") for _ in range(3)]


@pytest.fixture
def site(played: tuple[Site, list[Round]], db: None) -> Site:
    return played[0].copy()


@pytest.fixture
def rounds(played: tuple[Site, list[Round]], db: None) -> list[Round]:
    return copy.deepcopy(played[1])


def void(site: Site, judge_round: Round, reason: str = "wrong mix") -> bool:
    return void_round(judge_round, reason=reason, actor=None, now=site.clock.now)


def recompute(site: Site, judge_round: Round, actor: User | None = None) -> Ruling | None:
    return recompute_round(
        judge_round, reason="a doubt", actor=actor, now=site.clock.now, verifier=site.verifier
    )


def make_flag(judge_round: Round, node: Node, site: Site) -> Flag:
    return Flag.objects.create(
        kind=Flag.Kind.JUMPED,
        round=judge_round,
        node=node,
        text="16 of 16 right",
        p_adjusted=1e-6,
        created_at=site.clock.now,
    )


def read_all_rows() -> dict[str, list[dict[str, Any]]]:
    """Return all rows that a decision may change."""
    models: tuple[Any, ...] = (
        Answer,
        Comparison,
        Counted,
        Ledger,
        Node,
        Round,
        RoundSummary,
        Ruling,
        Score,
        Standing,
    )
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in models}


def assert_board_is_current(site: Site) -> None:
    assert stored_boards(site.season) == naive_boards(site.season, now=site.clock.now)


# ---- void


@pytest.mark.slow
def test_voiding_a_round_creates_a_ruling(site: Site, rounds: list[Round], olive: User) -> None:
    now = site.clock.advance(5)
    assert void_round(rounds[0], reason="wrong mix", actor=olive, now=now)
    ruling = Ruling.objects.get()
    assert (ruling.action, ruling.reason, ruling.actor) == (Action.VOID, "wrong mix", olive)
    assert (ruling.round, ruling.made_at) == (rounds[0], now)
    assert ruling.changes == {"phase_before": "closed"}


def test_a_void_round_is_excluded_from_the_leaderboard(site: Site, rounds: list[Round]) -> None:
    void(site, rounds[0])
    assert (site.board()["amber"].rounds, site.board()["amber"].n) == (2, 8)
    assert not Counted.objects.filter(round=rounds[0]).exists()
    assert_board_is_current(site)


def test_the_round_window_shows_the_previous_round_when_the_last_is_void(
    site: Site, rounds: list[Round]
) -> None:
    last = site.play(amber="wwww")
    assert set(site.board("round")) == {"amber"}
    void(site, last)
    assert set(site.board("round")) == {"amber", "birch", "coral"}
    assert_board_is_current(site)


def test_a_round_is_voided_once_and_stays_void(site: Site, rounds: list[Round]) -> None:
    assert void(site, rounds[0])
    assert not void(site, rounds[0], "again")
    assert site.advance(9999) == []
    rounds[0].refresh_from_db()
    assert (rounds[0].phase, rounds[0].void_reason) == (Round.Phase.VOID, "wrong mix")
    assert Ruling.objects.count() == 1


def test_a_voided_open_round_accepts_no_answers_and_gets_no_scores(site: Site) -> None:
    judge_round = site.answer(amber="rr--")
    void(site, judge_round)
    assert site.submit(judge_round, "amber", "rrrr").accepted == []
    assert site.advance(9999) == []
    assert not judge_round.scores.exists()
    assert Ruling.objects.get().changes == {"phase_before": "open"}


def test_a_ruling_records_the_actual_phase_of_the_round(site: Site) -> None:
    seen_open = site.open()
    site.advance(OPEN_S)
    void(site, seen_open)
    assert Ruling.objects.get().changes == {"phase_before": "closed"}


def test_the_comparison_of_the_arms_excludes_a_void_round(site: Site, rounds: list[Round]) -> None:
    void(site, rounds[0])
    assert Comparison.objects.get().claim["n_swarm"] == 0
    assert Ledger.objects.get(node=site.nodes["amber"]).deviation_rounds == 2


# ---- recompute


def test_recomputing_correct_scores_only_records_a_ruling(
    site: Site, rounds: list[Round], olive: User
) -> None:
    before = stored_boards(site.season)
    ruling = recompute(site, rounds[1], olive)
    assert ruling == Ruling.objects.get()
    assert ruling is not None
    assert (ruling.action, ruling.round, ruling.actor) == (Action.RECOMPUTE, rounds[1], olive)
    assert ruling.changes == {"answers_changed": 0, "scores_changed": 0}
    assert stored_boards(site.season) == before


def test_recomputing_restores_tampered_scores(site: Site, rounds: list[Round]) -> None:
    before = stored_boards(site.season)
    forged = Answer.objects.filter(question__round=rounds[0], node=site.nodes["birch"])
    forged.update(solved=True)
    Score.objects.filter(round=rounds[0], node=site.nodes["coral"]).update(score=0.9)
    ruling = recompute(site, rounds[0])
    assert ruling is not None
    assert ruling.changes == {"answers_changed": 4, "scores_changed": 1}
    assert not forged.filter(solved=True).exists()
    assert stored_boards(site.season) == before
    assert_board_is_current(site)


def test_recomputing_with_other_verdicts_updates_the_leaderboard(
    site: Site, rounds: list[Round]
) -> None:
    Answer.objects.filter(question__round=rounds[2]).update(text="<answer>right</answer>")
    ruling = recompute(site, rounds[2])
    assert ruling is not None
    assert ruling.changes == {"answers_changed": 6, "scores_changed": 2}
    assert site.board("round")["birch"].score == 1
    assert site.board()["birch"].correct == 4
    assert_board_is_current(site)


@pytest.mark.slow
def test_ungraded_answers_count_after_recomputing(site: Site) -> None:
    site.toy.broken = {"gcd"}
    judge_round = site.hold(amber="rrrr")
    site.advance(OPEN_S)
    site.refresh()
    judge_round.refresh_from_db()
    assert site.board("round")["amber"].n == 3
    site.toy.broken = set()
    recompute(site, judge_round)
    assert site.board("round")["amber"].n == 4
    assert judge_round.scores.get(node=site.nodes["amber"]).reason == ""
    assert_board_is_current(site)


@pytest.mark.parametrize("later", ["", "vera"])
def test_recomputing_uses_the_ownership_at_the_closing_of_the_round(site: Site, later: str) -> None:
    """A change of a node's owner does not change finished rounds."""
    site.own("vera", "amber", *([] if later else ["birch"]))
    judge_round = site.hold("birch", amber="rrrr")
    before = Score.objects.get(round=judge_round, node__name="birch").reason
    Node.objects.filter(name="birch").update(owner=User.objects.filter(username=later).first())
    judge_round.refresh_from_db()
    assert recompute(site, judge_round) is not None
    assert Score.objects.get(round=judge_round, node__name="birch").reason == before
    assert_board_is_current(site)


def test_a_round_that_is_not_closed_is_not_recomputed(site: Site) -> None:
    judge_round = site.open()
    assert recompute(site, judge_round) is None
    assert not Ruling.objects.exists()


def test_a_round_voided_during_regrading_is_not_recomputed(site: Site, rounds: list[Round]) -> None:
    site.toy.on_grading = lambda: void(site, Round.objects.get(pk=rounds[0].pk))
    assert recompute(site, rounds[0]) is None
    assert [ruling.action for ruling in Ruling.objects.all()] == [Action.VOID]
    assert_board_is_current(site)


def test_recomputing_with_a_question_that_cannot_be_generated_changes_nothing(
    site: Site, rounds: list[Round]
) -> None:
    Answer.objects.update(solved=True)
    before = read_all_rows()
    site.toy.broken = {"gcd"}
    with pytest.raises(RefusedError):
        recompute(site, rounds[0])
    assert read_all_rows() == before


@pytest.mark.parametrize("model", [Answer, Score, RoundSummary, Comparison, Ruling])
def test_recomputing_that_fails_midway_changes_nothing(
    site: Site, rounds: list[Round], model: type[Model]
) -> None:
    Answer.objects.filter(question__round=rounds[0]).update(solved=True)
    before = read_all_rows()
    refuse_writes(model)
    with pytest.raises(DatabaseError, match="power cut"):
        recompute(site, rounds[0])
    assert read_all_rows() == before


def refuse_writes(model: type[Model]) -> None:
    """Make the database fail after a statement that writes to a model's table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE EXCEPTION 'power cut'; END $$;"
            f"CREATE TRIGGER failing AFTER INSERT OR UPDATE ON {model._meta.db_table}"
            " EXECUTE FUNCTION fail()"
        )


# ---- quarantine and release


def test_quarantine_creates_a_ruling_and_upholds_the_flag(
    site: Site, rounds: list[Round], olive: User
) -> None:
    amber = site.nodes["amber"]
    flag = make_flag(rounds[0], amber, site)
    assert quarantine_node(amber, reason="a tool", actor=olive, now=site.clock.now, flag=flag)
    ruling = Ruling.objects.get()
    assert (ruling.action, ruling.node, ruling.flag) == (Action.QUARANTINE, amber, flag)
    flag.refresh_from_db()
    assert (flag.state, amber.quarantined) == (Flag.State.UPHELD, True)
    assert site.board()["amber"].remark == "quarantined"
    assert_board_is_current(site)


def test_release_creates_a_ruling_and_restores_the_rank(site: Site, rounds: list[Round]) -> None:
    amber, before = site.nodes["amber"], stored_boards(site.season)
    quarantine_node(amber, reason="a tool", actor=None, now=site.clock.now)
    assert stored_boards(site.season) != before
    assert release_node(amber, reason="was wrong", actor=None, now=site.clock.now)
    assert Ruling.objects.first() == Ruling.objects.get(action=Action.RELEASE, node=amber)
    assert stored_boards(site.season) == before


def test_a_node_is_quarantined_and_released_once(site: Site, rounds: list[Round]) -> None:
    amber = site.nodes["amber"]
    decision: dict[str, Any] = {"reason": "?", "actor": None, "now": site.clock.now}
    assert not release_node(amber, **decision)
    assert quarantine_node(amber, **decision)
    assert not quarantine_node(amber, **decision)
    assert release_node(amber, **decision)
    assert Ruling.objects.count() == 2


def test_a_quarantined_node_is_excluded_from_comparisons(site: Site, rounds: list[Round]) -> None:
    amber = site.nodes["amber"]
    quarantine_node(amber, reason="a tool", actor=None, now=site.clock.now)
    claim = Comparison.objects.get().claim
    assert (claim["n_swarm"], claim["n_isolated"]) == (1, 1)
    release_node(amber, reason="was wrong", actor=None, now=site.clock.now)
    assert Comparison.objects.get().claim["n_swarm"] == 2


def test_a_quarantine_also_affects_earlier_seasons(site: Site, rounds: list[Round]) -> None:
    before = Site(site.season, site.clock)
    following = make_following(site)
    following.nodes = site.nodes
    following.play(amber="rrrr", birch="rrrr")
    quarantine_node(site.nodes["amber"], reason="?", actor=None, now=site.clock.now)
    assert before.board()["amber"].remark == "quarantined"
    assert following.board()["amber"].remark == "quarantined"


def make_following(site: Site) -> Site:
    season = make_toy_season("Following")
    start_season(season, now=site.clock.now)
    return Site(season, site.clock)


# ---- flags


def test_dismissing_a_flag_creates_a_ruling_and_changes_no_score(
    site: Site, rounds: list[Round], olive: User
) -> None:
    flag, before = make_flag(rounds[0], site.nodes["amber"], site), stored_boards(site.season)
    assert dismiss_flag(flag, reason="a teacher's set", actor=olive, now=site.clock.now)
    assert not dismiss_flag(flag, reason="again", actor=olive, now=site.clock.now)
    flag.refresh_from_db()
    ruling = Ruling.objects.get()
    assert flag.state == Flag.State.DISMISSED
    assert (ruling.action, ruling.flag, ruling.node) == (Action.DISMISS, flag, flag.node)
    assert stored_boards(site.season) == before
