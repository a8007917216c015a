"""A node's own row of the leaderboard, the same that the page shows."""

import pytest
from asgiref.sync import sync_to_async

from judge.models import Round, Season
from swarm_protocol.messages import NodeStanding, RequestStanding
from swarm_web.board.leaderboard import LeaderboardRow, read_leaderboard, read_row
from swarm_web.dashboard.reports.node import read_report
from swarm_web.gateway.handlers.standing import get_standing
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Conduct, Contribution
from tests.factories import make_node, make_rollout, make_round, make_score, publish
from tests.gateway.conftest import Member
from tests.gateway.sessions import NOW, session_of
from tests.relay.sharing import publish_rollouts, sample_rollouts

ASK = RequestStanding(id="s")


@pytest.fixture
def closed(season: Season, amber: Member) -> Round:
    """A closed round in which amber was judged; not published yet."""
    judged = make_round(season, phase=Round.Phase.CLOSED)
    make_score(judged, amber.node, correct=16)
    return judged


def assert_same(standing: NodeStanding, row: LeaderboardRow) -> None:
    """Check that what the node is told is what the leaderboard has."""
    for name in ("node", "rank", "score", "interval", "n", "rounds", "external_used", "remark"):
        assert getattr(standing, name) == getattr(row, name), name


async def test_a_standing_is_the_nodes_row_of_the_leaderboard(
    season: Season, closed: Round, bold: Member
) -> None:
    await sync_to_async(make_score)(closed, bold.node, correct=0)
    await sync_to_async(publish)(season)
    await Contribution.objects.acreate(season=season, node=bold.node, external_used=9)
    standing = await get_standing(session_of(bold), ASK)
    board = await sync_to_async(read_leaderboard)(season, window="season", now=NOW)
    [row] = [row for row in board.rows if row.node == "bold"]
    assert (standing.rank, standing.external_used) == ((2, 2), 9)
    assert_same(standing, row)


async def test_a_node_with_too_few_questions_is_told_so_instead_of_a_rank(
    season: Season, closed: Round, bold: Member
) -> None:
    await sync_to_async(make_score)(closed, bold.node, correct=8, n=8)
    await sync_to_async(publish)(season)
    standing = await get_standing(session_of(bold), ASK)
    board = await sync_to_async(read_leaderboard)(season, window="season", now=NOW)
    [row] = [row for row in board.rows if row.node == "bold"]
    assert (standing.rank, standing.remark, standing.n) == (None, "too_few", 8)
    assert_same(standing, row)


async def test_an_untrained_node_is_told_that_it_is_a_base_instead_of_a_rank(
    season: Season, closed: Round
) -> None:
    base = Member(*await sync_to_async(make_node)("plain", arm=Node.Arm.BASE))
    await sync_to_async(make_score)(closed, base.node, correct=8)
    await sync_to_async(publish)(season)
    standing = await get_standing(session_of(base), ASK)
    board = await sync_to_async(read_leaderboard)(season, window="season", now=NOW)
    assert (standing.rank, standing.remark) == (None, "base")
    assert_same(standing, board.base[0])


async def test_a_quarantined_node_is_told_so_and_still_sees_its_score(
    season: Season, closed: Round, bold: Member
) -> None:
    await sync_to_async(make_score)(closed, bold.node, correct=8)
    await Node.objects.filter(pk=bold.node.pk).aupdate(quarantined=True)
    await sync_to_async(publish)(season)
    standing = await get_standing(session_of(bold), ASK)
    row = await sync_to_async(read_row)(bold.node, season=season, window="season", now=NOW)
    assert (standing.rank, standing.remark, standing.score) == (None, "quarantined", 0.5)
    assert row is not None
    assert_same(standing, row)


async def test_a_node_that_was_not_judged_yet_has_an_empty_standing(
    season: Season, amber: Member
) -> None:
    standing = await get_standing(session_of(amber), ASK)
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


async def test_a_node_learns_that_its_rollouts_are_withheld(season: Season, amber: Member) -> None:
    await Conduct.objects.acreate(node=amber.node, season=season, level="withheld")
    assert (await get_standing(session_of(amber), ASK)).hand_out == "withheld"


async def test_a_standing_tells_what_the_node_gave_as_its_page_does(
    season: Season, amber: Member, bold: Member
) -> None:
    rollouts = [make_rollout(season, rollout_id=f"r{n}") for n in range(5)]
    await publish_rollouts(amber.node, season_id=season.pk, rollouts=rollouts, now=NOW)
    for _ in range(2):
        await sample_rollouts(bold.node, season_id=season.pk, count=2, now=NOW)
    standing = await get_standing(session_of(amber), ASK)
    assert (standing.published, standing.delivered_to_others) == (5, 4)
    report = await sync_to_async(read_report)(amber.node, now=NOW)
    assert report.contribution is not None
    assert report.contribution.published == standing.published
    assert report.delivered_to_others == standing.delivered_to_others
    told = await get_standing(session_of(bold), ASK)
    assert told.delivered_to_others == 0
