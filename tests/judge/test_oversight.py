"""What the operator decides: it is done wholly or not at all, on record, and shown at once."""

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
from tests.judge.naive import kept_boards, naive_boards
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


def everything() -> dict[str, list[dict[str, Any]]]:
    """Return all rows that a decision might change."""
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


def assert_board_follows(site: Site) -> None:
    assert kept_boards(site.season) == naive_boards(site.season, now=site.clock.now)


# ---- void


@pytest.mark.slow
def test_a_void_round_leaves_a_ruling(site: Site, rounds: list[Round], olive: User) -> None:
    now = site.clock.advance(5)
    assert void_round(rounds[0], reason="wrong mix", actor=olive, now=now)
    ruling = Ruling.objects.get()
    assert (ruling.action, ruling.reason, ruling.actor) == (Action.VOID, "wrong mix", olive)
    assert (ruling.round, ruling.made_at) == (rounds[0], now)
    assert ruling.changes == {"phase_before": "closed"}


def test_a_void_round_counts_nowhere(site: Site, rounds: list[Round]) -> None:
    void(site, rounds[0])
    assert (site.board()["amber"].rounds, site.board()["amber"].n) == (2, 8)
    assert not Counted.objects.filter(round=rounds[0]).exists()
    assert_board_follows(site)


def test_a_void_last_round_gives_its_place_to_the_one_before(
    site: Site, rounds: list[Round]
) -> None:
    last = site.play(amber="wwww")
    assert set(site.board("round")) == {"amber"}
    void(site, last)
    assert set(site.board("round")) == {"amber", "birch", "coral"}
    assert_board_follows(site)


def test_a_round_is_void_once_and_stays_so(site: Site, rounds: list[Round]) -> None:
    assert void(site, rounds[0])
    assert not void(site, rounds[0], "again")
    assert site.advance(9999) == []
    rounds[0].refresh_from_db()
    assert (rounds[0].phase, rounds[0].void_reason) == (Round.Phase.VOID, "wrong mix")
    assert Ruling.objects.count() == 1


def test_an_open_round_that_is_void_takes_no_answers_and_gets_no_scores(site: Site) -> None:
    judge_round = site.open("amber")
    site.sit(judge_round, "amber")
    site.hand_in(judge_round, "amber", "rr--")
    void(site, judge_round)
    assert site.hand_in(judge_round, "amber", "rrrr").accepted == []
    assert site.advance(9999) == []
    assert not judge_round.scores.exists()
    assert Ruling.objects.get().changes == {"phase_before": "open"}


def test_a_ruling_tells_the_phase_that_the_round_was_really_in(site: Site) -> None:
    seen_open = site.open()
    site.advance(OPEN_S)
    void(site, seen_open)
    assert Ruling.objects.get().changes == {"phase_before": "closed"}


def test_the_comparison_of_the_arms_follows_a_void_round(site: Site, rounds: list[Round]) -> None:
    void(site, rounds[0])
    assert Comparison.objects.get().claim["n_swarm"] == 0
    assert Ledger.objects.get(node=site.nodes["amber"]).deviation_rounds == 2


# ---- recompute


def test_recomputing_what_was_right_changes_nothing_but_leaves_a_ruling(
    site: Site, rounds: list[Round], olive: User
) -> None:
    before = kept_boards(site.season)
    ruling = recompute(site, rounds[1], olive)
    assert ruling == Ruling.objects.get()
    assert ruling is not None
    assert (ruling.action, ruling.round, ruling.actor) == (Action.RECOMPUTE, rounds[1], olive)
    assert ruling.changes == {"answers_changed": 0, "scores_changed": 0}
    assert kept_boards(site.season) == before


def test_recomputing_restores_what_somebody_tampered_with(site: Site, rounds: list[Round]) -> None:
    before = kept_boards(site.season)
    forged = Answer.objects.filter(question__round=rounds[0], node=site.nodes["birch"])
    forged.update(solved=True)
    Score.objects.filter(round=rounds[0], node=site.nodes["coral"]).update(score=0.9)
    ruling = recompute(site, rounds[0])
    assert ruling is not None
    assert ruling.changes == {"answers_changed": 4, "scores_changed": 1}
    assert not forged.filter(solved=True).exists()
    assert kept_boards(site.season) == before
    assert_board_follows(site)


def test_the_leaderboard_follows_a_verifier_that_judges_otherwise(
    site: Site, rounds: list[Round]
) -> None:
    Answer.objects.filter(question__round=rounds[2]).update(text="<answer>right</answer>")
    ruling = recompute(site, rounds[2])
    assert ruling is not None
    assert ruling.changes == {"answers_changed": 6, "scores_changed": 2}
    assert site.board("round")["birch"].score == 1
    assert site.board()["birch"].correct == 4
    assert_board_follows(site)


@pytest.mark.slow
def test_answers_that_nobody_could_grade_count_after_recomputing(site: Site) -> None:
    site.toy.broken = {"gcd"}
    judge_round = site.open("amber")
    site.sit(judge_round, "amber")
    site.hand_in(judge_round, "amber", "rrrr")
    site.end(judge_round)
    site.advance(OPEN_S)
    site.refresh()
    judge_round.refresh_from_db()
    assert site.board("round")["amber"].n == 3
    site.toy.broken = set()
    recompute(site, judge_round)
    assert site.board("round")["amber"].n == 4
    assert judge_round.scores.get(node=site.nodes["amber"]).reason == ""
    assert_board_follows(site)


