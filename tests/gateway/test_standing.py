"""The standing message equals the node's row on the leaderboard."""

import pytest
from asgiref.sync import sync_to_async

from judge.models import Round, Season
from swarm_protocol.messages import NodeStanding, RequestStanding
from swarm_web.board.leaderboard import LeaderboardRow, read_leaderboard, read_line
from swarm_web.dashboard.reports.node import read_report
from swarm_web.gateway.handlers.standing import tell_standing
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Conduct, Contribution
from tests.factories import make_node, make_rollout, make_round, make_score, publish
from tests.gateway.conftest import Member
from tests.gateway.sessions import NOW, session_of
from tests.relay.sharing import publish_rollouts, sample_rollouts

ASK = RequestStanding(id="s")


@pytest.fixture
def closed(season: Season, amber: Member) -> Round:
    """A closed round with a score of amber; its standings are not published yet."""
    judged = make_round(season, phase=Round.Phase.CLOSED)
    make_score(judged, amber.node, correct=16)
    return judged


def assert_same(standing: NodeStanding, row: LeaderboardRow) -> None:
    """Check that a standing message equals a leaderboard row."""
    for name in ("node", "rank", "score", "interval", "n", "rounds", "external_used", "remark"):
        assert getattr(standing, name) == getattr(row, name), name


async def test_standing_is_the_nodes_row_of_the_leaderboard(
    season: Season, closed: Round, bold: Member
) -> None:
    await sync_to_async(make_score)(closed, bold.node, correct=0)
    await sync_to_async(publish)(season)
    await Contribution.objects.acreate(season=season, node=bold.node, external_used=9)
    standing = await tell_standing(session_of(bold), ASK)
    board = await sync_to_async(read_leaderboard)(season, window="season", now=NOW)
    [row] = [row for row in board.rows if row.node == "bold"]
    assert (standing.rank, standing.external_used) == ((2, 2), 9)
    assert_same(standing, row)


async def test_standing_of_a_node_with_too_few_questions_has_a_remark_and_no_rank(
    season: Season, closed: Round, bold: Member
) -> None:
    await sync_to_async(make_score)(closed, bold.node, correct=8, n=8)
    await sync_to_async(publish)(season)
    standing = await tell_standing(session_of(bold), ASK)
    board = await sync_to_async(read_leaderboard)(season, window="season", now=NOW)
    [row] = [row for row in board.rows if row.node == "bold"]
    assert (standing.rank, standing.remark, standing.n) == (None, "too_few", 8)
    assert_same(standing, row)


async def test_standing_of_a_base_node_has_a_remark_and_no_rank(
    season: Season, closed: Round
) -> None:
    base = Member(*await sync_to_async(make_node)("plain", arm=Node.Arm.BASE))
    await sync_to_async(make_score)(closed, base.node, correct=8)
    await sync_to_async(publish)(season)
    standing = await tell_standing(session_of(base), ASK)
    board = await sync_to_async(read_leaderboard)(season, window="season", now=NOW)
    assert (standing.rank, standing.remark) == (None, "base")
    assert_same(standing, board.base[0])


async def test_standing_of_a_quarantined_node_has_a_remark_and_its_score(
    season: Season, closed: Round, bold: Member
) -> None:
    await sync_to_async(make_score)(closed, bold.node, correct=8)
    await Node.objects.filter(pk=bold.node.pk).aupdate(quarantined=True)
    await sync_to_async(publish)(season)
    standing = await tell_standing(session_of(bold), ASK)
    row = await sync_to_async(read_line)(bold.node, season=season, window="season", now=NOW)
    assert (standing.rank, standing.remark, standing.score) == (None, "quarantined", 0.5)
    assert row is not None
    assert_same(standing, row)


async def test_standing_of_a_node_without_a_score_is_empty(season: Season, amber: Member) -> None:
    standing = await tell_standing(session_of(amber), ASK)
    assert standing == NodeStanding(
        reply_to="s",
        node="amber",
        rank=None,
        score=None,
        interval=None,
        n=0,
        rounds=0,
        external_used=0,
        ranked=0,
        published=0,
        delivered_to_others=0,
        used_by_others=0,
        hand_out="full",
    )


async def test_standing_contains_the_hand_out_weight(season: Season, amber: Member) -> None:
    await Conduct.objects.acreate(node=amber.node, season=season, level="withheld")
    assert (await tell_standing(session_of(amber), ASK)).hand_out == "withheld"


async def test_standing_and_page_show_the_same_contribution(
    season: Season, amber: Member, bold: Member
) -> None:
    rollouts = [make_rollout(season, rollout_id=f"r{n}") for n in range(5)]
    await publish_rollouts(amber.node, season_id=season.pk, rollouts=rollouts, now=NOW)
    for _ in range(2):
        await sample_rollouts(bold.node, season_id=season.pk, count=2, now=NOW)
    standing = await tell_standing(session_of(amber), ASK)
    assert (standing.published, standing.delivered_to_others) == (5, 4)
    report = await sync_to_async(read_report)(amber.node, now=NOW)
    assert report.contribution is not None
    assert report.contribution.published == standing.published
    assert report.delivered_to_others == standing.delivered_to_others
    other = await tell_standing(session_of(bold), ASK)
    assert other.delivered_to_others == 0