@pytest.mark.parametrize("later", ["", "vera"])
def test_recomputing_goes_by_who_owned_a_node_when_the_round_closed(site: Site, later: str) -> None:
    """Whoever takes a node over, or gives it away, changes no round that is over."""
    site.own("vera", "amber", *([] if later else ["birch"]))
    judge_round = site.open("amber", "birch")
    site.sit(judge_round, "amber")
    site.hand_in(judge_round, "amber", "rrrr")
    site.end(judge_round)
    before = Score.objects.get(round=judge_round, node__name="birch").reason
    Node.objects.filter(name="birch").update(owner=User.objects.filter(username=later).first())
    judge_round.refresh_from_db()
    assert recompute(site, judge_round) is not None
    assert Score.objects.get(round=judge_round, node__name="birch").reason == before
    assert_board_follows(site)


def test_a_round_that_is_not_closed_is_not_recomputed(site: Site) -> None:
    judge_round = site.open()
    assert recompute(site, judge_round) is None
    assert not Ruling.objects.exists()


def test_a_round_that_becomes_void_while_it_is_graded_again_is_not_recomputed(
    site: Site, rounds: list[Round]
) -> None:
    site.toy.on_grading = lambda: void(site, Round.objects.get(pk=rounds[0].pk))
    assert recompute(site, rounds[0]) is None
    assert [ruling.action for ruling in Ruling.objects.all()] == [Action.VOID]
    assert_board_follows(site)


def test_recomputing_with_a_question_that_cannot_be_made_again_changes_nothing(
    site: Site, rounds: list[Round]
) -> None:
    Answer.objects.update(solved=True)
    before = everything()
    site.toy.broken = {"gcd"}
    with pytest.raises(RefusedError):
        recompute(site, rounds[0])
    assert everything() == before


@pytest.mark.parametrize("model", [Answer, Score, RoundSummary, Comparison, Ruling])
def test_recomputing_that_fails_midway_changes_nothing(
    site: Site, rounds: list[Round], model: type[Model]
) -> None:
    Answer.objects.filter(question__round=rounds[0]).update(solved=True)
    before = everything()
    refuse_writes(model)
    with pytest.raises(DatabaseError, match="power cut"):
        recompute(site, rounds[0])
    assert everything() == before


def refuse_writes(model: type[Model]) -> None:
    """Let the database fail after each statement that writes to a model's table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE EXCEPTION 'power cut'; END $$;"
            f"CREATE TRIGGER failing AFTER INSERT OR UPDATE ON {model._meta.db_table}"
            " EXECUTE FUNCTION fail()"
        )


# ---- quarantine and release


def test_quarantine_leaves_a_ruling_and_upholds_the_flag(
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
    assert_board_follows(site)


def test_release_leaves_a_ruling_and_the_rank_is_back(site: Site, rounds: list[Round]) -> None:
    amber, before = site.nodes["amber"], kept_boards(site.season)
    quarantine_node(amber, reason="a tool", actor=None, now=site.clock.now)
    assert kept_boards(site.season) != before
    assert release_node(amber, reason="was wrong", actor=None, now=site.clock.now)
    assert Ruling.objects.first() == Ruling.objects.get(action=Action.RELEASE, node=amber)
    assert kept_boards(site.season) == before


def test_a_node_is_quarantined_and_released_once(site: Site, rounds: list[Round]) -> None:
    amber = site.nodes["amber"]
    told: dict[str, Any] = {"reason": "?", "actor": None, "now": site.clock.now}
    assert not release_node(amber, **told)
    assert quarantine_node(amber, **told)
    assert not quarantine_node(amber, **told)
    assert release_node(amber, **told)
    assert Ruling.objects.count() == 2


def test_a_quarantined_node_is_in_no_comparison(site: Site, rounds: list[Round]) -> None:
    amber = site.nodes["amber"]
    quarantine_node(amber, reason="a tool", actor=None, now=site.clock.now)
    claim = Comparison.objects.get().claim
    assert (claim["n_swarm"], claim["n_isolated"]) == (1, 1)
    release_node(amber, reason="was wrong", actor=None, now=site.clock.now)
    assert Comparison.objects.get().claim["n_swarm"] == 2


def test_a_quarantine_is_shown_in_the_seasons_before_too(site: Site, rounds: list[Round]) -> None:
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


def test_dismissing_a_flag_leaves_a_ruling_and_changes_no_score(
    site: Site, rounds: list[Round], olive: User
) -> None:
    flag, before = make_flag(rounds[0], site.nodes["amber"], site), kept_boards(site.season)
    assert dismiss_flag(flag, reason="a teacher's set", actor=olive, now=site.clock.now)
    assert not dismiss_flag(flag, reason="again", actor=olive, now=site.clock.now)
    flag.refresh_from_db()
    ruling = Ruling.objects.get()
    assert flag.state == Flag.State.DISMISSED
    assert (ruling.action, ruling.flag, ruling.node) == (Action.DISMISS, flag, flag.node)
    assert kept_boards(site.season) == before
